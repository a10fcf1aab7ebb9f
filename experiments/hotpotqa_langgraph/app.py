"""A tool-calling agent over a Chroma index of the paragraphs, as a user would have it. Its model is scripted: it asks
the searches that a real ReAct agent asked of Wikipedia (first trial), and ends with that agent's answer."""

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from langchain_core.tools.retriever import create_retriever_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import ragkit
from ragkit.models.embeddings import load_embedder

GAVE_UP = "I could not find the answer."
Turn = list[dict[str, Any]]  # the searches of a trace that are asked at once


def data_folder() -> Path:
    """Where the collection lies."""
    return Path(os.environ.get("RAGKIT_DATA", "../shared/data")) / "hotpotqa_react_traces"


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def squeezed(text: str) -> str:
    """One blank for each run of white space: the traces do not keep a question's blanks as they are."""
    return " ".join(text.split())


def turns_of(trace: dict[str, Any], parallel: bool) -> list[Turn]:
    """The searches of a trace in their order. In parallel: those of two names that both stand in the question are asked
    in one turn, since the second one needs nothing of what the first one found."""
    question, turns = squeezed(trace["question"]).casefold(), []
    together = False
    for step in trace["steps"]:
        if step["tool"] != "Search":
            continue
        named = step["tool_input"].strip("\"' ").casefold() in question
        if parallel and named and together and len(turns[-1]) == 1:
            turns[-1].append(step)
        else:
            turns.append([step])
        together = named
    return turns


class ReplayedChat(BaseChatModel):
    """Says what the real agent said of this question. It keeps no state: where it is, is told by the tool messages."""

    traces: dict[str, dict[str, Any]]  # by the question's text
    parallel: bool = False

    @property
    def _llm_type(self) -> str:
        return "replayed"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(one) for one in tools], **kwargs)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
                  ) -> ChatResult:
        asked = max(number for number, message in enumerate(messages) if isinstance(message, HumanMessage))
        trace = self.traces[squeezed(str(messages[asked].content))]
        answered = sum(isinstance(message, ToolMessage) for message in messages[asked:])
        for turn in turns_of(trace, self.parallel):
            if answered <= 0:
                (bound,) = kwargs["tools"]
                calls = [{"name": bound["function"]["name"], "args": {"query": step["tool_input"]},
                          "id": f"call-{step['n']}"} for step in turn]
                reply = AIMessage(" ".join(step["thought"] for step in turn), tool_calls=calls)
                break
            answered -= len(turn)
        else:
            reply = AIMessage(trace["final_answer"] or GAVE_UP)
        return ChatResult(generations=[ChatGeneration(message=reply)])


class Minilm(Embeddings):
    """The packaged embedding model, as LangChain wants it."""

    def __init__(self) -> None:
        self._model = load_embedder("minilm")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._model.embed_documents(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self._model.embed_query(text).tolist()


@cache
def minilm() -> Minilm:
    """One for all variants."""
    return Minilm()


def open_store(index: Path, data: Path) -> Chroma:
    """The index on disk; made where it is not there yet, which takes about a minute."""
    store = Chroma("paragraphs", minilm(), str(index), collection_configuration={"hnsw": {"space": "cosine"}})
    rows = read(data / "corpus.jsonl")
    held = set(store.get(include=[])["ids"])
    missing = [row for row in rows if row["_id"] not in held]
    if missing:
        store.add_documents([
            Document(id=row["_id"], page_content=f"{row['title']}\n{row['text']}", metadata={"title": row["title"]})
            for row in missing
        ])
    return store


def search_tool(kind: str, store: Chroma, k: int) -> BaseTool:
    """The search in three usual forms: a retriever's tool, a function that calls the store and returns text, and one
    that hands its documents on as the artifact of its message."""
    if kind == "retriever":
        return create_retriever_tool(store.as_retriever(search_kwargs={"k": k}), "search", "Searches the paragraphs.")

    def shown(found: list[Document]) -> str:
        return "\n\n".join(f"[{one.metadata['title']}] {one.page_content}" for one in found)

    if kind == "artifact":

        @tool("search", response_format="content_and_artifact")
        def search_for_documents(query: str) -> tuple[str, list[Document]]:
            """Searches the paragraphs."""
            found = store.similarity_search(query, k=k)
            return shown(found), found

        return search_for_documents
    if kind != "plain":
        raise ValueError(f"search_tool: expected retriever, plain or artifact, got {kind!r}")
    ragkit.Recorder().instrument(store)  # the store is called directly: no callback tells of it

    @tool("search")
    def search(query: str) -> str:
        """Searches the paragraphs."""
        return shown([one for one, _ in store.similarity_search_with_score(query, k=k)])

    return search


def tool_node_graph(model: BaseChatModel, search: BaseTool) -> Any:
    """The same agent written by hand."""
    bound = model.bind_tools([search])

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode([search]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


def build(index: str = "runs/hotpotqa_langgraph/index", tool: str = "retriever", k: int = 5, parallel: bool = False,
          by_hand: bool = False, keep: int | None = None) -> Any:
    """The agent. `by_hand`: a graph with a ToolNode in place of create_agent. `keep`: once the prompt is longer than
    1,000 tokens, only that many of the last search results stay in it."""
    data = data_folder()
    traces = {squeezed(trace["question"]): trace for trace in read(data / "traces.react.jsonl") if trace["trial"] == 1}
    model = ReplayedChat(traces=traces, parallel=parallel)
    search = search_tool(tool, open_store(Path(index), data), k)
    if by_hand:
        return tool_node_graph(model, search)
    edits = [] if keep is None else [ClearToolUsesEdit(trigger=1000, keep=keep)]
    return create_agent(model, [search], middleware=[ContextEditingMiddleware(edits=edits)] if edits else [])
