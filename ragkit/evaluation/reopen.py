"""A finished run folder, opened again from its files: plan, trajectories, gold. Asks nobody and computes no score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.evaluation.join import join
from ragkit.evaluation.options import Options
from ragkit.evaluation.result import Plan
from ragkit.evaluation.runfolder import RunFolder, finished_run
from ragkit.evaluation.scoring import Scoring
from ragkit.evaluation.session import Session
from ragkit.evaluation.thresholds import kept_thresholds
from ragkit.evaluation.units import Projection, projection_from_json
from ragkit.judge.gateway import Gateway
from ragkit.judge.open import reopen_judge
from ragkit.judge.settings import JudgeSettings
from ragkit.records.files import read_trajectories
from ragkit.records.trajectory import Trajectory


@dataclass(frozen=True)
class RunParts:
    """What the scores of a run were made of, and run.json."""

    run: Mapping[str, Any]
    plan: Plan
    trajectories: tuple[Trajectory, ...]
    gold: Projection

    def scoring(self) -> Scoring:
        """What was scored: the trajectories that belong to questions of the data set, against the same gold."""
        joined = join(self.plan.dataset, self.trajectories, self.plan.all_questions)
        return self.plan.scoring(joined.trajectories, self.gold)


@dataclass(frozen=True)
class PastRun(RunParts):
    """What a run folder holds, as it was when it was finished."""

    folder: RunFolder


def reopen(run_folder: str | Path) -> PastRun:
    """Open a run folder again; DataError where it is unfinished, holds no texts, or its data set has changed."""
    folder = RunFolder(Path(run_folder))
    run = finished_run(folder.path)
    for key in ("config", "data", "metrics", "projection"):
        if key not in run:
            raise DataError(f"{folder.run}: the key {key!r} is missing; it was made by another version, score it again")
    config, source = run["config"], run["source"]
    if source is None or not run.get("include_text", True):
        raise DataError(f"{folder.path}: was made with --no-text and holds hashes instead of texts, so its report "
                        "cannot be made again; the one it has stands")
    path = folder.path / source["path"] if source["path"] == "dataset" else Path(source["path"])
    options = Options(
        variant=run["variant"], limit=config["limit"], seed=config["seed"], level=config["level"],
        answer_threshold=config["answer_threshold"], all_questions=config.get("all_questions", False),
        threshold=kept_thresholds(run), labels=folder.labels if folder.labels.exists() else (),
        columns=source["columns"] or None, split=source["split"], relevance="judge" if run.get("relevance") else None,
        judge_steps=run.get("judge_steps", False),
    )
    session = Session(path, None, options, {})
    if session.data.fingerprints() != run["data"]:
        raise DataError(f"{path}: is not the data set that {folder.path} was made with any more; score it again")
    plan = session.plan(session.data.limit(options.limit, options.seed), run["metrics"])
    gold = projection_from_json(run["projection"], session.data)
    return PastRun(run, plan, tuple(read_trajectories(folder.trajectories)), gold, folder)


def past_judge(run: Mapping[str, Any]) -> Gateway:
    """The judge of a finished run, as its run.json tells it, over the store that its judgements are in."""
    judge = run["judge"]
    return reopen_judge(judge, JudgeSettings(store=Path(run["store"]), embeddings=judge["embeddings"]))
