"""The page in a real Chromium: draws, opens, follows links, fits a phone, and asks nobody for anything."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ragkit.report.html import render_html
from tests.support.report_data import LONG, report_data

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "/usr/bin/chromium")


CONTRAST = """() => {
    const linear = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
    const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
    const ground = e => {
        for (; e; e = e.parentElement) {
            const colour = parse(getComputedStyle(e).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const poor = new Set();
    for (const e of document.querySelectorAll("body *")) {
        const written = [...e.childNodes].some(node => node.nodeType === 3 && node.data.trim());
        if (!written || !e.offsetParent || e.closest(".plot, .unseen, .skip")) continue;
        const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
        const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (ratio < 4.5) poor.add(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
    }
    return [...poor];
}"""  # names every element whose text has less contrast to its ground than WCAG AA asks for


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(report_data()), encoding="utf-8")
    return path


class Visit:
    """A page with what it said on the console and whom it asked."""

    def __init__(self, browser, file: Path, width: int = 1400, anchor: str = "", **options) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.set_default_timeout(60_000)
        self.page.goto(file.as_uri() + anchor)
        self.page.wait_for_function("() => document.querySelectorAll('.plot svg.main-svg').length >= 3")

    def colour_of_first_bar(self) -> str:
        return self.page.locator(".plot[data-plot=rank-histogram] .point path").first.evaluate("e => e.style.fill")


@pytest.fixture
def visit(browser, file):
    visits: list[Visit] = []

    def go(**options) -> Visit:
        visits.append(Visit(browser, file, **options))
        return visits[-1]

    yield go
    for made in visits:
        made.page.close()


def test_it_loads_silently_draws_and_asks_nobody(visit, file):
    made = visit()
    made.page.get_by_role("button", name="Open all").click()
    made.page.wait_for_timeout(300)
    assert made.said == [] and made.asked == [file.as_uri()]
    assert made.page.evaluate("window.pwned") is None
    assert made.page.locator("main img, main iframe, main link, main script, main section > svg").count() == 0
    drawn = made.page.locator(".plot[data-plot=rank-histogram] .point")
    assert drawn.count() == 12


def test_an_injected_script_or_handler_would_not_run(visit):
    made = visit()
    made.page.evaluate("""() => {
        const script = document.createElement('script'); script.textContent = 'window.pwned = 1';
        document.body.append(script);
        const image = document.createElement('img'); image.setAttribute('onerror', 'window.pwned = 2');
        image.src = 'https://evil.example/x.png'; document.body.append(image);
    }""")
    made.page.wait_for_timeout(300)
    assert made.page.evaluate("window.pwned") is None
    assert any("Content Security Policy" in text for text in made.said)


def test_a_question_opens_and_shows_the_whole_text(visit):
    made = visit()
    question = made.page.locator("#q-q001")
    assert question.locator(".q-body").is_visible() is False
    question.locator("summary").first.click()
    assert question.locator(".q-body").first.is_visible()
    whole = question.locator("details.whole").first
    whole.locator("summary").click()
    whole.locator(".prose", has_text=LONG.split()[0]).wait_for()  # the page fills it when it is told of the opening
    assert whole.locator(".prose").inner_text().strip() == LONG.strip()


def test_a_link_to_a_question_opens_it(visit):
    made = visit(anchor="#q-q005")
    assert made.page.locator("#q-q005").get_attribute("open") is not None
    assert made.page.locator("#q-q001").get_attribute("open") is None
    made.page.wait_for_function("() => Math.abs(document.getElementById('q-q005').getBoundingClientRect().top) < 200")
    made.page.locator("section#failures a", has_text="q001").click()
    assert made.page.locator("#q-q001").get_attribute("open") is not None


def test_no_width_scrolls_the_page_sideways(visit):
    made = visit()
    made.page.get_by_role("button", name="Open all").click()
    for width in (1400, 768, 390, 320):
        made.page.set_viewport_size({"width": width, "height": 900})
        made.page.wait_for_timeout(300)
        assert made.page.evaluate("document.documentElement.scrollWidth") <= width
        assert made.page.evaluate("""() => [...document.querySelectorAll("table")].filter(table => table.offsetParent
            && !table.closest(".scroll") && table.getBoundingClientRect().right > innerWidth + 1).length""") == 0


def test_evidence_and_answer_fit_their_card_at_any_width(browser, tmp_path):
    """Also with a third column, of answers that nobody checked: the first table of the page is never cut."""
    outcomes = {f"{evidence}_{answer}": 1200 for evidence in ("complete", "incomplete")
                for answer in ("right", "wrong", "unchecked")}
    data = report_data()
    file = tmp_path / "report.html"
    file.write_text(render_html(report_data(summary={**data.summary, "outcomes": outcomes})), encoding="utf-8")
    made = Visit(browser, file)
    for width in (1400, 1000, 768, 390, 320):
        made.page.set_viewport_size({"width": width, "height": 900})
        made.page.wait_for_timeout(200)
        assert made.page.locator(".matrix thead th").count() == 3
        assert made.page.evaluate("""() => [...document.querySelectorAll(".hero .scroll, .matrix th, .matrix td")]
            .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.textContent.trim())""") == [], width
    made.page.close()


LIT = "[...document.querySelectorAll('.contents a[aria-current]')].map(link => link.textContent).join()"


def test_the_contents_light_the_section_whose_heading_passed_the_line(visit):
    page = visit().page
    page.add_style_tag(content="html { scroll-behavior: auto !important }")
    for height in (900, 5000):
        page.set_viewport_size({"width": 1400, "height": height})
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_function(f"() => {LIT} === 'What to fix first'")
    page.set_viewport_size({"width": 1400, "height": 900})
    above = "scrollBy(0, document.getElementById('h-steps').getBoundingClientRect().top - innerHeight * .3 %s)"
    page.evaluate(above % "- 5")
    page.wait_for_function(f"() => {LIT} === 'Ranks'")
    page.evaluate(above % "+ 5")
    page.wait_for_function(f"() => {LIT} === 'Step by step'")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_function(f"() => {LIT} === 'Definitions'")
    page.set_viewport_size({"width": 390, "height": 900})  # the contents lie on their side here and follow
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    lit = "document.querySelector('.contents a[aria-current]')"
    page.wait_for_function(f"() => {lit}.getBoundingClientRect().right <= 391")


def test_a_table_wider_than_its_box_says_so(visit):
    page = visit().page
    hints = page.locator("section .scroll-hint:visible")
    page.wait_for_timeout(300)
    assert hints.count() == 0  # at 1400 px every open table fits, so nothing of one is cut
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_function("() => document.querySelectorAll('section .wider').length > 0")
    wider = "box => box.scrollWidth > box.clientWidth + 1"
    boxes = page.locator("section .scroll:visible")
    assert hints.count() == sum(boxes.nth(n).evaluate(wider) for n in range(boxes.count())) >= 3


def test_no_label_of_a_plot_is_cut(browser, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(render_html(report_data(hit_curve={"hit@1": 0.9, "hit@3": 1.0, "hit@5": 1.0})), encoding="utf-8")
    for width in (1400, 390):
        page = Visit(browser, file, width=width).page
        assert page.locator(".plot[data-plot=hit-curve] .textpoint").count() == 3
        assert page.evaluate("""() => [...document.querySelectorAll(".textpoint, .bartext")].filter(label => {
            const [inner, box] = [label, label.closest(".plot")].map(e => e.getBoundingClientRect());
            return inner.left < box.left || inner.right > box.right || inner.top < box.top;
        }).map(label => label.textContent)""") == []
        page.close()


def test_plots_follow_the_colour_scheme(visit):
    made = visit(color_scheme="light")
    light, page = made.colour_of_first_bar(), made.page
    assert light == "rgb(0, 114, 178)"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => getComputedStyle(document.body).backgroundColor === 'rgb(18, 22, 26)'")
    page.wait_for_timeout(300)
    assert made.colour_of_first_bar() == "rgb(86, 180, 233)"


def test_each_panel_of_steps_is_drawn_with_what_reached_it(visit):
    for width in (1400, 390):
        page = visit(width=width).page
        panels = page.locator(".panels .plot")
        assert panels.count() == 2 and panels.locator(".point").count() == 6
        written = panels.first.locator(".xtick").all_text_contents()
        assert [text for text in written if text] == ["024", "116", "25"]  # the step, and beneath it how many
        assert page.locator(".plot[data-plot=recall-spread] .scatterlayer .js-fill").count() == 2
        assert page.evaluate("""() => [...document.querySelectorAll("#steps .xtick text, #steps .ytick text")].filter(
            label => {
                const [inner, box] = [label, label.closest(".plot")].map(e => e.getBoundingClientRect());
                return inner.left < box.left || inner.right > box.right || inner.bottom > box.bottom;
            }).length""") == 0


def test_every_bar_of_the_funnel_is_full_and_no_number_in_it_is_cut(visit):
    page = visit().page
    for width in (1400, 768, 390, 320):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("""() => [...document.querySelectorAll(".funnel-bar")].filter(bar => {
            const parts = [...bar.children].map(part => part.getBoundingClientRect().width);
            return Math.abs(parts.reduce((a, b) => a + b) - bar.getBoundingClientRect().width) > 1;
        }).length""") == 0
        assert page.evaluate("""() => [...document.querySelectorAll(".funnel-bar b")].filter(label => label.offsetParent
            && label.getBoundingClientRect().width > label.parentElement.getBoundingClientRect().width).map(
            label => label.textContent)""") == [], width
    assert page.locator(".funnel-bar").count() == 6


def test_it_prints(visit, tmp_path):
    made = visit(color_scheme="dark")
    pdf = made.page.pdf(path=str(tmp_path / "report.pdf"), format="A4", print_background=True)
    assert pdf.startswith(b"%PDF") and 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20


def test_texts_are_readable_on_their_ground(visit):
    made = visit(color_scheme="light")
    made.page.get_by_role("button", name="Open all").click()
    assert made.page.evaluate(CONTRAST) == []
    made.page.emulate_media(color_scheme="dark")
    assert made.page.evaluate(CONTRAST) == []
    made.page.add_style_tag(content="p.muted { color: #555 !important }")
    assert len(made.page.evaluate(CONTRAST)) > 0  # the check can fail
