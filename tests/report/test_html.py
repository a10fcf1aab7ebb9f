"""The page: hostile texts are inert, nothing loads from a network, undefined and failed are said, NaN never appears."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ragkit.report import page as page_module
from ragkit.report.data import ListView, PassageView, ScoreView, StepView
from ragkit.report.html import question_anchor, render_html, sections
from ragkit.report.plots import figures
from ragkit.report.step_plots import step_figures
from tests.support.report_data import HOSTILE, question, report_data, unlabelled_data
from tests.support.report_data import figures as metric_figures

VOID = {"meta", "br", "img", "link", "input", "hr", "base"}


class Page(HTMLParser):
    """Elements, attributes and texts of a page, with the text of each table row."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text: list[str] = []
        self.rows: list[str] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self._row: list[str] | None = None
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "tr":
            self._row = []

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)
        if tag == "tr" and self._row is not None:
            self.rows.append(" ".join(" ".join(self._row).split()))
            self._row = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.open and self.open[-1] != "style":
            self.text.append(data)
            if self._row is not None:
                self._row.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


@pytest.fixture(scope="module")
def source() -> str:
    return render_html(report_data())


@pytest.fixture(scope="module")
def page(source) -> Page:
    return Page(source)


def test_the_page_is_well_formed(page):
    assert page.unbalanced == [] and page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_no_element_comes_from_the_data(page):
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "svg", "iframe", "link", "object", "embed", "base", "form"}
    assert [attributes.get("type") for attributes, _ in page.scripts] == ["application/json", None, None]
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    targets = [a[name] for _, a in page.elements for name in ("href", "src", "action", "data") if name in a]
    assert targets and all(target.startswith("#") for target in targets)


def test_hostile_texts_are_shown_as_typed(source, page):
    for text in (*HOSTILE[:2], *HOSTILE[3:8]):
        assert text in "".join(page.text)
    assert "a & b < c" in page.words and "&amp;lt;already&amp;gt;" in source
    for name in ("U+202E", "U+200B", "U+2028", "U+0000", "U+D800", "U+E0041", "U+001B"):
        assert f'<span class="codepoint">{name}</span>' in source
    assert not re.search("[\u202e\u200b\u2028\x00\x1b\ud800]", source)


def test_template_syntax_in_data_is_text(page):
    shown = Page(render_html(report_data(fix_first=HOSTILE[9], notes=(HOSTILE[9],))))
    assert shown.words.count("{{ 7 * 7 }} {% raw %} ${x} %{y}") == 2


def test_only_the_pages_own_scripts_may_run_and_nothing_loads(source, page):
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe-inline" not in policy.split(";")[1]
    assert "http:" not in policy and "https:" not in policy
    code = [text for attributes, text in page.scripts if attributes.get("type") is None]
    hashes = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in code}
    assert hashes == set(re.findall(r"'sha256-([^']+)'", policy))
    assert not re.search(r"url\(|@import", page_module.asset("report.css"))
    assert not re.search(r"https?:|fetch|XMLHttpRequest|import\(", page_module.asset("report.js"))


def test_the_data_of_the_plots_is_strict_json(page):
    def refuse(name):
        raise AssertionError(name)

    plots = json.loads(page.scripts[0][1], parse_constant=refuse)
    assert list(plots) == ["hit-curve", "rank-histogram", "step-recall", "step-ndcg@10", "recall-spread"]


def test_sections_stand_in_their_order(page):
    main = [a["id"] for tag, a in page.elements if tag == "section"]
    assert main == ["fix-first", "headline", "ranks", "steps", "behaviour", "lost", "reranker", "categories", "app",
                    "judge", "questions", "failures", "notes", "definitions"]
    links = [a["href"][1:] for tag, a in page.elements if tag == "a"]
    ids = {a["id"] for _, a in page.elements if "id" in a}
    assert set(main) <= set(links) and set(links) <= ids


def test_undefined_and_failed_stand_with_reasons(page):
    faithfulness = next(row for row in page.rows if row.startswith("faithfulness 0.900"))
    assert "21 / 30 4 5 0.727–0.917 judged" in faithfulness
    assert "3 × unparsed reply" in faithfulness and "2 × timed out" in faithfulness
    recall = next(row for row in page.rows if row.startswith("context_recall"))
    assert "undefined" in recall and "30 × no reference answer" in recall and "0.0" not in recall
    assert "Where nothing else is said, not scored: 4 × declared unanswerable, 2 × unlabelled." in page.words
    assert "I'm sorry, I can't assess this." in page.words and "no order" in page.words


def test_mrr_is_called_no_rank(page):
    """1 / mrr is the harmonic mean of the first ranks only where every question found something."""
    assert any(row.startswith("mrr 0.631 0.521–0.730 24 / 30") for row in page.rows)
    assert "harmonic mean of the first ranks:" not in page.words and "does not say that rank 2 is usual" in page.words


def test_nan_never_appears():
    nan = float("nan")
    metrics = {"recall": metric_figures(0.5, 24) | {"mean": nan, "low": nan, "high": nan}}
    summary = dict(report_data().summary) | {
        "metrics": metrics, "categories": {"a": metrics},
        "per_step": {"0": metrics, "1": {"recall": metric_figures(0.5, 3)}},
        "app": {"ms": nan, "cost": nan, "tokens": {"input": nan}}, "judge": {"cost": nan, "calls": nan}}
    page = Page(render_html(report_data(summary=summary, hit_curve={"hit@1": nan})))
    assert not re.search(r"\bnan\b", page.words, re.IGNORECASE)
    assert "NaN" not in page.scripts[0][1] and not re.search(r"\bNone(?! of it)\b", page.words)


def test_without_a_judge_the_line_tells_how():
    data = report_data(judge=False)
    page = Page(render_html(data))
    assert page.words.count("needs a judge") == 4 + 1 + 1 + 4 + 1  # bars, line, reason, rows, section
    assert f"RAGAS metrics: {data.needs_judge}" in page.words
    row = next(row for row in page.rows if row.startswith("faithfulness"))
    assert "needs a judge" in row and "0 / 30" in row
    assert f"No model was asked, and every RAGAS metric {data.needs_judge}" in page.words


def test_a_category_says_each_state_once_and_has_no_column_that_nobody_scored():
    summary = dict(report_data().summary)
    judged = {"faithfulness": metric_figures(None, 0, 4, reasons={"needs a judge": 4})}
    summary["categories"] = {
        "factual": {"recall": metric_figures(0.9, 4, 4)} | judged,
        "out of scope": {"recall": metric_figures(None, 0, 4, reasons={"declared unanswerable": 4})} | judged,
    }
    page = Page(render_html(report_data(summary=summary)))
    assert "Category recall" in page.rows and "out of scope undefined declared unanswerable 0 / 4" in page.rows
    assert "Scored in no category: faithfulness." in page.words
    del summary["categories"]["factual"]
    assert "categories" not in [name for name, _ in sections(report_data(summary=summary))]


def test_a_step_says_needs_a_judge_once():
    summary = dict(report_data().summary)
    summary["per_step"] = {"0": {"recall": metric_figures(None, 0, 4, reasons={"needs a judge": 4})}}
    assert "0 24 needs a judge 0 / 4" in Page(render_html(report_data(summary=summary))).rows


def test_a_question_uses_the_words_of_the_tables():
    scores = (ScoreView("recall", "final", None, "undefined", "no order"),
              ScoreView("faithfulness", "final", None, "undefined", "needs a judge"))
    page = Page(render_html(report_data(worst=(question(1, scores=scores),))))
    assert "recall undefined no order" in page.rows and "faithfulness needs a judge" in page.rows
    assert "recall undefined faithfulness needs a judge" in page.words  # beside the question's text


def test_fused_scores_are_called_rrf_scores():
    fused = ListView("fuse", "rrf", True, "similarity", (PassageView("a", 1, "text", score=0.03279),))
    shown = question(1, steps=(StepView(0, 0, "query", (fused,)),), context=fused)
    page = Page(render_html(report_data(worst=(shown,))))
    assert page.rows.count("Rank Passage RRF score larger is better Grade") == 2
    assert not any("Similarity" in row for row in page.rows)


def test_without_labels_the_outcomes_stand_instead_of_the_matrix(page):
    shown = Page(render_html(unlabelled_data()))
    assert "11 no labels, answer right no gold to check" in shown.words
    assert not [a for _, a in shown.elements if a.get("class") == "matrix"] and "Gold is about" not in shown.words
    assert [a["class"] for _, a in shown.elements if (a.get("class") or "").startswith("tone-")] == [
        "tone-good", "tone-warn", "tone-plain", "tone-plain", "tone-failed"]
    assert "Evidence complete" in page.words and "Gold is about" in page.words
    assert [name for name, _ in sections(unlabelled_data())] == [
        "fix-first", "headline", "steps", "categories", "app", "judge", "failures", "notes", "definitions"]


def test_a_question_that_was_not_asked_has_no_answer_or_context():
    unasked = question(1, outcome="not_asked", answer=None, steps=(), context=None, fates={}, scores=())
    shown = Page(render_html(report_data(worst=(unasked,))))
    assert "The app was not asked." in shown.words and "Context of the answer" not in shown.words


def test_what_was_not_recorded_is_said(page):
    assert "Cost not recorded" in page.words
    assert "Not known: the app’s final context was not found." in page.words
    assert "Cost unknown" in page.words  # of the judge


def test_an_empty_run_renders():
    summary = {"schema": "ragkit.summary/1", "variant": "empty", "questions": {}, "metrics": {}}
    data = report_data(summary=summary, run={}, metrics={}, rank_histogram={}, hit_curve={}, step_reach={},
                       rerank={}, worst=(), failures=(), notes=(), agreement=(), lost_stages={})
    page = Page(render_html(data))
    assert [name for name, _ in sections(data)] == ["fix-first", "headline", "app"]
    assert page.unbalanced == [] and len(page.scripts) == 2  # no plotly where nothing is drawn


def test_long_passages_are_shortened_and_kept_once(source, page):
    whole = next(p.text for p in question(1).steps[0].lists[0].passages)
    assert source.count(whole[:200]) > 6 and source.count("So the log says.") == 1
    templates = [a["id"] for tag, a in page.elements if tag == "template"]
    assert {a["data-text"] for _, a in page.elements if "data-text" in a} == set(templates)


def test_links_to_questions_are_stable():
    assert question_anchor(question(1)) == "q-q001"
    first, second = question(1, id="a b", repeat=2), question(1, id="a.b")
    assert question_anchor(first) == "q-a.20.b~2" and question_anchor(second) == "q-a.2e.b"


def test_nothing_is_drawn_where_nothing_was_scored():
    assert figures(unlabelled_data()) == {} == step_figures(unlabelled_data())


@pytest.mark.slow
def test_a_thousand_questions_render_quickly_and_stay_small():
    worst = tuple(replace(question(1), id=f"q{number}") for number in range(1000))
    started = time.process_time()
    size = len(render_html(report_data(worst=worst)).encode()) - len(page_module.plotly().encode())
    assert time.process_time() - started < 20
    assert size < 25_000_000
