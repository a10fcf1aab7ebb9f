"""What an agent's searches brought, step by step.

Ids only: gold and lists must be in the same unit. Rank metrics of a single step are in ranking.py; what an agent's
searches cost, and discounted gain over them, in sessions.py; where each piece of evidence was lost, in fates.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Final, NamedTuple

from ragkit.errors import DataError
from ragkit.metrics.batch import check_level
from ragkit.metrics.ranking import NO_RELEVANT, RankedIds, build_batch, score_arrays
from ragkit.metrics.registry import Metric, metric, parse
from ragkit.records.judgements import Score
from ragkit.records.questions import LabelState

_UNLABELLED: Final[Mapping[LabelState, str]] = {"unanswerable": "declared unanswerable", "unlabelled": "unlabelled"}
_LAWS = frozenset({"in_range", "deterministic", "rename", "nothing_relevant_undefined"})
_NO_GOLD = "nothing is relevant to the question"
_FAILED_STEP = "step failed"


class StageList(NamedTuple):
    """One list of a step and the stage that made it ("retrieve", "rerank", "filter", "fuse", …)."""

    stage: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class EvidencePath:
    """The searches of one trajectory, as ids, with the gold of its question.

    steps: what each search returned, in order of start; an error step returned (). context: what the answer was
    written from; None where it is unknown, and then the union of the steps counts as the end. stages: of each step
    all its lists, outermost first. index_ids: all ids of the index, where known. answer_right: None where nobody
    knows. level: gold counts at grade >= level. truncated: whether a text of the context was cut off, so that what
    stood behind it found no room. queries: what each step asked; question: what the user asked. cost: what the steps
    cost in all, None where nobody recorded it.
    """

    steps: tuple[tuple[str, ...], ...]
    gold: Mapping[str, float]
    context: tuple[str, ...] | None = None
    errors: tuple[bool, ...] = ()
    stages: tuple[tuple[StageList, ...], ...] = ()
    index_ids: frozenset[str] | None = None
    answer_right: bool | None = None
    label_state: LabelState = "labelled"
    level: float = 1.0
    truncated: bool = False
    question: str = ""
    queries: tuple[str, ...] = ()
    cost: float | None = None

    def __post_init__(self) -> None:
        for name, given in (("errors", self.errors), ("stages", self.stages), ("queries", self.queries)):
            if given and len(given) != len(self.steps):
                raise DataError(f"evidence path: expected {name} of {len(self.steps)} steps, got {len(given)}")
        check_level(self.level)

    @cached_property
    def relevant(self) -> frozenset[str]:
        """G: the gold ids that reach the level."""
        return frozenset(i for i, grade in self.gold.items() if grade >= self.level)

    @cached_property
    def seen(self) -> tuple[frozenset[str], ...]:
        """C_t of each step: all ids returned up to it."""
        union: frozenset[str] = frozenset()
        return tuple(union := union.union(ids) for ids in self.steps)

    @cached_property
    def everything(self) -> frozenset[str]:
        """C_T: all ids that any step returned."""
        return self.seen[-1] if self.seen else frozenset()

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """c_t of each step: the share of the gold seen up to it."""
        return tuple(len(ids & self.relevant) / len(self.relevant) for ids in self.seen)

    @cached_property
    def gained(self) -> tuple[bool, ...]:
        """Of each step whether it saw some gold first; one that failed did not."""
        before = (frozenset[str](), *self.seen)
        return tuple(bool((now - earlier) & self.relevant) for earlier, now in zip(before, self.seen, strict=False))

    def failed(self, step: int) -> bool:
        """Whether a step, counted from 0, failed."""
        return bool(self.errors) and self.errors[step]

    def lists(self, step: int) -> tuple[StageList, ...]:
        """The lists of a step, outermost first; what it returned stands in for a step without recorded stages."""
        return (self.stages[step] if self.stages else ()) or (StageList("other", self.steps[step]),)


def score_path(path: EvidencePath, metrics: Sequence[Metric]) -> dict[str, Score | list[Score]]:
    """The trajectory metrics of one path by name; a series has one score a step.

    >>> from ragkit.metrics.registry import parse_all
    >>> path = EvidencePath((("a", "x", "b"), ("x", "a", "y"), ("y", "c", "a")), {"a": 1, "b": 1, "c": 1}, ("a", "c"))
    >>> scores = score_path(path, parse_all("aucr@3,survival,cumulative_recall"))
    >>> round(scores["aucr@3"].value, 4), round(scores["survival"].value, 4), len(scores["cumulative_recall"])
    (0.7778, 0.6667, 3)
    """
    unlabelled = _UNLABELLED.get(path.label_state)
    scores: dict[str, Score | list[Score]] = {}
    for asked in metrics:
        definition = asked.definition
        if definition.kind != "trajectory":
            raise DataError(f"metric {asked.name}: expected a trajectory metric, got one of kind {definition.kind}")
        nothing = "nothing_relevant_undefined" in definition.laws and not path.relevant
        reason = unlabelled if definition.needs_gold else None
        withheld = reason or (NO_RELEVANT if nothing else None)
        if withheld is None:
            scores[asked.name] = definition.function(path, asked.k)
        else:
            undefined = Score.undefined(withheld)
            scores[asked.name] = [undefined] * len(path.steps) if definition.series else undefined
    return scores


@metric("cumulative_recall", kind="trajectory", undefined=_NO_GOLD, series=True, laws=_LAWS,
        formula="c_t = gold ids seen in the steps 1 to t / all gold ids")
def cumulative_recall(path: EvidencePath, k: None = None) -> list[Score]:
    """Per step: the share of the gold seen up to it.

    For means over trajectories of different length the last value is carried forward.
    """
    return [Score.scored(share) for share in path.shares]


@metric("marginal_recall", kind="trajectory", undefined=_NO_GOLD, series=True, laws=_LAWS,
        formula="c_t - c_(t - 1)")
def marginal_recall(path: EvidencePath, k: None = None) -> list[Score]:
    """Per step: the share of the gold that it saw first. The steps add up to the last cumulative recall.

    A step that failed has a failed score, no 0: nobody knows what it would have found.
    """
    return [Score.failed(_FAILED_STEP) if path.failed(t) else Score.scored(gain)
            for t, gain in enumerate(_gains(path))]


@metric("novelty", kind="trajectory", undefined=_NO_GOLD + ", or the step returned nothing", series=True,
        laws=_LAWS,
        formula="distinct ids of step t that no earlier step returned / distinct ids of step t")
def novelty(path: EvidencePath, k: None = None) -> list[Score]:
    """Per step: the share of its distinct documents that no earlier step returned; failed where the step failed."""
    scores = []
    earlier: frozenset[str] = frozenset()
    for t, ids in enumerate(path.steps):
        distinct = frozenset(ids)
        if path.failed(t):
            scores.append(Score.failed(_FAILED_STEP))
        elif not distinct:
            scores.append(Score.undefined("nothing returned"))
        else:
            scores.append(Score.scored(len(distinct - earlier) / len(distinct)))
        earlier = path.seen[t]
    return scores


@metric("aucr@k", kind="trajectory", undefined=_NO_GOLD, default_cut=5, laws=_LAWS,
        formula="(sum over t = 1 to k of c_t) / k, c_t = the last one after the last step")
def aucr(path: EvidencePath, k: int) -> Score:
    """Area under the curve of cumulative recall over the first B steps (aucr@B; bare aucr is aucr@5).

    Early evidence counts more often; the last value stands for the steps that were not taken. No steps: 0.
    """
    shares = path.shares[:k]
    rest = (k - len(shares)) * shares[-1] if shares else 0.0
    return Score.scored(min((sum(shares) + rest) / k, 1.0))


@metric("steps_to_evidence", kind="trajectory", undefined="the evidence was never complete", range=(1.0, None),
        direction="lower", laws=_LAWS,
        formula="smallest t with c_t = 1")
def steps_to_evidence(path: EvidencePath, k: None = None) -> Score:
    """The first step, counted from 1, after which all gold was seen.

    Read it with the share of questions that reached it; the median is of those.
    """
    for count, ids in enumerate(path.seen, 1):
        if path.relevant <= ids:
            return Score.scored(count)
    return Score.undefined("not reached")


@metric("step_efficiency", kind="trajectory", undefined=_NO_GOLD + ", or no search was made", laws=_LAWS,
        formula="steps with c_t > c_(t - 1) / all steps")
def step_efficiency(path: EvidencePath, k: None = None) -> Score:
    """The share of steps that saw some gold first. A failed step is a wasted one."""
    if not path.steps:
        return Score.undefined("no step")
    return Score.scored(sum(path.gained) / len(path.steps))


@metric("redundancy", kind="trajectory", undefined=_NO_GOLD + ", or no step returned anything", direction="lower",
        laws=_LAWS,
        formula="1 - distinct ids of all steps together / sum of the distinct ids of each step")
def redundancy(path: EvidencePath, k: None = None) -> Score:
    """The share of returned documents that an earlier step had returned already."""
    returned = sum(len(set(ids)) for ids in path.steps)
    return Score.scored(1 - len(path.everything) / returned) if returned else Score.undefined("nothing returned")


@metric("survival", kind="trajectory", undefined="the context is unknown, or no step found any gold", laws=_LAWS,
        formula="gold ids of some step that the context holds / gold ids of some step")
def survival(path: EvidencePath, k: None = None) -> Score:
    """Of the gold that some step returned, the share that the final context holds."""
    if path.context is None:
        return Score.undefined("context unknown")
    found = path.everything & path.relevant
    if not found:
        return Score.undefined("no evidence found")
    return Score.scored(len(found.intersection(path.context)) / len(found))


_LIFT = "no step has a re-ranker with a list beneath it"


@metric("rerank_lift[@k]", kind="trajectory", undefined=_LIFT, range=(-1.0, 1.0),
        laws=_LAWS - {"nothing_relevant_undefined"},
        formula="ndcg@k after the re-ranker - ndcg@k of the list beneath it, mean over the steps that have one")
def rerank_lift(path: EvidencePath, k: int | None) -> Score:
    """ndcg after the re-ranker minus ndcg of the list beneath it, mean over the steps that have one.

    Both at the same cut, the ideal from all gold: below 0 the re-ranker hurts. Without @k the cut is the number of
    passages that the re-ranker gave back: a list is not blamed for being cut.
    """
    return _lift(path, "ndcg", k)


@metric("rerank_lift_mrr[@k]", kind="trajectory", undefined=_LIFT, range=(-1.0, 1.0), laws=_LAWS,
        formula="mrr@k after the re-ranker - mrr@k of the list beneath it, mean over the steps that have one")
def rerank_lift_mrr(path: EvidencePath, k: int | None) -> Score:
    """As rerank_lift, with the reciprocal rank: did the first relevant document move up."""
    return _lift(path, "mrr", k)


def _gains(path: EvidencePath) -> list[float]:
    return [after - before for before, after in zip((0.0, *path.shares), path.shares, strict=False)]


def _lift(path: EvidencePath, name: str, k: int | None) -> Score:
    pairs: list[tuple[RankedIds, RankedIds]] = []
    for step in range(len(path.steps)):
        lists = path.lists(step)
        place = next((i for i, listed in enumerate(lists[:-1]) if listed.stage == "rerank"), None)
        if place is not None and not path.failed(step):
            pairs.append((RankedIds("", lists[place].ids), RankedIds("", lists[place + 1].ids)))
    if not pairs:
        return Score.undefined("no re-ranker")
    definition, lifts = parse(name).definition, []
    for after, before in pairs:
        cut = k or len(after.ids) or len(before.ids) or 1
        batch = build_batch((after, before), {"": path.gold}, level=path.level)
        values = score_arrays(batch, [Metric(definition, cut)])[:, 0]
        lifts.append(float(values[0] - values[1]))
    lift = sum(lifts) / len(lifts)
    return Score.scored(lift) if isfinite(lift) else Score.undefined(NO_RELEVANT)
