"""Rank metrics that other tools give under a common name, with their other definition under a name of their own.

Also the two keyless context metrics on gold ids. The field's own definitions are in ranking.py.
"""

from __future__ import annotations

import numpy as np

from ragkit.metrics.ranking import LAWS, UNDEFINED, UNDEFINED_GRADED, normalized_gain, precision_sum
from ragkit.metrics.registry import metric
from ragkit.metrics.sums import Floats, RankBatch


@metric("ap_retrieved[@k]", kind="ranking", undefined=UNDEFINED, laws=LAWS - {"swap_up"},
        source="context precision of ragas and DeepEval; AutoRAG",
        formula="(sum over i <= k of rel_i * precision@i) / relevant documents in the top k", dialect_of="map",
        differs="divides by the relevant documents that were retrieved instead of R: for A, x1, B, x2, x3 and gold A, "
        "B, C ap_retrieved@5 is 0.833333, map@5 is 0.555556")
def ap_retrieved(batch: RankBatch, k: int | None) -> Floats:
    """As map, but divided by the relevant documents of the top k instead of R: blind to what was missed.

    0 where none was retrieved. A relevant document that comes in at the end of the cut may lower it.
    """
    found = batch.hits(k)
    return batch.where_relevant(precision_sum(batch, k) / np.maximum(found, 1))


@metric("ndcg_returned[@k]", kind="ranking", undefined=UNDEFINED_GRADED, laws=LAWS, source="Phoenix",
        formula="sum over i <= k of grade_i / log2(i + 1), divided by the same sum of the returned documents in their "
        "best order", dialect_of="ndcg",
        differs="the ideal order holds the returned documents only: for A, x1, B, x2, x3 and gold A, B, C "
        "ndcg_returned@5 is 0.919721, ndcg@5 is 0.703918")
def ndcg_returned(batch: RankBatch, k: int | None) -> Floats:
    """As ndcg, but the ideal is made of the returned documents alone: blind to what was missed.

    0 where nothing with a grade above 0 was returned.
    """
    return np.where(batch.peak > 0, np.nan_to_num(normalized_gain(batch.returned, k), nan=0.0), np.nan)


@metric("precision_returned@k", kind="ranking", undefined=UNDEFINED, laws=LAWS - {"padding"}, source="AutoRAG",
        formula="(sum over i <= k of rel_i) / documents returned in the top k", dialect_of="precision",
        differs="divides by what came back where that is less than k: for A, x and gold A precision_returned@5 is 0.5, "
        "precision@5 is 0.2")
def precision_returned(batch: RankBatch, k: int) -> Floats:
    """Relevant documents in the top k, divided by the documents that came back there; 0 when none did."""
    return batch.where_relevant(batch.hits(k) / np.maximum(batch.depth(k), 1))


@metric("id_context_precision", kind="ranking", undefined=UNDEFINED, needs_order=False,
        laws=LAWS - {"padding"}, source="ragas IDBasedContextPrecision",
        formula="(sum over all i of rel_i) / distinct ids returned", dialect_of="precision_set",
        differs="a repeated id counts once: for a, a, x and gold a, b id_context_precision is 0.5, precision_set is "
        "0.333333")
def id_context_precision(batch: RankBatch, k: None = None) -> Floats:
    """Relevant documents in the list, divided by its distinct ids; 0 when it is empty. Blind to the order.

    No judge is needed: exact from the gold ids.
    """
    return batch.where_relevant(batch.hits() / np.maximum(batch.distinct(), 1))


@metric("id_context_recall", kind="ranking", undefined=UNDEFINED, needs_order=False, laws=LAWS,
        source="ragas IDBasedContextRecall",
        formula="(sum over all i of rel_i) / R", dialect_of="recall",
        differs="in name only: for a, a, x and gold a, b id_context_recall is 0.5, recall is 0.5")
def id_context_recall(batch: RankBatch, k: None = None) -> Floats:
    """Relevant documents in the list, divided by R. Blind to the order; the same number as recall.

    No judge is needed: exact from the gold ids.
    """
    return batch.where_relevant(batch.hits() / np.maximum(batch.n_relevant, 1))
