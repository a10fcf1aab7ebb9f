"""The page of a comparison: what stands on it, hostile names, links into single reports, nothing where nothing is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragkit.comparison.compare import compare
from ragkit.report.comparison_findings import conflicts, hole_parts
from ragkit.report.comparison_forest import forest, headline, place, verdicts
from ragkit.report.comparison_html import SingleReport, question_links, render_comparison_html, sections
from ragkit.report.comparison_markdown import render_comparison_markdown
from ragkit.report.comparison_plots import comparison_figures
from tests.report.test_comparison import FIGURES, NONE, data
from tests.support.comparisons import HOSTILE, of_runs, walks


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict:
    return of_runs(tmp_path_factory.mktemp("runs")).data


@pytest.fixture(scope="module")
def agents() -> dict:
    return compare({"long": walks(0), "short": walks(6)}).data


def shown(page: str) -> str:
    """The page without its styles, scripts and plot data."""
    return re.sub(r"(?s)<(style|script)\b.*?</\1>", "", page)


def test_the_conclusion_stands_first_and_every_part_that_exists_after_it(runs, agents):
    assert [name for name, _ in sections(runs)] == ["conclusion", "differences", "means", "conflicts", "holes",
                                                    "rerankers", "sweep", "how"]
    assert [name for name, _ in sections(agents)][-5:] == ["holes", "sweep", "agents", "warnings", "how"]
    for found in (runs, agents):
        page = shown(render_comparison_html(found))
        ids = re.findall(r'<section id="([a-z]+)"', page)
        assert ids == [name for name, _ in sections(found)]
        assert page.index(found["conclusion"][0]) < page.index('id="differences"')
        assert page.count("<h1>") == 1 and "None" not in re.sub(r"None of", "", page) and "nan" not in page.lower()


def test_a_comparison_without_more_shows_no_empty_part_and_needs_no_plots():
    page = render_comparison_html(data())
    assert [name for name, _ in sections(data())] == ["conclusion", "differences", "means", "slices", "app", "warnings",
                                                      "how"]
    assert len(page) < 200_000 and "Plotly" not in re.sub(r"window\.Plotly", "", page)


def test_each_difference_stands_with_its_interval_and_is_decided_by_more_than_colour():
    page = shown(render_comparison_html(data()))
    row = next(part for part in page.split("<tr") if "-0.070 to 0.010" in part)
    assert "forest decided" in row and "▼" in row and "worse" in row and "10 / 450 / 40" in row and "&lt; 0.001" in row
    other = next(part for part in page.split("<tr") if "not scored" in part and "forest" in part)
    assert "forest decided" not in other and "<i style" not in other
    assert re.search(r"0\.450</b><small>0\.400–0\.600</small><small>500 / 500", page)


def test_bars_of_shares_stand_on_one_scale_and_counts_on_their_own():
    counted = {**FIGURES, "difference": 2.0, "low": 1.0, "high": 3.0, "wins": 1, "losses": 9}
    found = data(metrics={"mrr": {"new": FIGURES}, "steps_to_evidence": {"new": counted},
                          "recall": {"new": {**FIGURES, "low": -0.19}}})
    found["means"]["steps_to_evidence"] = found["means"]["mrr"]
    groups = {group.metric: group for group in forest(found)}
    assert groups["mrr"].scale == groups["recall"].scale == ("-0.2", "+0.2")
    assert groups["steps_to_evidence"].scale == ("-3", "+3")
    bar = groups["steps_to_evidence"].rows[0].bar
    assert bar.low == pytest.approx(place(1.0, 3.0)) and bar.low + bar.width == 100.0 and 50 < bar.middle < 100
    assert groups["steps_to_evidence"].rows[0].tone == "bad", "more steps are worse"


def test_the_headline_counts_what_is_decided():
    same = {**FIGURES, "difference": 0.0, "wins": 0, "losses": 0, "decided": False}
    open_ = {**FIGURES, "decided": False}
    assert headline(data()) == "1 of 2 differences is decided"
    for first, second, told in ((FIGURES, FIGURES, "All 2 differences are decided"),
                                (open_, NONE, "None of 2 differences is decided"),
                                (same, same, "Nothing differs from old")):
        assert headline(data(metrics={"mrr": {"new": first}, "recall": {"new": second}})) == told
    assert headline(data(metrics={"mrr": {"new": FIGURES}})) == "The difference is decided: worse"
    assert verdicts(data())[0] == ["recall", "mrr"]


def test_hostile_names_and_ids_stay_texts_in_page_and_markdown(tmp_path):
    found = of_runs(tmp_path, 12, ("first", HOSTILE, "other")).data
    found["conflicts"][0]["questions"]["ids"][0] = HOSTILE
    page = render_comparison_html(found, {HOSTILE: SingleReport("a%22b/report.html", frozenset({"q-q1"}))})
    assert "<img" not in shown(page) and "\u202e" not in page and "onerror=alert(1)>" not in page
    assert page.count("<script") == 3 and "default-src &#39;none&#39;" in page
    text = render_comparison_markdown(found)
    assert "<img" not in text and "[x](" not in text and "\u202e" not in text


def test_questions_link_into_the_reports_that_show_them_and_no_others(tmp_path):
    for name, short in (("long", 0), ("short", 6)):
        walks(short, tmp_path / name)
    made = compare({"long": tmp_path / "long", "short": tmp_path / "short"})
    made.save(tmp_path)
    page = shown((tmp_path / "comparison.html").read_text(encoding="utf-8"))
    links = set(re.findall(r'href="((?:long|short)/report\.html)(#[^"]*)?"', page))
    assert ("long/report.html", "") in links and any(anchor.startswith("#q-") for _, anchor in links)
    for href, anchor in links:
        assert not anchor or f'id="{anchor[1:]}"' in (tmp_path / href).read_text(encoding="utf-8")
    elsewhere = made.report(tmp_path / "apart" / "page.html")
    assert 'href="../long/report.html"' in elsewhere.read_text(encoding="utf-8")
    (tmp_path / "long" / "report.html").unlink()
    assert "long/report.html" not in made.report(tmp_path / "again.html").read_text(encoding="utf-8")
    assert question_links("q9", {"a": SingleReport("a.html", frozenset({"q-q1"}))}) == []


def test_conflicts_and_holes_are_told_with_what_was_tested(runs):
    found = conflicts(runs)
    assert len(found) == len(runs["conflicts"]) > 0
    assert found[0].says == runs["conflicts"][0]["says"] and found[0].lists[0].ids
    judged, bounds, *rest = hole_parts(runs)
    assert judged.rows[0][0] == "Variant" and len(judged.rows) == 4
    assert len(bounds.rows) - 1 == sum(map(len, runs["holes"]["differences"].values()))
    assert bool(rest) == bool(runs["holes"]["pairs"]["total"])
    text = render_comparison_markdown(runs)
    assert "## Conflicts" in text and "## How much is judged" in text and "## Re-ranker: reranked" in text


def test_figures_have_a_line_a_variant_told_apart_by_colour_sign_and_dash(runs, agents):
    drawn = comparison_figures(runs)
    assert list(drawn) == ["rerankers", "sweep"] and len(drawn["sweep"]) == 4, "no texts, so no tokens"
    traces = drawn["sweep"][0].spec["data"]
    for part, key in (("line", "color"), ("line", "dash"), ("marker", "symbol")):
        assert len({one[part][key] for one in traces}) == 3
    at = runs["sweep"]["variants"]["first"]["at"]
    assert traces[0]["x"] == ["1", "2", "3", "5", "10", "13", "20"], "13 is the end of another's lists"
    assert traces[0]["y"] == [at[k]["recall"]["mean"] if k in at else None for k in traces[0]["x"]]
    assert all(trace["connectgaps"] for trace in traces)
    gathered = comparison_figures(agents)["agents"][0]
    assert gathered.spec["data"][0]["x"] == ["0", "1", "2"] and gathered.spec["data"][0]["y"][-1] == 1.0


def test_every_ending_of_a_report_has_its_form(tmp_path: Path):
    from ragkit.errors import DataError
    from tests.support.variants import ranked

    made = compare({"a": ranked(1, 2, 3), "b": ranked(1, 1, 1)})
    assert made.report(tmp_path / "x.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert made.report(tmp_path / "x.md").read_text(encoding="utf-8").startswith("# Comparison")
    assert made.report(tmp_path / "x.json").read_text(encoding="utf-8").startswith("{")
    with pytest.raises(DataError, match=r"x\.pdf: expected a name that ends in"):
        made.report(tmp_path / "x.pdf")
    made.save(tmp_path / "all")
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["comparison.html", "comparison.json",
                                                                          "comparison.md"]
