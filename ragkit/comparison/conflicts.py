"""Where two signals disagree between a variant and the baseline: on how many questions, on which, and likely why.

Which pairs of signals are looked at stands in conflicts_kinds.py, the causes in causes.py. Renders nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragkit.comparison.causes import SideFacts
from ragkit.comparison.causes_weighing import NEEDS, likely, weighed
from ragkit.comparison.conflicts_kinds import Draft, drafts
from ragkit.comparison.context import Context, Table, of_name, others
from ragkit.comparison.sides import Side
from ragkit.metrics.paired import Pair, PairedDifference, compare_pairs

SHOWN = 20
RESAMPLES = 2000


def find_conflicts(sides: Sequence[Side], baseline: str, context: Context, table: Table) -> list[dict[str, Any]]:
    """All disagreements of each variant with the baseline, those that the means show, too, first, then by how many.

    `table` holds the differences as they were tested.
    """
    base = of_name(sides, baseline)
    zeros = _tell_zeros(base, context)
    known = {side.name: SideFacts(side, zeros) for side in sides}
    found: list[Draft] = []
    for side in others(sides, baseline):
        found += drafts(known[base.name], known[side.name], context, table)
    nets = compare_pairs([_signs(draft, context) for draft in found], context.seed, RESAMPLES)
    made = [_entry(draft, net, context) for draft, net in zip(found, nets, strict=True)]
    return sorted(made, key=lambda entry: (not entry["in_means"], -entry["count"]))


def _tell_zeros(base: Side, context: Context) -> bool:
    """Whether the labels say of some passages that they are not relevant, or how relevant: others are then holes."""
    grades = {grade for question in context.questions if question in base.questions
              for grade in (base.questions[question].grades or {}).values()}
    return len(grades) > 1


def _signs(draft: Draft, context: Context) -> Pair:
    """1 where the signals disagree this way, -1 where they do the other way round."""
    here, turned = set(draft.questions), set(draft.turned)
    values = {question: float((question in here) - (question in turned)) for question in draft.known}
    return Pair(dict.fromkeys(values, 0.0), values)


def _entry(draft: Draft, net: PairedDifference, context: Context) -> dict[str, Any]:
    causes = weighed(draft.suspects, draft.questions, draft.known, context.seed)
    told = [entry for entry in causes if entry["of"]]
    return {
        "kind": draft.kind, "variant": draft.variant, "baseline": context.baseline, "up": draft.up,
        "metrics": list(draft.metrics), "says": draft.says, "count": len(draft.questions),
        "other_way": len(draft.turned), "n": len(draft.known),
        "net": {"difference": net.difference, "low": net.low, "high": net.high},
        "in_means": draft.in_means if draft.in_means is not None else net.low is not None and net.low > 0,
        "causes": told, "likely": likely(told),
        "untested": {entry["cause"]: NEEDS[entry["cause"]] for entry in causes if not entry["of"]},
        "questions": {"total": len(draft.questions), "ids": list(draft.questions[:SHOWN])},
        **{name: {"total": len(ids), "ids": list(ids[:SHOWN])} for name, ids in draft.more.items()},
    }
