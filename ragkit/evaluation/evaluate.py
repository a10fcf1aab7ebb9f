"""The main job as one call: record, judge, score, report. The sync functions are thin wrappers of the async ones."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ragkit.errors import DataError
from ragkit.evaluation.apps import App
from ragkit.evaluation.assemble import assemble
from ragkit.evaluation.join import join
from ragkit.evaluation.options import Options, options_of
from ragkit.evaluation.record import record, unfinished
from ragkit.evaluation.reopen import past_judge, reopen
from ragkit.evaluation.result import Evaluation, Plan
from ragkit.evaluation.session import Session
from ragkit.records.files import read_trajectories, trajectory_to_json
from ragkit.records.trajectory import Trajectory

_T = TypeVar("_T")


async def aevaluate(
    app: Any,
    dataset: Any,
    *,
    metrics: str | Sequence[str] | None = None,
    judge: Any = None,
    out: str | Path | None = None,
    **options: Any,
) -> Evaluation:
    """Ask the app every question, score what it did, and write the run folder `out` where one is named.

    `app`: any function of the question's text (sync or async), LangChain Runnable, LangGraph graph or pipeline.
    `dataset`: a folder, a file, a DataFrame, or whatever `load_dataset` reads. `metrics`: names, the default ones where
    None. `judge`: "provider:model" or a LangChain chat model; without one the judged metrics stay listed as such.
    `options` are the fields of Options. An existing `out` resumes; what the app raises is that question's error.
    Raises DataError for wrong input and JudgeError where the judge cannot be reached, both before any work.
    """
    chosen = options_of(options)
    system = App(app, chosen.to_input, chosen.to_answer)
    session = Session.for_app(app, dataset, out, chosen)
    asked = session.data.limit(chosen.limit, chosen.seed)
    plan = session.plan(asked, metrics)
    settings = session.record_settings()
    path = session.folder.trajectories if session.folder is not None else None
    async with session.judging(judge) as gateway:
        asks = unfinished(asked.questions, settings, path)
        if gateway is not None and asks:
            await gateway.check()  # before the app is asked for nothing
        with session.working(asks):
            trajectories = await record(system, asked.questions, settings, path, chosen.on_recorded)
            more = {"fingerprints": getattr(app, "fingerprints", None), "app_notes": list(getattr(app, "notes", ()))}
            trajectories = session.ended(trajectories)
            return await session.finish(plan, trajectories, gateway, getattr(app, "passages", None), more)


async def ascore(
    trajectories: str | Path | Sequence[Trajectory],
    dataset: Any,
    *,
    metrics: str | Sequence[str] | None = None,
    judge: Any = None,
    out: str | Path | None = None,
    **options: Any,
) -> Evaluation:
    """Score trajectories that were recorded anywhere; see `aevaluate` for the arguments.

    In an existing `out` the metrics that it already holds are kept and new ones are added; trajectories that differ
    from those it holds are refused.
    """
    session, plan, given = prepare_scoring(trajectories, dataset, metrics, out, options_of(options))
    async with session.judging(judge) as gateway:
        with session.working():
            return await session.finish(plan, given, gateway)


def prepare_scoring(
    trajectories: str | Path | Sequence[Trajectory],
    dataset: Any,
    metrics: str | Sequence[str] | None,
    out: str | Path | None,
    chosen: Options,
) -> tuple[Session, Plan, list[Trajectory]]:
    """What `ascore` works with, read and held against each other before any work."""
    given = read_trajectories(trajectories) if isinstance(trajectories, (str, Path)) else list(trajectories)
    identity = {"all_questions": chosen.all_questions, "trajectories": _digest(given)}
    session = Session(dataset, out, chosen, identity)
    asked = session.data.limit(chosen.limit, chosen.seed)
    if chosen.limit is not None:
        given = [trajectory for trajectory in given if trajectory.question_id in asked.by_id]
    plan = session.plan(asked, metrics)
    join(asked, given, chosen.all_questions)
    if any(trajectory.meta.get("no_text") for trajectory in given):
        raise DataError("trajectories: hold hashes instead of texts (--no-text), so answers cannot be scored; record "
                        "them with their texts")
    return session, plan, session.ended(given)


async def areport(run_folder: str | Path, questions: int | None = None) -> Evaluation:
    """Build the report of a run folder again, from its files: asks neither the app nor the judge.

    `questions` is how many the page shows in full, the worst first; by default as many as every report does.
    """
    past = reopen(run_folder)
    run, plan = past.run, past.plan if questions is None else replace(past.plan, shown=questions)
    if run["judge"] is None:
        return await assemble(plan, past.trajectories, None, run, past.gold)
    with past_judge(run) as gateway:
        return await assemble(plan, past.trajectories, gateway, run, past.gold)


def evaluate(app: Any, dataset: Any, **arguments: Any) -> Evaluation:
    """`aevaluate` for callers without an event loop; inside one it works too, on a thread of its own.

    >>> rows = [{"id": "q1", "question": "Capital of France?", "reference": "Paris"}]
    >>> result = evaluate(lambda question: "Paris", rows, metrics="exact_match")
    >>> result.summary["metrics"]["exact_match"]["mean"]
    1.0
    """
    return run_async(aevaluate(app, dataset, **arguments))


def score(trajectories: str | Path | Sequence[Trajectory], dataset: Any, **arguments: Any) -> Evaluation:
    """`ascore` for callers without an event loop; inside one it works too, on a thread of its own."""
    return run_async(ascore(trajectories, dataset, **arguments))


def run_async(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end on a loop of its own: here, or on another thread where this one has a running loop already."""
    if not _loop_is_running():
        return asyncio.run(work)
    outcome: list[_T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target, name="ragkit-evaluate")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _digest(trajectories: Sequence[Trajectory]) -> str:
    """Tells one recording from another; in one folder it may not change."""
    digest = hashlib.sha256()
    for trajectory in trajectories:
        digest.update(json.dumps(trajectory_to_json(trajectory), sort_keys=True).encode())
    return digest.hexdigest()[:16]

