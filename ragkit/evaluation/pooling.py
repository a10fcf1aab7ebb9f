"""Runs scored again on one pool of judged labels: what was found relevant in one of them counts in all. Asks nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ragkit.evaluation.reopen import past_judge
from ragkit.evaluation.result import Evaluation, assemble
from ragkit.evaluation.units import projection_from_json


def pool_fingerprint(evaluation: Evaluation) -> str | None:
    """Which pool the judged labels of a run are of; None where it has none."""
    entry = evaluation.summary.get("judged_labels")
    return None if entry is None else str(entry["pool"]["fingerprint"])


async def on_one_pool(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The runs, those with judged labels scored on the union of what their judgement stores hold.

    Runs compare only so: a list is not held against passages that another run found and this one's pool lacks. A run
    without judged labels, or whose judgements were kept in memory alone, comes back as it is, and so do all where the
    pools are the same already. Labels of different judges are not pooled. Nothing is written.
    """
    stores = {Path(e.run["store"]) for e in evaluations if pool_fingerprint(e) is not None and e.run.get("store")}
    known = tuple(sorted(path for path in stores if path.exists()))
    if len({pool_fingerprint(evaluation) for evaluation in evaluations} - {None}) < 2:
        return list(evaluations)
    return [await _again(evaluation, known) if _can_be(evaluation, known) else evaluation for evaluation in evaluations]


def _can_be(evaluation: Evaluation, stores: Sequence[Path]) -> bool:
    return pool_fingerprint(evaluation) is not None and Path(evaluation.run.get("store") or "") in stores


async def _again(evaluation: Evaluation, stores: tuple[Path, ...]) -> Evaluation:
    run, plan = evaluation.run, replace(evaluation.plan, stores=stores, earlier=None)
    with past_judge(run) as gateway:
        gold = projection_from_json(run["projection"], plan.dataset)
        made = await assemble(plan, evaluation.trajectories, gateway, run, gold)
    before = evaluation.summary
    summary = {**before, **made.summary, "judge": before["judge"]}  # what it cost to judge does not change
    return replace(made, plan=replace(plan, stores=())).with_summary(summary)
