"""Ask the app every question and keep what it did: concurrency, time-outs, retries, resume. Scores nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tenacity

from ragkit.evaluation.apps import App
from ragkit.recording import Recorder
from ragkit.records.files import append_trajectory, read_trajectories, write_trajectories
from ragkit.records.questions import Question
from ragkit.records.trajectory import Trajectory


@dataclass(frozen=True)
class RecordSettings:
    """How the app is asked. `timeout` is in seconds a question; `retries` is for the app's own rate limits.

    Without `include_text` only hashes of texts reach the disk, so a run that stopped has to ask again.
    """

    repeats: int = 1
    concurrency: int = 4
    timeout: float = 120.0
    retries: int = 3
    include_text: bool = True


async def record(
    app: App,
    questions: Sequence[Question],
    settings: RecordSettings,
    path: Path | None = None,
    on_done: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """The trajectories of all questions and repeats, in the order of the questions.

    With a `path` each finished one is appended at once, and those that a former run finished without an error are not
    asked again. What the app raises, or a time-out, becomes that trajectory's error; the run goes on.
    """
    finished = recorded_before(path, questions)
    wanted = [(question, repeat) for question in questions for repeat in range(settings.repeats)]
    todo = [(question, repeat) for question, repeat in wanted if (question.id, repeat) not in finished]
    if path is not None and todo:
        # Without what failed: its next try must not stand there twice.
        write_trajectories(path, finished.values(), settings.include_text)
    slots = asyncio.Semaphore(settings.concurrency)
    recorder = Recorder()

    async def one(question: Question, repeat: int) -> None:
        async with slots:
            trajectory = await _ask(app, question, repeat, recorder, settings)
        finished[trajectory.key] = trajectory
        if path is not None:
            append_trajectory(path, trajectory, settings.include_text)
        if on_done is not None:
            on_done(trajectory)

    async with asyncio.TaskGroup() as group:
        for question, repeat in todo:
            group.create_task(one(question, repeat))
    trajectories = [finished[question.id, repeat] for question, repeat in wanted]
    if path is not None and todo:
        write_trajectories(path, trajectories, settings.include_text)
    return trajectories


def unfinished(questions: Sequence[Question], settings: RecordSettings, path: Path | None) -> bool:
    """Whether the app has to be asked at all."""
    finished = recorded_before(path, questions)
    return any((question.id, repeat) not in finished for question in questions for repeat in range(settings.repeats))


def recorded_before(path: Path | None, questions: Sequence[Question]) -> dict[tuple[str, int], Trajectory]:
    """What a former run left that need not be asked again: it did not fail, its texts are there, and the question is
    still the same (labels and other questions may change meanwhile)."""
    if path is None or not path.exists():
        return {}
    texts = {question.id: question.text for question in questions}
    kept = read_trajectories(path, allow_torn_tail=True)
    return {t.key: t for t in kept
            if t.error is None and not t.meta.get("no_text") and texts.get(t.question_id) == t.question}


async def _ask(
    app: App, question: Question, repeat: int, recorder: Recorder, settings: RecordSettings
) -> Trajectory:
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(_is_rate_limit),
        wait=_wait,
        stop=tenacity.stop_after_attempt(settings.retries + 1),
        reraise=True,
    )
    trace: Any = None
    try:
        async for attempt in retrying:
            with attempt, recorder.trace(question, repeat=repeat) as trace:
                try:
                    async with asyncio.timeout(settings.timeout) as limit:
                        answer = await app.answer(question)
                except TimeoutError as error:
                    if not limit.expired():  # the app's own time-out, with its own message
                        raise
                    raise AppTimeout(f"no answer within {settings.timeout:g} s") from error
                if answer is not None:
                    trace.answer(answer)
    except Exception:  # the trace keeps it as the trajectory's error; one question must not end the run
        if trace is None:
            raise
    trajectory: Trajectory = trace.trajectory
    return trajectory


class AppTimeout(Exception):  # noqa: N818 -- its name is what the report prints
    """The app did not answer in time."""


def _is_rate_limit(error: BaseException) -> bool:
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    return status == 429 or type(error).__name__ in ("RateLimitError", "TooManyRequests", "ResourceExhausted")


def _wait(state: tenacity.RetryCallState) -> float:
    """The server's Retry-After where it gives one, else an exponential back-off up to 30 s."""
    error = state.outcome.exception() if state.outcome is not None else None
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return float(headers["retry-after"])
    except (KeyError, TypeError, ValueError):
        return float(tenacity.wait_random_exponential(multiplier=1, max=30)(state))
