"""Where gold ends: each stage, the deepest of several steps, and the answer that was written from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragkit.metrics.fates import fates
from ragkit.metrics.trajectory import EvidencePath, StageList

WORKED = EvidencePath((("a", "x", "b"), ("x", "a", "y"), ("y", "c", "a")), {"a": 1, "b": 1, "c": 1}, ("a", "c"))


def test_fates_of_the_worked_path() -> None:
    assert fates(WORKED) == {"a": "in_context", "b": "lost_at_cut", "c": "in_context"}
    assert fates(replace(WORKED, answer_right=True))["a"] == "in_context_right"
    assert fates(replace(WORKED, answer_right=False)) == {"a": "in_context_wrong", "b": "lost_at_cut",
                                                          "c": "in_context_wrong"}
    assert set(fates(replace(WORKED, context=None)).values()) == {"in_context"}, "the union counts as the end"
    assert fates(replace(WORKED, label_state="unanswerable")) == {}


HYBRID = (StageList("filter", ("f",)), StageList("rerank", ("f", "r")), StageList("fuse", ("f", "r", "u")),
          StageList("retrieve", ("f", "b1", "u")), StageList("retrieve", ("r", "b2")))


@pytest.mark.parametrize(("gold", "fate"), [
    ("f", "lost_at_cut"), ("r", "lost_at_filter"), ("u", "lost_at_rerank"), ("b1", "lost_at_fuse"),
    ("b2", "lost_at_fuse"), ("n", "never_retrieved"), ("z", "not_in_index")])
def test_fate_at_each_stage(gold: str, fate: str) -> None:
    path = EvidencePath((("f",),), {gold: 1}, (), stages=(HYBRID,), index_ids=frozenset({"f", "r", "u", "b1", "n"}))
    assert fates(path) == {gold: fate}
    known = replace(path, index_ids=None)
    assert fates(known)[gold] == ("never_retrieved" if fate == "not_in_index" else fate)


def test_the_deepest_stage_of_any_step_counts() -> None:
    other = (StageList("rerank", ("x",)), StageList("retrieve", ("x", "b1")))
    path = EvidencePath((("f",), ("x",)), {"b1": 1, "u": 1}, (), stages=(HYBRID, other))
    assert fates(path) == {"b1": "lost_at_rerank", "u": "lost_at_rerank"}
    assert fates(replace(path, stages=(other, HYBRID), steps=(("x",), ("f",)))) == fates(path)
    assert fates(replace(path, context=("u",)))["u"] == "in_context", "given by hand, seen in no step"


def test_what_found_no_room_in_the_context_is_told_from_what_was_cut_by_rank() -> None:
    path = replace(WORKED, truncated=True)
    assert fates(path) == {"a": "in_context", "b": "lost_at_budget", "c": "in_context"}
    assert fates(replace(path, context=()))["b"] == "lost_at_cut", "an empty context was not cut off in a text"
