"""Figures of a comparison with a line a variant: over k, over the depth of a re-ranker, over an agent's steps.

Computes no figure. Lines are told apart by colour, sign and dash; the signs stand in a legend beside the plot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ragkit.report import numbers, texts
from ragkit.report.plots import BLUE, ORANGE, VERMILLION, Figure, plain_layout

_COLOURS = (BLUE, VERMILLION, "#009E73", ORANGE, "#CC79A7", "#56B4E9")
_SYMBOLS = (("circle", "●"), ("square", "■"), ("diamond", "◆"), ("triangle-up", "▲"), ("triangle-down", "▼"),
            ("cross", "✚"), ("x", "✖"))
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_MEASURES = (("recall", "recall@k"), ("allhit", "allhit@k"), ("hit", "hit@k"), ("precision", "precision@k"))
_HEIGHT = 250

Figures = Mapping[str, Any]


class Line(NamedTuple):
    """How one variant is drawn; `place` names its colour for the page's own legend."""

    name: str
    place: int
    sign: str
    colour: str
    symbol: str
    dash: str


def lines(names: Sequence[str]) -> dict[str, Line]:
    """A line for each name, the same in every plot of a page.

    >>> [line.sign for line in lines(["dense", "reranked"]).values()]
    ['●', '■']
    """
    return {name: Line(name, place % len(_COLOURS), _SYMBOLS[place % len(_SYMBOLS)][1], _COLOURS[place % len(_COLOURS)],
                       _SYMBOLS[place % len(_SYMBOLS)][0], _DASHES[place % len(_DASHES)])
            for place, name in enumerate(names)}


def comparison_figures(data: Figures) -> dict[str, list[Figure]]:
    """The figures by section; a section without any is absent."""
    drawn = lines(list(data["variants"]))
    made = {"rerankers": _depths(data, drawn), "sweep": _sweep(data, drawn), "agents": _agents(data, drawn)}
    return {section: found for section, found in made.items() if found}


def _sweep(data: Figures, drawn: Mapping[str, Line]) -> list[Figure]:
    found = (data["sweep"] or {"variants": {}})["variants"]
    ks = sorted({int(k) for one in found.values() for k in one["at"]})
    if len(ks) < 2:
        return []
    names = [str(k) for k in ks]
    return [*(_over(f"sweep-{measure}", title, "k", names, drawn,
                    {name: [_of(one["at"].get(k), measure) for k in names] for name, one in found.items()})
              for measure, title in _MEASURES), *_tokens(found, drawn)]


def _tokens(found: Figures, drawn: Mapping[str, Line]) -> list[Figure]:
    """Recall over what the context costs; beneath each point its k."""
    traces, body = [], []
    for name, one in found.items():
        points = [(k, at["tokens"]["mean"], at["recall"]["mean"]) for k, at in one["at"].items()
                  if at["tokens"]["mean"] is not None and at["recall"]["mean"] is not None]
        if points:
            trace = _trace(drawn[name], [x for _, x, _ in points], [y for _, _, y in points])
            trace.update(customdata=[k for k, _, _ in points], hovertemplate="k = %{customdata}: recall %{y:.3f}, "
                         "%{x:,.0f} tokens<extra>%{fullData.name}</extra>")
            traces.append(trace)
        body += [(name, k, numbers.count(x), numbers.number(y)) for k, x, y in points]
    if not traces:
        return []
    layout = _layout("tokens of the first k passages (log)")
    layout["yaxis"].update(range=[0, 1.03], dtick=0.25)
    layout["xaxis"].update(type="log", dtick=1 if _is_wide(traces) else "D2", tickformat=",d")
    return [Figure("sweep-tokens", "recall@k by the tokens that it costs", {"data": traces, "layout": layout},
                   ("Variant", "k", "Tokens", "Recall"), tuple(body), _HEIGHT)]


def _is_wide(traces: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the tokens span so much that only powers of ten are to be named."""
    values = [x for trace in traces for x in trace["x"] if x > 0]
    return bool(values) and max(values) > 500 * min(values)


def _depths(data: Figures, drawn: Mapping[str, Line]) -> list[Figure]:
    """The lift of NDCG over the first stage's order, by how many candidates are re-ranked."""
    found = {name: one for name, one in (data["rerankers"] or {}).items() if len(one["depths"]) > 1}
    made = list[Figure]()
    for name, one in found.items():
        metric = next((own for own in one["metrics"] if own.startswith("ndcg")), None)
        if metric is not None:
            depths = [str(at["depth"]) for at in one["depths"]]
            series = {name: [{**at["metrics"][metric], "mean": at["metrics"][metric]["lift"]} for at in one["depths"]]}
            made.append(_over(f"depth-{drawn[name].place}-{len(made)}", f"Lift of {metric} by depth: {name}",
                              "candidates re-ranked", depths, drawn, series, share=False))
    return made


def _agents(data: Figures, drawn: Mapping[str, Line]) -> list[Figure]:
    if not data["agents"]:
        return []
    found = data["agents"]["variants"]
    steps = [str(step["step"]) for step in data["agents"]["steps"]]
    if len(steps) < 2:
        return []

    def series(pick: Callable[[Figures], Figures | None]) -> dict[str, list[Figures | None]]:
        return {name: [pick(step) for step in one["per_step"]] for name, one in found.items()}

    return [
        _over("agents-gathered", "Share of the gold found up to each step", "step, from 0", steps, drawn,
              series(lambda step: step["metrics"].get("cumulative_recall"))),
        _over("agents-list", "Recall of each step's own list", "step, from 0", steps, drawn,
              series(lambda step: step["metrics"].get("recall"))),
        _over("agents-reached", "Share of trajectories that took the step", "step, from 0", steps, drawn,
              series(lambda step: {"mean": step["reached"]["share"], "low": None, "high": None})),
    ]


def _of(at: Figures | None, measure: str) -> Figures | None:
    return None if at is None else at.get(measure)


def _over(name: str, label: str, axis: str, at: Sequence[str], drawn: Mapping[str, Line],
          series: Mapping[str, Sequence[Figures | None]], *, share: bool = True) -> Figure:
    """A line a variant over named places, with its intervals."""
    traces, body = [], list[tuple[str, ...]]()
    for variant, figures in series.items():
        own = [one if one is not None else {"mean": None, "low": None, "high": None} for one in figures]
        means = [numbers.known(one["mean"]) for one in own]
        trace = _trace(drawn[variant], list(at), means)
        trace["connectgaps"] = share and axis == "k"  # a list may end between the k of another
        trace["error_y"] = _whiskers(own, means, drawn[variant].colour)
        traces.append(trace)
        body += [(variant, place, numbers.number(mean), numbers.interval(one["low"], one["high"]))
                 for place, one, mean in zip(at, own, means, strict=True) if mean is not None]
    layout = _layout(axis)
    layout["xaxis"].update(type="category", categoryorder="array", categoryarray=list(at), tickangle=0)
    layout["yaxis"].update({"range": [0, 1.03], "dtick": 0.25} if share else {"rangemode": "tozero"})
    return Figure(name, label, {"data": traces, "layout": layout}, ("Variant", axis.partition(",")[0], "Value",
                                                                    "95% interval"), tuple(body), _HEIGHT)


def _trace(line: Line, x: Sequence[Any], y: Sequence[float | None]) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines+markers", "name": _name(line.name), "x": list(x), "y": list(y),
        "connectgaps": False, "cliponaxis": False, "line": {"color": line.colour, "width": 2, "dash": line.dash},
        "marker": {"color": line.colour, "size": 8, "symbol": line.symbol},
        "hovertemplate": "%{x}: %{y:.3f}<extra>%{fullData.name}</extra>",
    }


def _name(text: str) -> str:
    """A name that plotly takes for text."""
    return str(texts.attribute(texts.shortened(text, 40))).replace("%{", "% {")


def _whiskers(found: Sequence[Figures], means: Sequence[float | None], colour: str) -> dict[str, Any]:
    above, below = list[float](), list[float]()
    for one, mean in zip(found, means, strict=True):
        low, high = numbers.known(one["low"]), numbers.known(one["high"])
        above.append(0.0 if high is None or mean is None else max(0.0, high - mean))
        below.append(0.0 if low is None or mean is None else max(0.0, mean - low))
    return {"type": "data", "array": above, "arrayminus": below, "color": colour, "thickness": 1, "width": 3}


def _layout(axis: str) -> dict[str, Any]:
    layout = plain_layout(axis, "")
    layout["yaxis"]["title"] = None
    layout["margin"].update(l=40, t=10, r=20)
    return layout
