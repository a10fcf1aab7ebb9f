"""`ragkit record`: the first half alone: ask the app and keep what it did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragkit.cli import common


def record(
    experiment: Annotated[Path, typer.Argument(metavar="EXPERIMENT.yaml", help="Written by `ragkit init`.")],
    out: common.Out = None,
    only: Annotated[str | None, typer.Option("--variant", help="Record this variant alone.")] = None,
    limit: common.Limit = None,
    seed: common.Seed = None,
) -> None:
    """Ask the app every question and write trajectories.jsonl; score it later with `ragkit score` or `ragkit run`."""
    from ragkit.cli.experiment import ExperimentRun
    from ragkit.evaluation.apps import App
    from ragkit.evaluation.evaluate import run_async
    from ragkit.evaluation.options import options_of
    from ragkit.evaluation.record import record as ask
    from ragkit.evaluation.record import unfinished
    from ragkit.evaluation.session import Session
    from ragkit.pipeline.build import PartCache

    opened, cache, failed = ExperimentRun(experiment, out, limit, seed), PartCache(), 0
    for variant in opened.variants(only):
        options = options_of(opened.options(variant))
        with opened.app(variant, cache) as app, common.progress() as bar:
            session = Session.for_app(app, opened.source, variant.out, options)
            asked = session.data.limit(options.limit, options.seed)
            settings = session.record_settings()
            advance = bar(f"{variant.name}: asking", len(asked.questions) * options.repeats)
            path = variant.out / "trajectories.jsonl"
            system = App(app, options.to_input, options.to_answer)
            with session.working(unfinished(asked.questions, settings, path)):
                done = run_async(ask(system, asked.questions, settings, path, advance))
        errors = [trajectory for trajectory in done if trajectory.error is not None]
        failed += len(errors)
        common.say(f"{variant.name}: {len(done)} trajectories, {len(errors)} failed: {path}")
        for trajectory in errors[:3]:
            common.complain(f"question {trajectory.question_id}: {trajectory.error}")
    if failed:
        raise typer.Exit(common.PARTIAL)
