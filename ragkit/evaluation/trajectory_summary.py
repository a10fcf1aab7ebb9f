"""What the steps of a run show together: the funnel of its gold, turns, the spread of recall, and how it searched.

Plain data for summary.json; renders nothing. Means of metrics are in summary.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

import numpy as np

from ragkit.evaluation.summary import NO_CATEGORY, entry_of_scores
from ragkit.metrics.fates import FATES, fates
from ragkit.metrics.ranking import RankedIds, build_batch, score_batch
from ragkit.metrics.registry import Metric, parse_all
from ragkit.metrics.resampling import Resampling
from ragkit.metrics.trajectory import EvidencePath
from ragkit.recording.formats.imported import shows_its_searches
from ragkit.records.judgements import Score
from ragkit.records.trajectory import Step, Trajectory

_TURN_METRICS = "recall,allhit,hit,precision_set"
_QUANTILES = {"q10": 0.1, "q25": 0.25, "median": 0.5, "q75": 0.75, "q90": 0.9}
UNCHECKED = "in_context_unchecked"


@dataclass(frozen=True)
class Watched:
    """The trajectories of a run that the app was asked for, with their evidence paths and categories.

    `judged`: the paths count statements of the reference answer, as a judge labelled them, instead of gold passages.
    `unsure`: whose path could be another one, had the judge judged all; they are in nothing that is counted over steps.
    """

    trajectories: Sequence[Trajectory]
    paths: Mapping[tuple[str, int], EvidencePath]
    categories: Mapping[str, str | None]
    judged: bool = False
    unsure: Set[tuple[str, int]] = frozenset()

    def of_category(self, name: str) -> Watched:
        """The trajectories of one category alone, by its name in the summary."""
        return replace(self, trajectories=[t for t in self.trajectories if self.category(t) == name])

    def category(self, trajectory: Trajectory) -> str:
        found = self.categories.get(trajectory.question_id)
        return NO_CATEGORY if found is None else found

    def labelled(self) -> list[tuple[Trajectory, EvidencePath]]:
        """Those that did not fail, whose question has something relevant and whose path is sure."""
        pairs = ((trajectory, self.paths[trajectory.key]) for trajectory in self.trajectories
                 if trajectory.key not in self.unsure)
        return [(trajectory, path) for trajectory, path in pairs
                if trajectory.error is None and path.label_state == "labelled" and path.relevant]


def trajectory_summary(watched: Watched, seed: int = 0) -> dict[str, Any]:
    """The keys that a run's summary has about its steps: funnel, retrieval, per_turn, recall_spread."""
    return {
        "funnel": funnel_entry(watched),
        "retrieval": retrieval_entry(watched),
        "per_turn": per_turn(watched, seed),
        "recall_spread": recall_spread(watched),
    }


def funnel_entry(watched: Watched) -> dict[str, Any]:
    """How many relevant things ended at which stage, in all and by category; each adds up to its total.

    Questions without a category are a slice of their own. Trajectories that failed are left out.
    """
    everything: Counter[str] = Counter()
    slices: dict[str, Counter[str]] = defaultdict(Counter)
    for trajectory, path in watched.labelled():
        ended = [UNCHECKED if fate == "in_context" else fate for fate in fates(path).values()]
        everything.update(ended)
        slices[watched.category(trajectory)].update(ended)
    return {"labels": "judged" if watched.judged else "gold",
            "noun": "statements" if watched.judged else "gold passages",
            "all": _shares(everything), "categories": {name: _shares(slices[name]) for name in sorted(slices)}}


def _shares(counts: Counter[str]) -> dict[str, Any]:
    total = counts.total()
    order = [UNCHECKED if fate == "in_context" else fate for fate in FATES]
    return {"total": total,
            "stages": {fate: {"count": counts[fate], "share": counts[fate] / total} for fate in order if counts[fate]}}


def retrieval_entry(watched: Watched) -> dict[str, Any]:
    """How the app searched: without any search, failing, repeated and wasted steps, steps and turns, its context."""
    asked = watched.trajectories
    fine = [trajectory for trajectory in asked if trajectory.error is None and shows_its_searches(trajectory)]
    steps = [step for trajectory in asked for step in trajectory.steps]
    repeated = [repeats(trajectory.steps) for trajectory in asked]
    with_query = sum(bool(step.outermost.query.strip()) for step in steps)
    gains = [gain for _, path in watched.labelled() for gain in path.gained]
    known = [trajectory.context for trajectory in asked if trajectory.context is not None]
    cut = [context for context in known if any(passage.truncated for passage in context.passages)]
    return {
        "answered_without": _part(sum(not trajectory.steps for trajectory in fine), len(fine)),
        "failing_steps": _part(sum(step.outermost.error is not None for step in steps), len(steps)),
        "repeated_queries": _part(sum(map(sum, repeated)), with_query),
        "wasted_steps": _part(sum(not gain for gain in gains), len(gains)),
        "steps": _spread([len(trajectory.steps) for trajectory in asked]),
        "turns": _spread([len({step.turn for step in trajectory.steps}) for trajectory in asked]),
        "context": {"known": len(known), "of": len(asked), "truncated": len(cut),
                    "sets": sum(not context.ranked for context in known)},
    }


def repeats(steps: Iterable[Step]) -> list[bool]:
    """Of each step whether its query was asked by an earlier one, letter case, blanks and quotes ignored."""
    asked: set[str] = set()
    found = []
    for step in steps:
        query = " ".join(step.outermost.query.casefold().replace('"', " ").replace("'", " ").split())
        found.append(bool(query) and query in asked)
        asked.add(query)
    return found


def _part(count: int, of: int) -> dict[str, Any]:
    return {"count": count, "of": of, "share": count / of if of else None}


def _spread(counts: Sequence[int]) -> dict[str, Any]:
    if not counts:
        return {"mean": None, "median": None, "max": None}
    return {"mean": fmean(counts), "median": float(median(counts)), "max": max(counts)}


def per_turn(watched: Watched, seed: int = 0) -> dict[str, Any]:
    """Set metrics of the union of each turn's lists, with cumulative recall after it; empty without parallel searches.

    Turns count from 0 within a trajectory, in their order. A turn whose searches all failed has no value, counted.
    Cumulative recall carries its last value forward, as that of steps does.
    """
    if all(len({step.turn for step in t.steps}) == len(t.steps) for t in watched.trajectories):
        return {}
    metrics = parse_all("recall,allhit" if watched.judged else _TURN_METRICS)
    scores: dict[str, dict[str, list[tuple[str, Score]]]] = defaultdict(lambda: defaultdict(list))
    gathered: list[tuple[str, list[float]]] = []  # cumulative recall after each turn
    for trajectory, path in watched.labelled():
        turns = _turns(trajectory.steps)
        unions = [tuple(dict.fromkeys(name for place in places for name in path.steps[place])) for places in turns]
        gathered.append((trajectory.question_id, [
            len(path.relevant.intersection(name for ids in unions[:turn + 1] for name in ids)) / len(path.relevant)
            for turn in range(len(unions))]))
        batch = build_batch([RankedIds("", ids, ranked=False) for ids in unions], {"": path.gold}, level=path.level)
        for turn, (places, line) in enumerate(zip(turns, score_batch(batch, metrics), strict=True)):
            failed = all(path.failed(place) for place in places)
            for metric, score in zip(metrics, line, strict=True):
                shown = Score.failed("all searches of the turn failed") if failed else score
                scores[str(turn)][metric.name].append((trajectory.question_id, shown))
    for turn in range(len(scores)):
        scores[str(turn)]["cumulative_recall"] = [
            (question_id, Score.scored(shares[min(turn, len(shares) - 1)] if shares else 0.0))
            for question_id, shares in gathered]
    labels = "judged" if watched.judged else "gold"
    return {turn: {name: entry_of_scores(found, name, seed, labels) for name, found in scores[turn].items()}
            for turn in sorted(scores, key=int)}


def _turns(steps: Sequence[Step]) -> list[list[int]]:
    """The places of the steps of each turn."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, step in enumerate(steps):
        places[step.turn].append(place)
    return [places[turn] for turn in sorted(places)]


def recall_spread(watched: Watched) -> dict[str, Any]:
    """Quantiles of cumulative recall over trajectories after each step; the last value is carried forward.

    A trajectory without any step stays at 0.
    """
    shares = [path.shares for _, path in watched.labelled()]
    longest = max(map(len, shares), default=0)
    found = {}
    for step in range(longest):
        here = np.array([(one[min(step, len(one) - 1)] if one else 0.0) for one in shares])
        quantiles = np.quantile(here, list(_QUANTILES.values())).tolist()
        found[str(step)] = {**dict(zip(_QUANTILES, quantiles, strict=True)), "n": len(here)}
    return found


def add_ratios(entries: Mapping[str, dict[str, Any]], watched: Watched, metrics: Sequence[Metric],
               seed: int = 0) -> None:
    """Means of metrics that are sums over sums (what a piece of evidence cost): questions resampled together."""
    for metric in metrics:
        parts, entry = metric.definition.ratio, entries.get(metric.name)
        if parts is None or entry is None:
            continue
        pairs = [(trajectory.question_id, parts(path)) for trajectory, path in watched.labelled()
                 if path.cost is not None]
        sums = np.array([pair for _, pair in pairs], dtype=np.float64).reshape(-1, 2)

        def ratio(weights: Any, sums: Any = sums) -> Any:
            above, below = weights @ sums[:, 0], weights @ sums[:, 1]
            return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)

        groups = [question for question, _ in pairs]
        figure = Resampling(len(pairs), groups, seed).of_rows("no evidence found", ratio)
        entry.update(mean=figure.value, low=figure.low, high=figure.high, worst=None, best=None)
