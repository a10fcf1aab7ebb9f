"""Ids that were made from a text because nobody gave one, and what they are called where somebody did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ragkit.records.questions import is_text_id, text_id
from ragkit.records.trajectory import Passage, Retrieval, Trajectory


def is_generated(passage: Passage) -> bool:
    """Whether the passage's id was made from its text because nobody gave one.

    >>> is_generated(Passage("sha1:a9993e364706816a", "abc")), is_generated(Passage("sha1:a9993e364706816a", "other"))
    (True, False)
    """
    return passage.text is not None and passage.id == text_id(passage.text)


def alias_generated(trajectory: Trajectory) -> Trajectory:
    """The trajectory with each generated id replaced by a given one of the same non-empty text, in all lists.

    A bare id, without its text, follows where it is the hash of a given passage's text. Two given ids are never
    merged; of several with the same text the first one, in the order of the lists, is taken.
    """
    (found,) = alias_run((trajectory,))
    return found


def alias_run(trajectories: Sequence[Trajectory], known: Iterable[Passage] = ()) -> list[Trajectory]:
    """The same over a whole run: a chunk that BM25 found without an id is the one that the store named elsewhere.

    `known` are passages besides those of the lists that give an id to a text, such as a corpus; they come last, and
    are looked at only where some id is still nobody's.
    """
    made = {passage.id for passage in _passages(trajectories) if _looks_made(passage)}
    given: dict[str, Passage] = {}
    for passages in (_passages(trajectories), known) if made else ():
        for passage in passages if made - given.keys() else ():
            own = _hash(passage)
            if own in made and own != passage.id and (passage.text is None or passage.text.strip()):
                given.setdefault(own, passage)
    if not given:
        return list(trajectories)

    def renamed(found: Retrieval) -> Retrieval:
        return replace(found, passages=tuple(
            replace(passage, id=other.id, doc_id=passage.doc_id or other.doc_id)
            if (other := given.get(passage.id)) and _looks_made(passage) else passage for passage in found.passages))

    return [trajectory if not any(passage.id in given for passage in _passages((trajectory,))) else replace(
        trajectory,
        steps=tuple(replace(step, retrievals=tuple(map(renamed, step.retrievals))) for step in trajectory.steps),
        context=None if trajectory.context is None else renamed(trajectory.context)) for trajectory in trajectories]


def _passages(trajectories: Iterable[Trajectory]) -> Iterator[Passage]:
    return (passage for trajectory in trajectories for found in _lists(trajectory) for passage in found.passages)


def _lists(trajectory: Trajectory) -> Iterator[Retrieval]:
    for step in trajectory.steps:
        yield from step.retrievals
    if trajectory.context is not None:
        yield trajectory.context


def _looks_made(passage: Passage) -> bool:
    return is_text_id(passage.id) and _hash(passage) in (passage.id, "")


def _hash(passage: Passage) -> str:
    """The id that the text alone would give; a file without texts keeps it in the metadata. "" where it is unknown."""
    return text_id(passage.text) if passage.text is not None else str(passage.metadata.get("text_hash", ""))
