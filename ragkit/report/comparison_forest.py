"""Differences of a comparison as rows to be drawn: where each interval stands on its scale, and its verdict by a sign.

Computes no figure: places are those of comparison.json's numbers on the width of a bar.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ragkit.errors import DataError
from ragkit.metrics.registry import parse
from ragkit.report import comparison_rows as rows
from ragkit.report import numbers

SIGNS = {"better": "▲", "worse": "▼", "higher": "↑", "lower": "↓", "not decided": "○", "the same": "=",
         "not scored": "–"}
TONES = {"better": "good", "worse": "bad", "higher": "info", "lower": "info"}
_MOST_COLUMNS = 4  # of the table beside the conclusion
_STEPS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


class Bar(NamedTuple):
    """An interval and its middle on a scale from -reach to reach, in percent of its width."""

    low: float | None
    width: float
    middle: float


class Outcome(NamedTuple):
    """Wins, ties or losses: how many, and the share of a bar that they take."""

    name: str
    times: str
    weight: int
    tone: str


class ForestRow(NamedTuple):
    """One metric of one variant: its texts, its bar, and what stands for its verdict beside the colour."""

    variant: str
    text: rows.DifferenceRow
    bar: Bar | None
    decided: bool
    sign: str
    tone: str
    outcomes: tuple[Outcome, ...]


class ForestGroup(NamedTuple):
    """One metric with a row for each variant; `scale` are the ends of its bars."""

    metric: str
    baseline: str
    shared: bool
    scale: tuple[str, str]
    rows: tuple[ForestRow, ...]


def forest(data: rows.Data) -> list[ForestGroup]:
    """The groups in the order of the metrics. Shares stand on one scale; whatever is counted has one of its own."""
    variants = rows.compared(data)
    texts = {variant: {row.metric: row for row in rows.difference_rows(data, variant)} for variant in variants}
    metrics = data["metrics"]
    together = _reach(metrics[name].values() for name in metrics if _is_share(name))
    made = []
    for metric, found in metrics.items():
        shared = _is_share(metric)
        reach = together if shared else _reach([found.values()])
        own = tuple(_row(variant, texts[variant][metric], found[variant], reach) for variant in variants)
        made.append(ForestGroup(metric, texts[variants[0]][metric].baseline, shared, ends(reach), own))
    return sorted(made, key=lambda group: not group.shared)


def ends(reach: float) -> tuple[str, str]:
    """The ends of a scale.

    >>> ends(0.25), ends(3.0)
    (('-0.25', '+0.25'), ('-3', '+3'))
    """
    return f"-{numbers.plain(reach)}", f"+{numbers.plain(reach)}"


def _is_share(metric: str) -> bool:
    try:
        return parse(metric).definition.range == (0.0, 1.0)
    except DataError:
        return False


def _reach(found: Iterable[Iterable[Mapping[str, Any]]]) -> float:
    """A round number that no interval goes beyond."""
    most = max((abs(value) for figures in found for one in figures for key in ("difference", "low", "high")
                if (value := numbers.known(one[key])) is not None), default=0.0)
    if most <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(most))
    return next((float(f"{step * unit:.6g}") for step in _STEPS if step * unit >= most), 10 * unit)


def place(value: float, reach: float) -> float:
    """Where a value stands, in percent.

    >>> place(0.0, 0.5), place(-0.5, 0.5)
    (50.0, 0.0)
    """
    return min(max((value + reach) / (2 * reach) * 100, 0.0), 100.0)


def _row(variant: str, text: rows.DifferenceRow, figures: Mapping[str, Any], reach: float) -> ForestRow:
    middle, low, high = (numbers.known(figures[key]) for key in ("difference", "low", "high"))
    bar = None
    if middle is not None:
        spread = low is not None and high is not None
        start = place(low, reach) if spread and low is not None else None
        width = place(high, reach) - start if start is not None and high is not None else 0.0
        bar = Bar(start, width, place(middle, reach))
    outcomes = tuple(Outcome(name, numbers.count(figures[name]), int(figures[name] or 0), tone)
                     for name, tone in (("wins", "good"), ("ties", "plain"), ("losses", "bad")))
    return ForestRow(variant, text, bar, text.verdict in rows.DECIDED, SIGNS[text.verdict],
                     TONES.get(text.verdict, "plain"), outcomes)


def verdicts(data: rows.Data) -> tuple[list[str], list[tuple[str, list[ForestRow]]]]:
    """The metrics to read first, and each variant's rows of them."""
    groups = {group.metric: group for group in forest(data)}
    metrics = rows.leading(data["metrics"], _MOST_COLUMNS)
    return metrics, [(variant, [row for metric in metrics for row in groups[metric].rows if row.variant == variant])
                     for variant in rows.compared(data)]


def headline(data: rows.Data) -> str:
    """How many of the differences are decided, in a sentence."""
    found = [row for group in forest(data) for row in group.rows]
    decided = sum(row.decided for row in found)
    if not decided and all(row.text.verdict == "the same" for row in found):
        return f"Nothing differs from {data['baseline']}"
    if len(found) == 1:
        return f"The difference is {'decided: ' if decided else ''}{found[0].text.verdict}"
    if not decided:
        return f"None of {numbers.count(len(found))} differences is decided"
    if decided == len(found):
        return f"All {numbers.count(len(found))} differences are decided"
    are = "is" if decided == 1 else "are"
    return f"{numbers.count(decided)} of {numbers.count(len(found))} differences {are} decided"


def mean_rows(data: rows.Data) -> list[tuple[str, list[dict[str, str]]]]:
    """(metric, of each variant its mean, its interval, how many were scored, and what was not)."""
    return [(metric, [_mean(found[variant]) for variant in data["variants"]])
            for metric, found in data["means"].items()]


def _mean(figures: Mapping[str, Any]) -> dict[str, str]:
    left = [f"{numbers.count(figures[key])} {name}" for key, name in (("n_undefined", "undefined"),
                                                                      ("n_failed", "failed")) if figures[key]]
    return {"mean": numbers.number(figures["mean"]), "interval": numbers.interval(figures["low"], figures["high"]),
            "n": numbers.of(figures["n_scored"], figures["n_asked"]), "left": ", ".join(left)}


def slices(data: rows.Data, slicing: str,
           metrics: list[str]) -> list[tuple[str, str, list[tuple[str, tuple[str, ...]]]]]:
    """(slice, questions, [(variant, a cell for each metric)])."""
    own = {variant: {row.name: row for row in rows.slice_rows(data, slicing, variant, metrics)}
           for variant in rows.compared(data)}
    return [(name, numbers.count(part["n"]), [(variant, found[name].cells) for variant, found in own.items()])
            for name, part in data["slices"][slicing].items()]
