"""Agents: a second hop that one search cannot find, early stops, and a chat model that calls the search as a tool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from ragkit.errors import DataError
from ragkit.pipeline.agent import TOOL_NAME, IterativeAgent, ToolAgent, new_names
from ragkit.pipeline.build import PartCache, build_pipeline
from ragkit.pipeline.fusion import reciprocal_rank_fusion
from ragkit.pipeline.lexical import LexicalRetriever
from ragkit.pipeline.rag import Searcher
from ragkit.pipeline.settings import PipelineConfig
from ragkit.recording import Recorder
from ragkit.records.trajectory import Passage, Trajectory
from tests.support.pipeline_parts import TEXTS, corpus
from tests.support.recording_parts import ScriptedChat, calls, chat

PASSAGES = [Passage(name, f"{title}\n{text}", name, None, {"title": title}) for name, (title, text) in TEXTS.items()]


def searcher(k: int = 1, passages: Sequence[Passage] = PASSAGES) -> Searcher:
    return Searcher([LexicalRetriever(passages)], k=k)


def trace_of(app: object, question: str) -> Trajectory:
    with Recorder().trace(question) as trace:
        app(question)  # type: ignore[operator]
    return trace.trajectory


QUESTION = "Where did the person who built the Norrby lighthouse come from?"


def test_the_iterative_agent_finds_what_one_search_misses() -> None:
    seen = trace_of(IterativeAgent(searcher(k=2), None, context_k=4), QUESTION)
    first, second, third = (step.outermost.ids for step in seen.steps)
    assert "lund" not in first and first[0] == "lamp" and "lund" in second
    assert [step.turn for step in seen.steps] == [0, 1, 2] and len(third) == 2
    assert seen.steps[0].outermost.query == QUESTION
    assert seen.steps[1].outermost.query.startswith(QUESTION + " Norrby lighthouse. The lighthouse at Norrby was built")
    assert seen.context is not None and seen.context.ranked and {"lamp", "lund"} <= set(seen.context.ids)
    assert "Ada Lund" in seen.steps[1].outermost.query.removeprefix(QUESTION)


def test_its_context_is_its_steps_lists_fused_in_one_ranking() -> None:
    seen = trace_of(IterativeAgent(searcher(k=3), None, context_k=4), QUESTION)
    lists = [step.outermost.passages for step in seen.steps]
    assert seen.context is not None
    assert list(seen.context.ids) == [p.id for p in reciprocal_rank_fusion(lists)][:4]


def test_it_stops_when_nothing_new_comes_or_nothing_is_left() -> None:
    only = searcher(k=3, passages=PASSAGES[:1])
    assert len(trace_of(IterativeAgent(only, None, max_steps=9), QUESTION).steps) == 2
    assert len(trace_of(IterativeAgent(only, None, max_steps=9), "zebra").steps) == 1
    assert len(trace_of(IterativeAgent(searcher(), None, max_steps=1), QUESTION).steps) == 1
    with pytest.raises(DataError, match="max_steps"):
        IterativeAgent(only, None, max_steps=0)


def test_with_real_vectors_the_second_hop_comes_in_a_later_step(tmp_path: Path) -> None:
    cache = PartCache()
    config = PipelineConfig(k=2, agent="iterative", context_k=4, generator=None)
    pipeline = build_pipeline(config, corpus(), tmp_path, cache)
    question = "In which town was the builder of the Norrby lighthouse born?"
    single = build_pipeline(PipelineConfig(k=2, generator=None, retriever="dense"), corpus(), tmp_path, cache)
    first = trace_of(single, question).steps[0].outermost.ids
    seen = trace_of(pipeline, question)
    assert seen.steps[0].outermost.ids == first and "lund" not in first
    assert "lund" in seen.steps[1].outermost.ids and seen.context is not None and "lund" in seen.context.ids
    cache.close()


def test_new_names_are_runs_of_capitalised_words() -> None:
    text = "She met Duke of York and Élise in St. Gallen. In 1902 IBM, Inc."
    assert new_names(text, "Who is she?") == ["Duke of York", "Élise", "St. Gallen"]
    assert new_names("密码可以重置。", "密码") == [] and new_names("The Norrby lighthouse", "the norrby") == []


def test_a_chat_model_calls_the_search_as_a_tool() -> None:
    model = chat(calls("Norrby lighthouse", tool=TOOL_NAME), calls("Ada Lund born", tool=TOOL_NAME),
                 AIMessage("She came from Vik."))
    seen = trace_of(ToolAgent(searcher(k=2), model), QUESTION)
    assert [step.outermost.query for step in seen.steps] == ["Norrby lighthouse", "Ada Lund born"]
    assert [step.turn for step in seen.steps] == [0, 1]
    assert [step.outermost.name for step in seen.steps] == ["bm25", "bm25"] and seen.answer == "She came from Vik."
    assert seen.context is not None and not seen.context.ranked and seen.context.source == "prompt"
    assert set(seen.context.ids) == {name for step in seen.steps for name in step.outermost.ids}


def test_searches_above_the_limit_are_not_made() -> None:
    model = chat(*(calls(f"lighthouse {n}", tool=TOOL_NAME) for n in range(2)), AIMessage("Enough."))
    seen = trace_of(ToolAgent(searcher(), model, max_steps=1), QUESTION)
    assert len(seen.steps) == 1 and seen.answer == "Enough."


def test_a_tool_agent_needs_no_trace() -> None:
    model: ScriptedChat = chat(calls("fog bell", tool=TOOL_NAME), AIMessage("In 1902."))
    assert ToolAgent(searcher(), model)("When was the bell cast?") == "In 1902."
