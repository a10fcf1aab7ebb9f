"""Runs scored again on one pool of judged labels: what was found relevant in one of them counts in all. Asks nobody.

Which folders hold another pool is told here, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ragkit.evaluation.assemble import assemble
from ragkit.evaluation.reopen import past_judge
from ragkit.evaluation.result import Evaluation
from ragkit.evaluation.runfolder import COMPLETE, RUNNING, RunFolder, read_run
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


def save_pooled(evaluation: Evaluation, folder: RunFolder, include_text: bool = True) -> None:
    """Write a folder again, with its lock, as one that is not finished until all of it is there.

    DataError where another run has it by now.
    """
    with folder.locked():
        folder.write_run({**evaluation.run, "state": RUNNING})
        evaluation.save(folder, include_text)


def of_another_pool(evaluation: Evaluation, folders: Mapping[str, RunFolder]) -> list[str]:
    """The names of the finished runs in these folders that have judged labels, but not of this run's pool."""
    own, found = pool_fingerprint(evaluation), []
    for name, folder in folders.items():
        run = read_run(folder.path) if own is not None and folder.run.exists() else {}
        same = run.get("state") == COMPLETE and run.get("judge") == evaluation.run["judge"]
        if same and run.get("relevance") and run["relevance"]["fingerprint"] != own:
            found.append(name)
    return found


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
