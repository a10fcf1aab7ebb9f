"""Bring trajectories and questions together: by id, else by text; what does not fit is counted and listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragkit.errors import DataError
from ragkit.records.questions import Dataset
from ragkit.records.trajectory import Trajectory
from ragkit.report.numbers import counted


@dataclass(frozen=True)
class Joined:
    """The trajectories of known questions, under the data set's ids, and what was noticed on the way."""

    trajectories: tuple[Trajectory, ...]
    not_asked: tuple[str, ...]
    notes: tuple[str, ...]


def join(dataset: Dataset, trajectories: Sequence[Trajectory], all_questions: bool = False) -> Joined:
    """Join by question id, else by the question's text where exactly one question has it.

    Trajectories of no known question are left out and listed; if none is known that is a DataError. Questions of the
    data set without a trajectory are "not asked"; with `all_questions` they count as asked with nothing retrieved.
    """
    if not trajectories:
        raise DataError("trajectories: expected at least one, got none")
    by_text: dict[str, list[str]] = {}
    for question in dataset.questions:
        by_text.setdefault(question.text.strip(), []).append(question.id)
    known: dict[tuple[str, int], Trajectory] = {}
    unknown: list[str] = []
    ambiguous: list[str] = []
    matched = 0
    for trajectory in trajectories:
        found = trajectory
        if trajectory.question_id not in dataset.by_id:
            ids = by_text.get(trajectory.question.strip(), [])
            if len(ids) != 1:
                (ambiguous if ids else unknown).append(trajectory.question_id)
                continue
            found = replace(trajectory, question_id=ids[0])
            matched += 1
        if found.key in known:
            raise DataError(f"trajectories: question {found.question_id!r}, repeat {found.repeat} stands twice")
        known[found.key] = found
    if not known:
        raise DataError(
            f"trajectories: none of {len(trajectories)} belongs to a question of {dataset.name}, neither by id nor by "
            f"text (first id: {trajectories[0].question_id!r}); is this the right data set?"
        )
    asked = {question_id for question_id, _ in known}
    not_asked = tuple(q.id for q in dataset.questions if q.id not in asked)
    notes = []
    if matched:
        were = counted(matched, "trajectory was joined to its question by its",
                       "trajectories were joined to their questions by their")
        notes.append(f"{were} text, not by an id")
    for ids, why in ((unknown, ("belongs to no question of the data set", "belong to no question of the data set")),
                     (ambiguous, ("matches several by its text", "match several by their text"))):
        if ids:
            one, many = why
            left = counted(len(ids), f"trajectory {one} and was", f"trajectories {many} and were")
            notes.append(f"{left} left out: {listed(ids)}")
    if not_asked:
        treated = "counted as asked with nothing retrieved" if all_questions else "not asked, and in no mean"
        were = counted(len(not_asked), "question of the data set was", "questions of the data set were")
        notes.append(f"{were} {treated}: {listed(not_asked)}")
    order = {question.id: i for i, question in enumerate(dataset.questions)}
    result = sorted(known.values(), key=lambda t: (order[t.question_id], t.repeat))
    if all_questions:
        result += [Trajectory(q.id, q.text, meta={"not_asked": True}) for q in dataset.questions if q.id in not_asked]
    return Joined(tuple(result), not_asked, tuple(notes))


def listed(ids: Sequence[str], most: int = 5) -> str:
    """The first few ids, and how many more there are."""
    shown = ", ".join(ids[:most])
    return shown if len(ids) <= most else f"{shown} and {len(ids) - most} more"
