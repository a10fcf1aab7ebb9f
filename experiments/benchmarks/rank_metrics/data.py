"""Makes the files of the benchmark, seeded: a run shaped like MS MARCO's development set, and variants of it."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

PASSAGES = 8_841_823
QUESTION_IDS = 1_100_000


def make(folder: Path, questions: int, depth: int, seed: int) -> None:
    """run.sorted, .shuffled, .equal (every score the same), .half (the first half of the questions); qrels.sparse
    (about 1.07 judged a question), .dense (100 judged a question, grades 0 to 3)."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    sparse: list[str] = []
    dense: list[str] = []
    for question in np.sort(rng.choice(QUESTION_IDS, questions, replace=False)).tolist():
        drawn = rng.choice(PASSAGES, depth + 40, replace=False)
        documents, others = drawn[:depth].tolist(), drawn[depth:].tolist()
        scores = np.sort(rng.random(depth) * 20)[::-1].tolist()
        lines += [f"{question} Q0 {document} {rank} {score:.4f} lucene\n"
                  for rank, (document, score) in enumerate(zip(documents, scores, strict=True), start=1)]
        gold = {documents[min(int(rng.exponential(30)), depth - 1)] if rng.random() < 0.85 else others[number]
                for number in range(1 + (rng.random() < 0.07))}
        sparse += [f"{question} 0 {document} 1\n" for document in sorted(gold)]
        found = rng.choice(depth, min(60, depth), replace=False).tolist()
        judged = [documents[place] for place in found] + others
        dense += [f"{question} 0 {document} {grade}\n"
                  for document, grade in zip(judged, rng.integers(0, 4, len(judged)).tolist(), strict=True)]
    _write(folder / "qrels.sparse", sparse)
    _write(folder / "qrels.dense", dense)
    _write(folder / "run.sorted", lines)
    _write(folder / "run.half", lines[: questions // 2 * depth])
    _write(folder / "run.equal", [_with_score(line, "1.0000") for line in lines])
    rng.shuffle(order := np.arange(len(lines)))
    _write(folder / "run.shuffled", [lines[place] for place in order.tolist()])


def _with_score(line: str, score: str) -> str:
    question, iteration, document, rank, _, name = line.split(" ")
    return " ".join((question, iteration, document, rank, score, name))


def _write(path: Path, lines: list[str]) -> None:
    with path.open("w", encoding="ascii") as file:
        file.writelines(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=6980)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    make(given.folder, given.questions, given.depth, given.seed)
