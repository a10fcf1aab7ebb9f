"""Agents held against each other over their steps: how fast evidence comes together, what is wasted, what survives.

Plain data; renders nothing. Figures of single steps are in agents_steps.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ragkit.comparison.agents_steps import per_step, step_differences
from ragkit.comparison.context import Context, of_name, others
from ragkit.comparison.intervals import averaged, differences_of, means_of
from ragkit.comparison.sides import GOLD, Side
from ragkit.evaluation.score import evidence_path
from ragkit.evaluation.summary import app_entry
from ragkit.evaluation.trajectory_summary import Watched, funnel_entry, retrieval_entry
from ragkit.metrics.paired import Pair
from ragkit.metrics.registry import Direction, parse_all
from ragkit.metrics.trajectory import EvidencePath, score_path
from ragkit.records.judgements import Score
from ragkit.records.trajectory import Trajectory

_REACHED_BY = 0.05  # of a variant's trajectories: a step that hardly any reached would set the scale for all
LOWER = frozenset({"steps_to_evidence", "wasted_steps", "steps", "redundancy", "ms", "cost", "input_tokens",
                   "output_tokens"})


@dataclass(frozen=True)
class Walks:
    """The trajectories of one variant on the compared questions; `pairs` are those with gold that did not fail."""

    side: Side
    watched: Watched
    pairs: tuple[tuple[Trajectory, EvidencePath], ...]


def find_agents(sides: Sequence[Side], baseline: str, context: Context) -> dict[str, Any] | None:
    """What the variants' searches brought step by step, with paired differences; None where no variant searches twice.

    By gold. `aucr_at` is the one B of all variants: the last step that 5 % of some variant's trajectories reached.
    """
    if context.labels != GOLD or any(side.past is None for side in sides):
        return None
    walks = {side.name: _walks(side, context) for side in sides}
    if all(len(one.steps) < 2 for walk in walks.values() for one in walk.watched.trajectories):
        return None
    last = max(_last_step(walk) for walk in walks.values())
    values = {name: _values(walk, last) for name, walk in walks.items()}
    base = of_name(sides, baseline).name
    return {
        "aucr_at": last,
        "variants": {name: _entry(walk, values[name], last, context) for name, walk in walks.items()},
        "differences": _differences(values, base, [side.name for side in others(sides, baseline)], context.seed),
        "steps": step_differences({name: walk.pairs for name, walk in walks.items()}, base, last, context.seed),
    }


def _walks(side: Side, context: Context) -> Walks:
    assert side.past is not None
    past, asked = side.past, frozenset(context.questions)
    trajectories = [one for one in past.scoring().trajectories if one.question_id in asked]
    states, paths = past.plan.dataset.label_states(), {}
    for one in trajectories:
        names = _names(side, one.question_id)
        paths[one.key] = evidence_path(one, names, past.gold.qrels.get(one.question_id, {}),
                                       label_state=states[one.question_id], level=past.plan.level)
    categories = {question.id: question.category for question in past.plan.dataset.questions}
    watched = Watched(trajectories, paths, categories)
    return Walks(side, watched, tuple(watched.labelled()))


def _names(side: Side, question: str) -> Callable[[Sequence[Any]], tuple[str, ...]]:
    assert side.past is not None
    gold = side.past.gold
    return lambda passages: gold.names(question, passages)


def _last_step(walk: Walks) -> int:
    """The number of the last step that some share of the trajectories reached, at least 1."""
    lengths = [len(one.steps) for one in walk.watched.trajectories]
    reached = Counter(step for length in lengths for step in range(1, length + 1))
    return max((step for step, count in reached.items() if count >= _REACHED_BY * len(lengths)), default=1)


def _values(walk: Walks, last: int) -> dict[str, dict[str, float]]:
    """Every figure that a question has of its own, repeats averaged: name -> question -> value."""
    metrics = parse_all(f"aucr@{last},steps_to_evidence,step_efficiency,survival,redundancy")
    found: dict[str, list[tuple[str, float]]] = {"reached": [], "steps": [], "wasted_steps": []}
    for trajectory, path in walk.pairs:
        question = trajectory.question_id
        gains = _gains(path)
        found["reached"].append((question, float(bool(path.shares) and path.shares[-1] == 1)))
        found["wasted_steps"].append((question, float(sum(not gain for gain in gains))))
        for name, score in score_path(path, metrics).items():
            if isinstance(score, Score) and score.value is not None:
                found.setdefault(name, []).append((question, score.value))
    for one in walk.watched.trajectories:
        if one.error is None:
            found["steps"].append((one.question_id, float(len(one.steps))))
            found.setdefault("ms", []).extend([(one.question_id, one.ms)] if one.ms is not None else [])
            for name in ("cost", "input_tokens", "output_tokens"):
                if name in one.usage:
                    found.setdefault(name, []).append((one.question_id, float(one.usage[name])))
    return {name: averaged(pairs) for name, pairs in found.items() if pairs}


def _gains(path: EvidencePath) -> list[bool]:
    return [after > before for before, after in zip((0.0, *path.shares), path.shares, strict=False)]


def _entry(walk: Walks, values: Mapping[str, Mapping[str, float]], last: int, context: Context) -> dict[str, Any]:
    names = list(values)
    means = dict(zip(names, means_of([values[name] for name in names], context.seed), strict=True))
    reached = [float(steps) for _, path in walk.pairs for steps in _steps_to_evidence(path)]
    return {
        "n_trajectories": len(walk.watched.trajectories), "n_labelled": len(walk.pairs),
        "n_failed": sum(one.error is not None for one in walk.watched.trajectories),
        "over_steps": means,
        "steps_to_evidence": {"reached": len(reached), "of": len(walk.pairs),
                              "median": float(median(reached)) if reached else None},
        "per_step": per_step(walk.pairs, walk.watched.trajectories, last, context.seed),
        "retrieval": retrieval_entry(walk.watched),
        "funnel": funnel_entry(walk.watched)["all"],
        "app": app_entry(walk.watched.trajectories),
    }


def _steps_to_evidence(path: EvidencePath) -> list[int]:
    return [next(step for step, share in enumerate(path.shares, 1) if share == 1)] if 1 in path.shares else []


def _differences(values: Mapping[str, Mapping[str, Mapping[str, float]]], baseline: str, variants: Sequence[str],
                 seed: int) -> dict[str, dict[str, Any]]:
    """name -> variant -> paired difference to the baseline, where both have values."""
    keys = [(name, variant) for name in values[baseline] for variant in variants if name in values[variant]]
    made = differences_of([Pair(values[baseline][name], values[variant][name], _direction(name))
                           for name, variant in keys], seed)
    found: dict[str, dict[str, Any]] = {}
    for (name, variant), one in zip(keys, made, strict=True):
        found.setdefault(name, {})[variant] = one
    return found


def _direction(name: str) -> Direction:
    return "lower" if name in LOWER else "higher"
