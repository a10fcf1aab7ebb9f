"""Differences of judged metrics corrected by what people labelled in both variants. Draws and imports no labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragkit.comparison.context import Context, of_name, others
from ragkit.comparison.sides import Side
from ragkit.evaluation.label_difference import difference_of_labels, labels_of
from ragkit.evaluation.runfolder import RunFolder
from ragkit.metrics.registry import Metric, parse


def corrections(sides: Sequence[Side], context: Context) -> dict[tuple[str, str], dict[str, Any]]:
    """(metric, variant) -> the corrected difference, where people labelled that metric in the baseline and the variant.

    It is of all questions that each run asked.
    """
    base = of_name(sides, context.baseline)
    found = {}
    for metric in _labelled(base, context.metrics):
        for side in others(sides, context.baseline):
            if metric in _labelled(side, context.metrics):
                found[metric.name, side.name] = _corrected(base, side, metric)
    return found


def _labelled(side: Side, metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics that people labelled in this run, which is opened only where there are labels."""
    has_labels = side.folder is not None and RunFolder(side.folder).labels.exists()
    if not (has_labels or side.summary.get("corrected")) or side.past is None:
        return []
    named = {parse(label.metric) for label in side.past.plan.labels}
    return [metric for metric in metrics if metric in named]


def _corrected(base: Side, side: Side, metric: Metric) -> dict[str, Any]:
    both = []
    for one in (base, side):
        assert one.past is not None
        assert one.table is not None
        both.append(labels_of(one.past, one.table, metric, one.past.plan.labels))
    made: Mapping[str, Any] = difference_of_labels(both[0], both[1], metric)
    return dict(made)
