"""Chunks: every character is covered, nothing is longer than asked, offsets lead back to the document."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.pipeline.chunking import chunk_corpus, chunk_document, spans_of
from ragkit.records.questions import Document

TEXT = st.text(alphabet=st.sampled_from("ab .\n。！d知识é\t"), max_size=200)


@given(TEXT, st.integers(1, 40), st.integers(0, 39))
@settings(max_examples=300)
def test_spans_cover_the_text_in_order_and_keep_the_size(text: str, size: int, overlap: int) -> None:
    overlap = min(overlap, size - 1)
    spans = list(spans_of(text, size, overlap))
    covered = {i for start, end in spans for i in range(start, end)}
    assert {i for i, character in enumerate(text) if not character.isspace()} <= covered
    if text.strip():
        assert all(0 < end - start <= size for start, end in spans)
        assert [start for start, _ in spans] == sorted({start for start, _ in spans})
    if overlap == 0:
        assert all(before <= start for (_, before), (start, _) in pairwise(spans))


def test_it_cuts_at_paragraphs_then_sentences_then_blanks() -> None:
    text = "First part here.\n\nSecond part. It goes on and on"
    assert [text[a:b] for a, b in spans_of(text, 24)] == ["First part here.", "Second part.", "It goes on and on"]
    text = "知识就是力量。我们走了。"
    assert [text[a:b] for a, b in spans_of(text, 8)] == ["知识就是力量。", "我们走了。"]


def test_overlap_repeats_the_end_of_the_piece_before() -> None:
    text = " ".join(f"w{n:02d}" for n in range(30))
    spans = list(spans_of(text, 40, 12))
    for (_, before), (start, _) in pairwise(spans):
        assert 0 < before - start <= 12 and text[start - 1] == " "


def test_whole_documents_keep_their_ids_and_pieces_are_numbered() -> None:
    document = Document("d1", "One is here. Two is there.", "Numbers", {"lang": "en"})
    whole, = chunk_document(document)
    assert (whole.id, whole.doc_id, whole.text) == ("d1", "d1", "Numbers\nOne is here. Two is there.")
    pieces = list(chunk_document(document, 15))
    assert [p.id for p in pieces] == ["d1#0", "d1#1"] and {p.doc_id for p in pieces} == {"d1"}
    assert pieces[1].text == "Numbers\nTwo is there." and pieces[1].metadata["lang"] == "en"
    assert document.text[pieces[1].metadata["start"]:pieces[1].metadata["end"]] == "Two is there."


def test_an_empty_document_gives_one_blank_passage() -> None:
    assert [p.text for p in chunk_document(Document("471", ""))] == [""]
    assert [p.id for p in chunk_document(Document("471", " \n "), 10)] == ["471#0"]


def test_two_documents_must_not_give_one_id() -> None:
    with pytest.raises(DataError, match="'a#0' stands twice"):
        chunk_corpus([Document("a", "x"), Document("a", "z")], 5)


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (5, 5), (5, -1)])
def test_sizes_that_mean_nothing_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(DataError, match="0 <= overlap < size"):
        list(spans_of("text", size, overlap))
