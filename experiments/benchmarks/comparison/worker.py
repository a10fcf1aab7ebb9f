"""One contender in a process of its own: python worker.py CONTENDER QUESTIONS. Prints its times as JSON.

Seeded values of 15 metrics of three variants; half of the questions score the same in all of them, as in life.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "mrr", "map", "recall@1", "recall@5", "recall@10", "hit@1", "hit@3", "hit@5",
           "precision@1", "precision@3", "precision@5", "precision@10")
DEPTH = 10
VARIANTS = {"base": 0.0, "second": 0.002, "third": 0.01}
RESAMPLES = 10_000
ONE_OF = 3  # scipy makes so many of the 30 differences: they take equally long


def values(questions: int) -> dict[str, np.ndarray[Any, Any]]:
    """variant -> (metric, question)."""
    random = np.random.default_rng(0)
    base = random.random((len(METRICS), questions))
    changed = random.random(base.shape) < 0.5
    return {name: np.where(changed, np.clip(base + random.normal(shift, 0.2, base.shape), 0, 1), base)
            for name, shift in VARIANTS.items()}


def sides(questions: int, with_lists: bool) -> list[Any]:
    """The variants as run files would give them: every score an object, five categories, two gold passages each.

    With lists, each variant's are ten of the question's twenty passages, in an order of its own; gold is among those.
    """
    from ragkit.comparison.sides import QuestionFacts, Side
    from ragkit.records.judgements import Score

    names = [f"q{number:05}" for number in range(questions)]
    grades = {name: {f"{name}-{gold}": 1.0 for gold in ("a", "b")} for name in names}
    facts = {name: QuestionFacts(name, f"What is {name}?", "abcde"[place % 5], n_gold=2, label_state="labelled",
                                 n_words=place % 30, grades=grades[name]) for place, name in enumerate(names)}
    made = []
    for number, (variant, table) in enumerate(values(questions).items()):
        scores = {metric: {name: {0: Score.scored(value)} for name, value in zip(names, row.tolist(), strict=True)}
                  for metric, row in zip(METRICS, table, strict=True)}
        order = np.argsort(np.random.default_rng(number).random((questions, 2 * DEPTH)), axis=1)[:, :DEPTH].tolist()
        lists = {name: tuple(f"{name}-{'abcdefghijklmnopqrst'[place]}" for place in row)
                 for name, row in zip(names, order, strict=True)}
        made.append(Side(variant, scores, {}, frozenset(METRICS), {"qrels": "labels"}, known_questions=facts,
                         read_lists=partial(dict, lists) if with_lists else None))
    return made


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    made = work()
    return made, {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def compare(questions: int, with_lists: bool = True) -> dict[str, float]:
    """Means with intervals, differences with tests, spreads and slices; with lists also holes, figures over k and all
    else that is said of lists."""
    from ragkit.comparison.compare import compare_sides

    given = sides(questions, with_lists)
    made, found = timed(lambda: compare_sides(given))
    return {**found, "differences": sum(len(one) for one in made.data["metrics"].values())}


def compare_pairs(questions: int) -> dict[str, float]:
    """The 30 differences alone: interval, test, wins."""
    from ragkit.metrics.paired import compare_pairs

    made, found = timed(lambda: compare_pairs(_pairs(questions), resamples=RESAMPLES))
    return {**found, "differences": len(made)}


def _pairs(questions: int) -> list[Any]:
    from ragkit.metrics.paired import Pair

    names = [f"q{number:05}" for number in range(questions)]
    tables = {variant: [dict(zip(names, row.tolist(), strict=True)) for row in table]
              for variant, table in values(questions).items()}
    return [Pair(tables["base"][place], tables[other][place]) for other in ("second", "third")
            for place in range(len(METRICS))]


def scipy_test(questions: int) -> dict[str, float]:
    """scipy's permutation_test, paired (signs are flipped), vectorised, in batches that keep to some 400 MB."""
    from scipy.stats import permutation_test

    from ragkit.metrics.paired import compare_pairs

    given = values(questions)
    chosen = range(ONE_OF)

    def work() -> list[float]:
        return [permutation_test((given["second"][place] - given["base"][place],), _mean, permutation_type="samples",
                                 n_resamples=RESAMPLES, vectorized=True, batch=2_000, rng=0).pvalue for place in chosen]

    made, found = timed(work)
    own = [one.p for one in compare_pairs(_pairs(questions)[:ONE_OF], resamples=RESAMPLES)]
    return {**found, "differences": ONE_OF,
            "p_apart": max(abs(p - q) for p, q in zip(made, own, strict=True) if q is not None)}


def scipy_bootstrap(questions: int) -> dict[str, float]:
    """scipy's bootstrap of the mean of the differences, percentile, for the interval."""
    from scipy.stats import bootstrap

    given = values(questions)
    _, found = timed(lambda: [bootstrap((given["second"][place] - given["base"][place],), _mean, batch=2_000, rng=0,
                                        n_resamples=RESAMPLES, vectorized=True, method="percentile")
                              for place in range(ONE_OF)])
    return {**found, "differences": ONE_OF}


def _mean(sample: Any, axis: int = -1) -> Any:
    return np.mean(sample, axis=axis)


if __name__ == "__main__":
    CONTENDERS = {"compare": compare, "compare, no lists": partial(compare, with_lists=False),
                  "compare_pairs": compare_pairs, "scipy permutation_test": scipy_test,
                  "scipy bootstrap": scipy_bootstrap}
    print(json.dumps(CONTENDERS[sys.argv[1]](int(sys.argv[2]))))
