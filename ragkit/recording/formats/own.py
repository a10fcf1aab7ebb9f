"""What ragkit's own spans say beyond OpenInference, in their metadata: stages, turns, kinds of scores, the context.

Written by writers_openinference.py, read by replay.py; other readers pass it over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragkit.recording.log import Frame
from ragkit.records.trajectory import SCORE_KINDS, STAGES, Passage, Retrieval

KEY = "ragkit"


def list_told(found: Retrieval) -> dict[str, Any]:
    """The metadata of the span of a list.

    >>> list_told(Retrieval("fuse", turn=1))
    {'ragkit': {'stage': 'fuse', 'turn': 1, 'score_kind': 'unknown', 'ranked': True}}
    """
    return {KEY: {"stage": found.stage, "turn": found.turn, "score_kind": found.score_kind, "ranked": found.ranked}}


def context_told(found: Retrieval) -> dict[str, Any]:
    """The metadata of the span of a model: what it was given, by id."""
    return {KEY: {"context": list(found.ids), "ranked": found.ranked, "source": found.source}}


def mark(frame: Frame, metadata: Mapping[str, Any]) -> None:
    """Lets a frame be what the metadata of its span says; without any, structure tells."""
    told = metadata.get(KEY)
    if not isinstance(told, Mapping):
        return
    if told.get("stage") in STAGES:
        frame.stage = told["stage"]
    if told.get("score_kind") in SCORE_KINDS:
        frame.score_kind = told["score_kind"]
    frame.ranked = told.get("ranked") is not False
    turn = told.get("turn")
    if isinstance(turn, int) and not isinstance(turn, bool) and turn >= 0:
        frame.turn = turn


def context_of(metadata: Mapping[str, Any], question: str, known: Iterable[Passage]) -> Retrieval | None:
    """The context that the metadata of a model's span names, of passages that some list holds; None without one."""
    told = metadata.get(KEY)
    ids = told.get("context") if isinstance(told, Mapping) else None
    if not isinstance(told, Mapping) or not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        return None
    by_id: dict[str, Passage] = {}
    for passage in known:
        by_id.setdefault(passage.id, passage)
    source = told.get("source")
    return Retrieval("context", question, tuple(by_id.get(one) or Passage(one) for one in ids if one),
                     ranked=told.get("ranked") is not False, source=source if isinstance(source, str) else None)
