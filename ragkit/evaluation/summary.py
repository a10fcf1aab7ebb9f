"""summary.json: means with intervals and counts, at the end, per step, per category. Renders nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median, quantiles
from typing import Any

from ragkit.evaluation.table import FINAL, ScoreRow
from ragkit.metrics.registry import Metric, parse
from ragkit.metrics.statistics import summarize
from ragkit.records.judgements import Score
from ragkit.records.trajectory import Trajectory

SCHEMA = "ragkit.summary/1"
NO_CATEGORY = "(no category)"
_REACHED = ("steps_to_evidence", "overrun", "first_relevant_rank")  # undefined where it never came to that


def build_summary(
    variant: str,
    rows: Sequence[ScoreRow],
    metrics: Sequence[Metric],
    label_states: Mapping[str, str],
    stopped: Mapping[tuple[str, int], Score | None],
    seed: int = 0,
) -> dict[str, Any]:
    """The summary of one variant, without outcomes, app and judge, which the caller adds.

    `stopped` says for every trajectory what its cumulative recall is at a step that it did not take (None: its last).
    """
    final = [row for row in rows if row.step == FINAL]
    asked = {question_id for question_id, _ in stopped}
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
        "per_step": _per_step(rows, stopped, seed),
        "categories": {name: _entries(part, names, seed) for name, part in sorted(categories.items())},
        "outcomes": {},
        "app": {},
        "judge": {},
    }


def _entries(rows: Iterable[ScoreRow], names: Sequence[str], seed: int) -> dict[str, Any]:
    by_metric: dict[str, list[ScoreRow]] = defaultdict(list)
    for row in rows:
        by_metric[row.metric].append(row)
    return {name: _entry(by_metric[name], name, seed) for name in names if by_metric[name]}


def _entry(rows: Sequence[ScoreRow], name: str, seed: int) -> dict[str, Any]:
    scores = [(row.question_id, row.score) for row in rows]
    labels = next((row.labels for row in rows if row.labels != "none"), "none")
    return entry_of_scores(scores, name, seed, labels)


def entry_of_scores(scores: Sequence[tuple[str, Score]], name: str, seed: int, labels: str) -> dict[str, Any]:
    """One metric over (question id, score) pairs: repeats are averaged per question first."""
    definition = parse(name).definition
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
        "labels": labels,
        "reasons": _reasons(scores),
        **(_reached(scores, seed) if definition.name in _REACHED else {}),
    }


def _reached(scores: Sequence[tuple[str, Score]], seed: int) -> dict[str, Any]:
    """How many ever got there, with the interval of that share, and the median of those that did."""
    counted = [(question_id, score) for question_id, score in scores
               if score.value is not None or score.reason == "not reached"]
    share = summarize([(q, Score.scored(score.value is not None)) for q, score in counted], (0, 1), seed=seed)
    values = [score.value for _, score in counted if score.value is not None]
    return {"share": {"mean": share.mean, "low": share.low, "high": share.high},
            "median": float(median(values)) if values else None}


def _reasons(scores: Sequence[tuple[str, Score]]) -> dict[str, int]:
    """Why questions have no value: a reason a question, of a repeat that failed before one that is undefined."""
    questions: dict[str, list[Score]] = defaultdict(list)
    for question_id, score in scores:
        questions[question_id].append(score)
    missing = (repeats for repeats in questions.values() if all(score.status != "scored" for score in repeats))
    first = (next((r for r in repeats if r.status == "failed"), repeats[0]) for repeats in missing)
    return dict(Counter(str(score.reason) for score in first).most_common())


def _per_step(
    rows: Sequence[ScoreRow], stopped: Mapping[tuple[str, int], Score | None], seed: int
) -> dict[str, Any]:
    """Per step over the trajectories that reached it; cumulative recall carries its last value forward."""
    steps: dict[str, list[ScoreRow]] = defaultdict(list)
    for row in rows:
        if row.step != FINAL:
            steps[row.step].append(row)
    order = sorted(steps, key=int)
    names = list(dict.fromkeys(row.metric for row in rows if row.step != FINAL))
    if "cumulative_recall" in names:
        for row in _carried(rows, order, stopped):
            steps[row.step].append(row)
    return {step: _entries(steps[step], names, seed) for step in order}


def _carried(
    rows: Sequence[ScoreRow], order: Sequence[str], stopped: Mapping[tuple[str, int], Score | None]
) -> list[ScoreRow]:
    """Rows of cumulative recall for the steps that a shorter trajectory did not take."""
    taken: dict[tuple[str, int], dict[str, ScoreRow]] = defaultdict(dict)
    for row in rows:
        if row.metric == "cumulative_recall" and row.step != FINAL:
            taken[row.question_id, row.repeat][row.step] = row
    example = next(iter(next(iter(taken.values())).values()))
    result = []
    for key, score in stopped.items():
        own = taken[key]
        last = own[max(own, key=int)] if own else example._replace(question_id=key[0], repeat=key[1])
        if score is not None:
            last = last._replace(value=score.value, status=score.status, reason=score.reason)
        result += [last._replace(step=step) for step in order if step not in own]
    return result


def app_entry(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
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
