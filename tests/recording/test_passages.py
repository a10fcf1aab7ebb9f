"""What is taken for a passage, and which id it gets."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from ragkit.errors import DataError
from ragkit.recording.passages import as_passage, as_passages
from ragkit.records.aliases import is_generated
from ragkit.records.questions import text_id
from ragkit.records.trajectory import Passage


class Shaped:
    """The shape of a LangChain Document, without LangChain."""

    def __init__(self, text: str, given: str | None = None, **metadata: object) -> None:
        self.page_content, self.id, self.metadata = text, given, metadata


def test_passages_of_all_forms() -> None:
    known = Passage("p", "text")
    assert as_passage(known) is known
    assert as_passage(("a", "text")) == Passage("a", "text")
    assert as_passage(("a", None)) == Passage("a")
    assert as_passage(("a", 0.5)) == Passage("a", score=0.5)
    assert as_passage("text").id == text_id("text")
    assert as_passage({"id": "a", "content": "text", "doc_id": "D"}) == Passage("a", "text", "D")
    pair = as_passage((Shaped("text", "a"), np.float32(0.5)))
    assert (pair.id, pair.score) == ("a", 0.5)


def test_metadata_ids() -> None:
    assert as_passage(Shaped("text", "own", id="meta")).id == "own"
    assert as_passage(Shaped("text", None, chunk_id="c1", source="s.txt")) == Passage(
        "c1", "text", "s.txt", metadata={"chunk_id": "c1", "source": "s.txt"}
    )
    assert as_passage(Shaped("text", None, id=7)).id == "7"
    # a store without ids makes random ones: the user's own, which BM25 over the same chunks knows too, wins
    assert as_passage(Shaped("text", str(uuid.uuid4()), id="meta")).id == "meta"


def test_chunks_of_one_document_are_never_merged_by_its_id() -> None:
    one, two = as_passage(Shaped("first", doc_id="D")), as_passage(Shaped("second", doc_id="D"))
    assert one.id != two.id
    assert (one.doc_id, two.doc_id) == ("D", "D")
    assert is_generated(one)


@pytest.mark.parametrize("wrong", [3, None, {"score": 1.0}, ("a", "b", "c"), (1.5, "b"), object()])
def test_refused(wrong: object) -> None:
    with pytest.raises(DataError, match="passage"):
        as_passage(wrong)


@pytest.mark.parametrize("wrong", ["a text", {"id": "a"}, None, 3])
def test_a_list_is_asked_for(wrong: object) -> None:
    with pytest.raises(DataError, match="expected a list of passages"):
        as_passages(wrong)


@pytest.mark.parametrize("odd", [10**400, np.array([0.1, 0.2])])
def test_a_score_that_is_no_number_of_one_passage_costs_no_passage(odd: object) -> None:
    assert as_passage({"id": "a", "text": "t", "score": odd}) == Passage("a", "t")
