"""summary.json: means with intervals and counts, at the end, per step, per category. Renders nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, quantiles
from typing import Any

from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.metrics.registry import Metric, parse
from ragkit.metrics.statistics import summarize
from ragkit.records.trajectory import Trajectory

SCHEMA = "ragkit.summary/1"
NO_CATEGORY = "(no category)"


def build_summary(
    variant: str,
    rows: Sequence[ScoreRow],
    metrics: Sequence[Metric],
    trajectories: Sequence[Trajectory],
    label_states: Mapping[str, str],
    seed: int = 0,
) -> dict[str, Any]:
    """The summary of one variant, without outcomes and judge, which the caller adds."""
    final = [row for row in rows if row.step == FINAL]
    asked = {trajectory.question_id for trajectory in trajectories}
    names = [metric.name for metric in metrics if not metric.definition.series]
    categories: dict[str, list[ScoreRow]] = defaultdict(list)
    for row in final:
        categories[row.category if row.category is not None else NO_CATEGORY].append(row)
    return {
        "schema": SCHEMA,
        "variant": variant,
        "questions": {"asked": len(asked)}
        | {state: sum(label_states[q] == state for q in asked) for state in ("labelled", "unanswerable", "unlabelled")},
        "metrics": _entries(final, names, seed),
        "per_step": _per_step(rows, trajectories, label_states, seed),
        "categories": {name: _entries(part, names, seed) for name, part in sorted(categories.items())},
        "outcomes": {},
        "app": _app(trajectories),
        "judge": {},
    }


def _entries(rows: Iterable[ScoreRow], names: Sequence[str], seed: int) -> dict[str, Any]:
    by_metric: dict[str, list[ScoreRow]] = defaultdict(list)
    for row in rows:
        by_metric[row.metric].append(row)
    return {name: _entry(by_metric[name], name, seed) for name in names if by_metric[name]}


def _entry(rows: Sequence[ScoreRow], name: str, seed: int) -> dict[str, Any]:
    """One metric over questions: repeats are averaged per question first."""
    definition = parse(name).definition
    scores = [(row.question_id, row.score) for row in rows]
    interval = summarize(scores, definition.range, seed=seed, direction=definition.direction)
    return {
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "worst": interval.worst,
        "best": interval.best,
        "n_scored": interval.n_scored,
        "n_asked": interval.n_asked,
        "n_undefined": interval.n_undefined,
        "n_failed": interval.n_failed,
        "labels": next((row.labels for row in rows if row.labels != "none"), "none"),
        "reasons": dict(Counter(row.reason for row in rows if row.status != "scored").most_common()),
    }


def _per_step(
    rows: Sequence[ScoreRow], trajectories: Sequence[Trajectory], label_states: Mapping[str, str], seed: int
) -> dict[str, Any]:
    """Per step over the trajectories that reached it; cumulative recall carries its last value forward."""
    outermost = {(t.key, str(s.index)): s.outermost.stage for t in trajectories for s in t.steps}
    steps: dict[str, list[ScoreRow]] = defaultdict(list)
    for row in rows:
        if row.step != FINAL and outermost.get(((row.question_id, row.repeat), row.step)) == row.stage:
            steps[row.step].append(row)
    order = sorted(steps, key=int)
    for row in _carried(rows, order, trajectories, label_states):
        steps[row.step].append(row)
    names = list(dict.fromkeys(row.metric for row in rows if row.step != FINAL))
    return {step: _entries(steps[step], names, seed) for step in order}


def _carried(
    rows: Sequence[ScoreRow], order: Sequence[str], trajectories: Sequence[Trajectory], label_states: Mapping[str, str]
) -> list[ScoreRow]:
    """Rows of cumulative recall for the steps that a shorter trajectory did not take; without any step it is 0."""
    last: dict[tuple[str, int], ScoreRow] = {}
    for seen in rows:
        if seen.metric == "cumulative_recall" and seen.step != FINAL:
            key = (seen.question_id, seen.repeat)
            if key not in last or int(seen.step) > int(last[key].step):
                last[key] = seen
    if not last:
        return []
    example = next(iter(last.values()))
    result = []
    for trajectory in trajectories:
        row: ScoreRow | None = last.get(trajectory.key)
        if row is None and label_states[trajectory.question_id] == "labelled":
            row = example._replace(question_id=trajectory.question_id, repeat=trajectory.repeat, step="-1",
                                   value=0.0, status="scored", reason=None)
        if row is not None:
            result += [row._replace(step=step) for step in order if int(step) > int(row.step)]
    return result


def _app(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """Latency, tokens and cost of the app under test, null where it was not recorded."""
    times = [t.ms for t in trajectories if t.ms is not None]
    usage: Counter[str] = Counter()  # sums, of floats too
    for trajectory in trajectories:
        usage.update(trajectory.usage)
    tokens = {name: usage[f"{name}_tokens"] for name in ("input", "output") if f"{name}_tokens" in usage}
    spread = None
    if times:
        cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else times * 19
        spread = {"mean": fmean(times), "median": cuts[9], "p95": cuts[18], "n": len(times)}
    return {"ms": spread, "tokens": tokens or None, "cost": usage.get("cost")}
