"""The funnel, how an app searched, and each question's timeline, on the page, in Markdown and on the console."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from itertools import combinations

import pytest
from rich.console import Console

from ragkit.report import labels, rows, trajectory
from ragkit.report.data import ListView, StepView
from ragkit.report.html import render_html, sections
from ragkit.report.markdown import render_markdown
from ragkit.report.terminal import print_summary
from tests.report.test_html import Page
from tests.support.report_data import HOSTILE, passage, question, report_data, unlabelled_data
from tests.support.trajectory_data import figures, one_search, slice_of

NEW = ("funnel", "retrieval", "per_turn", "recall_spread")


def _with(**keys):
    return report_data(summary={**report_data().summary, **keys})


def _once(**more):
    """A run that searches once."""
    return _with(per_step={"0": {"recall": figures(0.5, 30)}}, **one_search(**more))


def _printed(data) -> str:
    raw = io.StringIO()
    print_summary(data, Console(file=raw, width=80))
    assert max(map(len, raw.getvalue().splitlines())) <= 80
    return " ".join(raw.getvalue().split())


@pytest.fixture(scope="module")
def source() -> str:
    return render_html(report_data())


def test_each_bar_of_the_funnel_is_whole_and_all_is_the_sum_of_the_categories():
    found = trajectory.funnel(report_data())
    assert found is not None and [own.name for own in found.slices] == [
        "All", "factual", "comparison", "multi-hop", HOSTILE[5], "(no category)"]
    for own in found.slices:
        assert sum(part.width for part in own.segments if part) == pytest.approx(100)
        assert sum(int(part.count) for part in own.segments if part) == int(own.total)
    for place, head in enumerate(found.heads):
        counts = [int(own.segments[place].count) if own.segments[place] else 0 for own in found.slices]
        assert counts[0] == sum(counts[1:]), head


def test_the_funnel_stands_on_the_page_as_bars_and_as_a_table(source):
    page = Page(source)
    assert "lost at the re-ranker 6 12% 0 0 6 33% 0 0" in page.rows
    assert "all 48 15 13 18 1 1" in page.rows
    bars = re.findall(r'<div class="funnel-bar">(.*?)</div>', source)
    assert len(bars) == 6
    for bar in bars:
        assert sum(map(float, re.findall(r"flex:0 0 ([\d.]+)%", bar))) == pytest.approx(100, abs=0.05)
    assert 'aria-label="Of 48 gold passages: 40% in the context, answer right; ' in source
    assert "Only 27 of 30 trajectories show their final context" in page.words


def test_one_category_alone_repeats_nothing_and_judged_labels_are_called_so():
    whole = slice_of(never_retrieved=2, in_context_right=2)
    data = _with(funnel={"labels": "judged", "noun": "statements", "all": whole, "categories": {"a": whole}})
    found = trajectory.funnel(data)
    assert found is not None and len(found.slices) == 1
    page = Page(render_html(data))
    assert "Every statement of the reference answers, as a judge labelled them" in page.words
    assert "Statements All" in page.rows and "| Statements | All |" in render_markdown(data)


def test_colours_of_the_funnel_are_told_apart_without_red_or_green():
    """Viénot's deuteranopia and protanopia: two fates look different, or one is hatched where the other is not."""
    css = render_html(report_data(worst=()))
    variables = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", css[: css.index("@media (prefers-color-scheme: dark)")]))
    looks = {}
    for fate in labels.FATES:
        rule = re.search(rf"\.fill-{labels.fate_fill(fate)} {{ background: (.*?); }}", css)[1]
        named = re.search(r"var\(--(\w+)\)$", rule)
        hatching = rule.rpartition(" ")[0] if "gradient" in rule else ""
        looks[fate] = variables[named[1]] if named else rule[-7:], hatching

    def seen(colour, kind):
        linear = [(int(colour[at : at + 2], 16) / 255) ** 2.2 for at in (1, 3, 5)]
        share = 0.29275 if kind == "deutan" else 0.11238
        mixed = share * linear[0] + (1 - share) * linear[1]
        return mixed ** (1 / 2.2), max(linear[2], 0) ** (1 / 2.2)

    assert len(looks) == 11
    for (one, (first, hatch)), (other, (second, hatch_2)) in combinations(looks.items(), 2):
        if {one, other} == {"in_context", "in_context_right"}:
            continue  # of runs whose answers nobody could check, and of the others
        for kind in ("protan", "deutan"):
            apart = max(abs(a - b) for a, b in zip(seen(first, kind), seen(second, kind), strict=True))
            assert apart > 0.08 or hatch != hatch_2, (one, other, kind)


def test_how_the_app_searched_is_told():
    facts = {fact.title: f"{fact.value} {fact.note}" for fact in trajectory.behaviour(report_data())}
    assert facts == {
        "All evidence found": "71% of questions (95% interval 50%–88%), median 1 search",
        "Answered without retrieval": "2 of 30 (7%)", "Failing searches": "1 of 45 (2%)",
        "Repeated queries": "3 of 45 (7%)", "Wasted searches": "17 of 45 (38%) found no gold that was new",
        "Searches a question": "1.5 in the mean; median 2, most 3",
        "Turns a question": "1.3 in the mean; median 1, most 2",
        "Final context known": "27 of 30; 20 without an order; 1 with a text cut off"}
    assert "Turns a question" not in [fact.title for fact in trajectory.behaviour(_with(per_turn={}))]


def test_turns_stand_beside_steps_where_searches_ran_at_once(source):
    assert "1 16 0.420 16 / 16 0.200 16 / 16 0.722 16 / 16" in Page(source).rows
    assert "| 1 | 16 | 0.420 (16 / 16) | 0.200 (16 / 16) | 0.722 (16 / 16) |" in render_markdown(report_data())
    assert "Turn by turn" not in render_html(_with(per_turn={})) + render_markdown(_with(per_turn={}))


def test_an_app_that_searches_once_shows_the_funnel_and_what_went_wrong_alone():
    quiet = _once(never_retrieved=1, in_context_right=9)
    assert trajectory.behaviour(quiet) == [] and "behaviour" not in [name for name, _ in sections(quiet)]
    assert "Of 10 gold passages: 90% in the context, answer right; 10% never retrieved" in _printed(quiet)
    assert "All evidence found" not in _printed(quiet)
    silent = _once(silent=3, in_context_right=9)
    assert [fact.title for fact in trajectory.behaviour(silent)] == ["Answered without retrieval"]
    assert "Answered without retrieval: 3 of 30 (10%)" in _printed(silent)


def test_the_console_tells_when_evidence_was_complete_and_where_it_ended():
    text = _printed(report_data())
    assert "All evidence found: 71% of questions (95% interval 50%–88%), median 1 search" in text
    assert "Of 48 gold passages: 40% in the context, answer right; 17% in the context, answer wrong" in text
    assert "6 smaller parts" in text and "Answered without retrieval: 2 of 30 (7%)" in text


def test_the_console_says_what_stands_for_a_context_that_is_not_known():
    known = report_data().summary["retrieval"]["context"]
    some = _with(retrieval={**report_data().summary["retrieval"], "context": {**known, "known": 7, "of": 30}})
    assert "Only 7 of 30 trajectories show their final context; else what the steps returned counts" in _printed(some)
    every = _with(retrieval={**report_data().summary["retrieval"], "context": {**known, "known": 30, "of": 30}})
    assert "final context" not in _printed(every)


def test_wasted_searches_of_judged_labels_speak_of_statements():
    funnel = {**report_data().summary["funnel"], "labels": "judged"}
    (wasted,) = (fact for fact in trajectory.behaviour(_with(funnel=funnel)) if fact.title == "Wasted searches")
    assert "no statement of the reference" in wasted.note and "gold" not in wasted.note


def test_a_summary_of_an_earlier_version_still_renders():
    summary = {key: value for key, value in report_data().summary.items() if key not in NEW}
    data = report_data(summary=summary)
    page = Page(render_html(data))
    assert page.unbalanced == [] and not {"behaviour", "lost"} & {name for name, _ in sections(data)}
    assert "gold passages" not in _printed(data) and trajectory.funnel(unlabelled_data()) is None


def test_a_step_tells_what_it_found_lost_and_gathered():
    words = Page(render_html(report_data(worst=(question(1),)))).words
    for told in ("new gold mill-007#1", "lost at the re-ranker mill-019#0", "gold found so far 33%", "repeated query",
                 "drift 0.85", "turn 1, one of 2 searches at once", "cut off",
                 "Beneath it: retriever · chroma · minilm, 3 passages, 2 gold",
                 "A set: it has no order, so nothing is cut at k or read by rank. 1 text of it is cut off.",
                 "found by a step, missing here mill-050#0"):
        assert told in words, told
    assert "lost here" not in words  # told once, with its stage
    markdown = render_markdown(report_data(worst=(question(1),)))
    assert "; new gold `mill-007#1`; lost at the re-ranker `mill-019#0`; 33% of the gold so far" in markdown
    assert "missing here: `mill-050#0`" in markdown and "- **Step 2** (turn 1, one of 2 searches at once)" in markdown


def test_what_was_lost_is_told_by_the_stage_that_dropped_it():
    gold = passage("a", 1, "gold", gold=True)
    lists = (ListView("rerank", "", True, "unknown", (), lost=("a", "b", "c")),
             ListView("filter", "", True, "unknown", (gold,), lost=("b", "c")),
             ListView("fuse", "", True, "unknown", (), lost=("c",)),
             ListView("retrieve", "", True, "unknown", (), lost=("c",)))
    step = StepView(0, 0, "query", lists, lost_gold=("a", "b", "c"))
    assert trajectory.lost_at(step) == [("re-ranker", ("a",)), ("filter", ("b",)), ("fusion", ("c",))]


def test_what_is_known_of_the_context_is_said():
    ranked = ListView("context", "", True, "unknown", (passage("a", 1, "text"),))
    assert trajectory.context_words(question(1, context=ranked)) == "A ranking: its order counts."
    union = replace(ranked, stage="union", ranked=False)
    assert trajectory.context_words(question(1, context=union)).endswith("what its steps returned stands for it, as a "
                                                                         "set.")
    assert trajectory.context_words(question(1, context=None)).startswith("Not known")


def test_what_was_scored_leads_the_headline_and_the_console():
    """Contexts that are sets have no hit@k: their numbers do not open the report with a column of blanks."""
    data = report_data()
    blank = {"mean": None, "low": None, "high": None, "n_scored": 0, "n_asked": 24, "n_undefined": 24, "n_failed": 0}
    metrics = {name: {**figures, **blank} if "@" in name else figures
               for name, figures in data.summary["metrics"].items()}
    data = report_data(summary={**data.summary, "metrics": metrics})
    _, _, side = rows.sides(data)[0]
    means = [row.has_mean for row in side]
    assert means == sorted(means, reverse=True) and True in means and False in means
    assert next(row.name for row in side if row.has_mean) == "recall"
    text = _printed(data)
    assert text.index(" mrr ") < text.index(" hit@1 ") < text.index(" steps_to_evidence "), "within its group"
