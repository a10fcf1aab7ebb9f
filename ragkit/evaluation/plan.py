"""What a run would cost before it is made: questions, app calls, judge calls. Asks nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit.evaluation.defaults import wanted_metrics
from ragkit.evaluation.join import join
from ragkit.evaluation.judged_rows import judge_samples_of
from ragkit.evaluation.options import Options
from ragkit.evaluation.scoring import Scoring
from ragkit.evaluation.session import open_dataset
from ragkit.evaluation.units import project
from ragkit.metrics.judged import model_calls
from ragkit.metrics.registry import Metric
from ragkit.records.files import read_trajectories


def judge_calls(metrics: Sequence[Metric], contexts: Sequence[int]) -> dict[str, int]:
    """Model calls by judged metric for samples with so many contexts each, before any is shared or stored.

    >>> from ragkit.metrics.registry import parse_all
    >>> judge_calls(parse_all("context_precision,faithfulness"), [5, 3])
    {'context_precision': 8, 'faithfulness': 4}
    """
    found = {}
    for metric in metrics:
        if metric.definition.kind == "judged":
            found[metric.name] = sum(model_calls(metric.definition.calls, k) for k in contexts)
    return found


def plan_lines(counts: Mapping[str, int], calls: Mapping[str, int], judge: str | None) -> list[str]:
    """The plan in words, a line a fact."""
    lines = [f"{what}: {count}" for what, count in counts.items()]
    if not calls:
        return [*lines, "judge calls: 0 (no judged metric)"]
    if judge is None:
        return [*lines, "judge calls: 0 (no judge; the judged metrics stay listed as such)"]
    each = ", ".join(f"{name} {count}" for name, count in calls.items())
    return [*lines, f"judge: {judge}", f"judge calls: at most {sum(calls.values())} ({each})"]


def describe_scoring(
    trajectories: Path, source: Any, metrics: Sequence[str] | None, judge: str | None, options: Options
) -> list[str]:
    """What `ragkit score` would do: how many trajectories fit the data set, and what a judge would be asked."""
    data = open_dataset(source, options)
    joined = join(data, read_trajectories(trajectories), options.all_questions)
    wanted = wanted_metrics(metrics, options.k_values)
    scoring = Scoring("plan", data, joined.trajectories, project(data, joined.trajectories), wanted, options.level)
    contexts = [len(sample.contexts) for sample in judge_samples_of(scoring)]
    counts = {"trajectories": len(joined.trajectories), "questions": len({t.question_id for t in joined.trajectories}),
              "metrics": len(wanted)}
    return [*plan_lines(counts, judge_calls(wanted, contexts), judge), *joined.notes]
