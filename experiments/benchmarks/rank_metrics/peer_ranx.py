"""ranx: metrics compiled by numba."""

from __future__ import annotations

from collections.abc import Sequence

import ranx
from common import METRICS, Grades, Rankings, Values, Way, contender, scores_by_place

NAMES = {"hit": "hit_rate"}
THEIRS = {f"{NAMES.get(name.split('@')[0], name.split('@')[0])}@{name.split('@')[1]}": name for name in METRICS}


def score(qrels: ranx.Qrels, run: ranx.Run) -> dict[str, Sequence[float]]:
    return ranx.evaluate(qrels, run, list(THEIRS), return_mean=False, make_comparable=True)


def as_values(found: dict[str, Sequence[float]], questions: Sequence[str]) -> Values:
    return {THEIRS[name]: dict(zip(questions, map(float, column), strict=True)) for name, column in found.items()}


def files(qrels_path: str, run_path: str) -> Values:
    qrels = ranx.Qrels.from_file(qrels_path, kind="trec")
    found = score(qrels, ranx.Run.from_file(run_path, kind="trec"))
    return as_values(found, list(qrels.keys()))


def lists(rankings: Rankings, grades: Grades) -> list[Way]:
    def run() -> ranx.Run:
        return ranx.Run({question: scores_by_place(ids) for question, ids in rankings.items()})

    qrels, ready = ranx.Qrels(grades), run()
    questions = list(qrels.keys())
    return [Way("ranx, its objects built", lambda: score(ranx.Qrels(grades), run()), lambda f: as_values(f, questions)),
            Way("ranx, its objects given", lambda: score(qrels, ready), lambda f: as_values(f, questions))]


if __name__ == "__main__":
    contender(files, lists)
