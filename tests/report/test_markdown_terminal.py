"""The report as Markdown and on a console: hostile texts inert, tables whole, 80 columns, any encoding."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from ragkit.report.data import ScoreView
from ragkit.report.markdown import render_markdown
from ragkit.report.terminal import print_summary
from tests.support.report_data import HOSTILE, question, report_data, unlabelled_data


@pytest.fixture(scope="module")
def markdown() -> str:
    return render_markdown(report_data(notes=HOSTILE, fix_first=HOSTILE[10]))


def _without_code(text: str) -> str:
    return re.sub(r"(`+).+?\1", "", text)


def test_markdown_holds_no_html_link_or_image_of_the_data(markdown):
    text = _without_code(markdown)
    assert not re.search(r"<[a-zA-Z/!]", text)
    assert not re.search(r"(?<!\\)!?\[", text) and "@everyone" not in text
    assert r"!\[a\](https://evil.example/a.png) \|" in text
    markdown.encode("utf-8")
    assert not re.search("[\u202e\u200b\u2028\x00\x1b]", markdown)


def test_every_row_of_a_markdown_table_has_as_many_cells_as_its_head(markdown):
    width = None
    for line in markdown.splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else None
        assert cells is None or width in (None, cells), line
        width = cells
    assert markdown.count("| --: |") > 8



def test_markdown_shows_the_first_twenty_and_says_how_many_the_page_shows() -> None:
    data = report_data()
    many = replace(data, worst=tuple(replace(data.worst[0], id=f"w{i}", steps=(), context=None) for i in range(25)))
    text = render_markdown(many)
    assert "The page shows 25, this text the first 20." in text
    assert "w19" in text
    assert "w20" not in text
    assert "The page shows" not in render_markdown(data)


def test_no_text_of_the_data_starts_a_line():
    lines = render_markdown(report_data(notes=("# a heading", "1. a list"), fix_first="# big")).splitlines()
    assert [line for line in lines if line.startswith("# ")] == ["# iterative + maxsim"]


def test_markdown_has_the_same_figures_and_reasons(markdown):
    assert "| `faithfulness` | 0.900 | 0.790–0.999 | 21 / 30 | 4 | 5 | 0.727–0.917 | judged | 3 × unparsed" in markdown
    assert "| `context_recall` | undefined | – | 0 / 30 | 30 | 0 |" in markdown
    assert "| `mrr` | 0.631 | 0.521–0.730 | 24 / 30 | 6 | 0 |  | gold | 4 × declared unanswerable" in markdown
    assert "undefined: no order" in markdown and "failed: unparsed reply" in markdown
    assert "**Cost:** not recorded" in markdown and "| cost | unknown |" in markdown
    assert "nan" not in markdown.lower().split()
    heads = [line[3:] for line in markdown.splitlines() if line.startswith("## ")]
    assert heads == ["What to fix first", "Headline numbers", "Where the relevant chunks stand", "Step by step",
                     "Retrieval behaviour", "Where evidence was lost", "What the re-ranker did", "By category",
                     "The app: time, tokens, cost", "The judge", "Worst questions", "Failures", "Notes",
                     "What the numbers mean"]


def test_markdown_of_an_empty_run():
    data = report_data(summary={"variant": "empty"}, run={}, metrics={}, rank_histogram={}, hit_curve={}, step_reach={},
                       rerank={}, worst=(), failures=(), notes=(), agreement=(), lost_stages={})
    text = render_markdown(data)
    assert text.startswith("# empty\n") and "Worst questions" not in text and "None" not in text


def _printed(encoding: str, **options) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)  # errors="strict": what cannot be carried would raise
    data = report_data(**({"fix_first": "Fix ✅ 知识 😀 é first. \x1b[31m" + HOSTILE[8]} | options))
    print_summary(data, Console(file=stream, width=200))
    stream.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
def test_the_summary_fits_80_columns_on_any_console(encoding):
    text = _printed(encoding)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text and "[U+001B]" in text and "[U+202E]" in text
    assert "faithfulness" in text and "4 undefined, 5" in text and "30 undefined" in text
    assert "0.432-0.641" in text if encoding == "ascii" else "0.432–0.641" in text
    assert ("知识" in text) == (encoding == "utf-8") and ("é" in text) == (encoding != "ascii")


def test_the_summary_tells_how_to_give_a_judge():
    text = _printed("utf-8", judge=False)
    assert text.count("needs a judge") == 5 and "--judge openai:gpt-5-mini" in text


def test_markdown_says_needs_a_judge_once_and_leaves_unscored_categories_out():
    markdown = render_markdown(report_data(judge=False, worst=(question(1, scores=(
        ScoreView("recall", "final", None, "undefined", "no order"),
        ScoreView("faithfulness", "final", None, "undefined", "needs a judge"))),)))
    assert "**Scores:** `recall` undefined: no order, `faithfulness` needs a judge\n" in markdown
    assert "| Category | `recall` | `mrr` | `ndcg@10` | `lexical_support` | `answer_f1` |" in markdown


def test_without_labels_the_outcomes_stand_instead_of_the_matrix():
    markdown = render_markdown(unlabelled_data())
    assert "Evidence complete" not in markdown and "Gold is about" not in markdown and "Besides" not in markdown
    table = markdown[markdown.index("| Outcome") :].split("\n\n")[0].splitlines()
    assert table == ["| Outcome | Whose | Questions |", "| :-- | :-- | --: |",
                     "| no labels, answer right | no gold to check | **11** |",
                     "| no labels, answer wrong | no gold to check | **14** |",
                     "| unanswerable, answer not known | nothing to check | **2** |",
                     "| not asked | nothing to check | **1** |", "| the app failed | the app’s | **2** |"]
    assert "By category\n\n| Category | `answer_f1` |" in markdown and "Scored in no category: `recall`." in markdown
    assert "Gold is about" in render_markdown(report_data())


def test_without_labels_the_console_shows_the_outcomes():
    raw = io.StringIO()
    print_summary(unlabelled_data(), Console(file=raw, width=80))
    lines = [" ".join(line.split()) for line in raw.getvalue().splitlines()]
    assert max(map(len, raw.getvalue().splitlines())) <= 80
    at = lines.index("Outcome Questions Whose")
    assert lines[at + 2 : at + 7] == [
        "no labels, answer right 11 no gold to check", "no labels, answer wrong 14 no gold to check",
        "unanswerable, answer not known 2 nothing to check", "not asked 1 nothing to check",
        "the app failed 2 the app’s"]
    assert not any("Evidence" in line or "Besides" in line for line in lines)


def test_markup_of_rich_in_data_is_text():
    assert "[bold]x[/bold] [link=https://evil.example]y" in _printed(
        "utf-8", fix_first="[bold]x[/bold] [link=https://evil.example]y")
