"""The numbers that a published study gives for its three runs come out of its files."""

from __future__ import annotations

import numpy as np
import pytest

from ragkit.metrics.batch import batch_of_run
from ragkit.metrics.ranking import score_arrays
from ragkit.metrics.registry import parse_all
from ragkit.records.readers.runfiles import read_judged_run
from ragkit.records.readers.trec import read_qrels
from ragkit.records.runs import JudgedRun, RunRules
from tests.support.data import data_folder

pytestmark = pytest.mark.data

PUBLISHED = {"bm25": (0.302, 0.874, 0.751), "dense": (0.502, 0.962, 0.869), "rerank": (0.654, 0.994, 0.948)}


def means(run: str, rules: RunRules, names: str = "allhit@5,hit@5,mrr@10") -> tuple[list[float], JudgedRun]:
    folder = data_folder("hotpotqa_val500_runs")
    qrels = read_qrels(folder / "qrels.trec")
    assert read_qrels(folder / "qrels.tsv") == qrels
    judged = read_judged_run(folder / f"run.{run}.trec.gz", qrels, rules)
    values = score_arrays(batch_of_run(judged, qrels), parse_all(names))
    assert values.shape[0] == 500 and not np.isnan(values).any()
    return values.mean(axis=0).tolist(), judged


@pytest.mark.parametrize("run", PUBLISHED)
def test_published_numbers_in_rank_order(run: str) -> None:
    found, _ = means(run, RunRules(ties="rank"))
    assert [round(value, 3) for value in found] == list(PUBLISHED[run])


def test_the_ties_of_the_dense_run_decide_its_mrr() -> None:
    """45 scores stand a second or later time in their question; trec_eval's rule orders them by id."""
    (by_id,), judged = means("dense", RunRules(ties="id"), "mrr@10")
    (by_rank,), _ = means("dense", RunRules(ties="rank"), "mrr@10")
    assert (round(by_id, 3), round(by_rank, 3)) == (0.868, 0.869)
    assert [note.count for note in judged.notes if note.kind == "ties"] == [45]
    _, untied = means("bm25", RunRules(), "mrr@10")
    assert [note for note in untied.notes if note.kind == "ties"] == []
