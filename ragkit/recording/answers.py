"""What an app answered: said by hand, or read in the outputs of its chains and models; and streams left half-way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragkit.recording.log import Log

if TYPE_CHECKING:
    from ragkit.recording.trace import Trace


def find_answer(trace: Trace) -> tuple[str | None, str | None]:
    """(answer, where it was read): said by hand, else what the last root chain gave, else the last root model."""
    if trace.manual_answer is not None:
        return trace.manual_answer, None
    for kind in ("chain", "llm"):
        for of, value in reversed(trace.log.outputs):
            if of == kind and (text := answer_text(value)) is not None:
                return text, kind
    return None, None


def is_abandoned(log: Log, answer: str | None) -> bool:
    """Whether a stream was not read to its end: it was closed or still open, or its chain had ended with a part of what
    the model then said (LangChain reads a model to its end where its reader stops)."""
    if log.left_early or any(run.abandoned for run in log.runs.values()):
        return True
    for prompt in log.prompts:
        lineage = list(log.lineage(prompt.run_id))
        if lineage and (lineage[0].ended or 0.0) > (lineage[-1].ended or 0.0):
            output = prompt.output or ""
            return answer is None or (answer != output and output.startswith(answer))
    return False


def reply_of_an_open_stream(log: Log) -> str | None:
    """What a model had said whole to a chain that ended without an output while a part of it still ran: the reader
    stopped at the last part of the stream, which LangChain then leaves out of the output. Else None."""
    for prompt in reversed(log.prompts):
        lineage = list(log.lineage(prompt.run_id))
        root = lineage[-1] if lineage else None
        if root is None or root.ended is None or root.error is not None:
            continue
        outlived = (run for run in log.runs.values() if run.ended is None or run.ended > root.ended)
        if (lineage[0].ended or root.ended) < root.ended and any(root in log.lineage(run.parent) for run in outlived):
            return prompt.output
    return None


def answer_text(value: Any) -> str | None:
    """The answer in an app's output: a text, a message, the last of `messages`, a usual key or attribute; else None.

    >>> answer_text({"answer": "42"}), answer_text({"documents": []})
    ('42', None)
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        for key in ("answer", "output", "result", "response", "output_text", "generation", "text"):
            if key in value and (text := answer_text(value[key])) is not None:
                return text
        messages = value.get("messages")
        if isinstance(messages, Sequence) and not isinstance(messages, str) and messages:
            return answer_text(messages[-1])
        return None
    content = getattr(value, "content", None)
    if content is not None:
        return content_text(content)
    named = (getattr(value, name, None) for name in ("text", "answer", "response"))
    return next((text for text in named if isinstance(text, str)), None)


def content_text(content: Any) -> str:
    """The text of a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [block if isinstance(block, str) else block.get("text") for block in content
                 if isinstance(block, str | Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    return ""
