"""Trajectories on disk: round trips of anything a trace may hold, defaults on reading, and what is refused."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.records.files import (
    append_trajectory,
    dumps,
    read_jsonl,
    read_trajectories,
    trajectory_from_json,
    trajectory_to_json,
    write_trajectories,
)
from ragkit.records.questions import text_id
from ragkit.records.trajectory import STAGES, Passage, Retrieval, Step, Trajectory

# A high surrogate before a low one is one character in JSON; all other code points, lone surrogates too, must survive.
_pieces = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
                   | st.sampled_from(["\ud83d", "\udc80 ", "😀", "知识", "é", "e\u0301", "\u2028", "\x85", "\x00"]))
texts = _pieces.map("".join).filter(lambda text: "\ud83d\udc80" not in text)
ids = texts.filter(bool)
numbers = st.floats(allow_nan=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=3)
metadata = st.dictionaries(texts, plain, max_size=2)
passages = st.builds(Passage, ids, st.none() | texts, st.none() | ids, st.none() | numbers, metadata)
retrievals = st.builds(
    Retrieval, st.sampled_from(STAGES), texts, st.lists(passages, max_size=2).map(tuple), texts, st.integers(0, 9),
    st.integers(0, 9), st.none() | numbers, st.none() | numbers, st.sampled_from(["similarity", "distance", "unknown"]),
    st.booleans(), st.none() | texts, st.none() | texts,
)
usage = st.dictionaries(texts, numbers, max_size=2)
steps = st.builds(Step, st.integers(0, 9), st.lists(retrievals, min_size=1, max_size=2).map(tuple), st.integers(0, 9),
                  usage, st.none() | numbers)
trajectories = st.builds(
    Trajectory, ids, texts, st.lists(steps, max_size=2, unique_by=lambda step: step.index).map(tuple),
    st.none() | retrievals, st.none() | texts, st.none() | texts, st.integers(0, 3), st.none() | numbers, usage,
    metadata,
)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not strict JSON")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def minimal(**changes: Any) -> dict[str, Any]:
    return {"schema": "ragkit.trajectory/1", "question_id": "q1", "question": "Who?",
            "steps": [{"retrievals": [{"passages": [{"id": "d1"}]}]}], **changes}


@settings(max_examples=40, deadline=None)
@given(trajectories)
def test_a_trajectory_survives_the_file_whatever_it_holds(
    tmp_path_factory: pytest.TempPathFactory, trajectory: Trajectory
) -> None:
    path = tmp_path_factory.mktemp("round") / "trajectories.jsonl"
    write_trajectories(path, [trajectory])
    data = path.read_bytes().decode("utf-8")
    assert len(data.splitlines()) == 1
    json.loads(data, parse_constant=_refuse)
    assert read_trajectories(path) == [trajectory]


@settings(max_examples=40, deadline=None)
@given(trajectories)
def test_hidden_text_is_nowhere_in_the_line_and_hiding_twice_changes_nothing(trajectory: Trajectory) -> None:
    secret = "Zebra-Geheimnis-7531"
    marked = Trajectory(trajectory.question_id, secret, (*trajectory.steps, Step(10, (Retrieval(
        "retrieve", secret, (Passage("d", secret, metadata={"title": secret, "list": [secret, 3]}),),
        error=f"ValueError: {secret}"),))), trajectory.context, secret, f"TimeoutError: {secret}",
        meta={"note": secret})
    hidden = trajectory_to_json(marked, include_text=False)
    assert secret not in dumps(hidden)
    again = trajectory_from_json(hidden, "here")
    assert trajectory_to_json(again, include_text=False) == hidden
    assert [s.outermost.ids for s in again.steps] == [s.outermost.ids for s in marked.steps]


def test_hidden_text_leaves_hashes_ids_scores_and_the_kind_of_an_error() -> None:
    step = Step(0, (Retrieval("retrieve", "query", (Passage("d1", "text", "doc", 0.5, {"start": 3}),)),))
    plain_ = trajectory_to_json(Trajectory("q1", "Who?", (step,), None, "Me", "KeyError: 'Who?'"), include_text=False)
    assert plain_["question"] == text_id("Who?") and plain_["answer"] == text_id("Me")
    assert plain_["error"].startswith("KeyError: sha1:")
    assert plain_["meta"] == {"no_text": True}
    assert plain_["steps"][0]["retrievals"][0]["passages"] == [
        {"id": "d1", "doc_id": "doc", "score": 0.5, "metadata": {"start": 3, "text_hash": text_id("text")}}]
    assert plain_["steps"][0]["retrievals"][0]["query"] == text_id("query")
    unanswered = trajectory_to_json(Trajectory("q1", "Who?", answer=""), include_text=False)
    assert unanswered["answer"] == "" and trajectory_to_json(Trajectory("q", "w"), False)["answer"] is None


def test_an_unknown_context_is_not_an_empty_one(tmp_path: Any) -> None:
    path = tmp_path / "t.jsonl"
    write_trajectories(path, [Trajectory("a", "A"), Trajectory("b", "B", context=Retrieval("context"))])
    unknown, empty = read_trajectories(path)
    assert unknown.context is None
    assert empty.context is not None and empty.context.passages == ()


def test_infinite_scores_are_strings_in_strict_json() -> None:
    step = Step(0, (Retrieval("retrieve", passages=(Passage("a", score=math.inf), Passage("b", score=-math.inf))),))
    line = dumps(trajectory_to_json(Trajectory("q", "w", (step,))))
    plain_ = json.loads(line, parse_constant=_refuse)
    assert [p["score"] for p in plain_["steps"][0]["retrievals"][0]["passages"]] == ["inf", "-inf"]
    again = trajectory_from_json(plain_, "x")
    assert [p.score for p in again.steps[0].outermost.passages] == [math.inf, -math.inf]


def test_thousands_of_passages(tmp_path: Any) -> None:
    many = tuple(Passage(f"d{i}", "知识 😀 " * 20, f"doc{i % 7}", -i / 3) for i in range(5_000))
    trajectory = Trajectory("q", "w", (Step(0, (Retrieval("retrieve", "w", many),)),),
                            Retrieval("context", passages=many))
    write_trajectories(tmp_path / "t.jsonl", [trajectory])
    assert read_trajectories(tmp_path / "t.jsonl") == [trajectory]


def test_a_minimal_log_is_enough() -> None:
    row = minimal(context={"passages": [{"id": "d1"}]}, later_key={"unknown": 1})
    row["steps"].append({"retrievals": [{"passages": []}], "cost": 3})
    trajectory = trajectory_from_json(row, "log:1")
    assert (trajectory.repeat, trajectory.answer, trajectory.error, trajectory.ms) == (0, None, None, None)
    assert [(s.index, s.turn, s.outermost.turn, s.outermost.stage, s.outermost.ranked) for s in trajectory.steps] == [
        (0, 0, 0, "retrieve", True), (1, 1, 1, "retrieve", True)]
    assert trajectory.context is not None
    assert (trajectory.context.stage, trajectory.context.ranked) == ("context", True)
    assert trajectory_from_json(minimal(), "log:1").context is None
    assert trajectory_from_json(minimal(schema="ragkit.trajectory/1.4", question_id=7), "log:1").question_id == "7"


@pytest.mark.parametrize(("changes", "told"), [
    ({"schema": "ragkit.trajectory/2"}, "another major version"),
    ({"schema": "ragkit.trajectory/11"}, "another major version"),
    ({"schema": None}, "ragkit.trajectory/1"),
    ({"schema": "ragkit.summary/1"}, "ragkit.trajectory/1"),
    ({"question_id": ""}, "question_id"),
    ({"question_id": None}, "question_id"),
    ({"question": None}, "question"),
    ({"steps": None}, "steps"),
    ({"steps": [{}]}, "steps[0]: expected 'retrievals'"),
    ({"steps": [{"retrievals": []}]}, "at least one retrieval"),
    ({"steps": [{"retrievals": [{}]}]}, "steps[0].retrievals[0]: expected 'passages'"),
    ({"steps": [{"retrievals": [{"passages": [{"text": "x"}]}]}]}, "passages[0]: expected 'id'"),
    ({"steps": [{"retrievals": [{"passages": [{"id": "a", "score": "0,5"}]}]}]}, "score: expected a number"),
    ({"steps": [{"retrievals": [{"passages": [{"id": "a", "score": math.nan}]}]}]}, "NaN"),
    ({"steps": [{"retrievals": [{"passages": [], "stage": "retriever"}]}]}, "retrieve, rerank"),
    ({"steps": [{"retrievals": [{"passages": [], "ranked": "yes"}]}]}, "ranked"),
    ({"repeat": -1}, "repeat >= 0"),
    ({"repeat": 2**31}, "repeat >= 0"),
    ({"repeat": 10**400}, "repeat >= 0"),
    ({"repeat": 0.5}, "whole number"),
    ({"ms": 10**400}, "ms: expected a number that a float can hold"),
    ({"usage": {"input_tokens": 10**400}}, "usage.input_tokens: expected a number that a float can hold"),
    ({"steps": [{"retrievals": [{"passages": [{"id": "a", "score": 10**400}]}]}]}, "passages[0].score: expected"),
    ({"steps": [{"index": 2, "retrievals": [{"passages": []}]}] * 2},
     "trajectory 'q1': the step index 2 stands twice; expected unique indexes"),
    ({"steps": [{"index": 1, "retrievals": [{"passages": []}]}, {"retrievals": [{"passages": []}]}]}, "index 1 stands"),
    ({"meta": {"warnings": 5}}, "meta.warnings: expected a list of strings, got 5"),
    ({"meta": {"warnings": "abc"}}, "meta.warnings"),
    ({"meta": {"warnings": {"a": 1}}}, "meta.warnings"),
    ({"meta": {"warnings": ["a", None]}}, "meta.warnings"),
    ({"meta": {"x": nested(100)}}, "nested up to 100 deep"),
    ({"meta": {"x": nested(3000)}}, "nested up to 100 deep"),
    ({"context": {"passages": [{"id": "a", "metadata": {"x": nested(97)}}]}}, "nested up to 100 deep"),
    ({"answer": nested(3000)}, "expected 'answer', a string"),
    ({"question_id": nested(3000)}, "question_id"),
    ({"ms": "x" * 5000}, "ms: expected a number"),
    ({"repeat": True}, "repeat"),
    ({"context": ["d1"]}, "context: expected a JSON object"),
])
def test_what_is_refused_names_the_line_and_what_was_expected(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError) as caught:
        trajectory_from_json(minimal(**changes), "log.jsonl:7")
    message = str(caught.value)
    assert message.startswith("log.jsonl:7") and told in message and "\n" not in message and len(message) < 300
    assert message.count("log.jsonl:7") == 1


def test_what_is_nested_just_not_too_deep_survives_the_file(tmp_path: Any) -> None:
    row = minimal(meta={"x": nested(98)}, context={"passages": [{"id": "a", "metadata": {"x": nested(95)}}]})
    trajectory = trajectory_from_json(row, "x")
    write_trajectories(tmp_path / "t.jsonl", [trajectory])
    assert read_trajectories(tmp_path / "t.jsonl") == [trajectory]
    assert trajectory.meta["x"] == nested(98)


def test_what_was_recorded_too_deep_is_cut_and_still_read(tmp_path: Any) -> None:
    own: dict[str, Any] = {"level": 1}
    own["self"] = [own, own]
    passage = Passage("a", metadata={"deep": nested(5000), "own": own, "huge": 10**6000})
    write_trajectories(tmp_path / "t.jsonl", [
        Trajectory("q", "w", (Step(0, (Retrieval("retrieve", passages=(passage,)),)),), meta={"deep": nested(99)})])
    (again,) = read_trajectories(tmp_path / "t.jsonl")
    metadata = again.steps[0].outermost.passages[0].metadata
    assert "(nested too deep)" in dumps(metadata["deep"]) and metadata["huge"].startswith("0x")
    assert metadata["own"] == {"level": 1, "self": ["(holds itself)"] * 2}


@pytest.mark.parametrize("empty", ["", "  ", None])
def test_an_error_without_a_word_is_none(empty: str | None) -> None:
    row = minimal(error=empty)
    row["steps"][0]["retrievals"][0]["error"] = empty
    trajectory = trajectory_from_json(row, "x")
    assert trajectory.error is None and trajectory.steps[0].outermost.error is None
    assert Trajectory("q", "w", error=empty).error is None
    assert trajectory_from_json(minimal(error="E"), "x").error == "E"


def test_warnings_of_null_are_none_and_good_ones_stay() -> None:
    assert trajectory_from_json(minimal(meta={"warnings": None, "x": None}), "x").meta == {"x": None}
    assert trajectory_from_json(minimal(meta={"warnings": ["a"]}), "x").meta == {"warnings": ["a"]}
    for wrong in (5, None, "abc", [1]):
        with pytest.raises(DataError, match=r"trajectory 'q': meta\.warnings: expected a list of strings"):
            Trajectory("q", "w", meta={"warnings": wrong})


def _listed(trajectory: Trajectory) -> list[tuple[str, ...]]:
    assert trajectory.context is not None
    return [r.ids for s in trajectory.steps for r in s.retrievals] + [trajectory.context.ids]


def _searches(*lists: list[dict[str, Any]]) -> dict[str, Any]:
    *steps_, context = lists
    return minimal(steps=[{"retrievals": [{"passages": p}]} for p in steps_], context={"passages": context})


def test_a_generated_id_becomes_the_given_one_of_the_same_text() -> None:
    made, given_ = {"id": text_id("T 1"), "text": "T 1"}, {"id": "d1", "text": "T 1", "doc_id": "D"}
    other = {"id": text_id("other"), "text": "other"}
    trajectory = trajectory_from_json(_searches([made, other], [given_], [made]), "x")
    assert _listed(trajectory) == [("d1", text_id("other")), ("d1",), ("d1",)]
    assert trajectory.steps[0].outermost.passages[0].doc_id == "D"
    row = minimal(steps=[{"retrievals": [{"passages": [made]}, {"passages": [given_]}]}], context={"passages": []})
    assert _listed(trajectory_from_json(row, "x")) == [("d1",), ("d1",), ()], "also beneath one step"
    assert _listed(trajectory_from_json(_searches([made], [given_]), "x")) == [("d1",), ("d1",)], "also by the context"


def test_a_bare_id_follows_the_list_that_holds_its_text() -> None:
    made = {"id": text_id("T"), "text": "T"}
    given_, bare = {"id": "d1", "text": "T"}, {"id": text_id("T")}
    for lists in ([made], [given_], [bare]), ([bare], [given_]):
        assert set(_listed(trajectory_from_json(_searches(*lists), "x"))) == {("d1",)}


def test_aliasing_is_the_same_where_texts_are_hidden(tmp_path: Any) -> None:
    made, given_ = Passage(text_id("T 1"), "T 1"), Passage("d1", "T 1")
    trajectory = Trajectory("q", "w", (Step(0, (Retrieval("retrieve", passages=(made,)),)),),
                            Retrieval("context", passages=(given_,)))
    for include_text in (True, False):
        write_trajectories(tmp_path / "t.jsonl", [trajectory], include_text)
        assert _listed(read_trajectories(tmp_path / "t.jsonl")[0]) == [("d1",), ("d1",)]


@pytest.mark.parametrize(("first", "second"), [
    ({"id": "d1", "text": "T"}, {"id": "d2", "text": "T"}),  # two given ids
    ({"id": text_id(" "), "text": " "}, {"id": "d1", "text": " "}),  # no text to tell them by
    ({"id": text_id("T"), "text": "T"}, {"id": "d1", "text": "T."}),
    ({"id": text_id("T")}, {"id": "d1"}),
    ({"id": text_id("T"), "metadata": {"text_hash": text_id("S")}}, {"id": "d1", "text": "T"}),
    ({"id": text_id("S"), "text": "T"}, {"id": "d1", "text": "T"}),  # given, though it looks made
])
def test_other_ids_are_never_merged(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert _listed(trajectory_from_json(_searches([first], [second]), "x")) == [(first["id"],), (second["id"],)]


def test_of_two_given_ids_a_generated_one_becomes_the_first() -> None:
    made = {"id": text_id("T"), "text": "T"}
    lists = [made], [{"id": "d2", "text": "T"}], [{"id": "d1", "text": "T"}]
    assert _listed(trajectory_from_json(_searches(*lists), "x")) == [("d2",), ("d2",), ("d1",)]


def test_a_repeated_key_names_both_lines(tmp_path: Any) -> None:
    path = tmp_path / "t.jsonl"
    write_trajectories(path, [Trajectory("a", "A"), Trajectory("a", "A", repeat=1), Trajectory("a", "A", repeat=1)])
    with pytest.raises(DataError, match=r"t\.jsonl:3: .*'a', repeat 1 stands already in line 2"):
        read_trajectories(path)


def test_a_torn_last_line_is_an_error_unless_it_is_allowed_and_only_there(tmp_path: Any) -> None:
    path = tmp_path / "t.jsonl"
    for name in "abc":
        append_trajectory(path, Trajectory(name, "😀"))
    whole = path.read_bytes()
    assert [t.question_id for t in read_trajectories(path)] == ["a", "b", "c"]
    for cut in range(1, len(whole.splitlines()[-1])):  # also in the middle of the emoji
        path.write_bytes(whole[:-1 - cut])
        with pytest.raises(DataError, match=r"t\.jsonl:3"):
            read_trajectories(path)
        assert [t.question_id for t in read_trajectories(path, allow_torn_tail=True)] == ["a", "b"]
    path.write_bytes(whole[:-1])  # only the line end is missing: the record is whole
    assert len(read_trajectories(path)) == 3
    path.write_bytes(whole[:40] + b"\n" + whole)  # a broken line in the middle is no torn tail
    with pytest.raises(DataError, match=r"t\.jsonl:1"):
        read_trajectories(path, allow_torn_tail=True)


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_appending_after_a_killed_run_spoils_nothing(tmp_path: Any, cut: int) -> None:
    path = tmp_path / "runs" / "t.jsonl"
    append_trajectory(path, Trajectory("a", "A"))
    append_trajectory(path, Trajectory("b", "B"))
    path.write_bytes(path.read_bytes()[:-cut])
    append_trajectory(path, Trajectory("c", "C"))
    expected = ["a", "b", "c"] if cut == 1 else ["a", "c"]
    assert [t.question_id for t in read_trajectories(path)] == expected
    assert len(list(read_jsonl(path))) == len(expected)


def test_threads_may_append_at_the_same_time(tmp_path: Any) -> None:
    path = tmp_path / "t.jsonl"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: append_trajectory(path, Trajectory(f"q{n}", "w" * 100_000)), range(40)))
    assert {t.question_id for t in read_trajectories(path)} == {f"q{n}" for n in range(40)}
