"""The report as one HTML page that needs nothing else: styles, script and plotly inside, no request leaves it.

How a page is made safe is in page.py.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ragkit.report import corrected, judged, labels, numbers, page, parts, plots, rows, step_plots, texts, trajectory
from ragkit.report.data import MetricInfo, QuestionView, ReportData

_ANSWER_LENGTH = 1200


class _Loose(dict[str, Any]):
    """A mapping of a file whose absent keys read as None; misspelt names of templates stay errors elsewhere."""

    def __missing__(self, key: str) -> None:
        return None


class TextStore:
    """Long passage texts, each kept once a page however many lists show it."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int | None:
        """Where the whole text lies; None where its snippet is all of it."""
        if len(text) <= texts.SNIPPET:
            return None
        return self._places.setdefault(text, len(self._places))

    @property
    def texts(self) -> list[str]:
        """The whole texts, each at its place."""
        return list(self._places)


def render_html(data: ReportData) -> str:
    """The whole page as text, to be written as utf-8."""
    script, plotly, style = page.asset("report.js"), page.plotly(), page.asset("report.css")
    steps = step_plots.step_figures(data)
    figures = plots.figures(data) | steps
    panels = [figure for name, figure in steps.items() if name != step_plots.SPREAD]
    environment = page.environment()
    environment.globals.update(question_anchor=question_anchor)
    written = environment.get_template("report.html.jinja").render(
        data=data, summary=_Loose(data.summary), run=_Loose(data.run),
        questions=_Loose(data.summary.get("questions") or {}), rows=rows, parts=parts, numbers=numbers,
        corrected=corrected, judged=judged, trajectory=trajectory, figures=figures, panels=panels,
        spread=steps.get(step_plots.SPREAD),
        plot_data=texts.embedded_json({name: figure.spec for name, figure in figures.items()}),
        store=TextStore(), sections=sections(data), definitions=definitions(data), answer_length=_ANSWER_LENGTH,
        style=Markup(style), script=Markup(script), plotly=Markup(plotly) if figures else "",  # noqa: S704  (our own)
        policy=page.policy([script, plotly] if figures else [script]),
    )
    return page.encodable(written)


def sections(data: ReportData) -> list[tuple[str, str]]:
    """The sections that this report has, as (id, title), in their order."""
    summary = data.summary
    present = (
        ("fix-first", "What to fix first", True),
        ("headline", "Headline numbers", True),
        ("corrected", "Judge and people", bool(summary.get("corrected") or summary.get("bridge"))),
        ("judged", "Judged labels", bool(summary.get("judged_labels"))),
        ("ranks", "Ranks", bool(plots.hit_curve(data) or plots.rank_histogram(data))),
        ("steps", "Step by step", bool(summary.get("per_step"))),
        ("behaviour", "Retrieval behaviour", bool(trajectory.behaviour(data))),
        ("lost", "Where evidence was lost", bool(trajectory.funnel(data))),
        ("reranker", "The re-ranker", bool(parts.rerank_parts(data))),
        ("categories", "By category", bool(rows.category_rows(data)[0])),
        ("app", "The app", True),
        ("judge", "The judge", bool(summary.get("judge") or data.agreement or data.needs_judge)),
        ("questions", "Worst questions", bool(data.worst)),
        ("failures", "Failures", bool(data.failures)),
        ("notes", "Notes", bool(data.notes)),
        ("definitions", "Definitions", bool(data.metrics)),
    )
    return [(name, title) for name, title, there in present if there]


def definitions(data: ReportData) -> list[tuple[str, str, list[tuple[list[str], MetricInfo]]]]:
    """The definitions by group: (title, about, [(names that share one definition, the definition)])."""
    grouped: dict[str, dict[tuple[Any, ...], tuple[list[str], MetricInfo]]] = {group: {} for group in labels.GROUPS}
    for name, info in data.metrics.items():
        same = (name.partition("@")[0], info.summary, info.range, info.direction, info.undefined, info.source,
                info.formula)
        group = grouped[info.group if info.group in grouped else "other"]
        group.setdefault(same, ([], info))[0].append(name)
    return [(*labels.GROUPS[group], list(found.values())) for group, found in grouped.items() if found]


def question_anchor(question: QuestionView) -> str:
    """The id of a question on the page; the same question has the same one in every report."""
    return texts.anchor("q", question.id, question.repeat)
