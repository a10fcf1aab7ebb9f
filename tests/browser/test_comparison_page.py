"""The page of a comparison in a real Chromium: draws, fits a phone, is read without colour or mouse, asks nobody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragkit.comparison.compare import compare
from ragkit.report.comparison_html import render_comparison_html
from tests.browser.test_report_page import CONTRAST, browser  # noqa: F401  (a fixture)
from tests.report.test_comparison import data
from tests.support.comparisons import of_runs, walks

pytestmark = [pytest.mark.browser, pytest.mark.slow]
LONG = "a variant whose name is as long as a whole configuration_of_many_words_without_any_blank_to_break_at"


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("comparison")
    for name, short in (("long", 0), ("short", 6)):
        walks(short, folder / name)
    found = {"runs": of_runs(folder / "runs").report(folder / "runs.html"),
             "agents": compare([folder / "long", folder / "short"]).report(folder / "agents.html"),
             "names": folder / "names.html"}
    found["names"].write_text(render_comparison_html(data(name=LONG)), encoding="utf-8")
    return found


@pytest.fixture
def visit(browser, files):  # noqa: F811
    opened = []

    def go(name: str, width: int = 1400, **options):
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        opened.append(page)
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(files[name].as_uri())
        page.wait_for_function("() => [...document.querySelectorAll('.plot')].every(e => e.querySelector('svg'))")
        return page

    yield go
    for page in opened:
        page.close()


def open_all(page) -> None:
    page.evaluate("() => document.querySelectorAll('details').forEach(e => { e.open = true })")
    page.wait_for_timeout(300)


@pytest.mark.parametrize("name", ["runs", "agents", "names"])
def test_it_loads_silently_draws_and_asks_nobody(visit, files, name):
    page = visit(name)
    assert page.said == [] and page.asked == [files[name].as_uri()]
    assert page.locator("main img, main iframe, main link, main script, main section > svg").count() == 0
    assert page.locator(".plot .point").count() >= {"runs": 60, "agents": 10, "names": 0}[name]


@pytest.mark.parametrize("name", ["runs", "agents", "names"])
def test_no_width_scrolls_the_page_sideways_or_cuts_a_table(visit, name):
    page = visit(name)
    open_all(page)
    for width in (1400, 768, 390, 320):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("""() => [...document.querySelectorAll("table")].filter(table => table.offsetParent
            && !table.closest(".scroll") && table.getBoundingClientRect().right > innerWidth + 1).length""") == 0


def test_a_decided_difference_looks_different_without_any_colour(visit):
    page = visit("names")
    marks = page.evaluate("""() => [...document.querySelectorAll(".forest")].map(bar => {
        const dot = bar.querySelector("b"), line = bar.querySelector("i");
        return dot && [bar.classList.contains("decided"), getComputedStyle(dot).backgroundColor ===
            getComputedStyle(bar).color, line.getBoundingClientRect().height];
    })""")
    assert marks[0] == [True, True, 4] and marks[1] is None
    page = visit("agents")
    kinds = page.evaluate("""() => [...document.querySelectorAll(".forest")].filter(bar => bar.querySelector("i")).map(
        bar => [bar.classList.contains("decided"), bar.querySelector("i").getBoundingClientRect().height])""")
    assert {tuple(kind) for kind in kinds} <= {(True, 4), (False, 2)} and kinds


def test_each_bar_stands_where_its_numbers_say(visit):
    page = visit("names")
    low, high, dot, left, width = page.evaluate("""() => {
        const bar = document.querySelector(".forest.decided"), box = bar.getBoundingClientRect();
        const [line, dot] = ["i", "b"].map(name => bar.querySelector(name).getBoundingClientRect());
        return [line.left, line.right, (dot.left + dot.right) / 2, box.left, box.width];
    }""")
    for found, value in ((low, -0.07), (high, 0.01), (dot, -0.05)):
        reach = 0.08
        assert abs(found - (left + width * (value + reach) / (2 * reach))) < 1.5


def test_on_a_phone_a_row_shows_all_it_has_without_scrolling(visit):
    page = visit("names", width=390)
    row = page.locator(".forest-row").first
    for text in ("mrr", "-0.050", "-0.070 to 0.010", "10 / 450 / 40", "worse", "< 0.001"):
        assert row.get_by_text(text, exact=False).first.is_visible(), text
    box = row.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert page.evaluate("""() => [...document.querySelectorAll(".forest-row *")].filter(e => e.offsetParent
        && e.getBoundingClientRect().right > innerWidth).length""") == 0


def test_a_question_leads_into_the_single_report_and_opens_there(visit):
    page = visit("agents")
    open_all(page)
    link = page.locator("main a[href*='report.html#q-']").first
    assert re.match(r"Question \S+ in the report of (long|short)", link.get_attribute("aria-label"))
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/report.html#q-*")
    page.wait_for_function("() => document.querySelector(decodeURIComponent(location.hash).replaceAll('.', '\\\\.'))"
                           ".open === true")


def test_it_is_read_with_the_keyboard_alone(visit):
    page = visit("runs")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    summary = page.locator("#conflicts summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("#conflicts details").first.get_attribute("open") is not None


def test_it_prints(visit, tmp_path):
    pdf = visit("runs", color_scheme="dark").pdf(path=str(tmp_path / "x.pdf"), format="A4", print_background=True)
    assert pdf.startswith(b"%PDF") and 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20


@pytest.mark.parametrize("name", ["runs", "agents", "names"])
def test_texts_are_readable_on_their_ground(visit, name):
    page = visit(name, color_scheme="light")
    open_all(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(200)
        poor = [(text, float(text.split()[-1])) for text in page.evaluate(CONTRAST)]
        assert [text for text, ratio in poor if not text.startswith("SPAN.line-") or ratio < 3] == [], "signs need 3"
