"""Single steps of several agents beside each other; the last value of cumulative recall is carried forward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragkit.comparison.intervals import averaged, averaged_columns, differences_of, means_of
from ragkit.metrics.paired import Pair
from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays
from ragkit.metrics.registry import parse_all
from ragkit.metrics.trajectory import EvidencePath, score_path
from ragkit.records.trajectory import Trajectory

Pairs = Sequence[tuple[Trajectory, EvidencePath]]
OF_LISTS = ("recall", "ndcg@10", "mrr@10")  # of a step's own list
_SERIES = ("marginal_recall", "novelty")
CARRIED = "cumulative_recall"


def per_step(pairs: Pairs, trajectories: Sequence[Trajectory], last: int, seed: int) -> list[dict[str, Any]]:
    """Each step, counted from 0: how many reached it, what its own list was worth to those, and what all had by then.

    A step that failed stays out of the means of its list. `trajectories` are all that were asked, gold or not.
    """
    made, series = [], _series(pairs, last)
    for step in range(last):
        values = {CARRIED: carried(pairs, step), **series[step], **_lists(pairs, step)}
        means = dict(zip(values, means_of(list(values.values()), seed), strict=True))
        reached = sum(len(one.steps) > step for one in trajectories)
        made.append({"step": step, "reached": {"count": reached, "of": len(trajectories),
                                               "share": reached / len(trajectories) if trajectories else None},
                     "metrics": means})
    return made


def step_differences(walks: Mapping[str, Pairs], baseline: str, last: int, seed: int) -> list[dict[str, Any]]:
    """Each step: the paired differences of what was gathered up to it, the last value carried forward."""
    made = []
    for step in range(last):
        values = {name: carried(pairs, step) for name, pairs in walks.items()}
        names = [name for name in walks if name != baseline]
        found = differences_of([Pair(values[baseline], values[name]) for name in names], seed)
        made.append({"step": step, CARRIED: dict(zip(names, found, strict=True))})
    return made


def carried(pairs: Pairs, step: int) -> dict[str, float]:
    """Cumulative recall after a step by question: of who took fewer steps the last one's, 0 where none was taken."""
    return averaged((one.question_id, path.shares[min(step, len(path.shares) - 1)] if path.shares else 0.0)
                    for one, path in pairs)


def _series(pairs: Pairs, last: int) -> list[dict[str, dict[str, float]]]:
    """Of each step the values of the metrics that have one a step, of those that reached it."""
    found: list[dict[str, list[tuple[str, float]]]] = [{name: [] for name in _SERIES} for _ in range(last)]
    metrics = parse_all(",".join(_SERIES))
    for one, path in pairs:
        for name, scores in score_path(path, metrics).items():
            for step, score in enumerate((scores if isinstance(scores, list) else [scores])[:last]):
                if score.value is not None:
                    found[step][name].append((one.question_id, score.value))
    return [{name: averaged(values) for name, values in step.items()} for step in found]


def _lists(pairs: Pairs, step: int) -> dict[str, dict[str, float]]:
    """Rank metrics of the lists of those that reached the step and did not fail in it; of sets only what needs no
    order."""
    here = [(one, path) for one, path in pairs if len(path.steps) > step and not path.failed(step)]
    qrels = {one.question_id: path.gold for one, path in here}
    metrics = parse_all(",".join(OF_LISTS))
    if not here:
        return {metric.name: {} for metric in metrics}
    rankings = [RankedIds(one.question_id, path.steps[step], one.steps[step].outermost.ranked) for one, path in here]
    values = score_arrays(build_batch(rankings, qrels, level=here[0][1].level), metrics)
    columns = averaged_columns([one.question_id for one, _ in here], values)
    return {metric.name: column for metric, column in zip(metrics, columns, strict=True)}
