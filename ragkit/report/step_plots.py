"""Figures of an app's steps: a small panel a metric, and the recall gathered so far with its spread.

Computes no figure. Steps stand in their order beneath each panel, with how many trajectories reached each; a step that
few reached has a hollow point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragkit.report import labels, numbers, rows, texts, trajectory
from ragkit.report.data import ReportData
from ragkit.report.plots import BLUE, ORANGE, Figure, plain_layout

_BAND, _WIDE_BAND = "rgba(0,114,178,0.28)", "rgba(0,114,178,0.13)"  # the page maps both for a dark background
_MOST_TICKS = 8
SPREAD = "recall-spread"


def step_figures(data: ReportData) -> dict[str, Figure]:
    """The panels and the spread, by name; nothing for an app that searches once."""
    if not trajectory.several_steps(data):
        return {}
    spread = recall_spread(data)
    made = [*step_panels(data, gathered=spread is None), *([spread] if spread else [])]
    return {figure.name: figure for figure in made}


def step_panels(data: ReportData, gathered: bool = False) -> list[Figure]:
    """A panel for recall, each NDCG and what a judge said of each list; metrics of equal means share one.

    `gathered`: cumulative recall has a panel of its own, because its spread is not known.
    """
    per_step: Mapping[str, Mapping[str, Any]] = data.summary.get("per_step") or {}
    steps = [row.step for row in rows.step_rows(data, [])[1]]
    wanted = [name for name in (*labels.STEP_CURVE, *labels.STEP_JUDGED) if gathered or name != "cumulative_recall"]
    panels: dict[tuple[float | None, ...], list[str]] = {}
    for name in labels.chosen(rows.all_step_metrics(data), wanted):
        means = tuple(_mean(per_step[step].get(name)) for step in steps)
        if any(mean is not None for mean in means):
            panels.setdefault(means, []).append(name)
    return [_panel(data, steps, means, names) for means, names in panels.items()]


def _panel(data: ReportData, steps: list[str], means: tuple[float | None, ...], names: list[str]) -> Figure:
    found = [(data.summary["per_step"][step].get(names[0]) or {}) for step in steps]
    ends = [(numbers.known(own.get("low")), numbers.known(own.get("high"))) for own in found]
    hollow = [trajectory.thin(data, step) for step in steps]
    scored = [numbers.of(own.get("n_scored"), own.get("n_asked")) for own in found]
    points = {
        "type": "scatter", "mode": "lines+markers", "x": steps, "y": list(means), "connectgaps": False,
        "cliponaxis": False, "line": {"color": BLUE, "width": 2},
        "marker": {"color": BLUE, "size": 8, "symbol": ["circle-open" if few else "circle" for few in hollow],
                   "line": {"width": 2, "color": BLUE}},
        "customdata": scored, "hovertemplate": "step %{x}: %{y:.3f}, of %{customdata} questions<extra></extra>",
    }
    layout = _layout(data, steps)
    layout["yaxis"]["title"] = None
    layout["margin"].update(l=34, t=10)
    body = tuple(
        (f"{step}, {labels.THIN}" if few else step, numbers.count(data.step_reach.get(step)), numbers.number(mean),
         numbers.interval(low, high), of)
        for step, few, mean, (low, high), of in zip(steps, hollow, means, ends, scored, strict=True)
    )
    return Figure(f"step-{names[0]}", " = ".join(names),
                  {"data": [*_band(steps, ends, _BAND, "95% interval"), points], "layout": layout},
                  ("Step", "Reached by", "Mean", "95% interval", "Scored / asked"), body, 210)


def recall_spread(data: ReportData) -> Figure | None:
    """The recall gathered after each step over the trajectories: its median, quarters and tenths, and its mean."""
    found: Mapping[str, Mapping[str, Any]] = data.summary.get("recall_spread") or {}
    steps = sorted((step for step in found if numbers.known(found[step].get("median")) is not None),
                   key=rows.step_order)
    if len(steps) < 2:
        return None

    def ends(low: str, high: str) -> list[tuple[float | None, float | None]]:
        return [(numbers.known(found[step].get(low)), numbers.known(found[step].get(high))) for step in steps]

    medians = [numbers.known(found[step]["median"]) for step in steps]
    per_step: Mapping[str, Mapping[str, Any]] = data.summary.get("per_step") or {}
    means = [_mean((per_step.get(step) or {}).get("cumulative_recall")) for step in steps]
    traces = [*_band(steps, ends("q10", "q90"), _WIDE_BAND, "q10 to q90"),
              *_band(steps, ends("q25", "q75"), _BAND, "q25 to q75"),
              _line(steps, medians, "median", BLUE, "solid")]
    if any(mean is not None for mean in means):
        traces.append(_line(steps, means, "mean", ORANGE, "dot"))
    layout = _layout(data, steps, reached=False)
    layout["yaxis"]["title"] = {"text": "share of the gold found", "standoff": 8}
    layout.update(showlegend=True, legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"})
    body = tuple(
        (step, numbers.number(mean), *(numbers.number(found[step].get(key)) for key in
                                       ("q10", "q25", "median", "q75", "q90")), numbers.count(found[step].get("n")))
        for step, mean in zip(steps, means, strict=True)
    )
    over = numbers.counted(found[steps[0]].get("n"), "trajectory", "trajectories")
    return Figure(SPREAD, f"Share of the gold found up to each step, over {over}", {"data": traces, "layout": layout},
                  ("Step", "Mean", "q10", "q25", "Median", "q75", "q90", "n"), body, 300)


def _line(steps: list[str], values: Sequence[float | None], name: str, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines+markers", "name": name, "x": steps, "y": list(values), "connectgaps": False,
        "cliponaxis": False, "line": {"color": colour, "width": 2.5, "dash": dash},
        "marker": {"color": colour, "size": 7, "symbol": "circle" if dash == "solid" else "diamond"},
        "hovertemplate": f"{name} after step %{{x}}: %{{y:.3f}}<extra></extra>",
    }


def _band(
    steps: list[str], ends: Sequence[tuple[float | None, float | None]], fill: str, name: str
) -> list[dict[str, Any]]:
    """One area for each run of steps whose ends are known, as a closed line; a step by itself is a bar."""
    runs: list[list[tuple[str, float, float]]] = [[]]
    for step, (low, high) in zip(steps, ends, strict=True):
        if low is not None and high is not None:
            runs[-1].append((step, low, high))
        elif runs[-1]:
            runs.append([])
    areas = []
    for place, run in enumerate(own for own in runs if own):
        back = run[::-1]
        areas.append({
            "type": "scatter", "mode": "lines", "fill": "toself", "fillcolor": fill, "name": name, "hoverinfo": "skip",
            "x": [step for step, _, _ in (*run, *back)],
            "y": [*(high for *_, high in run), *(low for _, low, _ in back)],
            "line": {"width": 0 if len(run) > 1 else 8, "color": fill}, "showlegend": place == 0,
        })
    return areas


def _layout(data: ReportData, steps: list[str], reached: bool = True) -> dict[str, Any]:
    """Steps in their order; where there are many, every second, third … is named beneath the axis."""
    every = -(-len(steps) // _MOST_TICKS)
    named = steps[::every]
    layout = plain_layout("step, and how many reached it" if reached else "step, from 0", "")
    layout["xaxis"].update(type="category", categoryorder="array", categoryarray=steps, tickmode="array",
                           tickvals=named, ticktext=[_tick(data, step, reached) for step in named], tickangle=0)
    layout["yaxis"].update(range=[0, 1.02], dtick=0.25 if not reached else 0.5)
    return layout


def _tick(data: ReportData, step: str, reached: bool) -> str:
    name = str(texts.attribute(step)).replace("%{", "% {")
    if not reached or step not in data.step_reach:
        return name
    return f"{name}<br>{numbers.count(data.step_reach[step])}"


def _mean(figures: Mapping[str, Any] | None) -> float | None:
    """A step's mean, without the last bits by which sums of the same numbers differ."""
    mean = numbers.known((figures or {}).get("mean"))
    return None if mean is None else round(mean, 12)
