"""What a file of another tool held, and what is the same for all of them: repeats counted, missing scores said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ragkit.records.aliases import is_generated
from ragkit.records.questions import Dataset
from ragkit.records.trajectory import Step, Trajectory

UNKNOWN = "the file does not say what was retrieved for this answer; that it shows no search means nothing"


def shows_its_searches(trajectory: Trajectory) -> bool:
    """Whether a trajectory without steps made no search, and not: its file holds answers alone.

    >>> shows_its_searches(Trajectory("q", "?")), shows_its_searches(Trajectory("q", "?", meta={"warnings": [UNKNOWN]}))
    (True, False)
    """
    return bool(trajectory.steps) or UNKNOWN not in trajectory.meta.get("warnings", ())


@dataclass(frozen=True)
class Imported:
    """What a foreign file held: trajectories under the ids that it gave, and the dataset where it carries gold.

    `notes` are for the user, one line each: what was not usable, what is not known.
    """

    trajectories: tuple[Trajectory, ...]
    dataset: Dataset | None = None
    notes: tuple[str, ...] = ()


def numbered(trajectories: Iterable[Trajectory]) -> tuple[Trajectory, ...]:
    """The same trajectories with `repeat` 0, 1, … within each question id, in their order.

    >>> [one.key for one in numbered([Trajectory("q", "?"), Trajectory("q", "?"), Trajectory("r", "!")])]
    [('q', 0), ('q', 1), ('r', 0)]
    """
    count: dict[str, int] = {}
    found = []
    for trajectory in trajectories:
        repeat = count.get(trajectory.question_id, 0)
        count[trajectory.question_id] = repeat + 1
        found.append(trajectory if trajectory.repeat == repeat else replace(trajectory, repeat=repeat))
    return tuple(found)


@dataclass(frozen=True)
class Holdings:
    """How much a set of trajectories holds, and what of its passages is not known. All counts."""

    trajectories: int
    questions: int
    without_search: int
    searches: int
    failed_searches: int
    passages: int
    without_id: int
    without_score: int
    without_text: int
    with_context: int


def holdings(trajectories: Iterable[Trajectory]) -> Holdings:
    """Counts over the lists that the app got (the outermost of each step), a passage once for each list.

    A passage has a score where any list of its step gives it one: a re-ranker's list may have none of its own.

    >>> holdings([Trajectory("q", "?")]).without_search
    1
    """
    all_of_them = list(trajectories)
    passages = [(passage, step) for trajectory in all_of_them for step in trajectory.steps
                for passage in step.outermost.passages]
    steps = [step for trajectory in all_of_them for step in trajectory.steps]
    return Holdings(
        trajectories=len(all_of_them),
        questions=len({trajectory.question_id for trajectory in all_of_them}),
        without_search=sum(not trajectory.steps for trajectory in all_of_them),
        searches=len(steps),
        failed_searches=sum(step.outermost.error is not None for step in steps),
        passages=len(passages),
        without_id=sum(is_generated(passage) for passage, _ in passages),
        without_score=sum(passage.score is None and passage.id not in _scored(step) for passage, step in passages),
        without_text=sum(passage.text is None for passage, _ in passages),
        with_context=sum(trajectory.context is not None for trajectory in all_of_them),
    )


def _scored(step: Step) -> set[str]:
    return {passage.id for found in step.retrievals for passage in found.passages if passage.score is not None}


def score_notes(found: Holdings) -> list[str]:
    """The note that a file gives no scores, or not all; none where it gives them, or holds no passage."""
    if not found.without_score:
        return []
    if found.without_score == found.passages:
        return ["no retrieval scores in this file: the order of each list is all that is known of its ranking"]
    return [f"{found.without_score:,} of {found.passages:,} passages have no score in this file"]
