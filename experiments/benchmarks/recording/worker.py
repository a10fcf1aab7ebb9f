"""One measurement of one contender in this process; prints JSON: CPU seconds a call (user and system, all threads),
which other work on the machine disturbs least, or memory."""

from __future__ import annotations

import contextlib
import gc
import json
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parts import AtOnceStore, chain, retriever

BLOCKS, CALLS = 200, 10  # ten searches a trace


def seconds_a_call(call: Callable[[], Any], around: Callable[[], Any] = contextlib.nullcontext) -> float:
    """The median over blocks of calls; what opens and closes around a block is not in it."""
    found = []
    for block in range(BLOCKS + 20):
        with around():
            begun = time.process_time()
            for _ in range(CALLS):
                call()
            taken = (time.process_time() - begun) / CALLS
        if block >= 20:
            found.append(taken)
    return statistics.median(found)


def seconds_a_question(ask: Callable[[str], Any], count: int = 300) -> float:
    """The median time of one question, with everything that is done for it."""
    found = []
    for number in range(count + 20):
        begun = time.process_time()
        ask(f"Question number {number % 50}?")
        if number >= 20:
            found.append(time.process_time() - begun)
    return statistics.median(found)


def plain(part: str) -> float:
    if part == "callback":
        one = retriever()
        return seconds_a_call(lambda: one.invoke("a query"))
    if part == "store":
        store = AtOnceStore()
        return seconds_a_call(lambda: store.similarity_search_with_score("a query", k=10))
    app, _ = chain()
    return seconds_a_question(app.invoke)


def ragkit(part: str) -> float:
    from ragkit import Recorder

    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder) / "t.jsonl")
        if part == "callback":
            one = retriever()
            return seconds_a_call(lambda: one.invoke("a query"), lambda: recorder.trace("q"))
        if part == "store":
            store = AtOnceStore()
            recorder.instrument(store)
            return seconds_a_call(lambda: store.similarity_search_with_score("a query", k=10),
                                  lambda: recorder.trace("q"))
        app, store = chain()
        recorder.instrument(store)

        def ask(question: str) -> None:
            with recorder.trace(question):
                app.invoke(question)

        return seconds_a_question(ask)


def ragkit_outside(part: str) -> float:
    """The recorder is there and the store is watched, but no trace is open."""
    from ragkit import Recorder

    recorder = Recorder()
    with recorder.trace("installs the hook"):
        pass
    if part == "callback":
        one = retriever()
        return seconds_a_call(lambda: one.invoke("a query"))
    if part == "store":
        store = AtOnceStore()
        recorder.instrument(store)
        return seconds_a_call(lambda: store.similarity_search_with_score("a query", k=10))
    app, store = chain()
    recorder.instrument(store)
    return seconds_a_question(app.invoke)


def openinference(part: str) -> float:
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Nowhere()))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    if part == "store":
        return float("nan")  # it sees callbacks alone
    return plain(part)


def memory(traces: int) -> dict[str, float]:
    """What grows from a tenth of the traces to all of them, in Python's allocated blocks and in the resident set: with
    a hundred questions that are asked again and again, and with questions that all differ."""
    from ragkit import Recorder
    from ragkit.recording import attribution

    app, store = chain(passages=20)
    held: dict[str, float] = {}
    for name, different in (("a hundred again and again", 100), ("all different", traces)):
        with tempfile.TemporaryDirectory() as folder:
            recorder = Recorder(Path(folder) / "t.jsonl")
            recorder.instrument(store)
            for number in range(traces):
                question = f"Question number {number % different}?"
                with recorder.trace(question):
                    app.invoke(question)
                if number == traces // 10:
                    early, resident = _held(), _resident()
            held[f"{name}: blocks a trace"] = (_held() - early) / (traces * 0.9)
            held[f"{name}: resident KiB in all"] = (_resident() - resident) / 1024
            recorder.uninstrument(store)
    held["traces held as live"] = len(attribution._live)
    return held


def _held() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> None:
    contender, part = sys.argv[1:3]
    warnings.simplefilter("ignore")
    if part == "memory":
        found: Any = memory(int(sys.argv[3]))
    else:
        ways = {"plain": plain, "ragkit": ragkit, "ragkit, no trace": ragkit_outside, "OpenInference": openinference}
        found = ways[contender](part)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
