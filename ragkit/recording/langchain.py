"""LangChain's and LangGraph's callbacks -> the log of the running trace. Reads what passes by and changes nothing."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, cast
from uuid import UUID

from ragkit.errors import DataError, describe
from ragkit.recording.answers import content_text
from ragkit.recording.attribution import is_live, locate, log_of, open_frame, open_frame_var
from ragkit.recording.log import Frame, Log, Prompt, Run
from ragkit.recording.passages import as_passages, documents_in
from ragkit.recording.turns import is_node

_installed = threading.Event()
_lock = threading.Lock()


def install_hook() -> bool:
    """Makes every callback manager of this process carry the handler while a trace is open, once; False without
    langchain_core. Whose trace an event belongs to is decided when it comes."""
    if _installed.is_set():
        return True
    with _lock:
        if _installed.is_set():
            return True
        if importlib.util.find_spec("langchain_core") is None:
            return False
        from langchain_core.callbacks.base import BaseCallbackHandler
        from langchain_core.tracers.context import register_configure_hook

        kind = type("RagkitHandler", (CallbackEvents, BaseCallbackHandler), {})
        # The class, too: LangChain asks twice, and the last trace may end between the two.
        register_configure_hook(cast("ContextVar[Any]", WhileLive(kind())), inheritable=True, handle_class=kind)
        _installed.set()
        return True


class WhileLive:
    """Stands where LangChain reads a context variable. Raw threads, which start with an empty context, find the handler
    in it too, and outside of any trace there is none, which costs nothing."""

    def __init__(self, handler: Any) -> None:
        self._handler = handler

    def get(self) -> Any:
        """The handler, or None while no trace is open."""
        return self._handler if is_live() else None


class CallbackEvents:
    """The callback methods, mixed with LangChain's base class once that is loaded."""

    raise_error = False
    run_inline = True  # in the caller's own context, also when async: attribution and order hang on it

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        _begin(run_id, "chain", inputs, kwargs)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        log, run = _ended(run_id)
        if log is None or run is None:
            return
        if run.parent not in log.runs:
            log.outputs.append(("chain", outputs))
        for inputs, documents in lists_of(log, run, outputs):
            frame = _late_frame(log, run, "node", documents)
            frame.inputs = as_passages(inputs)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        _ended(run_id, error)

    def on_llm_start(self, serialized: Any, prompts: Sequence[str], *, run_id: UUID, **kwargs: Any) -> None:
        self._model_start([("human", prompt) for prompt in prompts], run_id, kwargs)

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:
        flat = [message for batch in messages for message in batch]
        self._model_start([(str(one.type), content_text(one.content)) for one in flat], run_id, kwargs)

    def _model_start(self, messages: list[tuple[str, str]], run_id: UUID, kwargs: dict[str, Any]) -> None:
        log = _begin(run_id, "llm", None, kwargs, asked={"messages": [text for _, text in messages]})
        if log is not None:
            log.prompts.append(Prompt(run_id, messages))

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        log, run = _ended(run_id)
        prompt = next((one for one in reversed(log.prompts) if one.run_id == run_id), None) if log else None
        if log is None or run is None or prompt is None:
            return
        generation = next((one for batch in response.generations for one in batch), None)
        message = getattr(generation, "message", None)
        prompt.output = getattr(generation, "text", None) if message is None else content_text(message.content)
        calls = getattr(message, "tool_calls", None) or ()
        prompt.calls = tuple((str(call.get("id") or ""), str(call.get("name") or "")) for call in calls)
        log.add_usage(_usage(response))
        if run.parent not in log.runs:
            log.outputs.append(("llm", prompt.output))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        _ended(run_id, error)

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, **kwargs: Any) -> None:
        inputs = kwargs.pop("inputs", None)
        if kwargs.get("name") is None and isinstance(serialized, Mapping):
            kwargs["name"] = serialized.get("name")
        log = _begin(run_id, "tool", inputs or input_str, kwargs)
        if log is not None:
            log.runs[run_id].call_id = kwargs.get("tool_call_id")

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        log, run = _ended(run_id)
        if log is None or run is None:
            return
        run.call_id = run.call_id or getattr(output, "tool_call_id", None)
        artifact = getattr(output, "artifact", None)
        found = output if artifact is None else artifact
        if documents_in(found) or (isinstance(found, list) and not found):
            _late_frame(log, run, "tool", found)

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **kwargs: Any) -> None:
        parent = kwargs.get("parent_run_id")
        name = kwargs.get("name") or (serialized or {}).get("name") or "retriever"
        frame = open_frame("retriever", str(name), str(query), parent_run=parent, asked=query)
        if frame is None:
            return
        metadata = dict(kwargs.get("metadata") or {})
        run = Run(run_id, parent, "retriever", str(name), metadata, query, frame.guessed, frame=frame)
        frame.log.runs[run_id] = run
        open_frame_var.set(frame)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        frame = _leave(run_id)
        if frame is not None:
            try:
                frame.close(as_passages(documents))
            except DataError as error:
                frame.close(error=error)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        frame = _leave(run_id, error)
        if frame is not None:
            frame.close(error=error)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        log, run = _ended(run_id, error)
        if log is not None and run is not None:
            log.failed_tools.append((run.name, describe(error)))


def _begin(
    run_id: UUID, kind: Literal["chain", "llm", "tool"], inputs: Any, kwargs: dict[str, Any], asked: Any = None
) -> Log | None:
    parent = kwargs.get("parent_run_id")
    log, guessed = locate(parent, is_list=False, asked=inputs if asked is None else asked)
    if log is None:
        return None
    name, metadata = str(kwargs.get("name") or ""), dict(kwargs.get("metadata") or {})
    with log.lock:
        log.runs[run_id] = Run(run_id, parent, kind, name, metadata, inputs, guessed)
    return log


def _ended(run_id: UUID, error: BaseException | None = None) -> tuple[Log | None, Run | None]:
    log = log_of(run_id)
    if log is None:
        return None, None
    run = log.runs[run_id]
    run.close(error)
    return log, run


def _leave(run_id: UUID, error: BaseException | None = None) -> Frame | None:
    around = open_frame_var.get()
    _, run = _ended(run_id, error)
    frame = None if run is None else run.frame
    if frame is not None and around is frame:
        open_frame_var.set(frame.parent)
    return frame


def _late_frame(log: Log, run: Run, kind: Literal["node", "tool"], documents: Sequence[Any]) -> Frame:
    """A list that is seen only once its run has ended; what ran beneath that run was seen before it."""
    frame = Frame(log, kind, run.name, query_in(run.inputs), run_id=run.id, guessed=run.guessed)
    frame.parent = next((above.frame for above in log.lineage(run.id) if above.frame is not None), None)
    with log.lock:
        (log.frames if frame.parent is None else frame.parent.children).append(frame)
    frame.close(as_passages(documents))
    frame.ms = None
    return frame


def lists_of(log: Log, run: Run, outputs: Any) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
    """(what the node was given under this key, what it returned) for each list of Documents in a state update; also
    a plain chain link that turns into a list of Documents. A node may empty a list that it was given."""
    if documents_in(outputs):
        yield documents_in(run.inputs) or (), outputs
        return
    if not is_node(log, run):
        return
    for update in outputs if isinstance(outputs, list) else [outputs]:
        values = getattr(update, "update", None) if not isinstance(update, Mapping) else update  # a Command holds one
        for key, value in values.items() if isinstance(values, Mapping) else ():
            state = run.inputs
            given = documents_in(state.get(key) if isinstance(state, Mapping) else getattr(state, str(key), None)) or ()
            if documents_in(value) or (given and isinstance(value, list) and not value):
                yield given, value


def query_in(inputs: Any) -> str:
    if isinstance(inputs, str):
        return inputs
    if isinstance(inputs, Mapping):
        for key in ("query", "question", "input"):
            if isinstance(inputs.get(key), str):
                return str(inputs[key])
        return next((value for value in inputs.values() if isinstance(value, str)), "")
    return ""


def _usage(response: Any) -> dict[str, float]:
    counts: dict[str, float] = {}
    for batch in response.generations:
        for generation in batch[:1]:
            found = getattr(getattr(generation, "message", None), "usage_metadata", None) or {}
            for name in ("input_tokens", "output_tokens"):
                if found.get(name) is not None:
                    counts[name] = counts.get(name, 0) + found[name]
    if counts:
        return counts
    told = (getattr(response, "llm_output", None) or {}).get("token_usage") or {}
    pairs = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))
    return {name: told[theirs] for name, theirs in pairs if told.get(theirs) is not None}
