"""Scores beside pairs that were not judged: given where these cannot move them, else failed. Computes no metric.

A metric that moves one way with each grade of its own list (precision, recall over statements) is given where the best
and the worst that the judge could have said come to the same. One that is divided by an ideal, or that compares lists,
does not: a grade in between may give less than both, and a passage that only another list holds may move it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose

from ragkit.evaluation.relevance import NO_TEXT
from ragkit.metrics.registry import parse
from ragkit.records.judgements import Score

ONE_WAY = {"precision", "precision_set", "precision_returned", "id_context_precision", "hit", "mrr", "dcg",
            "first_relevant_rank", "query_precision", "recall", "allhit", "cumulative_recall", "aucr",
            "steps_to_evidence", "overrun", "cost_per_evidence", "sdcg"}
_OWN_IDEAL = {"ap_retrieved", "ndcg_returned"}  # divided by what the list itself holds
_STATEMENTS = {"marginal_recall", "step_efficiency", "survival"}  # compare lists, whatever else the pool holds
_GRADELESS = {"novelty", "redundancy", "judged", "query_drift"}


@dataclass(frozen=True)
class Unjudged:
    """Why passages have no grade: `own` of the list (or of all lists of a trajectory), by name, of `count` passages;
    `pool` of the whole pool of the question, by the text's hash."""

    own: Mapping[str, str]
    count: int
    pool: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.own or self.pool)

    def sure(self, metric: str, low: Score, high: Score) -> Score:
        """The score of a metric, given what it is with the worst and with the best grades for what was not judged.

        >>> Unjudged({"d": "refused"}, 3, {}).sure("map", Score.scored(1), Score.scored(1)).status
        'failed'
        >>> Unjudged({"d": "refused"}, 3, {}).sure("hit@3", Score.scored(1), Score.scored(1)).status
        'scored'
        """
        name = parse(metric).definition.name
        if name in _GRADELESS or (low.status == high.status == "undefined"):
            return low
        local = name in ONE_WAY | _OWN_IDEAL | _STATEMENTS
        same = low.status == high.status and (low.value is None or isclose(low.value, high.value or 0.0, abs_tol=1e-12))
        if (name in ONE_WAY and same) or (local and not self.own):
            return low
        textless = {place: reason for place, reason in self.own.items() if reason == NO_TEXT}
        missing = {**self.pool, **textless} if self.pool and not local else self.own
        where = "passages" if local else "passages of the question's pool"
        reasons = [reason for reason in missing.values() if reason != NO_TEXT]
        if not reasons:
            return Score.undefined(f"{len(textless)} of {self.count} passages have {NO_TEXT}")
        total = f" of {self.count}" if local else ""
        return Score.failed(f"{len(missing)}{total} {where} not judged: {reasons[0]}")

    def sure_path(self, metric: str, low: Score | list[Score], high: Score | list[Score]) -> Score | list[Score]:
        """As `sure`, of a metric that may have a score a step."""
        if isinstance(low, Score) or isinstance(high, Score):
            assert isinstance(low, Score) and isinstance(high, Score), "a metric has one score, or one a step"
            return self.sure(metric, low, high)
        return [self.sure(metric, before, after) for before, after in zip(low, high, strict=True)]
