"""The rank metrics as trec_eval defines them, and the one place that says which of them a list may be given.

The arrays are built in batch.py; metrics of the same name that other tools define otherwise are in dialects.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ragkit.errors import DataError, describe
from ragkit.metrics.batch import RankedIds, batch_of_lists, batch_of_run, build_batch
from ragkit.metrics.registry import Definition, Metric, metric
from ragkit.metrics.sums import Bools, Floats, Ints, RankBatch
from ragkit.records.judgements import Score

__all__ = ["RankBatch", "RankedIds", "batch_of_lists", "batch_of_run", "build_batch", "score_arrays", "score_batch"]

NO_RELEVANT: Final = "no relevant document"
NO_ORDER: Final = "no order"
NO_CUT: Final = "union, no cut"

_COMMON: Final = frozenset({"in_range", "deterministic", "rename", "batch_equals_single"})
LAWS: Final = _COMMON | {"perfect_is_one", "swap_up", "nothing_relevant_undefined", "empty_is_zero", "padding"}
UNDEFINED: Final = "no document reaches the level"
UNDEFINED_GRADED: Final = "no grade is above 0"
_SCALED_FROM: Final = 512.0  # grades from which 2^grade is scaled down
_TINY: Final = 1e-3  # grades below which 2^grade - 1 would lose digits
_GAIN: Final = {False: "grade / log2(rank + 1)", True: "(2^grade - 1) / log2(rank + 1)"}


def score_arrays(batch: RankBatch, metrics: Sequence[Metric]) -> Floats:
    """The values of all metrics of all rankings, (n rankings, n metrics), NaN where undefined.

    >>> from ragkit.metrics.registry import parse_all
    >>> batch = build_batch([RankedIds("q", ["b", "x", "a"])], {"q": {"a": 3, "b": 2, "c": 1}})
    >>> score_arrays(batch, parse_all("ndcg@3,mrr")).round(6).tolist()
    [[0.735007, 1.0]]
    """
    columns = np.empty((len(metrics), len(batch)))
    some_refused = not (batch.labelled.all() and batch.ranked.all() and batch.cuttable.all())
    for column, asked in zip(columns, metrics, strict=True):
        _require_ranking(asked)
        own = asked.definition.function.__module__.startswith("ragkit.")
        column[:] = asked.definition.function(batch, asked.k) if own else _checked(batch, asked)
        if some_refused:
            column[~batch.labelled | _without_order(batch, asked) | _without_cut(batch, asked)] = np.nan
    return columns.T


def _checked(batch: RankBatch, asked: Metric) -> Floats:
    """The values of a metric from outside, held to what it declared; its faults are told as its own."""
    try:
        values = np.asarray(asked.definition.function(batch, asked.k), dtype=np.float64)
    except Exception as error:  # of a foreign function: whatever it raises
        raise DataError(f"metric {asked.name}: its function failed: {describe(error)}") from error
    if values.shape != (len(batch),):
        raise DataError(f"metric {asked.name}: expected an array of {len(batch)} values, one a ranking, got the shape "
                        f"{values.shape}")
    low, high = asked.definition.range
    outside = values[(values < (-np.inf if low is None else low)) | (values > (np.inf if high is None else high))]
    if len(outside):
        raise DataError(f"metric {asked.name}: expected values in its range {asked.definition.range}, got "
                        f"{outside[0]:g}")
    return values


def score_batch(batch: RankBatch, metrics: Sequence[Metric]) -> list[list[Score]]:
    """The score of every ranking and metric, [ranking][metric], with the reason where it is undefined.

    A list without order has set metrics only; a union has no cut; a question without labels has nothing.

    >>> from ragkit.metrics.registry import parse_all
    >>> batch = build_batch([RankedIds("q", ["a"], ranked=False)], {"q": {"a": 1}})
    >>> [(score.value, score.reason) for score in score_batch(batch, parse_all("recall,mrr"))[0]]
    [(1.0, None), (None, 'no order')]
    """
    columns = [_column(batch, asked, values) for asked, values in
               zip(metrics, score_arrays(batch, metrics).T, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(len(batch))]


def _column(batch: RankBatch, asked: Metric, values: Floats) -> list[Score]:
    without_order, without_cut = _without_order(batch, asked), _without_cut(batch, asked)
    needs_relevant = "nothing_relevant_undefined" in asked.definition.laws
    scores = []
    for i, value in enumerate(values.tolist()):
        if not math.isnan(value):
            scores.append(Score.scored(value))
        elif not batch.labelled[i]:
            scores.append(Score.undefined(batch.reasons[i]))
        elif without_order[i]:
            scores.append(Score.undefined(NO_ORDER))
        elif without_cut[i]:
            scores.append(Score.undefined(NO_CUT))
        elif needs_relevant and batch.n_relevant[i] == 0:
            scores.append(Score.undefined(NO_RELEVANT))
        else:
            scores.append(Score.undefined(asked.definition.otherwise))
    return scores


def _without_order(batch: RankBatch, asked: Metric) -> Bools:
    needed = asked.definition.needs_order or asked.k is not None
    return ~batch.ranked & needed


def _without_cut(batch: RankBatch, asked: Metric) -> Bools:
    return ~batch.cuttable & (asked.k is not None)


def _require_ranking(asked: Metric) -> None:
    definition: Definition = asked.definition
    if definition.kind != "ranking":
        raise DataError(f"metric {asked.name}: expected a rank metric, got one of kind {definition.kind}")


@metric("hit[@k]", kind="ranking", undefined=UNDEFINED, needs_order=False, laws=LAWS,
        aliases=("Success", "hit_rate"), source="trec_eval success",
        formula="1 if rel_i = 1 for some i <= k, else 0")
def hit(batch: RankBatch, k: int | None) -> Floats:
    """1 if any relevant document stands in the top k, else 0.

    Did anything useful come back; blind to the order and to all that is missing.
    """
    return batch.where_relevant(batch.hits(k) > 0)


@metric("precision@k", kind="ranking", undefined=UNDEFINED, laws=LAWS - {"perfect_is_one"}, aliases=("P",),
        source="trec_eval P",
        formula="(sum over i <= k of rel_i) / k")
def precision(batch: RankBatch, k: int) -> Floats:
    """Relevant documents in the top k, divided by k, also where fewer than k came back.

    The noise in a prompt of k places. A perfect list has R / k where k > R.
    """
    return batch.where_relevant(batch.hits(k) / k)


@metric("precision_set", kind="ranking", undefined=UNDEFINED, needs_order=False, laws=LAWS - {"padding"},
        source="trec_eval set_P",
        formula="(sum over all i of rel_i) / number returned")
def precision_set(batch: RankBatch, k: None = None) -> Floats:
    """Relevant documents returned, divided by all returned; 0 when nothing came back.

    Needs no order: right for an agent's context. A repeated copy counts as returned and gains nothing.
    """
    return batch.where_relevant(batch.hits() / np.maximum(batch.depth(), 1))


@metric("recall[@k]", kind="ranking", undefined=UNDEFINED, needs_order=False, laws=LAWS, aliases=("R",),
        source="trec_eval recall, set_recall",
        formula="(sum over i <= k of rel_i) / R")
def recall(batch: RankBatch, k: int | None) -> Floats:
    """Relevant documents in the top k, divided by R, all relevant documents of the question.

    How much of the evidence came back, for answers that need several passages.
    """
    return batch.where_relevant(batch.hits(k) / np.maximum(batch.n_relevant, 1))


@metric("allhit[@k]", kind="ranking", undefined=UNDEFINED, needs_order=False, laws=LAWS, aliases=("Full",),
        source="multi-hop retrieval, path recall",
        formula="1 if (sum over i <= k of rel_i) = R, else 0")
def allhit(batch: RankBatch, k: int | None) -> Floats:
    """1 if all R relevant documents stand in the top k, else 0: the evidence is complete."""
    return batch.where_relevant(batch.hits(k) == batch.n_relevant)


@metric("mrr[@k]", kind="ranking", undefined=UNDEFINED, laws=LAWS, aliases=("RR", "recip_rank"),
        source="trec_eval recip_rank",
        formula="1 / i of the first rel_i = 1 if that i <= k, else 0")
def mrr(batch: RankBatch, k: int | None) -> Floats:
    """1 / rank of the first relevant document, 0 where none stands in the top k.

    Of one question it is the reciprocal rank; the mean is MRR. 0.5 is a harmonic-mean first rank of 2, not
    "usually rank 2".
    """
    first = batch.first_hit
    return batch.where_relevant(np.where(first <= (np.inf if k is None else k), 1.0 / first, 0.0))


@metric("map[@k]", kind="ranking", undefined=UNDEFINED, laws=LAWS, aliases=("AP",),
        source="trec_eval map, map_cut",
        formula="(sum over i <= k of rel_i * precision@i) / R")
def average_precision(batch: RankBatch, k: int | None) -> Floats:
    """The precision at each relevant document of the top k, summed, divided by R, also with a cut.

    Of one question it is the average precision; the mean is MAP. For binary labels, when all relevant passages
    should stand high.
    """
    return batch.where_relevant(precision_sum(batch, k) / np.maximum(batch.n_relevant, 1))


@metric("dcg[@k]", kind="ranking", undefined=UNDEFINED_GRADED, range=(0.0, None), laws=LAWS - {"perfect_is_one"},
        source="Järvelin & Kekäläinen 2002, with log2(i + 1)",
        formula="sum over i <= k of grade_i / log2(i + 1), a grade below 0 counts as 0")
def dcg(batch: RankBatch, k: int | None) -> Floats:
    """The sum over the top k of grade / log2(rank + 1): gain that fades with the rank, not normalised.

    Grades below 0 gain nothing.
    """
    return np.where(batch.peak > 0, _gained(batch, k, False), np.nan)


@metric("ndcg[@k]", kind="ranking", undefined=UNDEFINED_GRADED, laws=LAWS,
        source="trec_eval ndcg, ndcg_cut; Järvelin & Kekäläinen 2002",
        formula="sum over i <= k of grade_i / log2(i + 1), divided by the same sum of the ideal order")
def ndcg(batch: RankBatch, k: int | None) -> Floats:
    """dcg divided by the dcg of the ideal order of all judged documents, both cut at k; the gain is the grade.

    For graded labels, or where the fine order matters. The level never touches it.
    """
    return normalized_gain(batch, k)


@metric("ndcg_exp[@k]", kind="ranking", undefined=UNDEFINED_GRADED, laws=LAWS, source="Burges et al. 2005",
        formula="sum over i <= k of (2^grade_i - 1) / log2(i + 1), divided by the same sum of the ideal order",
        dialect_of="ndcg", differs="the gain is 2^grade - 1 instead of the grade: for b, x, a with grades b = 2, a = 3 "
        "and c = 1 (missed) ndcg_exp@3 is 0.692020, ndcg@3 is 0.735007")
def ndcg_exp(batch: RankBatch, k: int | None) -> Floats:
    """As ndcg, with the gain 2^grade - 1: the highest grades weigh far more."""
    return normalized_gain(batch, k, exponential=True)


@metric("judged[@k]", kind="ranking", undefined="nothing was returned", otherwise="nothing returned", direction="none",
        needs_order=False, laws=_COMMON | {"perfect_is_one"}, source="ir-measures Judged",
        formula="judged documents in the top k / distinct documents returned there")
def judged(batch: RankBatch, k: int | None) -> Floats:
    """Judged documents in the top k, divided by the documents returned there: the rest are holes in the labels.

    Repeated copies count on neither side.
    """
    returned = batch.distinct(k)
    return np.where(returned > 0, batch.total(~batch.copies, k, "judged documents") / np.maximum(returned, 1), np.nan)


@metric("first_relevant_rank", kind="ranking", undefined="nothing relevant was returned", otherwise="not reached",
        range=(1.0, None), direction="lower", laws=LAWS - {"empty_is_zero"},
        source="rank of the first relevant document", formula="i of the first rel_i = 1")
def first_relevant_rank(batch: RankBatch, k: None = None) -> Floats:
    """The rank of the first relevant document, from 1.

    Lower is better. Read it with the share of questions that reached one at all.
    """
    return batch.where_relevant(np.where(np.isfinite(batch.first_hit), batch.first_hit, np.nan))


def precision_sum(batch: RankBatch, k: int | None) -> Floats:
    """The sum over the relevant documents of the top k of the precision at their rank."""
    values = batch.once("precision", lambda: np.where(batch.relevant, batch.hits_so_far / batch.ranks, 0.0))
    return batch.once(("precision", k), lambda: batch.total(values, k, "precision at each relevant document"))


def normalized_gain(batch: RankBatch, k: int | None, exponential: bool = False) -> Floats:
    """Discounted gain over that of the batch's ideal; NaN where the ideal has none."""
    terms = batch.once(("ideal gain", exponential), lambda: _discounted(
        batch.ideal_grades, batch.ideal_ranks, batch.ideal_peak[batch.ideal_questions], exponential))
    ideal = batch.ideal_total(terms, k, _GAIN[exponential])
    positive = ideal > 0
    share = _gained(batch, k, exponential) / np.where(positive, ideal, 1.0)
    return np.where(positive, np.minimum(share, 1.0), np.nan)


def _gained(batch: RankBatch, k: int | None, exponential: bool) -> Floats:
    terms = batch.once(("gain", exponential), lambda: _discounted(
        batch.grades, batch.ranks, batch.peak[batch.rows], exponential))
    return batch.total(terms, k, _GAIN[exponential])


def _discounted(grades: Floats, ranks: Ints, peaks: Floats, exponential: bool) -> Floats:
    gains = np.maximum(grades, 0.0)
    if exponential:
        # 2^grade overflows at 1024; the ratio of two gains is the same when both are scaled down by the largest one.
        scale = np.where(peaks > _SCALED_FROM, peaks, 0.0)
        tiny = np.expm1(np.minimum(gains, _TINY) * np.log(2)) * np.exp2(-scale)
        gains = np.where(gains < _TINY, tiny, np.exp2(gains - scale) - np.exp2(-scale))
    discounted: Floats = gains / _discounts(ranks)
    return discounted


def _discounts(ranks: Ints) -> Floats:
    last = int(ranks.max(initial=0))
    few = last <= len(ranks)  # then ranks repeat: a logarithm a rank, not an item
    found: Floats = np.log2(np.arange(last + 1) + 1.0)[ranks] if few else np.log2(ranks + 1.0)
    return found
