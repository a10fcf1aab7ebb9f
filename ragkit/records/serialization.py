"""Trajectories as plain data in the form of ragkit.trajectory/1, with or without the texts.

Reading them back is in parsing.py.
"""

from __future__ import annotations

import re
from typing import Any, cast

from ragkit.records.plain import jsonable
from ragkit.records.questions import is_text_id, text_id
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

TRAJECTORY_SCHEMA = "ragkit.trajectory/1"
_ERROR_TYPE = re.compile(r"[A-Za-z_][\w.]{0,80}(?:Error|Exception|Timeout|Interrupt|Exit)(?=:|\(|$)")


def trajectory_to_json(trajectory: Trajectory, include_text: bool = True) -> dict[str, Any]:
    """A trajectory as plain data in the form of ragkit.trajectory/1.

    With include_text=False every text of the user (question, queries, passages, answer, and strings in metadata, meta
    and error messages) gives way to its hash; ids, scores, order, names of stages and times stay. A passage's hash
    stands in its metadata as "text_hash", and meta says "no_text".
    """
    hide = _keep if include_text else _hash_text
    plain: dict[str, Any] = {
        "schema": TRAJECTORY_SCHEMA,
        "question_id": trajectory.question_id,
        "repeat": trajectory.repeat,
        "question": hide(trajectory.question),
        "steps": [_step_to_json(step, include_text) for step in trajectory.steps],
        "context": None if trajectory.context is None else _retrieval_to_json(trajectory.context, include_text),
        "answer": hide(trajectory.answer),
        "error": trajectory.error if include_text else _hash_error(trajectory.error),
        "ms": trajectory.ms,
        "usage": trajectory.usage,
        "meta": hide(trajectory.meta),
    }
    if not include_text:
        plain["meta"] = {**plain["meta"], "no_text": True}
    return cast("dict[str, Any]", jsonable(plain))


def _keep(value: Any) -> Any:
    return value


def _hash_text(value: Any) -> Any:
    plain = jsonable(value)
    if isinstance(plain, str):
        # Nothing is nothing to hide; a text that is already hidden stays, so that hiding twice is hiding once.
        return plain if not plain or is_text_id(plain) else text_id(plain)
    if isinstance(plain, dict):
        return {key: _hash_text(item) for key, item in plain.items()}
    if isinstance(plain, list):
        return [_hash_text(item) for item in plain]
    return plain


def _hash_error(error: str | None) -> str | None:
    """The type of the error stays readable (it says what failed); its message may quote the user's text."""
    if not error:
        return error
    kind = _ERROR_TYPE.match(error)
    if kind is None:
        return str(_hash_text(error))
    rest = error[kind.end():]
    return f"{kind[0]}: {_hash_text(rest.removeprefix(': '))}" if rest else kind[0]


def _step_to_json(step: Step, include_text: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {"index": step.index, "turn": step.turn}
    plain["retrievals"] = [_retrieval_to_json(retrieval, include_text) for retrieval in step.retrievals]
    return plain | _present(usage=dict(step.usage) or None, ms=step.ms)


def _retrieval_to_json(retrieval: Retrieval, include_text: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "stage": retrieval.stage,
        "name": retrieval.name,
        "query": retrieval.query if include_text else _hash_text(retrieval.query),
        "turn": retrieval.turn,
        "seq": retrieval.seq,
        "score_kind": retrieval.score_kind,
        "ranked": retrieval.ranked,
        "passages": [_passage_to_json(passage, include_text) for passage in retrieval.passages],
    }
    error = retrieval.error if include_text else _hash_error(retrieval.error)
    return plain | _present(started=retrieval.started, ms=retrieval.ms, error=error, source=retrieval.source)


def _passage_to_json(passage: Passage, include_text: bool) -> dict[str, Any]:
    text, metadata = passage.text, dict(passage.metadata)
    if not include_text:
        metadata = _hash_text(metadata)
        if text is not None:
            metadata["text_hash"] = text_id(text)
            text = None
    return {"id": passage.id} | _present(text=text, doc_id=passage.doc_id, score=passage.score,
                                         metadata=metadata or None)


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
