"""Reciprocal rank fusion: by id, against its definition."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.pipeline.fusion import reciprocal_rank_fusion
from ragkit.records.trajectory import Passage


def test_two_documents_with_the_same_text_stay_two() -> None:  # C69
    first = [Passage("id1", "T"), Passage("id2", "B")]
    second = [Passage("id4", "C"), Passage("id3", "T")]
    fused = reciprocal_rank_fusion([first, second])
    assert [passage.id for passage in fused] == ["id1", "id4", "id2", "id3"]
    assert [passage.score for passage in fused] == pytest.approx([0.016393, 0.016393, 0.016129, 0.016129], abs=1e-6)


LISTS = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=4)


@given(LISTS, st.integers(1, 100))
def test_it_equals_the_definition(lists: list[list[str]], constant: int) -> None:
    expected: dict[str, float] = defaultdict(float)
    for ranking in lists:
        for rank, name in enumerate(ranking, start=1):
            expected[name] += 1 / (constant + rank)
    fused = reciprocal_rank_fusion([[Passage(name) for name in ranking] for ranking in lists], constant)
    assert {passage.id: passage.score for passage in fused} == pytest.approx(dict(expected))
    scores = [passage.score or 0 for passage in fused]
    assert scores == sorted(scores, reverse=True)


def test_a_repeat_in_one_list_counts_once() -> None:
    twice = reciprocal_rank_fusion([[Passage("a"), Passage("a"), Passage("b")]])
    assert [(passage.id, passage.score) for passage in twice] == [("a", 1 / 61), ("b", 1 / 63)]


def test_the_cut_and_constants_of_zero() -> None:
    assert len(reciprocal_rank_fusion([[Passage("a"), Passage("b")]], k=1)) == 1
    with pytest.raises(DataError, match="k: expected"):
        reciprocal_rank_fusion([], k=0)
    with pytest.raises(DataError, match="rrf_k: expected"):
        reciprocal_rank_fusion([], rrf_k=0)
