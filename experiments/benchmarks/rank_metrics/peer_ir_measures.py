"""ir-measures: one interface to several tools, pytrec_eval most of all."""

from __future__ import annotations

from collections.abc import Iterable

import ir_measures
from common import METRICS, Grades, Rankings, Values, Way, contender, scores_by_place

NAMES = {"precision": "P", "recall": "R", "mrr": "RR", "map": "AP", "ndcg": "nDCG", "hit": "Success"}
THEIRS = {ir_measures.parse_measure(f"{NAMES[name.split('@')[0]]}@{name.split('@')[1]}"): name for name in METRICS}


def as_values(found: Iterable[ir_measures.Metric]) -> Values:
    values: Values = {name: {} for name in METRICS}
    for one in found:
        values[THEIRS[one.measure]][one.query_id] = one.value
    return values


def files(qrels_path: str, run_path: str) -> Values:
    return as_values(ir_measures.iter_calc(list(THEIRS), ir_measures.read_trec_qrels(qrels_path),
                                           ir_measures.read_trec_run(run_path)))


def lists(rankings: Rankings, grades: Grades) -> list[Way]:
    return [Way("ir-measures, its dicts built", lambda: list(ir_measures.iter_calc(
        list(THEIRS), grades, {question: scores_by_place(ids) for question, ids in rankings.items()})), as_values)]


if __name__ == "__main__":
    contender(files, lists)
