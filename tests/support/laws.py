"""The laws of metrics as functions, and random cases of each kind of metric to hold the metrics to them.

A law takes metrics and one case, and says of each metric whether it holds; a case that says nothing about it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from ragkit.metrics.answers import AnswerSample
from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays, score_batch
from ragkit.metrics.registry import Definition, Kind, Law, Metric, definitions
from ragkit.metrics.trajectory import EvidencePath, StageList, score_path
from ragkit.records.judgements import Score, Verdict

CUTS = (1, 2, 3, 5, 50)
SLACK = 1e-12

Check = Callable[[Sequence[Metric], Any], list[bool]]


def cuts_of(definition: Definition) -> list[Metric]:
    """The metric without a cut and with several, as far as its name allows."""
    plain = [] if definition.cut == "required" and definition.default_cut is None else [definition.default_cut]
    return [Metric(definition, k) for k in [*plain, *(CUTS if definition.cut != "none" else ())]]


def metrics_of(kind: Kind, law: Law | None = None) -> list[Metric]:
    """Every metric of a kind in the registry as it stands now; only those that declare the law, if one is given."""
    return [metric for definition in definitions(kind) if law is None or law in definition.laws
            for metric in cuts_of(definition)]


@dataclass(frozen=True)
class RankCase:
    """A list and its gold. places: two places of the list, for laws that swap. extra: how much to put behind it."""

    ids: tuple[str, ...]
    gold: Mapping[str, float]
    level: float = 1.0
    places: tuple[int, int] = (0, 0)
    extra: int = 1

    @property
    def renamed(self) -> RankCase:
        names = {name: f"doc-{place}" for place, name in enumerate(sorted({*self.ids, *self.gold}, reverse=True))}
        return replace(self, ids=tuple(map(names.__getitem__, self.ids)),
                       gold={names[name]: grade for name, grade in self.gold.items()})


_IDS = st.text(alphabet="ab7é知😀\u200b ", min_size=1, max_size=4)
_GRADES = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 1.0, 1.9, 2.0, 3.0, 1e-300, 1e300])


@st.composite
def rank_cases(draw: st.DrawFn) -> RankCase:
    gold = draw(st.dictionaries(_IDS, _GRADES, max_size=8))
    pool = st.sampled_from(sorted(gold)) | _IDS if gold else _IDS
    ids = draw(st.lists(pool, max_size=10))
    places = tuple(draw(st.integers(0, max(len(ids) - 1, 0))) for _ in range(2))
    return RankCase(tuple(ids), gold, draw(st.sampled_from([0.5, 1.0, 2.0])), (min(places), max(places)),
                    draw(st.integers(1, 60)))


@st.composite
def paths(draw: st.DrawFn) -> EvidencePath:
    ids = st.lists(st.sampled_from("abcdefg"), max_size=5).map(tuple)
    stage = st.sampled_from(["retrieve", "rerank", "fuse", "filter", "other"])
    stages = draw(st.lists(st.lists(st.builds(StageList, stage, ids), min_size=1, max_size=4).map(tuple), max_size=5))
    known = st.none() | st.frozensets(st.sampled_from("abxyz"))
    errors = draw(st.lists(st.booleans(), min_size=len(stages), max_size=len(stages)) | st.just([False] * len(stages)))
    return EvidencePath(
        steps=tuple(() if failed else lists[0].ids for lists, failed in zip(stages, errors, strict=True)),
        gold=draw(st.dictionaries(st.sampled_from("abcdxyz"), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), max_size=5)),
        context=draw(st.none() | ids), errors=tuple(errors), stages=tuple(stages),
        answer_right=draw(st.none() | st.booleans()), index_ids=draw(known),
        level=draw(st.sampled_from([0.5, 1.0, 2.0])), truncated=draw(st.booleans()), question="who built the bridge",
        queries=tuple(draw(st.sampled_from(["", "bridge", "who built it", "rome"])) for _ in stages),
        cost=draw(st.none() | st.floats(0, 100)))


_VERDICTS = st.builds(Verdict, st.sampled_from([0.0, 1.0]) | st.floats(-1.0, 1.0) | st.sampled_from([math.nan, 2.0]),
                      flags=st.sampled_from([(), (), ("noncommittal",), ("zero_vector",)]))
_TEXT = st.text(max_size=40) | st.sampled_from(["", "I do not know.", "It is in Rome.", "the  Rome", "1,000"])
CASES: Mapping[Kind, st.SearchStrategy[Any]] = {
    "ranking": rank_cases(),
    "trajectory": paths(),
    "judged": st.lists(st.builds(Verdict, st.sampled_from([0.0, 1.0])), max_size=6) | st.lists(_VERDICTS, max_size=6),
    "answer": st.builds(AnswerSample, st.just("?"), st.none() | _TEXT, st.lists(_TEXT, max_size=3).map(tuple),
                        st.lists(_TEXT, max_size=2).map(tuple)),
}


def values(metrics: Sequence[Metric], case: RankCase) -> list[float]:
    batch = build_batch([RankedIds("q", case.ids)], {"q": case.gold}, level=case.level)
    found: list[float] = score_arrays(batch, metrics)[0].tolist()
    return found


def scores(metrics: Sequence[Metric], case: Any) -> list[list[Score]]:
    """The scores of each metric for a case of its kind: one, or one a step."""
    if isinstance(case, RankCase):
        batch = build_batch([RankedIds("q", case.ids)], {"q": case.gold}, level=case.level)
        return [[score] for score in score_batch(batch, metrics)[0]]
    if isinstance(case, EvidencePath):
        found = score_path(case, metrics)
        return [score if isinstance(score, list) else [score] for score in (found[m.name] for m in metrics)]
    return [[metric.definition.function(case)] for metric in metrics]


def in_range(metrics: Sequence[Metric], case: Any) -> list[bool]:
    def inside(metric: Metric, score: Score) -> bool:
        low, high = metric.definition.range
        return score.value is None or ((low is None or score.value >= low) and (high is None or score.value <= high))

    return [all(inside(metric, score) for score in found)
            for metric, found in zip(metrics, scores(metrics, case), strict=True)]


def deterministic(metrics: Sequence[Metric], case: Any) -> list[bool]:
    return _pairwise(scores(metrics, case), scores(metrics, case))


def rename(metrics: Sequence[Metric], case: RankCase | EvidencePath) -> list[bool]:
    other = case.renamed if isinstance(case, RankCase) else _renamed_path(case)
    return _pairwise(scores(metrics, case), scores(metrics, other))


def nothing_relevant_undefined(metrics: Sequence[Metric], case: RankCase | EvidencePath) -> list[bool]:
    if isinstance(case, RankCase):  # graded metrics know no level: nothing is above 0
        none = replace(case, gold={name: min(grade, 0.0) for name, grade in case.gold.items()})
        return [math.isnan(value) for value in values(metrics, none)]
    below = replace(case, gold={name: min(grade, 0.49) for name, grade in case.gold.items()})
    return [all(score.status == "undefined" for score in found) for found in scores(metrics, below)]


def perfect_is_one(metrics: Sequence[Metric], case: RankCase) -> list[bool]:
    gold = {name: grade for name, grade in case.gold.items() if grade <= 0 or grade >= case.level}
    ideal = sorted((name for name in gold if gold[name] > 0), key=lambda name: -gold[name])
    found = values(metrics, replace(case, ids=tuple(ideal), gold=gold))
    return [not ideal or (metric.k or len(ideal)) < len(ideal) or value == 1.0
            for metric, value in zip(metrics, found, strict=True)]


def swap_up(metrics: Sequence[Metric], case: RankCase) -> list[bool]:
    ids = list(dict.fromkeys(case.ids))
    first, second = (min(place, len(ids) - 1) for place in case.places)
    if not ids or case.gold.get(ids[first], 0) >= case.gold.get(ids[second], 0):
        return [True] * len(metrics)
    before = values(metrics, replace(case, ids=tuple(ids)))
    ids[first], ids[second] = ids[second], ids[first]
    after = values(metrics, replace(case, ids=tuple(ids)))
    return [_no_worse(metric, old, new) for metric, old, new in zip(metrics, before, after, strict=True)]


def empty_is_zero(metrics: Sequence[Metric], case: RankCase) -> list[bool]:
    if not any(grade >= case.level for grade in case.gold.values()):
        return [True] * len(metrics)
    return [value == 0.0 for value in values(metrics, replace(case, ids=()))]


def padding(metrics: Sequence[Metric], case: RankCase) -> list[bool]:
    longer = replace(case, ids=(*case.ids, *(f"pad-{i}" for i in range(case.extra))))
    return _pairwise(scores(metrics, case), scores(metrics, longer))


def batch_equals_single(metrics: Sequence[Metric], case: RankCase) -> list[bool]:
    half = len(case.ids) // 2
    gold = {"q": case.gold, "other": dict(list(case.gold.items())[::2]), "nothing": {}}
    ranks = [RankedIds("q", case.ids), RankedIds("other", case.ids[half:]), RankedIds("nothing", case.ids),
             RankedIds("q", case.ids[::-1], ranked=False), RankedIds("q", ()), RankedIds("other", case.ids),
             RankedIds("q", case.ids[:half], cuttable=False)]
    together = score_batch(build_batch(ranks, gold, level=case.level), metrics)
    alone = [score_batch(build_batch([rank], gold, level=case.level), metrics)[0] for rank in ranks]
    return _pairwise(list(zip(*together, strict=True)), list(zip(*alone, strict=True)))


_RANKING: Mapping[Law, Check] = {
    "in_range": in_range, "deterministic": deterministic, "perfect_is_one": perfect_is_one, "swap_up": swap_up,
    "rename": rename, "nothing_relevant_undefined": nothing_relevant_undefined, "empty_is_zero": empty_is_zero,
    "padding": padding, "batch_equals_single": batch_equals_single}
_TRAJECTORY: Mapping[Law, Check] = {
    "in_range": in_range, "deterministic": deterministic, "rename": rename,
    "nothing_relevant_undefined": nothing_relevant_undefined}
_SIMPLE: Mapping[Law, Check] = {"in_range": in_range, "deterministic": deterministic}
CHECKS: Mapping[Kind, Mapping[Law, Check]] = {
    "ranking": _RANKING, "trajectory": _TRAJECTORY, "judged": _SIMPLE, "answer": _SIMPLE}


def _pairwise(left: Sequence[Any], right: Sequence[Any]) -> list[bool]:
    return [one == other for one, other in zip(left, right, strict=True)]


def _no_worse(metric: Metric, before: float, after: float) -> bool:
    if math.isnan(before) or math.isnan(after):
        return math.isnan(before) and math.isnan(after)
    slack = SLACK * max(1.0, abs(before))
    return after <= before + slack if metric.definition.direction == "lower" else after >= before - slack


def _renamed_path(path: EvidencePath) -> EvidencePath:
    def new(ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"doc-{219 - ord(name)}" for name in ids)

    return replace(
        path, steps=tuple(map(new, path.steps)), gold=dict(zip(new(tuple(path.gold)), path.gold.values(), strict=True)),
        context=None if path.context is None else new(path.context),
        stages=tuple(tuple(StageList(made.stage, new(made.ids)) for made in lists) for lists in path.stages),
        index_ids=None if path.index_ids is None else frozenset(new(tuple(path.index_ids))))
