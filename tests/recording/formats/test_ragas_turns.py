"""Conversations that the real ragas writes: each tool message is a step, and the context is a set."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.evaluation.evaluate import score
from ragkit.recording.formats.ragas import read_ragas

pytest.importorskip("ragas")
os.environ["RAGAS_DO_NOT_TRACK"] = "true"

ROME, OSLO = "Rome lies on the Tiber.", "Oslo lies on a fjord."


def talk() -> Any:
    """Two tools called at once, then one more; the person says something in between."""
    from ragas.dataset_schema import MultiTurnSample
    from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

    def call(name: str, **arguments: Any) -> ToolCall:
        return ToolCall(name=name, args=arguments)

    return MultiTurnSample(reference="Tiber and fjord", user_input=[
        HumanMessage(content="Where do they lie?"),
        AIMessage(content="I look.", tool_calls=[call("search", query="Rome", k=2), call("search", text="Oslo")]),
        ToolMessage(content=json.dumps([{"id": "r", "text": ROME, "score": 0.5}, {"id": "x", "text": "Else."}])),
        ToolMessage(content=OSLO),
        AIMessage(content="On the Tiber, on a fjord."),
        HumanMessage(content="Sure?"),
        AIMessage(content="", tool_calls=[call("check", a=1, b=2)]),
        ToolMessage(content="[]"),
        AIMessage(content="Yes: the Tiber, a fjord."),
        HumanMessage(content="Thanks."),
        AIMessage(content=""),
    ])


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_conversation_is_a_trajectory(tmp_path: Path, kind: str) -> None:
    from ragas import EvaluationDataset

    getattr(EvaluationDataset(samples=[talk()]), f"to_{kind}")(tmp_path / f"talk.{kind}")
    found = read_ragas(tmp_path / f"talk.{kind}")
    (one,) = found.trajectories
    assert (one.question, one.answer) == ("Where do they lie?", "Yes: the Tiber, a fjord.")
    assert [(step.index, step.turn, step.outermost.name, step.outermost.query) for step in one.steps] == [
        (0, 0, "search", "Rome"), (1, 0, "search", "Oslo"), (2, 1, "check", "")]
    assert [[passage.text for passage in step.outermost.passages] for step in one.steps] == [
        [ROME, "Else."], [OSLO], []]
    assert one.steps[0].outermost.ids == ("r", "x") and one.steps[0].outermost.passages[0].score == 0.5
    assert one.context is not None and not one.context.ranked
    assert [passage.text for passage in one.context.passages] == [ROME, "Else.", OSLO]
    assert one.meta["source"]["metadata"] == {"later_messages": ["Sure?", "Thanks."]}
    assert found.dataset is not None and found.dataset.questions[0].answers == ("Tiber and fjord",)


def test_evidence_of_the_second_step_counts(tmp_path: Path) -> None:
    row = {"user_input": [message.model_dump() for message in talk().user_input], "reference_contexts": [ROME, OSLO]}
    (tmp_path / "talk.jsonl").write_text(json.dumps(row), encoding="utf-8")
    found = read_ragas(tmp_path / "talk.jsonl")
    summary = score(found.trajectories, found.dataset, metrics=["recall", "recall@1", "steps_to_evidence"]).summary
    assert summary["metrics"]["recall"]["mean"] == 1.0
    assert summary["metrics"]["recall@1"]["mean"] is None  # a set has no first place
    assert summary["metrics"]["steps_to_evidence"]["mean"] == 2.0


@pytest.mark.parametrize(("message", "told"), [
    ({"type": "ai", "content": "Hello"}, "expected a message of a person, got none"),
    ({"type": "robot", "content": "Hello"}, "user_input[0]: expected a message of type human, ai or tool"),
])
def test_what_is_no_conversation(tmp_path: Path, message: dict[str, str], told: str) -> None:
    (tmp_path / "talk.jsonl").write_text(json.dumps({"user_input": [message]}), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_ragas(tmp_path / "talk.jsonl")
    assert told in str(caught.value) and "talk.jsonl:1" in str(caught.value)
