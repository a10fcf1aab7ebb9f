"""What a reader of the differences must know of how they were come by: failures, missing scores, ties, repeats."""

from __future__ import annotations

from collections.abc import Sequence

from ragkit.comparison.context import Context, of_name, others
from ragkit.comparison.sides import Side
from ragkit.metrics.registry import Metric
from ragkit.report.numbers import counted


def coverage_warnings(sides: Sequence[Side], context: Context) -> list[str]:
    """Questions that failed or that only one of two variants scored, unequal repeats, and notes of run files."""
    found = [f"{side.name}: {note}" for side in sides for note in side.run.get("notes", ())]
    found += _failures(sides, context)
    base = of_name(sides, context.baseline)
    for side in others(sides, context.baseline):
        found += _unpaired(base, side, context)
    repeats = {side.name: max((len(values) for metric in context.metrics
                               for values in context.repeats(side, metric.name).values()), default=0) for side in sides}
    if len(set(repeats.values())) > 1:
        each = ", ".join(f"{name} {count}" for name, count in repeats.items())
        found.append(f"not equally often asked ({each} a question): the averages of fewer repeats are the less sure")
    return found


def _failures(sides: Sequence[Side], context: Context) -> list[str]:
    """One line a variant: a variant that fails on what is hard looks better on the rest."""
    found = []
    for side in sides:
        failed = {metric.name: _failed(side, metric, context) for metric in context.metrics}
        most = max(failed, key=lambda name: failed[name], default=None)
        if most is not None and failed[most]:
            named = sum(1 for count in failed.values() if count)
            where = most if named == 1 else f"{most} and {named - 1} more"
            found.append(f"{side.name}: up to {counted(failed[most], 'question')} failed ({where}), and are left out "
                         "of its differences on both sides")
    return found


def _failed(side: Side, metric: Metric, context: Context) -> int:
    rows, scored = side.scores_by(context.labels)[metric.name], context.repeats(side, metric.name)
    return sum(1 for question in context.questions if question not in scored
               and any(score.status == "failed" for score in rows.get(question, {}).values()))


def _unpaired(base: Side, side: Side, context: Context) -> list[str]:
    """Metrics that one of the two scored on questions where the other did not, by how many."""
    named: dict[tuple[int, int], list[str]] = {}
    for metric in context.metrics:
        one, two = context.values(base, metric.name).keys(), context.values(side, metric.name).keys()
        if one != two:
            named.setdefault((len(one - two), len(two - one)), []).append(metric.name)
    lines = []
    for (only_base, only_side), metrics in named.items():
        told = ", ".join(metrics[:4]) + (f" and {len(metrics) - 4} more" if len(metrics) > 4 else "")
        lines.append(f"{told}: scored only in {base.name} on {counted(only_base, 'question')}, only in {side.name} on "
                     f"{only_side}; those are in the means, not in the difference")
    return lines
