"""The app under test as one awaitable call: question in, answer out. Knows callables, Runnables, graphs, coroutines."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, RagkitError
from ragkit.evaluation.calling import Call, call_async, call_blocking
from ragkit.recording.answers import answer_text as found_answer
from ragkit.records.questions import Question


class App:
    """Wraps whatever answers a question.

    `target` is a function (sync or async) of the question's text, an object with `ainvoke` / `invoke` (LangChain,
    LangGraph) or with `__call__`. `to_input` maps a Question to what the target takes; `to_answer` maps what it
    returns to the answer's text. Without them a string goes in, or the messages of a LangGraph agent.
    """

    def __init__(
        self,
        target: Any,
        to_input: Callable[[Question], Any] | None = None,
        to_answer: Callable[[Any], str | None] | None = None,
    ) -> None:
        self.target = target
        self._to_input = to_input
        self._to_answer = to_answer
        self._run = _runner(target)

    async def answer(self, question: Question) -> str | None:
        """The app's answer; whatever the app raises comes through."""
        given = self._to_input(question) if self._to_input is not None else _default_input(self.target, question)
        result = await self._run(given)
        return self._to_answer(result) if self._to_answer is not None else answer_text(result)


def load_app(call: str, args: Mapping[str, Any] | None = None) -> Any:
    """Import `package.module:build` (the working directory is searched too) and call it with `args`.

    Without args, a name that is itself an app (it has `invoke`, or takes one argument that must be given) is taken as
    it is.
    """
    target = load_object(call)
    if not args and (hasattr(target, "invoke") or _takes_a_question(target)):
        return target
    try:
        return target(**(args or {}))
    except RagkitError:
        raise
    except (Exception, SystemExit) as error:
        raise DataError(f"app {call}: building it failed: {type(error).__name__}: {error}") from error


def load_object(call: str) -> Any:
    """The object that `package.module:name` names."""
    module_name, _, name = call.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:  # a script beside the experiment is importable, as with python -m
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise DataError(f"app {call}: cannot import {module_name}: {error}; run from the folder it lies in") from error
    except (Exception, SystemExit) as error:
        raise DataError(f"app {call}: importing {module_name} failed: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if found is None:
        known = [key for key in vars(module) if not key.startswith("_") and callable(getattr(module, key))]
        raise DataError(f"app {call}: {module_name} has no {name!r}; it has {', '.join(known) or 'no callable'}")
    return found


def answer_text(result: Any) -> str | None:
    """The answer in what an app returned; None stays None, what holds none is a DataError."""
    if result is None:
        return None
    text = found_answer(result)
    if text is not None:
        return text
    what = f"the keys {sorted(map(str, result))}" if isinstance(result, Mapping) else type(result).__name__
    raise DataError(f"app: expected a string as the answer, got {what}; give to_answer")


def _default_input(target: Any, question: Question) -> Any:
    """An agent's graph takes messages; everything else takes the text."""
    schema = getattr(target, "builder", None)
    channels = getattr(target, "channels", None) or getattr(schema, "channels", None)
    if hasattr(target, "invoke") and channels and "messages" in channels:
        history = [dict(message) for message in question.history]
        return {"messages": [*history, {"role": "user", "content": question.text}]}
    return question.text


def _runner(target: Any) -> Call:
    if hasattr(target, "ainvoke"):
        return call_async(target.ainvoke)
    if hasattr(target, "invoke"):
        return call_blocking(target.invoke)
    if not callable(target):
        raise DataError(f"app: expected a callable or an object with invoke, got {type(target).__name__}")
    call = target if inspect.isroutine(target) else target.__call__
    return call_async(target) if inspect.iscoroutinefunction(call) else call_blocking(target)


def _takes_a_question(target: Any) -> bool:
    if inspect.isclass(target):
        return False
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty]
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in needed) == 1
