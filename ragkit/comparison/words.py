"""What a comparison says in plain words: what is better, what worse, what not decided and what would decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragkit.metrics.paired import ALPHA
from ragkit.metrics.registry import Metric
from ragkit.report.comparison_rows import leading, verdict
from ragkit.report.numbers import count, counted, number

FEW = 5  # so many metrics have a sentence each; of more, the leading ones do and the others are named
_NAMED = 6


class Finding(NamedTuple):
    """One variant and one metric: the figures, and which way is better."""

    variant: str
    metric: Metric
    figures: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        return verdict(self.figures, self.metric.definition.direction)


def conclusion(table: Mapping[str, Mapping[str, Mapping[str, Any]]], metrics: Sequence[Metric],
               baseline: str) -> list[str]:
    """The sentences of a comparison, variant by variant: what is decided first."""
    together = sum(figures["p"] is not None for found in table.values() for figures in found.values())
    variants = list(next(iter(table.values()))) if table else []
    lines = []
    for variant in variants:
        found = [Finding(variant, metric, table[metric.name][variant]) for metric in metrics]
        lines += _of_variant(found, baseline, together)
    return lines


def _of_variant(found: Sequence[Finding], baseline: str, together: int) -> list[str]:
    if all(one.verdict == "the same" for one in found):
        each = counted(max(one.figures["n"] for one in found), "question")
        return [f"{found[0].variant} and {baseline} are the same on every metric compared ({each})"]
    shown, left = _leading(found)
    ordered = sorted(shown, key=lambda one: one.verdict in ("not decided", "the same", "not scored"))
    return [*(sentence(one, baseline, together) for one in ordered), *_others(left, baseline)]


def _leading(found: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Those that have a sentence of their own, and the others."""
    if len(found) <= FEW:
        return list(found), []
    scored = [one for one in found if one.figures["n"]]
    names = leading([one.metric.name for one in scored], FEW)
    first = [one for name in names for one in scored if one.metric.name == name]
    return first, [one for one in found if one not in first]


def sentence(one: Finding, baseline: str, together: int) -> str:
    """One metric of one variant. `together`: how many differences were tested at once."""
    figures, name, kind = one.figures, one.metric.name, one.verdict
    n = counted(figures["n"], "question")
    if kind == "not scored":
        return f"{one.variant} and {baseline} cannot be compared on {name}: no question was scored in both"
    if kind == "the same":
        return f"{one.variant} and {baseline} are the same on {name} ({n})"
    if kind != "not decided":
        return f"{one.variant} is {kind} than {baseline} on {name} by {_size(figures, kind)} (decided, {n})"
    spread = _interval(figures["low"], figures["high"])
    return (f"not decided: {one.variant} and {baseline} on {name}, {_signed(figures['difference'])}{spread} ({n})"
            f"{_would_do(figures, together)}")


def _size(figures: Mapping[str, Any], kind: str) -> str:
    """The size of a difference with its interval, both positive where the variant is better or higher."""
    low, high = figures["low"], figures["high"]
    if figures["difference"] < 0:
        low, high = (None, None) if low is None else (-high, -low)
    return f"{number(abs(figures['difference']))}{_interval(low, high)}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" [{number(low)}, {number(high)}]"


def _signed(difference: float) -> str:
    return f"a difference of {number(difference)}"


def _would_do(figures: Mapping[str, Any], together: int) -> str:
    """What would decide it, as far as the spread tells."""
    if figures["p"] is not None and figures["p"] < ALPHA:
        return (f"; by itself it would be (p = {number(figures['p'])}), not among {count(together)} differences tested "
                "together: name fewer metrics beforehand (-m), or ask more questions")
    questions, repeats = figures["questions_to_decide"], figures["repeats_to_decide"]
    if questions is None:
        return "; no number of questions tells a difference of nothing" if figures["difference"] == 0 else ""
    more = questions - figures["n"]
    if more <= 0:
        return "; so many questions show a difference of this size in four of five cases: this was the fifth, or chance"
    would = f"; {count(more)} more {'question' if more == 1 else 'questions'}"
    would += f", or {counted(repeats, 'repeat')} each," if repeats is not None else ""
    return f"{would} would do"


def _others(left: Sequence[Finding], baseline: str) -> list[str]:
    """The metrics without a sentence of their own, by verdict."""
    lines = []
    for kind in ("better", "worse", "higher", "lower", "not decided", "the same"):
        names = [one.metric.name for one in left if one.verdict == kind]
        if names:
            told = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
            variant = left[0].variant
            lines.append({"not decided": f"not decided between {variant} and {baseline}: {told}",
                          "the same": f"{variant} and {baseline} are the same on: {told}"}.get(
                              kind, f"{variant} is {kind} than {baseline} also on: {told} (decided)"))
    return lines
