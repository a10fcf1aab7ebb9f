"""Reciprocal rank fusion of lists by passage id. It never looks at scores or texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragkit.pipeline.settings import check_count
from ragkit.records.trajectory import Passage


def reciprocal_rank_fusion(lists: Sequence[Sequence[Passage]], rrf_k: int = 60, k: int | None = None) -> list[Passage]:
    """One ranking out of several: a passage gains 1 / (rrf_k + rank) in each list, ranks from 1.

    Lists are joined by id, so two passages of one text stay two. A repeated id counts once a list, at its best rank.
    Ties keep the order in which ids first appear, list by list. The first list that holds a passage gives its text.

    >>> T, U = Passage("a", "T"), Passage("b", "U")
    >>> [(p.id, round(p.score, 6)) for p in reciprocal_rank_fusion([[T, U], [U]])]
    [('b', 0.032522), ('a', 0.016393)]
    """
    check_count("rrf_k", rrf_k)
    first: dict[str, Passage] = {}
    gains: dict[str, float] = {}
    for ranking in lists:
        seen: set[str] = set()
        for rank, passage in enumerate(ranking, start=1):
            if passage.id in seen:
                continue
            seen.add(passage.id)
            first.setdefault(passage.id, passage)
            gains[passage.id] = gains.get(passage.id, 0.0) + 1.0 / (rrf_k + rank)
    order = sorted(first, key=lambda name: -gains[name])
    fused = [replace(first[name], score=gains[name]) for name in order]
    return fused if k is None else fused[:check_count("k", k)]
