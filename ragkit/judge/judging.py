"""Samples x metrics -> judgements: what is stored is taken from the store, the rest is asked, each content once.

ragas is loaded only when something is missing. What a metric asks is in ragas_metrics.py, how in gateway.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError, JudgeError, describe
from ragkit.judge.calls import CallError
from ragkit.judge.gateway import Gateway
from ragkit.judge.samples import JudgeSample, judge_text
from ragkit.judge.verdicts import JudgementBook, judgeable
from ragkit.metrics.registry import Metric
from ragkit.models.embeddings import Embedder
from ragkit.records.judgements import Judgement, Score

if TYPE_CHECKING:
    from ragkit.judge.ragas_scores import Ragas

Results = dict[tuple[tuple[Any, ...], str], Judgement]


async def judge_samples(
    gateway: Gateway,
    samples: Sequence[JudgeSample],
    metrics: Iterable[Metric],
    on_done: Callable[[], None] | None = None,
    results: Results | None = None,
) -> Results:
    """Judges each sample by each metric: {(sample key, metric name): judgement}; see `judge_work`."""
    return await judge_work(gateway, [(sample, metric) for sample in samples for metric in metrics], on_done, results)


async def judge_work(
    gateway: Gateway,
    work: Iterable[tuple[JudgeSample, Metric]],
    on_done: Callable[[], None] | None = None,
    results: Results | None = None,
) -> Results:
    """Judges each sample by the metric beside it: {(sample key, metric name): judgement}.

    What is in the store is taken from there, samples of the same content are judged once, and `on_done` is called
    after each (sample, metric). A judgement that failed is in the result with its reason and the raw reply.
    Raises JudgeError (BudgetExceeded where a limit was reached) when the judge cannot be asked on; what was finished
    is in the store, and in `results` where a dict was given.
    """
    found = {} if results is None else results
    book = JudgementBook(gateway)
    missing: dict[str, _Task] = {}
    for sample, metric in judgeable(work):
        ready = book.ready(metric, sample)
        if ready is None:
            key = book.key(metric.name, sample)
            missing.setdefault(key, _Task(metric, sample)).owners.append(sample.key)
        else:
            found[sample.key, metric.name] = ready
            _call(on_done)
    if missing:
        await _judge_missing(book, list(missing.values()), found, on_done)
    return found


@dataclass
class _Task:
    """One judgement to make, and the samples that it is for."""

    metric: Metric
    sample: JudgeSample
    owners: list[tuple[Any, ...]] = field(default_factory=list)


async def _judge_missing(book: JudgementBook, tasks: list[_Task], found: Results,
                         on_done: Callable[[], None] | None) -> None:
    gateway = book.gateway
    from ragkit.judge.ragas_scores import load_ragas

    vendor = load_ragas()
    if any(task.metric.name == "answer_relevancy" for task in tasks):
        await asyncio.to_thread(book.load_embedder)
    await gateway.check(ask=False)
    vectors = Vectors(book.embedder)

    async def one(task: _Task) -> None:
        if gateway.stopped is not None:
            raise gateway.stopped
        judgement = await _judge(book, task, vendor, vectors)
        book.keep(task.metric, task.sample, judgement)
        shared = replace(judgement, n_calls=0, n_stored=judgement.n_calls + judgement.n_stored)
        for place, owner in enumerate(task.owners):
            found[owner, task.metric.name] = shared if place else judgement
            _call(on_done)

    async with gateway.running() as run:
        try:
            await run.slots.in_turn(map(one, _chains_first(tasks, gateway.settings.concurrency)))
        except JudgeError as error:
            raise gateway.stopped or error from None


def _chains_first(tasks: list[_Task], block: int) -> Iterator[_Task]:
    """The tasks in their order, but in each block of so many those whose calls build on another first: the last calls
    of a run are then not a chain that all slots but one wait for."""
    from ragkit.judge.ragas_metrics import CHAINS

    for start in range(0, len(tasks), block):
        yield from sorted(tasks[start:start + block], key=lambda task: task.metric.name not in CHAINS)


async def _judge(book: JudgementBook, task: _Task, vendor: Ragas, vectors: Vectors) -> Judgement:
    from ragkit.judge.ragas_metrics import ASK, Asking

    metric, sample = task.metric, _readable(task.sample)
    ask = Asking(book.gateway, metric.name, {}, vectors)
    try:
        adapted = await book.prompts.ready(metric.name, task.sample.question,
                                           lambda asker: vendor.metric(metric.name, asker))
        ask.prompts = vendor.prompts(metric.name, adapted)
        found = await ASK[metric.name](ask, sample)
        judgement = book.judgement(metric, found, ask.asked, ask.shared)
        return replace(judgement, raw=ask.last) if judgement.score.status == "failed" else judgement
    except JudgeError:
        raise
    except CallError as error:
        score, raw = Score.failed(error.reason), error.raw
    except Exception as error:  # ragas and embedding models raise many types; none of them may end the run
        score, raw = Score.failed(describe(error)[:300]), ask.last
    return Judgement(metric.name, book.gateway.name, score, (), ask.asked, ask.shared, raw)


def _readable(sample: JudgeSample) -> JudgeSample:
    return replace(sample, question=judge_text(sample.question), answer=judge_text(sample.answer or ""),
                   contexts=tuple(map(judge_text, sample.contexts)), reference=judge_text(sample.reference or ""))


class Vectors:
    """Embeds each text once, in a thread: an embedding model must not stop the event loop."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._known: dict[str, asyncio.Task[list[float]]] = {}

    async def of(self, text: str) -> list[float]:
        """The vector of a text, as floats of Python."""
        if text not in self._known:
            self._known[text] = asyncio.create_task(asyncio.to_thread(self._embed, text))
        return await asyncio.shield(self._known[text])

    def _embed(self, text: str) -> list[float]:
        if self._embedder is None:
            raise DataError("answer_relevancy: no embedding model is loaded")
        # Both sides are questions, so both are embedded as one: models with prefixes tell queries from passages.
        return [float(value) for value in self._embedder.embed_query(text)]


def _call(on_done: Callable[[], None] | None) -> None:
    if on_done is not None:
        on_done()
