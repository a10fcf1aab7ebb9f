"""Trajectories written as OpenInference spans and read again: what they hold stays; names are the standard's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragkit.recording.formats.openinference import read_openinference
from ragkit.recording.formats.writers_openinference import openinference_spans
from ragkit.records.files import trajectory_from_json, trajectory_to_json, write_jsonl
from ragkit.records.questions import text_id
from ragkit.records.trajectory import Passage, Retrieval, Stage, Step, Trajectory
from tests.support.data import data_folder


def passage(name: str, score: float | None = None, **more: Any) -> Passage:
    return Passage(name, f"The text of {name}, long enough to be found.", score=score, **more)


def found(stage: Stage, ids: str, query: str = "Who?", **more: Any) -> Retrieval:
    scores = [1.0 / (place + 1) for place in range(len(ids))]
    return Retrieval(stage, query, tuple(map(passage, ids, scores)), name=f"my {stage}", **more)


def step(index: int, turn: int, *lists: Retrieval) -> Step:
    return Step(index, tuple(replace(one, turn=turn, seq=seq) for seq, one in enumerate(lists)), turn)


STEPS = {
    "one search": [step(0, 0, found("retrieve", "abc", score_kind="distance"))],
    "re-ranked": [step(0, 0, found("rerank", "ca"), found("retrieve", "abc"))],
    "re-ranked to the same": [step(0, 0, found("rerank", "abc"), found("retrieve", "abc"))],
    "filtered": [step(0, 0, found("filter", ""), found("retrieve", "abc"))],
    "filter that kept all": [step(0, 0, found("filter", "abc"), found("rerank", "abc"), found("retrieve", "cba"))],
    "fused and re-ranked": [step(0, 0, found("rerank", "dab"), found("fuse", "abcd"),
                                 found("retrieve", "abc"), found("retrieve", "ad", "Who wrote?"))],
    "fused of a re-ranked one": [step(0, 0, found("fuse", "abcd"), found("rerank", "abc"), found("retrieve", "cba"),
                                      found("retrieve", "ad"))],
    "augmented": [step(0, 0, found("other", "abcx"), found("retrieve", "abc"))],
    "two turns": [step(0, 0, found("retrieve", "abc", "first")), step(1, 1, found("retrieve", "abc", "first"))],
    "side by side": [step(0, 0, found("rerank", "ba", "one"), found("retrieve", "ab", "one")),
                     step(1, 0, found("retrieve", "ab", "two")), step(2, 2, found("retrieve", "c", "three"))],
    "failed": [step(0, 0, found("retrieve", "", error="TimeoutError: too slow")), step(1, 1, found("retrieve", "a"))],
    "a set": [step(0, 0, found("retrieve", "abc", ranked=False))],
    "no search": [],
}


def again(tmp_path: Path, *given: Trajectory) -> list[Trajectory]:
    write_jsonl(tmp_path / "spans.jsonl", openinference_spans(given, "base", 1_790_000_000.0))
    return list(read_openinference(tmp_path / "spans.jsonl").trajectories)


def told(one: Retrieval) -> tuple[Any, ...]:
    return (one.stage, one.query, one.turn, one.score_kind, one.ranked, one.error, one.name,
            [(p.id, p.text, p.score, p.doc_id) for p in one.passages])


def lists(one: Trajectory) -> list[list[tuple[Any, ...]]]:
    return [[told(retrieval) for retrieval in each.retrievals] for each in one.steps]


@pytest.mark.parametrize("name", STEPS)
def test_lists_stages_scores_and_turns_come_back(tmp_path: Path, name: str) -> None:
    given = Trajectory("q7", "Who?", tuple(STEPS[name]), answer="Ann")
    (back,) = again(tmp_path, given)
    assert lists(back) == lists(given)
    assert (back.question_id, back.question, back.answer, back.context, back.error) == (
        "q7", "Who?", "Ann", None, None)


@pytest.mark.parametrize(("ids", "ranked"), [("ab", True), ("ca", True), ("cx", False), ("", True)])
def test_the_context_comes_back(tmp_path: Path, ids: str, ranked: bool) -> None:
    steps = (step(0, 0, found("retrieve", "abc")), step(1, 1, found("retrieve", "xy")))
    context = found("context", ids, ranked=ranked, source="prompt")
    given = Trajectory("q", "Who?", steps, context, "Ann", usage={"input_tokens": 7, "output_tokens": 2, "cost": 0.5})
    (back,) = again(tmp_path, given)
    assert back.context is not None
    assert (back.context.ids, back.context.ranked, back.context.source) == (tuple(ids), ranked, "prompt")
    assert [p.text for p in back.context.passages] == [passage(one).text for one in ids]
    assert back.usage == given.usage


@pytest.mark.parametrize("ranked", [True, False])
def test_without_our_words_the_context_is_found_in_the_prompt(tmp_path: Path, ranked: bool) -> None:
    steps = (step(0, 0, found("rerank", "ba"), found("retrieve", "abc")),)
    given = Trajectory("q", "Who?", steps, found("context", "ba", ranked=ranked), "Ann")
    rows = list(openinference_spans([given], "base", 0.0))
    for row in rows[1:]:
        del row["attributes"]["metadata"]
    write_jsonl(tmp_path / "spans.jsonl", rows)
    (back,) = read_openinference(tmp_path / "spans.jsonl").trajectories
    assert back.context is not None and back.context.ids == ("b", "a") and back.context.ranked == ranked
    assert [one.stage for one in back.steps[0].retrievals] == ["rerank", "retrieve"]


def test_repeats_and_questions_keep_their_order_and_times_are_kept(tmp_path: Path) -> None:
    timed = replace(found("retrieve", "a"), started=1_800_000_000.0, ms=250.0)
    given = [Trajectory("q2", "When?", (step(0, 0, found("retrieve", "b")),)),
             Trajectory("q1", "Who?", (step(0, 0, timed),), error="ValueError: gone", ms=2000.0),
             Trajectory("q1", "Who?", (step(0, 0, found("retrieve", "c")),), repeat=1)]
    back = again(tmp_path, *given)
    assert [one.key for one in back] == [("q2", 0), ("q1", 0), ("q1", 1)]
    assert [one.steps[0].outermost.ids for one in back] == [("b",), ("a",), ("c",)]
    assert back[1].error == "ValueError: gone" and back[1].ms == pytest.approx(2000.0, abs=2)
    assert back[1].steps[0].outermost.started == pytest.approx(1_800_000_000.0, abs=0.01)
    assert back[1].steps[0].outermost.ms == pytest.approx(250.0, abs=2)
    assert len({one.meta["source"]["trace_id"] for one in back}) == 3


def test_hashes_stand_where_texts_were_left_out(tmp_path: Path) -> None:
    steps = (step(0, 0, replace(found("retrieve", "ab"), passages=(
        passage("a", 0.5, doc_id="doc", metadata={"title": "Secret title"}), passage("b")))),)
    given = Trajectory("q", "Who is secret?", steps, found("context", "a"), "Secret Ann")
    (back,) = again(tmp_path, trajectory_from_json(trajectory_to_json(given, include_text=False), "here"))
    assert "ecret" not in (tmp_path / "spans.jsonl").read_text(encoding="utf-8").replace("Who is secret", "")
    assert "long enough" not in (tmp_path / "spans.jsonl").read_text(encoding="utf-8")
    assert back.question == text_id("Who is secret?") and back.answer == text_id("Secret Ann")
    assert back.steps[0].outermost.ids == ("a", "b") and back.steps[0].outermost.passages[0].doc_id == "doc"
    assert back.context is not None and back.context.ids == ("a",)


def test_attributes_are_those_of_the_standard() -> None:
    semconv = pytest.importorskip("openinference.semconv.trace")
    classes = [semconv.SpanAttributes, semconv.DocumentAttributes, semconv.MessageAttributes,
               semconv.RerankerAttributes]
    known = {value for one in classes for value in vars(one).values() if isinstance(value, str)}
    given = Trajectory("q", "Who?", tuple(STEPS["fused and re-ranked"]), found("context", "da"), "Ann",
                       usage={"input_tokens": 7, "cost": 0.5})
    kinds = set()
    for row in openinference_spans([given], "base", 0.0):
        kinds.add(row["attributes"]["openinference.span.kind"])
        for name in row["attributes"]:
            parts = name.split(".")
            numbers = [place for place, part in enumerate(parts) if part.isdigit()]
            pieces = [name] if not numbers else [".".join(parts[:numbers[0]]), ".".join(parts[numbers[0] + 1:])]
            assert set(pieces) <= known, name
    assert kinds <= {one.value for one in semconv.OpenInferenceSpanKindValues}
    assert kinds == {"CHAIN", "RETRIEVER", "RERANKER", "LLM"}


def test_spans_are_deterministic_and_have_unique_ids() -> None:
    given = [Trajectory("q", "Who?", tuple(STEPS["side by side"]), repeat=repeat) for repeat in (0, 1)]
    rows = list(openinference_spans(given, "base", 0.0))
    assert json.dumps(rows) == json.dumps(list(openinference_spans(given, "base", 0.0)))
    assert len({row["context"]["span_id"] for row in rows}) == len(rows)


def test_real_traces_come_back_the_same(tmp_path: Path) -> None:
    given = read_openinference(data_folder("otel_traces") / "openinference_spans.jsonl").trajectories
    back = again(tmp_path, *given)
    assert [one.key for one in back] == [one.key for one in given]
    assert [lists(one) for one in back] == [lists(one) for one in given]
    assert [(one.answer, one.context and one.context.ids) for one in back] == [
        (one.answer, one.context and one.context.ids) for one in given]
    assert sum(len(one.steps) for one in back) == 48
