"""Means and paired differences of all variants to the baseline, and what they could have shown. In numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragkit.comparison.context import Context, of_name, others
from ragkit.comparison.sides import GOLD, Side
from ragkit.metrics.noise import detectable_of_run, repeats_to_decide, variance_split
from ragkit.metrics.paired import ALPHA, Pair, PairedDifference, compare_pairs, holm
from ragkit.metrics.registry import Metric

RESAMPLES_OF_MEANS = 2000  # as in a run's own summary
_FIGURES = ("mean", "low", "high", "n_scored", "n_asked", "n_undefined", "n_failed")


def differences(sides: Sequence[Side], context: Context) -> dict[str, dict[str, dict[str, Any]]]:
    """metric -> variant -> difference to the baseline with interval, p, Holm's p, wins, and what would decide it.

    Holm counts all pairs of variant and metric. `corrected` is None here: labels may give one later.
    """
    base = of_name(sides, context.baseline)
    keys = [(metric, side) for metric in context.metrics for side in others(sides, context.baseline)]
    found = compare_pairs([_pair(base, side, metric, context) for metric, side in keys], context.seed)
    adjusted = holm([one.p for one in found])
    made: dict[str, dict[str, dict[str, Any]]] = {metric.name: {} for metric in context.metrics}
    for (metric, side), one, p_holm in zip(keys, found, adjusted, strict=True):
        made[metric.name][side.name] = _entry(one, p_holm) | {
            "repeats_to_decide": None if one.difference is None else repeats_to_decide(
                one.difference, context.repeats(base, metric.name), context.repeats(side, metric.name)),
            "corrected": None}
    return made


def _pair(base: Side, side: Side, metric: Metric, context: Context) -> Pair:
    return Pair(context.values(base, metric.name), context.values(side, metric.name), metric.definition.direction)


def _entry(one: PairedDifference, p_holm: float | None) -> dict[str, Any]:
    return {"difference": one.difference, "low": one.low, "high": one.high, "p": one.p, "p_holm": p_holm,
            "wins": one.wins, "ties": one.ties, "losses": one.losses, "n": one.n,
            "decided": p_holm is not None and p_holm < ALPHA, "questions_to_decide": one.questions_to_decide}


def means(sides: Sequence[Side], context: Context) -> dict[str, dict[str, dict[str, Any]]]:
    """metric -> variant -> mean with its interval and counts, on the compared questions.

    Where those are all that the run was asked, the figures are those of its own summary.
    """
    made: dict[str, dict[str, dict[str, Any]]] = {metric.name: {} for metric in context.metrics}
    own = {side.name: _own_means(side, context) for side in sides}
    fresh = _fresh_means([(side, metric.name) for side in sides for metric in context.metrics
                          if metric.name not in own[side.name]], context)
    for side in sides:
        for metric in context.metrics:
            made[metric.name][side.name] = own[side.name].get(metric.name) or fresh[side.name, metric.name]
    return made


def _own_means(side: Side, context: Context) -> dict[str, dict[str, Any]]:
    if len(side.asked) != len(context.questions):
        return {}
    kept = dict(side.summary.get("metrics") or {})
    beside = (side.summary.get("judged_labels") or {}).get("metrics") or {}
    if context.labels != GOLD:
        kept = {name: entry for name, entry in kept.items() if name not in side.by_gold} | dict(beside)
    return {name: {figure: entry[figure] for figure in _FIGURES} for name, entry in kept.items()
            if name in side.scores_by(context.labels)}


def _fresh_means(wanted: Sequence[tuple[Side, str]], context: Context) -> dict[tuple[str, str], dict[str, Any]]:
    """Means with intervals that all metrics on the same questions draw together: each for itself takes ten times as
    long."""
    values = [context.values(side, metric) for side, metric in wanted]
    drawn = compare_pairs([Pair(dict.fromkeys(own, 0.0), own) for own in values], context.seed, RESAMPLES_OF_MEANS,
                          test=False)
    return {(side.name, metric): {"mean": one.difference, "low": one.low, "high": one.high,
                                  **_counts(side, metric, context)}
            for (side, metric), one in zip(wanted, drawn, strict=True)}


def _counts(side: Side, metric: str, context: Context) -> dict[str, int]:
    """How many questions were scored, failed or undefined, as a summary counts them."""
    scored, rows = context.values(side, metric), side.scores_by(context.labels)[metric]
    unscored = [rows[question] for question in context.questions if question not in scored and question in rows]
    failed = sum(any(score.status == "failed" for score in repeats.values()) for repeats in unscored)
    return {"n_scored": len(scored), "n_asked": len(context.questions), "n_undefined": len(unscored) - failed,
            "n_failed": failed}


def spreads(sides: Sequence[Side], context: Context) -> dict[str, dict[str, Any]]:
    """variant -> what its run could detect, and where its spread comes from, by metric.

    `app` is of one question asked again, the judge's whims among it; `judge` stays None, since no judgement is asked
    twice.
    """
    made = {}
    for side in sides:
        repeats: Mapping[str, Mapping[str, Sequence[float]]] = {
            metric.name: context.repeats(side, metric.name) for metric in context.metrics}
        splits = {name: variance_split(values) for name, values in repeats.items()}
        made[side.name] = {
            "detectable": {name: detectable_of_run(values) for name, values in repeats.items()},
            "variance": {name: {"question": split.question, "app": split.app, "judge": None}
                         for name, split in splits.items()}}
    return made
