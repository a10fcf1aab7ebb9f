"""Corrected means and the bridge between judges, in every report; a report without them has no such section."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console

from ragkit.report.data import ReportData
from ragkit.report.html import render_html
from ragkit.report.markdown import render_markdown
from ragkit.report.terminal import print_summary
from tests.support.report_data import HOSTILE, report_data

ENTRY: dict[str, Any] = {
    "mean": 0.7, "low": 0.55, "high": 0.85, "raw": 0.875, "bias": 0.175, "trust": 0.4, "n_labels": 29,
    "n_questions": 1200, "weighted": False, "warning": "nothing is known of the draw", "notes": [HOSTILE[0]],
    "labels_to_decide": {"0.1": {"labels": 90, "more": 61, "questions": None},
                         "0.05": {"labels": 29, "more": 0, "questions": None},
                         "0.02": {"labels": None, "more": None, "questions": 4268}},
    "agreement": {"kappa": {"value": 0.4, "low": None, "high": None, "reason": None},
                  "auroc": {"value": None, "low": None, "high": None, "reason": "the labels are all of one class"}},
}
BRIDGE: dict[str, Any] = {
    "from": {"judge": HOSTILE[1], "endpoint": "http://a"}, "to": {"judge": "new", "endpoint": "http://b"},
    "n_drawn": 60, "n_judged": 120, "metrics": {
        "faithfulness": {"offset": 0.053, "low": -0.01, "high": 0.116, "n": 58, "old": 0.8, "new": 0.853, "kappa": 0.61,
                         "kappa_of": "verdicts", "n_kappa": 140, "reason": None},
        "context_recall": {"offset": None, "low": None, "high": None, "n": 1, "old": 1.0, "new": 1.0, "kappa": None,
                           "kappa_of": "scores", "n_kappa": 0, "reason": "expected at least 2 labels, got 1"}}}


def with_people() -> ReportData:
    data = report_data()
    return replace(data, summary={**data.summary, "corrected": {"faithfulness": ENTRY}, "bridge": BRIDGE})


def terminal(data: ReportData, encoding: str = "utf-8") -> str:
    raw = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=raw, width=100)
    print_summary(data, console)
    raw.flush()
    return raw.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_all_three_show_the_corrected_mean_beside_the_judges_own() -> None:
    data = with_people()
    for text in (render_html(data), render_markdown(data), terminal(data)):
        flat = " ".join(text.split())
        for shown in ("0.700", "0.550–0.850", "0.875", "29 / 1,200, not known how drawn",
                      "nothing is known of the draw", "kappa 0.400",
                      "AUROC undefined (the labels are all of one class)", "0.1: 61 more labels",
                      "0.05: enough labels", "0.02: at least 4,268 questions", "+0.053", "-0.010 to 0.116", "60 / 120"):
            assert shown in flat or shown.replace("-", "\\-") in flat, shown


def test_what_came_from_outside_stays_text() -> None:
    page = render_html(with_people())
    assert HOSTILE[0] not in page and HOSTILE[1] not in page
    assert "0.700" in terminal(with_people(), "cp1252")


def test_without_labels_and_bridge_there_is_no_section() -> None:
    data = report_data()
    assert 'id="corrected"' not in render_html(data) and 'id="corrected"' in render_html(with_people())
    assert "Judge and people" not in render_markdown(data)
    assert "Corrected by labels" not in terminal(data)
