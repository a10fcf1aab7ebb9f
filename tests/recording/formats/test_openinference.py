"""What OpenInference spans say: re-rankers, judges, models, errors, order, several questions, and wrong files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.recording.formats.openinference import read_openinference
from ragkit.records.questions import text_id
from ragkit.records.trajectory import Trajectory
from tests.support.spans import documents, root, search, span, with_documents, write


def read(tmp_path: Path, *rows: dict[str, Any]) -> Trajectory:
    (found,) = read_openinference(write(tmp_path / "spans.jsonl", rows)).trajectories
    return found


def lists(found: Trajectory) -> list[list[tuple[str, tuple[str, ...]]]]:
    return [[(one.stage, one.ids) for one in step.retrievals] for step in found.steps]


def test_a_re_ranker_keeps_what_it_was_given_and_what_it_made_of_it(tmp_path: Path) -> None:
    ranked = span("rr", "RERANKER", 10, 11, "root", reranker_query="Who?")
    ranked["attributes"].update(documents("reranker.input_documents", "d1", "d2", "d3"))
    with_documents(ranked, "reranker.output_documents", "d3", "d1", d3=0.9, d1=0.2)
    found = read(tmp_path, root("Who?"), search("r", 1, 2, "Who?", ["d1", "d2", "d3"]), ranked)
    assert lists(found) == [[("rerank", ("d3", "d1")), ("retrieve", ("d1", "d2", "d3"))]]
    assert [one.score for one in found.steps[0].outermost.passages] == [0.9, 0.2]
    assert found.steps[0].outermost.score_kind == "unknown"
    assert found.meta["source"]["spans"] == {"0": "rr"}  # the span that made the list which the app got


def test_what_a_re_ranker_was_given_is_a_list_of_its_own_where_it_was_put_together_first(tmp_path: Path) -> None:
    ranked = with_documents(span("rr", "RERANKER", 10, 11, "root", reranker_query="Who?"),
                            "reranker.output_documents", "d3")
    ranked["attributes"].update(documents("reranker.input_documents", "d2", "d1", "d3"))
    found = read(tmp_path, root("Who?"), search("a", 1, 4, "Who?", ["d1", "d2"]), search("b", 2, 3, "Who?", ["d3"]),
                 ranked)
    assert lists(found) == [[("rerank", ("d3",)), ("fuse", ("d2", "d1", "d3")), ("retrieve", ("d1", "d2")),
                             ("retrieve", ("d3",))]]
    alone = read(tmp_path, root("Who?"), ranked)  # nobody saw the search
    assert lists(alone) == [[("rerank", ("d3",)), ("retrieve", ("d2", "d1", "d3"))]]


def test_steps_stand_in_order_of_start_and_what_overlaps_is_one_turn(tmp_path: Path) -> None:
    found = read(tmp_path, search("late", 30, 31, "third", ["d3"]), search("slow", 1, 20, "first", ["d1"]),
                 search("quick", 2, 3, "second", ["d2"]), root("Who?"))
    assert [(step.turn, step.outermost.query) for step in found.steps] == [(0, "first"), (0, "second"), (1, "third")]
    deep = read(tmp_path, root("Who?"), span("left", "CHAIN", 0, 9, "root"), span("right", "CHAIN", 1, 9, "root"),
                search("l", 5, 6, "late", ["d1"], parent="left"), search("r", 2, 3, "early", ["d2"], parent="right"))
    assert [step.outermost.query for step in deep.steps] == ["early", "late"]


def test_the_context_is_found_in_the_prompt_and_a_judge_is_no_part_of_the_app(tmp_path: Path) -> None:
    prompt = "Answer from this.\nThe text of d2, which is long enough.\nWho?"
    model = span("m", "LLM", 20, 30, "root", output_value="42", llm_token__count_prompt=12,
                 llm_token__count_completion=5, llm_cost_total=0.25)
    model["attributes"].update({"llm.input_messages.0.message.role": "system",
                                "llm.input_messages.0.message.content": "Be brief.",
                                "llm.input_messages.1.message.role": "user",
                                "llm.input_messages.1.message.contents.0.message_content.text": prompt})
    inner = span("inner", "LLM", 21, 29, "m", llm_token__count_prompt=12, llm_token__count_completion=5)
    judge = span("judge", "EVALUATOR", 40, 60, "root")
    asked = span("asked", "LLM", 41, 59, "judge", input_value="Is 42 right? The text of d1, which is long enough.",
                 output_value="42", llm_token__count_prompt=1000)
    rows = [root("Who?"), search("r", 1, 2, "Who?", ["d1", "d2"]), model, inner, judge, asked]
    found = read(tmp_path, *rows)
    assert found.context is not None and found.context.ids == ("d2",) and found.context.ranked
    assert found.usage == {"input_tokens": 12, "output_tokens": 5, "cost": 0.25}
    assert found.answer == "42" and "warnings" not in found.meta


def test_an_error_is_the_exception_that_was_recorded(tmp_path: Path) -> None:
    failed = search("r", 1, 2, "Who?", [], error="TimeoutError('too slow')Traceback (most recent call last): …")
    told = search("s", 3, 4, "What?", [], error="no matter")
    told["events"] = [{"name": "exception", "attributes": {"exception.type": "KeyError", "exception.message": "'x'"}}]
    found = read(tmp_path, root("Who?"), failed, told, search("u", 5, 6, "open", ["d1"]) | {"end_time": None})
    assert [step.outermost.error for step in found.steps[:2]] == ["TimeoutError: too slow", "KeyError: 'x'"]
    assert found.error is None and found.steps[2].outermost.error is None  # it gave a list; when it ended is not told
    assert [step.turn for step in found.steps] == [0, 1, 2]
    broken = read(tmp_path, root("Who?", error="ValueError('all is lost')"), failed)
    assert broken.error == "ValueError: all is lost"


def test_ids_and_empty_documents_are_taken_from_wherever_they_stand(tmp_path: Path) -> None:
    row = span("r", "RETRIEVER", 1, 2, "root", input_value="Who?", output_mime__type="application/json")
    row["attributes"].update({  # the second document is empty and leaves no attribute
        "retrieval.documents.0.document.content": "one", "retrieval.documents.2.document.content": "three",
        "retrieval.documents.3.document.content": "four", "retrieval.documents.3.document.metadata": '{"id": "m4"}',
        "output.value": '{"documents": [{"page_content": "one", "id": "o1"}, {"page_content": "", "id": "o2"}, '
                        '{"page_content": "three"}, {"page_content": "four"}]}'})
    found = read(tmp_path, root("Who?"), row)
    assert found.steps[0].outermost.ids == ("o1", "o2", text_id("three"), "m4")
    row["attributes"]["output.value"] = '{"documents": [{"page_content": "another", "id": "x"}]}'
    unknown = (text_id("one"), text_id(""), text_id("three"), "m4")
    assert read(tmp_path, root("Who?"), row).steps[0].outermost.ids == unknown
    row["attributes"]["output.value"] = '{"documents": [{"page_content": "one", "id": "o1"}]}'  # a list that was cut
    assert read(tmp_path, root("Who?"), row).steps[0].outermost.ids == unknown


def test_an_agent_in_the_name_hides_no_search_and_other_spans_only_say_what_is_above(tmp_path: Path) -> None:
    server = span("http", None, 0, 200)
    middle = span("mid", None, 0, 100, "root")
    found = read(tmp_path, server, root("Who?", parent="http"), middle,
                 search("r", 1, 2, "agents", ["d1"], parent="mid") | {"name": "agent_search"})
    assert lists(found) == [[("retrieve", ("d1",))]]
    assert found.meta["source"]["span_id"] == "root"
    model = span("m", "LLM", 3, 4, "mid", output_value="a thought")
    silent = root("Who?", parent="http", answer=None)  # type: ignore[arg-type]
    assert read(tmp_path, server, silent, middle, model).answer is None  # a thought beneath the root is no answer
    disguised = search("r", 1, 2, "agents", ["d1"])
    disguised["attributes"]["openinference.span.kind"] = "AGENT"
    tool = span("t", "AGENT", 3, 4, "root", error="KeyError('x')", tool_name="agent_lookup")
    found = read(tmp_path, root("Who?"), disguised, tool)
    assert lists(found) == [[("retrieve", ("d1",))]]
    assert found.meta["failed_tools"] == ("AGENT t: KeyError: x",)


def test_two_searches_that_begin_at_once_keep_their_own_spans(tmp_path: Path) -> None:
    found = read(tmp_path, root("Who?"), search("b", 1, 2, "first", ["d1"]), search("a", 1, 2, "second", ["d2"]))
    assert {step.outermost.query: found.meta["source"]["spans"][str(step.index)] for step in found.steps} == {
        "first": "b", "second": "a"}


def test_questions_are_traces_repeats_are_counted_and_a_loop_in_one_trace_is_split(tmp_path: Path) -> None:
    rows = [row for number, text in enumerate(["Who?", "When?", "Who?"]) for row in (
        root(text, trace=f"t{number}"), search("r", 1, 2, text, ["d1"], trace=f"t{number}"))]
    found = read_openinference(write(tmp_path / "spans.jsonl", rows)).trajectories
    assert [one.key for one in found] == [(text_id("Who?"), 0), (text_id("When?"), 0), (text_id("Who?"), 1)]
    loop = [span("loop", None, 0, 300)]
    for number, text in enumerate(["Who?", "When?"]):
        loop += [root(text, span_id=f"c{number}", parent="loop"),
                 search(f"r{number}", 1, 2, text, [f"d{number}"], parent=f"c{number}")]
    split = read_openinference(write(tmp_path / "loop.jsonl", loop))
    assert [(one.question, one.steps[0].outermost.ids) for one in split.trajectories] == [
        ("Who?", ("d0",)), ("When?", ("d1",))]
    assert "1 traces hold several questions; each root chain is one of them" in split.notes
    later = span("c1", "CHAIN", 50, 60, "loop", input_value="Say it in other words: Who?")
    one = read(tmp_path, *reversed([*loop[:3], later]))
    assert one.question == "Who?" and len(one.steps) == 1  # one search: the other chain is a step of the same app


def test_a_trace_without_a_question_is_said_and_counted(tmp_path: Path) -> None:
    vector = span("e", "EMBEDDING", 0, 1, trace="ingest", input_value="a text that is embedded")
    found = read_openinference(write(tmp_path / "spans.jsonl", [vector, root("Who?"), search("r", 1, 2, "x", [])]))
    assert len(found.trajectories) == 1 and found.trajectories[0].steps[0].outermost.ids == ()
    assert any(note.startswith("1 traces without a question at their root were left out; the first is ingest")
               for note in found.notes)
    with pytest.raises(DataError, match=r"spans.jsonl:1: expected a trace whose root span holds a question"):
        read_openinference(write(tmp_path / "spans.jsonl", [vector]))


def test_the_id_of_a_question_stands_in_the_roots_metadata(tmp_path: Path) -> None:
    found = read(tmp_path, root("Who?", metadata='{"question_id": 17, "user": "ada"}'))
    assert found.question_id == "17" and found.meta["source"]["metadata"]["user"] == "ada"


@pytest.mark.parametrize(("text", "what"), [
    ('{"name": "x", \n', r":1: expected JSON"),
    ('{"a": 1}\n', r":1: expected a span .*, got \['a'\]"),
    ("[1, 2]\n", r":1: item 0: expected a span"),
    ('"text"\n', r":1: expected a span"),
    ('{"context": {"span_id": "s"}, "attributes": {"x": 1}}\n{"context": \n', r":2: expected JSON"),
    ('{"context": {"span_id": "s"}, "attributes": {"x": 1}}\n', "spans with openinference.span.kind.*, got 1 spans"),
    ('{"context": {"span_id": ""}, "attributes": {"x": 1}}\n', r":1: expected a span with an id"),
    ('{"resourceSpans": []}', "got no span"),
    ("", "got no span"),
    ("[" * 2000, r":1: cannot be read as JSON|:1: expected JSON"),
])
def test_what_is_no_span_is_refused_with_its_line(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=what):
        read_openinference(path)


def test_spans_above_themselves_are_refused_and_one_sent_twice_counts_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="stand above themselves"):
        read(tmp_path, root("Who?"), search("a", 1, 2, "x", [], parent="b"), search("b", 1, 2, "x", [], parent="a"))
    open_one = search("r", 1, 2, "x", [])
    found = read(tmp_path, root("Who?"), open_one | {"end_time": None}, search("r", 1, 2, "x", ["d1"]), open_one | {
        "end_time": None})
    assert lists(found) == [[("retrieve", ("d1",))]]
