"""Calibrated thresholds in a run: which files fit it, and the share of questions that reach them beside the mean.

How a threshold is chosen, and what it is worth, is in judge/calibration.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.judge.calibration import Threshold, read_threshold, threshold_from_json
from ragkit.judge.offline import OFFLINE_JUDGE
from ragkit.metrics.registry import Metric, parse
from ragkit.metrics.statistics import summarize
from ragkit.records.judgements import Score

Given = str | Path | Threshold


def run_thresholds(given: Given | Sequence[Given] | None, known: Mapping[str, Any],
                   metrics: Iterable[Metric]) -> tuple[Threshold, ...]:
    """The thresholds of a run, one a metric: those given, after those that its folder holds.

    Raises DataError for two of one metric, and for one whose metric is not measured or that was made with another
    judge than the one that always scores that metric.
    """
    found = {one.metric: one for one in kept_thresholds(known)}
    new = [one if isinstance(one, Threshold) else read_threshold(one)
           for one in ([given] if isinstance(given, Given) else given or ())]
    for place, one in enumerate(new):
        if one.metric in {other.metric for other in new[:place]}:
            raise DataError(f"threshold: two files for {one.metric}; expected one a metric")
        found[one.metric] = one
    measured = {metric.name: metric for metric in metrics}
    for name, one in found.items():
        if name not in measured:
            raise DataError(f"threshold: is for {name}, which is not measured; add -m {name}, or leave the file out")
        kind = measured[name].definition.kind
        if kind not in ("judged", "answer"):
            raise DataError(f"threshold: {name} is no score of an answer; expected a judged or a keyless answer metric")
        if kind == "answer" and not one.applies_to(OFFLINE_JUDGE, None):
            raise _other_judge(one, OFFLINE_JUDGE)
    return tuple(found.values())


def require_judge(thresholds: Iterable[Threshold], name: str | None, fingerprint: str | None) -> None:
    """Raise DataError where a threshold was made with another judge than the run's; `name` None: the run has none."""
    for one in thresholds:
        if parse(one.metric).definition.kind != "judged":
            continue
        if name is None:
            raise DataError(f"threshold: {one.metric} needs a judge: add --judge, the one that the threshold was made "
                            f"with ({one.judge['name']})")
        if not one.applies_to(name, fingerprint):
            raise _other_judge(one, name)


def add_shares(summary: dict[str, Any], rows: Iterable[ScoreRow], thresholds: Iterable[Threshold],
               seed: int = 0) -> None:
    """Put beside each mean the share of questions whose score reaches the threshold, with its held-out figures."""
    at_the_end = [row for row in rows if row.step == FINAL]
    for one in thresholds:
        entry = summary["metrics"].get(one.metric)
        if entry is None:
            continue
        reached = [(row.question_id, row.score if row.value is None else Score.scored(row.value >= one.threshold))
                   for row in at_the_end if row.metric == one.metric]
        found = summarize(reached, (0, 1), seed=seed)
        entry["above_threshold"] = {
            "threshold": one.threshold, "share": found.mean, "low": found.low, "high": found.high,
            "n_scored": found.n_scored, "worst": found.worst, "best": found.best,
            "chosen_on": dict(one.chosen_on), "held_out": dict(one.held_out)}


def kept_thresholds(run: Mapping[str, Any]) -> tuple[Threshold, ...]:
    """The thresholds that run.json holds."""
    return tuple(threshold_from_json(one, "run.json: thresholds") for one in run.get("thresholds") or ())


def _other_judge(one: Threshold, name: str) -> DataError:
    print_ = (one.judge.get("fingerprint") or "")[:8]
    where = f" at {one.judge['endpoint']}" if one.judge.get("endpoint") else ""
    return DataError(f"threshold: was made with {one.judge['name']}{where}{f' ({print_})' if print_ else ''}, and the "
                     f"judge of {one.metric} here is {name} (or has other parameters); calibrate one for it with "
                     "ragkit agreement --calibrate")
