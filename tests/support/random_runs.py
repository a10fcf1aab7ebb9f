"""Random qrels and runs that hold what rank tools trip over, and what trec_eval (through pytrec_eval) says of them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragkit.metrics.registry import parse

CUTS = (1, 2, 3, 5, 10, 100)
PLAIN = {"map": "map", "ndcg": "ndcg", "mrr": "recip_rank", "precision_set": "set_P", "recall": "set_recall"}
CUT = {"map": "map_cut", "ndcg": "ndcg_cut", "precision": "P", "recall": "recall", "hit": "success"}
THEIRS = PLAIN | {f"{ours}@{k}": f"{theirs}_{k}" for k in CUTS for ours, theirs in CUT.items()}
MEASURES = {*PLAIN.values(), *(f"{name}.{','.join(map(str, CUTS))}" for name in CUT.values())}
METRICS = [parse(name) for name in THEIRS]

# Byte order is not the order of UTF-16 (\uff5e comes before \U0001f600); the two forms of é are two ids.
HARD_IDS = ("007", "7", "D#1", "#2", '"q"', "a,b", "back\\slash", "é", "e\u0301", "\uff5e", "\U0001f600",
            "a\u200bb", "no\u00a0break", "知識", "NaN", "0")
WILD = (math.inf, -math.inf, 1e39, 3.5e38, 2e39, -1e300, 0.0, -0.0, 5e-324, 1e-46, 1e-30, 1.0, 16777216.0, 16777217.0)


@dataclass(frozen=True)
class Case:
    """Labels, and the rows of a run, which stand in no order. Some questions stand in one of the two only."""

    qrels: dict[str, dict[str, int]]
    rows: list[tuple[str, str, float]]

    @property
    def run(self) -> dict[str, dict[str, float]]:
        run: dict[str, dict[str, float]] = {}
        for question, document, score in self.rows:
            run.setdefault(question, {})[document] = score
        return run


def random_case(seed: int, questions: int = 6) -> Case:
    rng = random.Random(seed)
    pool = [*HARD_IDS, *{"".join(rng.choices("abz09é知😀ß-_", k=rng.randint(2, 4))) for _ in range(40)} - {*HARD_IDS}]
    pool.sort()  # a set has no order that a seed fixes
    qrels: dict[str, dict[str, int]] = {}
    rows: list[tuple[str, str, float]] = []
    for number in range(questions):
        question = f"問{number}" if number % 2 else f"{number:03d}"
        state = rng.choice(("both", "both", "both", "both", "no run", "no qrels", "nothing relevant"))
        grades = (-2, -1, 0) if state == "nothing relevant" else (-2, -1, 0, 0, 1, 1, 2, 3)
        if state != "no qrels":
            first, *others = rng.sample(pool, rng.randint(1, 15))  # trec_eval reads stray memory where all are below 0
            qrels[question] = {first: rng.choice(grades[2:])} | {i: rng.choice(grades) for i in others}
        if state != "no run":
            returned = rng.sample(pool, rng.choice((1, 2, 5, 20, 40)))
            rows += [(question, i, score) for i, score in zip(returned, _scores(rng, len(returned)), strict=True)]
    if not qrels.keys() & {question for question, _, _ in rows}:
        return random_case(seed + 1_000_003, questions)
    rng.shuffle(rows)
    return Case(qrels, rows)


def _scores(rng: random.Random, count: int) -> list[float]:
    kind = rng.choice(("few", "near", "any", "wild", "equal"))
    if kind == "few":
        return [rng.randint(-4, 12) / 8 for _ in range(count)]
    if kind == "near":  # float32 has steps of 2^-19 here, so eight of these fall together
        return [20 + rng.randint(0, 60) * 2.0**-22 for _ in range(count)]
    if kind == "any":
        return [rng.gauss(0, 3) for _ in range(count)]
    return rng.choices(WILD, k=count) if kind == "wild" else [rng.random()] * count


def in_trec_order(scores: dict[str, float], wide: bool = False) -> list[str]:
    """The ids best first, as trec_eval 9 orders them: scores as float32 (`wide`: as float64), ties by id descending."""
    with np.errstate(over="ignore"):
        seen = dict(scores) if wide else {i: float(np.float32(score)) for i, score in scores.items()}
    return sorted(scores, key=lambda i: (seen[i], i.encode()), reverse=True)


def oracle_values(case: Case, level: int, judged_only: bool = False) -> NDArray[np.float64]:
    """trec_eval's value of METRICS for every question of the qrels; 0 where the run holds nothing for it."""
    import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(case.qrels, MEASURES, level, judged_docs_only_flag=judged_only)
    found = evaluator.evaluate(case.run)
    zeros = dict.fromkeys(THEIRS.values(), 0.0)
    return np.array([[found.get(question, zeros)[name] for name in THEIRS.values()] for question in case.qrels])


def undefined(case: Case, level: int) -> NDArray[np.bool_]:
    """Where a metric has no value for a question, which trec_eval counts as 0: nothing reaches the level, or, for
    ndcg, no grade is above 0."""
    best = np.array([[max(row.values())] for row in case.qrels.values()])
    needed = np.array([1 if name.startswith("ndcg") else level for name in THEIRS])
    return best < needed


def assert_equal(ours: NDArray[np.float64], case: Case, level: int, where: object, judged_only: bool = False) -> int:
    """Ours, a row a question of the qrels, are trec_eval's to 1e-9 and undefined where they should be. How many."""
    expected = oracle_values(case, level, judged_only)
    assert ours.shape == expected.shape, where
    assert np.array_equal(np.isnan(ours), undefined(case, level)), where
    off = np.argwhere(np.abs(np.nan_to_num(ours) - expected) > 1e-9)
    assert not len(off), _told(off[0], ours, expected, case, where)
    return ours.size


def _told(place: Sequence[int], ours: NDArray[np.float64], expected: NDArray[np.float64], case: Case,
          where: object) -> str:
    row, column = place
    question = list(case.qrels)[row]
    return (f"{where}: {METRICS[column].name} of {question!r} is {ours[row, column]}, "
            f"trec_eval's {expected[row, column]}; grades {case.qrels[question]}, run {case.run.get(question)}")
