"""What a run would cost before it is made: questions, app calls, judge calls. Asks nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragkit.evaluation.score import Scoring
from ragkit.metrics.registry import Metric


def judge_calls(metrics: Sequence[Metric], contexts: Sequence[int]) -> dict[str, int]:
    """Model calls by judged metric for samples with so many contexts each, before any is shared or stored.

    >>> from ragkit.metrics.registry import parse_all
    >>> judge_calls(parse_all("context_precision,faithfulness"), [5, 3])
    {'context_precision': 8, 'faithfulness': 4}
    """
    found = {}
    for metric in metrics:
        if metric.definition.kind == "judged":
            formula = metric.definition.calls
            found[metric.name] = sum(k if formula == "k" else int(formula) for k in contexts)
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


def contexts_of(scoring: Scoring) -> list[int]:
    """How many contexts each sample would be judged with."""
    from ragkit.evaluation.result import judge_samples_of

    return [len(sample.contexts) for sample in judge_samples_of(scoring)]
