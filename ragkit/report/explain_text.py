"""What `ragkit explain` prints: a metric's definition in words, the terms behind one value, dialects side by side.

All of it comes from the registry and from the computation itself; nothing about a single metric stands here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from ragkit.metrics.explain import Explanation, Sum
from ragkit.metrics.registry import LAWS, Definition, definitions
from ragkit.report import labels, numbers

WIDTH = 80
MOST_TERMS = 20


def definition_lines(definition: Definition) -> list[str]:
    """The definition of one metric, a fact a line."""
    summary = (definition.function.__doc__ or definition.summary).strip()
    lines = [f"{definition.pattern}  ({definition.kind})", ""]
    for paragraph in (part for part in summary.split("\n\n") if not part.strip().startswith(">>>")):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), WIDTH, initial_indent="  ", subsequent_indent="  "), ""]
    for head, text in _facts(definition):
        lines += textwrap.wrap(text, WIDTH, initial_indent=f"  {head:<13}", subsequent_indent=" " * 15)
    return lines


def _facts(definition: Definition) -> Iterable[tuple[str, str]]:
    if definition.formula:
        yield "formula", definition.formula
    yield "range", f"{numbers.limits(definition.range)}; {labels.DIRECTIONS[definition.direction]}"
    yield "undefined", f"where {definition.undefined}"
    if definition.kind == "ranking":
        yield "order", "needed" if definition.needs_order else "not needed without a cut: a set has a value too"
        yield "ties", definition.ties
    if definition.aliases:
        yield "also called", ", ".join(definition.aliases)
    if definition.calls:
        yield "model calls", f"{definition.calls} a sample"
    if definition.source:
        yield "source", definition.source
    for place, text in enumerate(text for law, text in LAWS.items() if law in definition.laws):
        yield "" if place else "laws", text
    if definition.dialect_of:
        yield "dialect of", f"{definition.dialect_of}: {definition.differs}"
    for place, other in enumerate(dialects(definition)):
        yield "" if place else "dialects", f"{other.name}: {other.differs}"


def dialects(definition: Definition) -> list[Definition]:
    """The metrics that other tools give under the name of this one."""
    return [other for other in definitions() if other.dialect_of == definition.name]


def explanation_lines(found: Explanation, head: str) -> list[str]:
    """The list that was scored, the terms of each sum, and the value."""
    lines = [f"{found.metric} = {_value(found)}", f"  {head}"]
    lines += textwrap.wrap(found.formula, WIDTH, initial_indent="  ", subsequent_indent="  ") if found.formula else []
    lines += [f"  {_counts(found)}", "", *_list_lines(found)]
    for one in found.sums:
        lines += ["", *_sum_lines(one)]
    return lines


def comparison_lines(found: Sequence[Explanation], known: Sequence[Definition]) -> list[str]:
    """The terms of several metrics beside each other, their values, and why they differ."""
    first, longest = found[0], max(found, key=lambda one: len(one.rows))
    heads = [one.metric for one in found]
    wide = [max(len(head), 8) + 2 for head in heads]
    lines = []
    for one in found:
        lines += textwrap.wrap(f"{one.metric} = {one.formula}", WIDTH, subsequent_indent="  ") if one.formula else []
    lines += [_counts(first), "", *_list_lines(longest), ""]
    sums = {one.metric: {(part.label, part.ideal): part for part in one.sums} for one in found}
    for key in dict.fromkeys(key for one in found for key in sums[one.metric]):
        label, ideal = key
        ranks = sorted({rank for one in found if key in sums[one.metric] for rank, _ in sums[one.metric][key].terms})
        lines.append(f"{label or 'sum'}{' (ideal order)' if ideal else ''}, the term at each rank")
        lines.append(" rank" + "".join(head.rjust(width) for head, width in zip(heads, wide, strict=True)))
        for rank in ranks[:MOST_TERMS]:
            cells = (_term(sums[head].get(key), rank) for head in heads)
            lines.append(f"{rank:>5}" + "".join(cell.rjust(width) for cell, width in zip(cells, wide, strict=True)))
        lines += [f"  ... {len(ranks) - MOST_TERMS} more"] if len(ranks) > MOST_TERMS else []
        totals = ("-" if key not in sums[head] else f"{sums[head][key].total:.6f}" for head in heads)
        lines += ["  sum" + "".join(cell.rjust(width) for cell, width in zip(totals, wide, strict=True)), ""]
    lines.append("value" + "".join(_value(one).rjust(width) for one, width in zip(found, wide, strict=True)))
    lines.append("")
    for sentence in reasons(known):
        lines += textwrap.wrap(sentence, WIDTH, subsequent_indent="  ")
    return lines


def reasons(known: Sequence[Definition]) -> list[str]:
    """Why the numbers differ: what each dialect says of itself; for metrics of different meaning, what each is."""
    told = [f"{one.name} is a dialect of {one.dialect_of}: {one.differs}" for one in dict.fromkeys(known)
            if one.dialect_of]
    return told or [f"{one.name}: {one.summary}" for one in dict.fromkeys(known)]


def _counts(found: Explanation) -> str:
    return f"R = {found.n_relevant} relevant in the labels (grade >= {numbers.plain(found.level)}); " \
           f"{found.n_returned} returned"


def _list_lines(found: Explanation) -> list[str]:
    lines = [" rank  grade       id"]
    for row in found.rows[:MOST_TERMS]:
        grade = "-" if row.grade is None else numbers.plain(row.grade)
        mark = "copy" if row.copy else "*" if row.relevant else ""
        lines.append(f"{row.rank:>5}  {grade:>5}  {mark:<4} {row.id}")
    lines += [f"  ... {len(found.rows) - MOST_TERMS} more"] if len(found.rows) > MOST_TERMS else []
    lines += ["  (an empty list)"] if not found.rows else []
    return lines


def _sum_lines(one: Sum) -> list[str]:
    label = f"{one.label or 'sum'}{' (ideal order)' if one.ideal else ''}"
    shown = [(rank, term) for rank, term in one.terms if term]
    lines = [label, *(f"{rank:>5}  {term:.6f}" for rank, term in shown[:MOST_TERMS])]
    lines += [f"  ... {len(shown) - MOST_TERMS} more"] if len(shown) > MOST_TERMS else []
    return [*lines, f"  sum  {one.total:.6f}"]


def _term(one: Sum | None, rank: int) -> str:
    if one is None:
        return "-"
    return next((f"{term:.6f}" for place, term in one.terms if place == rank), "-")


def _value(found: Explanation) -> str:
    return f"{found.value:.6f}" if found.value is not None else f"undefined ({found.reason})"
