"""Figures of the report as plain plotly specifications (data and layout), drawn by the page. Computes no figure.

Colours are Okabe and Ito's, told apart by colour-blind people; the page maps them for a dark background. The
specifications are dictionaries, so that a page is written without importing plotly's Python classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragkit.report import labels, numbers, texts
from ragkit.report.data import ReportData
from ragkit.report.rows import step_rows

BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
_SERIES = (BLUE, ORANGE, GREEN, PURPLE, SKY)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_MARKERS = ("circle", "square", "diamond", "triangle-up", "cross")


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
    """All figures for which the data have something to show, by name."""
    made = (hit_curve(data), rank_histogram(data), step_curve(data))
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
    layout = _layout("passages read (k)", "questions with a hit")
    layout["margin"]["r"] = 48  # room for the last label, which stands to the right of its point
    layout["xaxis"].update(type="category")
    layout["yaxis"].update(range=[0, 1.06], tickformat=".0%")
    return Figure("hit-curve", "Share of questions with a relevant passage among the first k", _spec([trace], layout),
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
    layout = _layout(f"rank of the relevant {data.unit}", f"relevant {data.unit}s")
    layout["xaxis"].update(type="category", autotickangles=[0, 90], tickfont={"size": 11})
    layout["bargap"] = 0.22
    return Figure("rank-histogram", f"Ranks of the relevant {data.unit}s in the final list, and how many were missed",
                  _spec([trace], layout), ("Rank", f"Relevant {data.unit}s"),
                  tuple((rank, numbers.count(value)) for rank, value in data.rank_histogram.items()))


def step_curve(data: ReportData) -> Figure | None:
    """Recall and NDCG of each step, the recall gathered up to it, and what a judge said of its list.

    Lines that would hide each other are one.
    """
    per_step: Mapping[str, Mapping[str, Any]] = data.summary.get("per_step") or {}
    steps = [row.step for row in step_rows(data, [])[1]]
    names = labels.chosen({name for figures_ in per_step.values() for name in figures_},
                          (*labels.STEP_CURVE, *labels.STEP_JUDGED))
    lines: dict[tuple[float | None, ...], list[str]] = {}
    for name in names:
        lines.setdefault(tuple(_mean(per_step[step].get(name)) for step in steps), []).append(name)
    lines = {means: same for means, same in lines.items() if any(mean is not None for mean in means)}
    if not lines:
        return None
    traces = []
    for place, (means, same) in enumerate(lines.items()):
        colour, name = _SERIES[place % len(_SERIES)], " = ".join(same)
        traces.append({
            "type": "scatter", "mode": "lines+markers", "name": _inert(name), "x": steps, "y": list(means),
            "line": {"color": colour, "width": 2.5, "dash": _DASHES[place % len(_DASHES)]},
            "marker": {"color": colour, "size": 8, "symbol": _MARKERS[place % len(_MARKERS)]},
            "hovertemplate": f"{_inert(name)}, step %{{x}}: %{{y:.3f}}<extra></extra>", "connectgaps": False,
        })
    layout = _layout("step (from 0)", "mean")
    layout["xaxis"].update(type="category")
    layout["yaxis"].update(range=[0, 1.05])
    layout.update(showlegend=True, legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"})
    return Figure("step-curve", "Mean of each step, over the questions that reached it", _spec(traces, layout), (), (),
                  320)


def _mean(figures_: Mapping[str, Any] | None) -> float | None:
    """A step's mean, without the last bits by which sums of the same numbers differ."""
    mean = numbers.known((figures_ or {}).get("mean"))
    return None if mean is None else round(mean, 12)


def _inert(name: str) -> str:
    """A name in which plotly finds neither its own markup nor a template."""
    return str(texts.attribute(name)).replace("%{", "% {")


def _layout(x: str, y: str) -> dict[str, Any]:
    return {
        "margin": {"l": 52, "r": 16, "t": 20, "b": 46}, "showlegend": False, "hovermode": "closest", "dragmode": False,
        "xaxis": {"title": {"text": x, "standoff": 10}, "fixedrange": True, "zeroline": False, "showgrid": False},
        "yaxis": {"title": {"text": y, "standoff": 8}, "fixedrange": True, "zeroline": False, "rangemode": "tozero"},
    }


def _spec(traces: list[dict[str, Any]], layout: dict[str, Any]) -> dict[str, Any]:
    return {"data": traces, "layout": layout}
