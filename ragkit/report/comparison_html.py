"""A comparison as one HTML page that needs nothing else, in the look of the single reports. Computes no figure.

How a page is made safe is in page.py; what its tables hold in comparison_rows.py, _forest, _findings and _searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from markupsafe import Markup

from ragkit.report import comparison_findings as findings
from ragkit.report import comparison_forest as forest
from ragkit.report import comparison_plots as plots
from ragkit.report import comparison_rows as rows
from ragkit.report import numbers, page, texts
from ragkit.report.comparison_searches import Part, search_parts, search_sentences

_SLICED = 3  # metrics that slices are shown in
_SEARCHES = ("rerankers", "sweep", "agents")


class SingleReport(NamedTuple):
    """The report of one variant: where it lies as seen from the page, and the anchors of the questions in it."""

    href: str
    anchors: frozenset[str]


def render_comparison_html(data: rows.Data, reports: Mapping[str, SingleReport] | None = None) -> str:
    """The whole page as text, to be written as utf-8. `data` is that of comparison.json; `reports` are linked to."""
    script, plotly = page.asset("report.js"), page.plotly()
    style = page.asset("report.css") + page.asset("comparison.css")
    figures = plots.comparison_figures(data)
    drawn = {figure.name: figure for found in figures.values() for figure in found}
    environment = page.environment()
    environment.globals.update(question_links=lambda question: question_links(question, reports or {}))
    written = environment.get_template("comparison.html.jinja").render(
        data=data, rows=rows, forest=forest, numbers=numbers, reports=reports or {}, figures=figures,
        lines=plots.lines(list(data["variants"])), sections=sections(data), parts=parts(data),
        conflicts=findings.conflicts(data), sentences=sentences(data), sign_of=sign_of,
        sliced=rows.leading(data["metrics"], _SLICED),
        plot_data=texts.embedded_json({name: figure.spec for name, figure in drawn.items()}),
        style=Markup(style), script=Markup(script), plotly=Markup(plotly) if drawn else "",  # noqa: S704  (our own)
        policy=page.policy([script, plotly] if drawn else [script]),
    )
    return page.encodable(written)


def sections(data: rows.Data) -> list[tuple[str, str]]:
    """The sections that this comparison has, as (id, title), in their order."""
    present = (
        ("conclusion", "Conclusion", True),
        ("differences", "Differences", bool(data["metrics"])),
        ("means", "Means", bool(data["means"])),
        ("slices", "Slices", bool(data["slices"])),
        ("conflicts", "Conflicts", bool(data["conflicts"])),
        ("holes", "Label holes", bool(data["holes"])),
        ("rerankers", "Re-rankers", bool(data["rerankers"])),
        ("sweep", "Over k", bool(data["sweep"])),
        ("agents", "Agents", bool(data["agents"])),
        ("app", "Time, tokens, cost", bool(rows.app_rows(data))),
        ("warnings", "Warnings", bool(data["warnings"])),
        ("how", "How to read it", True),
    )
    return [(name, title) for name, title, there in present if there]


def parts(data: rows.Data) -> dict[str, list[Part]]:
    """The tables of each section that is made of tables alone."""
    return {**{name: search_parts(_only(data, name)) for name in _SEARCHES}, "holes": findings.hole_parts(data)}


def sentences(data: rows.Data) -> dict[str, list[str]]:
    """What those sections say in words."""
    return {**{name: search_sentences(_only(data, name)) for name in _SEARCHES}, "holes": []}


def _only(data: rows.Data, name: str) -> rows.Data:
    return {**data, **dict.fromkeys(_SEARCHES), name: data[name]}


def question_links(question: str, reports: Mapping[str, SingleReport]) -> list[tuple[str, str]]:
    """(variant, link) of the single reports that show this question.

    >>> question_links("q 1", {"dense": SingleReport("dense/report.html", frozenset({"q-q.20.1"}))})
    [('dense', 'dense/report.html#q-q.20.1')]
    """
    name = texts.anchor("q", question)
    return [(variant, f"{report.href}#{name}") for variant, report in reports.items() if name in report.anchors]


def sign_of(sentence: str) -> str:
    """The sign of a sentence of the conclusion: decided or not, the same, or not to be compared.

    >>> sign_of("not decided: a and b on mrr"), sign_of("a is better than b on mrr by 0.1 (decided, 500 questions)")
    ('○', '●')
    """
    if sentence.startswith("not decided"):
        return "○"
    return "=" if " are the same on" in sentence else "–" if " cannot be compared on " in sentence else "●"
