"""Traces of other tools -> the questions of a dataset: by id, by a key of their metadata, or by the question's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragkit.errors import DataError
from ragkit.recording.formats.imported import numbered
from ragkit.records.questions import Dataset
from ragkit.records.trajectory import Trajectory

_BY_DEFAULT = ("id", "metadata:question_id", "metadata:id", "text")


@dataclass(frozen=True)
class Matched:
    """The trajectories under the dataset's question ids, and what was not joined.

    `counts` says how many were joined by what (`id`, `metadata:KEY`, `text`, `text, but for case and blanks`), only
    where that is not 0. `ambiguous` and `unmatched` hold a line for each trajectory that was left out.
    """

    trajectories: tuple[Trajectory, ...]
    counts: Mapping[str, int]
    ambiguous: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()


def match(trajectories: Sequence[Trajectory], dataset: Dataset, by: str | None = None) -> Matched:
    """Joins trajectories to questions: by `id`, `metadata:KEY` (in `meta["source"]["metadata"]`) or `text`.

    By default each is tried in turn: its id, question_id and id in its metadata, its text. A text is compared as it
    is, then but for case and white space; where several questions have it, the trajectory is ambiguous and left out.
    Several trajectories of one question are repeats, numbered in their order. None joined at all is a DataError.

    >>> from ragkit.records.questions import Question
    >>> dataset = Dataset((Question("q1", "Who wrote it?"), Question("q2", "When?")))
    >>> found = match([Trajectory("x", "who  wrote it?"), Trajectory("q2", "?")], dataset)
    >>> [one.key for one in found.trajectories], found.counts
    ([('q1', 0), ('q2', 0)], {'text, but for case and blanks': 1, 'id': 1})
    """
    ways = _BY_DEFAULT if by is None else (by,)
    for way in ways:
        if way not in ("id", "text") and not (way.startswith("metadata:") and way != "metadata:"):
            raise DataError(f"match: expected id, text or metadata:KEY, got {by!r}")
    exact, normal = _by_text(dataset, str.strip), _by_text(dataset, _normalised)
    counts: dict[str, int] = {}
    joined, ambiguous, unmatched = [], [], []
    for trajectory in trajectories:
        how, ids = _found(trajectory, dataset, ways, exact, normal)
        if len(ids) == 1:
            counts[how] = counts.get(how, 0) + 1
            joined.append(replace(trajectory, question_id=ids[0]))
        elif ids:
            ambiguous.append(f"{_named(trajectory)} is the text of {', '.join(ids)}")
        else:
            unmatched.append(_named(trajectory))
    if not joined:
        raise DataError(f"match: none of {len(trajectories)} trajectories belongs to a question of {dataset.name} by "
                        f"{' or '.join(ways)}; the first is {_named(trajectories[0]) if trajectories else 'missing'}; "
                        "name the key that holds the id with --match metadata:KEY, or check the dataset")
    return Matched(numbered(joined), counts, tuple(ambiguous), tuple(unmatched))


def _found(
    trajectory: Trajectory, dataset: Dataset, ways: Sequence[str], exact: Mapping[str, list[str]],
    normal: Mapping[str, list[str]],
) -> tuple[str, list[str]]:
    """(the way, the ids of the questions) of the first way that finds any."""
    for way in ways:
        if way == "text":
            if ids := exact.get(trajectory.question.strip()):
                return way, ids
            if ids := normal.get(_normalised(trajectory.question)):
                return "text, but for case and blanks", ids
        else:
            given = trajectory.question_id if way == "id" else _metadata(trajectory, way.removeprefix("metadata:"))
            if given is not None and given in dataset.by_id:
                return way, [given]
    return "", []


def _metadata(trajectory: Trajectory, key: str) -> str | None:
    source = trajectory.meta.get("source")
    metadata: Any = source.get("metadata") if isinstance(source, Mapping) else None
    value = metadata.get(key) if isinstance(metadata, Mapping) else None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _by_text(dataset: Dataset, form: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for question in dataset.questions:
        found.setdefault(form(question.text), []).append(question.id)
    return found


def _normalised(text: str) -> str:
    return " ".join(text.casefold().split())


def _named(trajectory: Trajectory) -> str:
    """The trajectory for a message: its trace where it has one, and the beginning of its question."""
    source = trajectory.meta.get("source")
    trace = source.get("trace_id") if isinstance(source, Mapping) else None
    text = " ".join(trajectory.question.split())
    return f"{trace or trajectory.question_id} ({text[:60] + '…' if len(text) > 60 else text!s})"
