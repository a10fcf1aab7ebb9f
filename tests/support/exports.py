"""One run of a real app, seen three ways: live, as OpenInference spans, and as LangSmith runs. Written to files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ragkit.recording import Recorder
from ragkit.records.questions import Question
from ragkit.records.trajectory import Retrieval, Trajectory


@dataclass
class Seen:
    """The live trajectory, and the spans and runs as their own tools write them, a JSON text each."""

    live: Trajectory
    spans: list[str]
    runs: list[str]

    def write(self, folder: Path) -> tuple[Path, Path]:
        """(file of span JSON lines, file of run JSON lines)."""
        spans, runs = folder / "spans.jsonl", folder / "runs.jsonl"
        spans.write_text("\n".join(self.spans) + "\n", encoding="utf-8")
        runs.write_text("\n".join(self.runs) + "\n", encoding="utf-8")
        return spans, runs


@contextmanager
def instrumented() -> Iterator[Any]:
    """OpenInference's instrumentor at work; yields the exporter that keeps the spans, in their order of end."""
    instrumentation = pytest.importorskip("openinference.instrumentation.langchain")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = instrumentation.LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        yield exporter
    finally:
        instrumentor.uninstrument()


def watch(question: Question | str, ask: Callable[[dict[str, Any]], Any]) -> Seen:
    """Runs `ask(config)` once inside a live trace; the app must be invoked with that config. Its errors are kept."""
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
    from langsmith._internal._serde import dumps_json

    collector = RunCollectorCallbackHandler()
    recorder = Recorder()
    with instrumented() as exporter:
        try:
            with recorder.trace(question) as trace:
                ask({"callbacks": [collector]})
        except RuntimeError:
            assert trace.error is not None
        spans = [span.to_json(indent=None) for span in exporter.get_finished_spans()]
    return Seen(trace.trajectory, spans, [dumps_json(plain_run(run)).decode() for run in collector.traced_runs])


def plain_run(run: Any) -> dict[str, Any]:
    """A run in the fields that LangSmith stores."""
    names = ("id", "name", "run_type", "inputs", "outputs", "start_time", "end_time", "error", "extra", "tags",
             "parent_run_id", "trace_id", "dotted_order")
    plain = {name: getattr(run, name) for name in names}
    return {**plain, "child_runs": [plain_run(child) for child in run.child_runs]}


def flat_runs(runs: list[str]) -> list[dict[str, Any]]:
    """The same runs as `list_runs` gives them: one row each, in no order that a reader may count on."""
    waiting, rows = [json.loads(run) for run in runs], []
    while waiting:
        run = waiting.pop()
        waiting.extend(run.pop("child_runs"))
        rows.append(run)
    return rows[::-1]


def story(trajectory: Trajectory) -> dict[str, Any]:
    """What a trajectory says of an app, without times and without where it came from."""
    return {
        "question": trajectory.question,
        "steps": [(step.index, step.turn, [_list(found) for found in step.retrievals]) for step in trajectory.steps],
        "context": None if trajectory.context is None else _list(trajectory.context),
        "answer": trajectory.answer,
        "error": trajectory.error,
        "usage": dict(trajectory.usage),
        **{name: trajectory.meta[name] for name in ("failed_tools", "across_steps", "notices", "warnings")
           if name in trajectory.meta},
    }


def _list(found: Retrieval) -> tuple[Any, ...]:
    passages = [(one.id, one.text, one.doc_id, dict(one.metadata)) for one in found.passages]
    return found.stage, found.name, found.query, found.ranked, found.error, passages
