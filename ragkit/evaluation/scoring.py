"""What is scored and against what, and the list that counts as "at the end". Computes no score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from ragkit.evaluation.funnel import RightRule
from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.evaluation.units import Projection
from ragkit.metrics.registry import Metric
from ragkit.pipeline.fusion import reciprocal_rank_fusion
from ragkit.records.judgements import Score
from ragkit.records.questions import Dataset
from ragkit.records.trajectory import Passage, Retrieval, Trajectory

UNION: Final = "union"
FUSED: Final = "rrf"
_END = "without_context"  # in a trajectory's meta: what stands for a context that the app does not show


@dataclass(frozen=True)
class Scoring:
    """What is scored, against what, and how."""

    variant: str
    dataset: Dataset
    trajectories: tuple[Trajectory, ...]
    projection: Projection
    metrics: tuple[Metric, ...]
    level: float = 1.0
    rule: RightRule = field(default_factory=RightRule)
    judge_steps: bool = False  # whether a judge reads the list of each step, too

    def of_kind(self, kind: str) -> tuple[Metric, ...]:
        """The metrics of a kind; those that hold a step against its own query are `query_metrics`."""
        return tuple(metric for metric in self.metrics
                     if metric.definition.kind == kind and metric.definition.against == "question")

    @property
    def query_metrics(self) -> tuple[Metric, ...]:
        return tuple(metric for metric in self.metrics if metric.definition.against == "query")

    def row(self, trajectory: Trajectory, step: str, stage: str, metric: str, score: Score, **more: Any) -> ScoreRow:
        """One score of a trajectory, as a row of scores.jsonl."""
        category = self.dataset.by_id[trajectory.question_id].category
        return ScoreRow(self.variant, trajectory.question_id, trajectory.repeat, category, step, stage, metric,
                        score.value, score.status, score.reason, **more)


@dataclass(frozen=True)
class FinalList:
    """What the answer was written from: the context, else the only list there was, else all steps' lists together."""

    passages: tuple[Passage, ...]
    stage: str
    ranked: bool = True
    cuttable: bool = True
    fused: bool = False  # the steps' lists, by reciprocal rank


def final_list(trajectory: Trajectory) -> FinalList:
    """The list "at the end".

    Without a known context it is the union of the steps' lists in the order of first appearance, which has no cut:
    position k+1 in it is nobody's rank. Where `fused_ends` asked for it, it is one ranking of them by reciprocal rank.
    """
    if trajectory.context is not None:
        return FinalList(trajectory.context.passages, "context", trajectory.context.ranked)
    lists = [step.outermost for step in trajectory.steps if step.outermost.error is None]
    if len(lists) == 1:
        return FinalList(lists[0].passages, lists[0].stage, lists[0].ranked)
    if lists and trajectory.meta.get(_END) == FUSED and all(found.ranked for found in lists):
        return FinalList(tuple(reciprocal_rank_fusion([found.passages for found in lists])), "fuse", fused=True)
    union = {passage.id: passage for found in reversed(lists) for passage in reversed(found.passages)}
    order = dict.fromkeys(passage.id for found in lists for passage in found.passages)
    passages = tuple(union[passage_id] for passage_id in order)
    return FinalList(passages, "union", all(found.ranked for found in lists), cuttable=not order)


def fused_ends(trajectories: Iterable[Trajectory]) -> list[Trajectory]:
    """The trajectories, those that show no context marked so that their steps' lists are fused by reciprocal rank."""
    return [replace(one, meta={**one.meta, _END: FUSED}) if one.context is None else one for one in trajectories]


class ScoredList(NamedTuple):
    """A list that rank metrics are given: of a step, or at the end. `failed` says why it has no score."""

    step: str
    stage: str
    passages: tuple[Passage, ...]
    ranked: bool
    cuttable: bool
    failed: str | None
    query: str = ""


def scored_lists(trajectory: Trajectory) -> list[ScoredList]:
    """The outermost list of each step, then the list at the end."""
    found = []
    for step in trajectory.steps:
        own = step.outermost
        broken = None if own.error is None else f"step failed: {own.error}"
        found.append(ScoredList(str(step.index), own.stage, own.passages, own.ranked, True, broken, own.query))
    end = final_list(trajectory)
    failed = None if trajectory.error is None else f"app failed: {trajectory.error}"
    return [*found, ScoredList(FINAL, end.stage, end.passages, end.ranked, end.cuttable, failed)]


def all_lists(trajectory: Trajectory) -> list[Retrieval]:
    """Every list of a trajectory: of each stage of each step, then the context."""
    lists = [retrieval for step in trajectory.steps for retrieval in step.retrievals]
    return lists if trajectory.context is None else [*lists, trajectory.context]


def passage_text(passage: Passage, dataset: Dataset) -> str | None:
    """The text of a passage: its own, else the document's of that id; None where nobody knows it."""
    if passage.text is not None or dataset.corpus is None:
        return passage.text
    document = dataset.corpus.get(passage.id)
    return None if document is None else document.content
