"""Rank metrics of one step's list against the query of that step, instead of the question; a judge gives the grades."""

from __future__ import annotations

from ragkit.metrics.ranking import LAWS, ndcg, precision
from ragkit.metrics.registry import metric
from ragkit.metrics.sums import Floats, RankBatch

_NO_QUERY = "the step shows no query, or no judge graded its passages"


@metric("query_precision@k", kind="ranking", undefined=_NO_QUERY, default_cut=5, laws=LAWS - {"perfect_is_one"},
        against="query", source="precision@k against the step's own query",
        formula="(sum over i <= k of relevant_i to the step's query) / k")
def query_precision(batch: RankBatch, k: int) -> Floats:
    """Passages in the top k of a step that are relevant to the step's own query, divided by k.

    A good sub-query finds what it asked for, though that is a part only of what the question needs.
    """
    return precision(batch, k)


@metric("query_ndcg@k", kind="ranking", undefined=_NO_QUERY, default_cut=5, laws=LAWS, against="query",
        source="ndcg@k against the step's own query",
        formula="ndcg@k with the grades for the step's query, its ideal from all that was graded for it")
def query_ndcg(batch: RankBatch, k: int) -> Floats:
    """ndcg of a step's list, with grades for the step's own query."""
    return ndcg(batch, k)
