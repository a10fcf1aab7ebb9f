"""Rank metrics that other tools give under a common name, with their other definition under a name of their own.

Also the two keyless context metrics on gold ids. The field's own definitions are in ranking.py.
"""

from __future__ import annotations

import numpy as np

from ragkit.metrics.ranking import LAWS, normalized_gain, precision_sum
from ragkit.metrics.registry import metric
from ragkit.metrics.sums import Floats, RankBatch

_UNDEFINED = "no document reaches the level"


@metric("ap_retrieved[@k]", kind="ranking", undefined=_UNDEFINED, laws=LAWS - {"swap_up"},
        source="context precision of ragas and DeepEval; AutoRAG")
def ap_retrieved(batch: RankBatch, k: int | None) -> Floats:
    """As map, but divided by the relevant documents of the top k instead of R: blind to what was missed.

    0 where none was retrieved. A relevant document that comes in at the end of the cut may lower it.
    """
    found = batch.hits(k)
    return batch.where_relevant(precision_sum(batch, k) / np.maximum(found, 1))


@metric("ndcg_returned[@k]", kind="ranking", undefined="no grade is above 0", laws=LAWS, source="Phoenix")
def ndcg_returned(batch: RankBatch, k: int | None) -> Floats:
    """As ndcg, but the ideal is made of the returned documents alone: blind to what was missed.

    0 where nothing with a grade above 0 was returned.
    """
    return np.where(batch.peak > 0, np.nan_to_num(normalized_gain(batch.returned, k), nan=0.0), np.nan)


@metric("precision_returned@k", kind="ranking", undefined=_UNDEFINED, laws=LAWS, source="AutoRAG")
def precision_returned(batch: RankBatch, k: int) -> Floats:
    """Relevant documents in the top k, divided by the documents that came back there; 0 when none did."""
    return batch.where_relevant(batch.hits(k) / np.maximum(batch.depth(k), 1))


@metric("id_context_precision", kind="ranking", undefined=_UNDEFINED, needs_order=False, laws=LAWS,
        source="ragas IDBasedContextPrecision")
def id_context_precision(batch: RankBatch, k: None = None) -> Floats:
    """Relevant documents in the list, divided by its distinct ids; 0 when it is empty. Blind to the order.

    No judge is needed: exact from the gold ids.
    """
    return batch.where_relevant(batch.hits() / np.maximum(batch.distinct(), 1))


@metric("id_context_recall", kind="ranking", undefined=_UNDEFINED, needs_order=False, laws=LAWS,
        source="ragas IDBasedContextRecall")
def id_context_recall(batch: RankBatch, k: None = None) -> Floats:
    """Relevant documents in the list, divided by R. Blind to the order; the same number as recall.

    No judge is needed: exact from the gold ids.
    """
    return batch.where_relevant(batch.hits() / np.maximum(batch.n_relevant, 1))
