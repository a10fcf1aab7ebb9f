"""Which lists a re-ranker made of which candidates: within a run, or between run files. Scores nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from ragkit.comparison.context import Context
from ragkit.comparison.sides import Side
from ragkit.records.trajectory import Step, Trajectory

RUN, VARIANT = "run", "variant"
_SAME_START = 0.95  # of the questions: a first stage that searches approximately may differ in a few


class Search(NamedTuple):
    """One search: passage ids as the first stage ordered them, and as the re-ranker gave them back.

    `units` are the names that labels know the passages under, where these are others.
    """

    question: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    repeat: int = 0
    ms: float | None = None
    units: Mapping[str, str] = MappingProxyType({})

    def named(self, ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.units.get(name, name) for name in ids) if self.units else tuple(ids)


@dataclass(frozen=True)
class Reranking:
    """The searches of one variant that a re-ranker took part in.

    source: "run" (both lists are recorded in the run) or "variant" (the first stage is another variant, whose lists
    hold all that these hold). left_out: searches whose re-ranker gave back what was not in the list beneath it.
    without: the variant that searches alike and does not re-rank, whose answers can be held against these.
    """

    variant: str
    source: str
    first_stage: str
    reranker: str
    searches: tuple[Search, ...]
    left_out: int = 0
    without: str | None = None


def find_rerankings(sides: Sequence[Side], context: Context) -> list[Reranking]:
    """The re-rankings of all sides, in their order; a side has one at most."""
    found = []
    for place, side in enumerate(sides):
        made = _within(side, sides, context) if side.past is not None else \
            _between(side, sides[:place], sides[place + 1:], context)
        if made is not None:
            found.append(made)
    return found


# --- within a run ----------------------------------------------------------------------------------------------------


def _within(side: Side, sides: Sequence[Side], context: Context) -> Reranking | None:
    names, searches, left_out = set[tuple[str, str]](), list[Search](), 0
    for trajectory in _trajectories(side, context):
        for step in trajectory.steps:
            place = _place(step)
            if place is None:
                continue
            found = _search(side, trajectory, step, place)
            names.add((step.retrievals[place + 1].name or step.retrievals[place + 1].stage,
                       step.retrievals[place].name or "re-ranker"))
            left_out += found is None
            searches += [] if found is None else [found]
    if not searches:
        return None
    first, own = (", ".join(sorted({name[part] for name in names})) for part in (0, 1))
    return Reranking(side.name, RUN, first, own, tuple(searches), left_out, _without(side, sides, context))


def _trajectories(side: Side, context: Context) -> list[Trajectory]:
    assert side.past is not None
    asked = frozenset(context.questions)
    return [one for one in side.past.scoring().trajectories if one.question_id in asked and one.error is None]


def _place(step: Step) -> int | None:
    """Where the re-ranker's list stands among those of a step that did not fail, with a list beneath it."""
    if step.outermost.error is not None:
        return None
    return next((place for place, listed in enumerate(step.retrievals[:-1]) if listed.stage == "rerank"), None)


def _search(side: Side, trajectory: Trajectory, step: Step, place: int) -> Search | None:
    """None where what came back is not from the list beneath."""
    assert side.past is not None
    question, own, beneath = trajectory.question_id, step.retrievals[place], step.retrievals[place + 1]
    before, after = _once(beneath.ids), _once(own.ids)
    if not before or not set(after) <= set(before):
        return None
    names = {passage.id: side.past.gold.name(question, passage) for passage in beneath.passages}
    return Search(question, before, after, trajectory.repeat, own.ms,
                  {name: unit for name, unit in names.items() if name != unit})


def _without(side: Side, sides: Sequence[Side], context: Context) -> str | None:
    """The first variant without a re-ranker whose first search began with the same list, on nearly all questions.

    What searches once is not held against what may search again: the answers would tell of that.
    """
    own, once = _starts(side, context), _searches_once(side, context)
    for other in sides:
        if other.name == side.name or other.past is None or _searches_once(other, context) != once or any(
                _place(step) is not None for trajectory in _trajectories(other, context) for step in trajectory.steps):
            continue
        its = _starts(other, context)
        shared = own.keys() & its.keys()
        same = sum(_is_start(own[question], its[question]) for question in shared)
        if shared and same >= _SAME_START * len(shared):
            return other.name
    return None


def _searches_once(side: Side, context: Context) -> bool:
    return all(len(trajectory.steps) < 2 for trajectory in _trajectories(side, context))


def _starts(side: Side, context: Context) -> dict[str, tuple[str, ...]]:
    """What the first search of each question began with: the candidates of the re-ranker, else the list itself."""
    found = dict[str, tuple[str, ...]]()
    for trajectory in _trajectories(side, context):
        if trajectory.steps and trajectory.steps[0].outermost.error is None:
            step = trajectory.steps[0]
            place = _place(step)
            listed = step.outermost if place is None else step.retrievals[place + 1]
            if listed.passages:
                found.setdefault(trajectory.question_id, listed.ids)
    return found


def _is_start(one: Sequence[str], other: Sequence[str]) -> bool:
    count = min(len(one), len(other))
    return tuple(one[:count]) == tuple(other[:count])


def _once(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


# --- between run files -----------------------------------------------------------------------------------------------


def _between(side: Side, earlier: Sequence[Side], later: Sequence[Side], context: Context) -> Reranking | None:
    """The first side whose list holds all of this one's, question by question, in another order.

    Of two that hold the same, the one named first (the baseline) is the first stage.
    """
    before = {other.name for other in earlier}
    for other in (*earlier, *later):
        searches = _taken_from(side, other, context) if other.past is None else None
        if searches and (other.name in before or _is_deeper(other, side)):
            return Reranking(side.name, VARIANT, other.name, side.name, searches)
    return None


def _is_deeper(one: Side, other: Side) -> bool:
    lists, its = one.lists or {}, other.lists or {}
    return any(len(lists[question]) > len(its[question]) for question in lists.keys() & its.keys())


def _taken_from(side: Side, other: Side, context: Context) -> tuple[Search, ...] | None:
    """The searches, where every question's list is made of the other's and some stand in another order.

    None also where all questions have the same candidates: two searches through a small collection hold the same, too.
    """
    mine, its = side.lists or {}, other.lists or {}
    searches = []
    for question in context.questions:
        after, before = mine.get(question, ()), its.get(question, ())
        if not after or not before:
            continue
        members = set(after)
        if members == set(before[:len(after)]):
            before = before[:len(after)]  # the rest of a deeper list was never a candidate
        elif not members <= set(before):
            return None
        searches.append(Search(question, before, after))
    moved = any(one.after != one.before[:len(one.after)] for one in searches)
    kinds = {frozenset(one.before) for one in searches}
    return tuple(searches) if moved and (len(kinds) > 1 or len(searches) == 1) else None
