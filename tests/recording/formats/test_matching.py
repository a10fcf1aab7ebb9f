"""Foreign traces meet questions: by id, metadata, text; what is ambiguous is listed, never guessed."""

from __future__ import annotations

from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.recording.formats.matching import match
from ragkit.records.questions import Dataset, Question
from ragkit.records.trajectory import Trajectory

DATASET = Dataset(tuple(Question(key, text) for key, text in (
    ("q1", "Who built it?"), ("q2", "When?"), ("q3", "When?"), ("q4", "who built IT?"), ("7", "Where?"))), name="set")


def trace(text: str, own_id: str = "x", trace_id: str = "t", **metadata: Any) -> Trajectory:
    return Trajectory(own_id, text, meta={"source": {"trace_id": trace_id, "metadata": metadata}})


def test_each_way_in_turn_and_repeats_are_numbered() -> None:
    found = match([trace("?", "q2"), trace("?", question_id="q1"), trace("?", id=7),
                   trace("Who built it? "), trace("?", "q2")], DATASET)
    assert [one.key for one in found.trajectories] == [("q2", 0), ("q1", 0), ("7", 0), ("q1", 1), ("q2", 1)]
    assert found.counts == {"id": 2, "metadata:question_id": 1, "metadata:id": 1, "text": 1}
    assert found.ambiguous == found.unmatched == ()


def test_a_text_of_several_questions_is_ambiguous_and_left_out() -> None:
    found = match([trace("When?", trace_id="t9"), trace(" where? "), trace("WHO built it?"), trace("Why?")], DATASET)
    assert [one.question_id for one in found.trajectories] == ["7"]
    assert found.counts == {"text, but for case and blanks": 1}
    # an exact text goes before one that is the same but for case, so q1 and q4 are told apart; here neither is exact
    assert found.ambiguous == ("t9 (When?) is the text of q2, q3", "t (WHO built it?) is the text of q1, q4")
    assert found.unmatched == ("t (Why?)",)
    assert [match([trace(text)], DATASET).trajectories[0].question_id for text in (
        "Who built it?", "who built IT?")] == ["q1", "q4"]


def test_only_the_way_that_was_asked_for() -> None:
    by_key = match([trace("Who built it?", ticket="q2"), trace("Who built it?", ticket=True)], DATASET,
                   "metadata:ticket")
    assert [one.question_id for one in by_key.trajectories] == ["q2"] and len(by_key.unmatched) == 1
    assert match([trace("?", "q1"), trace("Who built it?")], DATASET, "id").counts == {"id": 1}
    with pytest.raises(DataError, match=r"none of 1 trajectories belongs to a question of set by id; the first is t"):
        match([trace("Who built it?")], DATASET, "id")


@pytest.mark.parametrize("by", ["ids", "metadata:", "metadata", ""])
def test_another_way_is_refused(by: str) -> None:
    with pytest.raises(DataError, match="expected id, text or metadata:KEY"):
        match([trace("When?")], DATASET, by)
