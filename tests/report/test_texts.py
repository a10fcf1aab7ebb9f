"""Hostile text made inert and visible, for HTML, Markdown and consoles."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.records.unseen import codepoint, spelt_out
from ragkit.report import texts

ANY_TEXT = st.text(st.characters(), max_size=60)


@given(ANY_TEXT)
def test_visible_text_holds_no_markup_of_its_own_and_is_valid_utf8(text):
    shown = str(texts.visible(text))
    without = re.sub(r'<span class="codepoint">U\+[0-9A-F]{4,6}</span>', "", shown)
    assert not set("<>\"'") & set(without)
    shown.encode("utf-8")


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), max_size=60))
def test_text_that_can_be_seen_is_not_altered(text):
    if "\u3164" not in text and not re.search("[\u115f\u1160\uffa0\u2800]", text):
        assert html.unescape(str(texts.visible(text))) == text


UNSEEN = "\u202e\u2066\u200b\u200f\u2028\u2029\ufeff\xad\x00\x1b\x85\ud800\u3164\U000e0041"


@pytest.mark.parametrize("character", UNSEEN)
def test_what_cannot_be_seen_is_named(character):
    name = codepoint(character)
    assert str(texts.visible(f"a{character}b")) == f'a<span class="codepoint">{name}</span>b'
    assert spelt_out(f"a{character}b") == f"a[{name}]b"


@pytest.mark.parametrize("text", [
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f\u200d\U0001f525",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "one\r\ntwo\tthree", "知识 😀 é",
])
def test_joiners_that_do_their_work_stay(text):
    assert "codepoint" not in str(texts.visible(text))


@pytest.mark.parametrize("text", ["a\u200db", "知\u200d识", "\u200c", "a\u200c"])
def test_joiners_that_hide_are_shown(text):
    assert "codepoint" in str(texts.visible(text))


@given(ANY_TEXT)
def test_embedded_json_cannot_close_its_block_and_reads_back(text):
    block = str(texts.embedded_json({"text": text}))
    assert not set("<>&\u2028\u2029") & set(block) and block.isascii()
    assert json.loads(block) == {"text": text}


def test_embedded_json_is_strict():
    with pytest.raises(ValueError, match="not JSON compliant"):
        texts.embedded_json(float("nan"))


@given(ANY_TEXT)
def test_attributes_stay_inside_their_quotes(text):
    assert not set("<>\"") & set(str(texts.attribute(text)))


@given(ANY_TEXT)
def test_markdown_text_is_one_line_without_markup(text):
    line = texts.markdown(text)
    assert not set("<>@\n\r") & set(line)
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*_\[\]~]", line)


@given(ANY_TEXT)
def test_code_spans_close_only_at_their_end(text):
    span = texts.code(text)
    if span:
        fence = re.match("`+", span)[0]
        assert span.endswith(fence) and "\n" not in span
        assert fence not in re.findall("`+", span[len(fence) : -len(fence)])
        assert not re.search(r"(?<!\\)\|", span)


@given(ANY_TEXT, st.sampled_from(["ascii", "cp1252", "utf-8", "latin-1", "no-such-encoding"]))
def test_a_console_of_any_encoding_takes_the_text(text, encoding):
    text, known = spelt_out(text), "ascii" if encoding == "no-such-encoding" else encoding
    shown = texts.encodable(text, encoding)
    assert shown.encode(known).decode(known) == shown
    kept = [character for character in text if character.encode(known, "ignore")]
    remaining = iter(shown)
    assert all(character in remaining for character in kept), "what the console can carry stays, in its order"


def test_shortened_text_says_so():
    assert texts.shortened("a" * 300, 240) == "a" * 240 + "…"
    assert texts.shortened("whole", 240) == "whole"


@given(st.lists(st.tuples(ANY_TEXT, st.integers(0, 3)), min_size=2, max_size=6, unique=True))
def test_anchors_are_unique_and_need_no_quoting(names):
    anchors = [texts.anchor("q", name, repeat) for name, repeat in names]
    assert len(set(anchors)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_.~-]+", anchor) for anchor in anchors)
