"""A comparison as Markdown and on a console: what it shows, hostile names, narrow encodings, no number that is none."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from ragkit.report.comparison_markdown import render_comparison_markdown
from ragkit.report.comparison_rows import difference_rows, header
from ragkit.report.comparison_terminal import print_comparison

FIGURES = {"difference": -0.05, "low": -0.07, "high": 0.01, "p": 0.0001, "p_holm": 0.0002, "wins": 10, "ties": 450,
           "losses": 40, "n": 500, "decided": True, "questions_to_decide": 300, "repeats_to_decide": None,
           "corrected": None}
NONE = dict.fromkeys(FIGURES) | {"wins": 0, "ties": 0, "losses": 0, "n": 0, "decided": False}


def data(name: str = "new", category: str = "how-to", **more: Any) -> dict[str, Any]:
    mean = {"mean": 0.5, "low": 0.4, "high": 0.6, "n_scored": 500, "n_asked": 500, "n_undefined": 0, "n_failed": 0}
    app = {"ms": {"median": 850.0}, "tokens": {"input": 1200, "output": 30}, "cost": None}
    return {"schema": "ragkit.comparison/1", "baseline": "old", "labels": "gold",
            "variants": {side: {"folder": None, "n_asked": 500, "app": app, "detectable": {"mrr": 0.06, "recall": None},
                                "variance": {}} for side in ("old", name)},
            "metrics": {"mrr": {name: FIGURES}, "recall": {name: NONE}},
            "means": {metric: {"old": mean, name: {**mean, "mean": 0.45}} for metric in ("mrr", "recall")},
            "slices": {"category": {category: {"n": 3, "mrr": {name: {"difference": 0.1, "low": None, "high": None,
                                                                      "n": 3}}, "recall": {}}}},
            "conflicts": [], "holes": None, "rerankers": None, "sweep": None, "agents": None,
            "warnings": ["a warning"], "conclusion": ["a conclusion"], **more}


def console(found: dict[str, Any], encoding: str = "utf-8", slicings: tuple[str, ...] = ()) -> str:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, write_through=True) as stream:
        print_comparison(found, Console(file=stream, width=200), slicings)
        return raw.getvalue().decode(encoding)


def test_rows_say_which_way_it_went() -> None:
    first, second = difference_rows(data(), "new")
    assert first == ("mrr", "0.500", "0.450", "-0.050", "-0.070 to 0.010", "< 0.001", "10 / 450 / 40", "500", "0.060",
                     "worse")
    assert second.verdict == "not scored" and second.difference == second.p == second.interval == "–"
    assert header(data()) == ("new against old on 500 questions, by gold labels. Smallest difference that a run like "
                              "old detects: mrr 0.060")
    assert "by a judge's labels, not people's" in header(data(labels="judged"))


def test_markdown_has_conclusion_warnings_tables_slices_and_costs() -> None:
    text = render_comparison_markdown(data())
    for part in ("- a conclusion", "- a warning", "## new against old",
                 "| `mrr` | 0.500 | 0.450 | **-0.050** | -0.070 to 0.010 | < 0.001 | 10 / 450 / 40 | 500 | 0.060 | "
                 "worse |", "| how-to | 3 | – | +0.100 |", "| new | 850 ms | 1,200 + 30 | unknown |"):
        assert part in text, part
    assert "nan" not in text.lower().replace("–", "") and "None" not in text


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_a_console_of_any_encoding_has_lines_of_80_columns(encoding: str) -> None:
    shown = console(data(name="a variant with a very long name of many words, longer than any column"), encoding,
                    ("category",))
    assert max(map(len, shown.splitlines())) <= 80
    for part in ("a conclusion", "a warning", "how-to", "-0.050", "worse", "not scored"):
        assert part in shown, part


def test_hostile_names_stay_texts() -> None:
    hostile = "<script>|[x](http://y) \u202e\x1b[31m"
    text = render_comparison_markdown(data(name=hostile, category=hostile))
    assert "<script>" not in text and "[x](" not in text and "\x1b" not in text and "\u202e" not in text
    shown = console(data(name=hostile, category=hostile), slicings=("category",))
    assert "\x1b[31m" not in shown and "\u202e" not in shown and "[x]" in shown.replace("\n", "")


def test_what_labels_of_people_say_stands_beside() -> None:
    corrected = {"mean": 0.02, "low": -0.01, "high": 0.05, "raw": 0.08, "n_labels": 60, "reason": None}
    found = data(metrics={"mrr": {"new": {**FIGURES, "corrected": corrected}},
                          "recall": {"new": {**NONE, "corrected": {"mean": None, "reason": "fewer than two labels"}}}})
    for text in (render_comparison_markdown(found), console(found)):
        flat = " ".join(text.split())
        assert "mrr: corrected by 60 labels: +0.020 (-0.010 to 0.050); by the judge alone +0.080" in flat
        assert "recall: labels do not correct it: fewer than two labels" in flat
