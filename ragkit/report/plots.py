"""Figures of the report as plain plotly specifications (data and layout), drawn by the page. Computes no figure.

Here those of the final list; those of an app's steps are in step_plots.py.

Colours are Okabe and Ito's, told apart by colour-blind people; the page maps them for a dark background. The
specifications are dictionaries, so that a page is written without importing plotly's Python classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragkit.report import numbers
from ragkit.report.data import ReportData

BLUE, VERMILLION, ORANGE = "#0072B2", "#D55E00", "#E69F00"


@dataclass(frozen=True)
class Figure:
    """One plot: its name, what it shows in one sentence (also for screen readers), the same numbers as a table."""

    name: str
    label: str
    spec: Mapping[str, Any]
    head: tuple[str, ...]
    body: tuple[tuple[str, ...], ...]
    height: int = 280


def figures(data: ReportData) -> dict[str, Figure]:
    """The figures of the final list for which the data have something to show, by name."""
    made = (hit_curve(data), rank_histogram(data))
    return {figure.name: figure for figure in made if figure is not None}


def hit_curve(data: ReportData) -> Figure | None:
    """hit@1, hit@3, hit@5 … with their intervals."""
    names = [name for name, value in data.hit_curve.items() if numbers.known(value) is not None]
    if not names:
        return None
    summaries = [(data.summary.get("metrics") or {}).get(name) or {} for name in names]
    means = [data.hit_curve[name] for name in names]
    trace = {
        "type": "scatter", "mode": "lines+markers+text", "x": [name.partition("@")[2] for name in names], "y": means,
        "text": [numbers.percent(mean) for mean in means], "textposition": "bottom right", "cliponaxis": False,
        "line": {"color": BLUE, "width": 2.5}, "marker": {"color": BLUE, "size": 9},
        "error_y": _errors(means, summaries),
        "hovertemplate": "hit@%{x}: %{y:.3f}<extra></extra>",
    }
    body = tuple(
        (name, numbers.number(mean), numbers.interval(summary.get("low"), summary.get("high")),
         numbers.of(summary.get("n_scored"), summary.get("n_asked")) if summary else "")
        for name, mean, summary in zip(names, means, summaries, strict=True)
    )
    layout = plain_layout("passages read (k)", "questions with a hit")
    layout["margin"]["r"] = 48  # room for the last label, which stands to the right of its point
    layout["xaxis"].update(type="category")
    layout["yaxis"].update(range=[0, 1.06], tickformat=".0%")
    return Figure("hit-curve", "Share of questions with a relevant passage among the first k",
                  {"data": [trace], "layout": layout},
                  ("Metric", "Mean", "95% interval", "Scored / asked"), body)


def _errors(means: Sequence[float], summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Whiskers from the intervals; none where an interval is not known."""
    ends = [(numbers.known(summary.get("low")), numbers.known(summary.get("high"))) for summary in summaries]
    above = [0.0 if high is None else max(0.0, high - mean) for mean, (_, high) in zip(means, ends, strict=True)]
    below = [0.0 if low is None else max(0.0, mean - low) for mean, (low, _) in zip(means, ends, strict=True)]
    return {"type": "data", "array": above, "arrayminus": below, "color": BLUE, "thickness": 1.2, "width": 5}


def rank_histogram(data: ReportData) -> Figure | None:
    """At which ranks the relevant passages stood, and how many were missed."""
    if not any(data.rank_histogram.values()):
        return None
    ranks, counts = list(data.rank_histogram), list(data.rank_histogram.values())
    colours = [VERMILLION if rank == "missed" else BLUE for rank in ranks]
    trace = {
        "type": "bar", "x": ranks, "y": counts, "marker": {"color": colours},
        "text": [numbers.count(value) if value else "" for value in counts], "textposition": "outside",
        "cliponaxis": False, "hovertemplate": "rank %{x}: %{y}<extra></extra>",
    }
    layout = plain_layout(f"rank of the relevant {data.unit}", f"relevant {data.unit}s")
    layout["xaxis"].update(type="category", autotickangles=[0, 90], tickfont={"size": 11})
    layout["bargap"] = 0.22
    return Figure("rank-histogram", f"Ranks of the relevant {data.unit}s in the final list, and how many were missed",
                  {"data": [trace], "layout": layout}, ("Rank", f"Relevant {data.unit}s"),
                  tuple((rank, numbers.count(value)) for rank, value in data.rank_histogram.items()))


def plain_layout(x: str, y: str) -> dict[str, Any]:
    """A layout without what nobody needs on a printed page: no legend, no zoom, no lines but the grid of y."""
    return {
        "margin": {"l": 52, "r": 16, "t": 20, "b": 46}, "showlegend": False, "hovermode": "closest", "dragmode": False,
        "xaxis": {"title": {"text": x, "standoff": 10}, "fixedrange": True, "zeroline": False, "showgrid": False},
        "yaxis": {"title": {"text": y, "standoff": 8}, "fixedrange": True, "zeroline": False, "rangemode": "tozero"},
    }
