"""What all contenders share: the fifteen metrics, the lists to score, and how a contender is called from run.py.

A contender is a script with two verbs: `files QRELS RUN` prints its values as JSON {metric: {question: value}}, in a
process of its own; `lists COUNT REPEATS` prints the seconds of each of its ways to score lists that are in memory.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

METRICS = ("precision@5", "precision@10", "recall@5", "recall@10", "recall@100", "recall@1000", "mrr@10", "map@10",
           "map@1000", "ndcg@5", "ndcg@10", "ndcg@1000", "hit@1", "hit@3", "hit@5")
# trec_eval has no cut for the reciprocal rank: it is cut afterwards, see cut_reciprocal_rank.
TREC_EVAL = {"precision": "P", "recall": "recall", "map": "map_cut", "ndcg": "ndcg_cut", "hit": "success"}
TREC_NAMES = {name: "recip_rank" if name == "mrr@10" else f"{TREC_EVAL[name.split('@')[0]]}_{name.split('@')[1]}"
              for name in METRICS}
TREC_MEASURES = ("P.5,10", "recall.5,10,100,1000", "recip_rank", "map_cut.10,1000", "ndcg_cut.5,10,1000",
                 "success.1,3,5")

MEAN = "(mean)"  # the one question of a tool that gives no value a question

Values = dict[str, dict[str, float]]
Rankings = dict[str, list[str]]
Grades = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Way:
    """One way to score lists: what it is called, the call that is timed, and its result as values."""

    label: str
    call: Callable[[], object]
    values: Callable[[object], Values]


def cut_reciprocal_rank(value: float, k: int = 10) -> float:
    """The reciprocal rank, 0 where the first hit stands below k.

    >>> cut_reciprocal_rank(1 / 10), cut_reciprocal_rank(1 / 11)
    (0.1, 0.0)
    """
    return value if value > 1 / (k + 0.5) else 0.0


def from_trec_names(found: Mapping[str, Mapping[str, float]]) -> Values:
    """question -> trec_eval's measure -> value, turned into our metric -> question -> value."""
    values: Values = {ours: {question: row[theirs] for question, row in found.items()}
                      for ours, theirs in TREC_NAMES.items()}
    values["mrr@10"] = {question: cut_reciprocal_rank(value) for question, value in values["mrr@10"].items()}
    return values


def scores_by_place(ids: Sequence[str]) -> dict[str, float]:
    """The dict of scores that keeps a list's order, for tools that take no lists."""
    return dict(zip(ids, range(len(ids), 0, -1), strict=True))


def make_lists(count: int, seed: int = 0) -> tuple[Rankings, Grades]:
    """Lists of 3 to 20 ids, and 1 to 3 relevant documents for each, most of which were returned."""
    rng = random.Random(seed)
    rankings: Rankings = {}
    grades: Grades = {}
    for number in range(count):
        question = f"question-{number}"
        ids = [f"doc-{i}" for i in rng.sample(range(100_000), rng.randint(3, 20))]
        gold = rng.randint(1, 3)
        chosen = [rng.choice(ids) if rng.random() < 0.8 else f"doc-{100_000 + i}" for i in range(gold)]
        rankings[question] = ids
        grades[question] = dict.fromkeys(chosen, 1)
    return rankings, grades


def best_seconds(call: Callable[[], object], repeats: int, enough: float = 10.0) -> float:
    """The least time of several calls, after one that is not counted; no more calls once they took `enough` seconds."""
    call()
    times: list[float] = []
    while len(times) < repeats and sum(times) < enough:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def contender(files: Callable[[str, str], Values] | None = None,
              lists: Callable[[Rankings, Grades], list[Way]] | None = None) -> None:
    """The command line of a contender."""
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    if files is not None:
        verb = verbs.add_parser("files")
        verb.add_argument("qrels")
        verb.add_argument("run")
    if lists is not None:
        verb = verbs.add_parser("lists")
        verb.add_argument("count", type=int)
        verb.add_argument("repeats", type=int)
    given = parser.parse_args()
    if given.verb == "files":
        assert files is not None
        json.dump(files(given.qrels, given.run), sys.stdout)
        return
    assert lists is not None
    rankings, grades = make_lists(given.count)
    json.dump([{"label": way.label, "seconds": best_seconds(way.call, given.repeats), "values": way.values(way.call())}
               for way in lists(rankings, grades)], sys.stdout)
