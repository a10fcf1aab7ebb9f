"""Small real parts for the recorder's tests: a word-count embedding, a scripted chat model that calls tools."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from ragkit.records.trajectory import Step

TEXTS = {
    "d1": "The lighthouse at Norrby was built by Ada Lund in 1881.",
    "d2": "Ada Lund was born in the town of Vik, on the west coast.",
    "d3": "The harbour of Norrby freezes over in most winters.",
    "d4": "Vik is known for its cheese and for its rain.",
    "d5": "A lighthouse keeper trims the lamp every evening.",
}


class WordEmbedding(Embeddings):
    """Counts of words, hashed to 64 places: equal words are near, and nothing is random."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * 64
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 64] += 1.0
        return vector


class ScriptedChat(GenericFakeChatModel):
    """Says what the script holds, one message a call; tools may be bound to it."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> ScriptedChat:
        return self


def documents(ids: str = "d1 d2 d3 d4 d5") -> list[Document]:
    return [Document(id=i, page_content=TEXTS[i], metadata={"source": f"{i}.txt"}) for i in ids.split()]


def chat(*messages: AIMessage | str) -> ScriptedChat:
    script: Iterator[AIMessage | str] = iter(messages)
    return ScriptedChat(messages=script)


def calls(*queries: str, tool: str = "search") -> AIMessage:
    """An AI message that calls the tool once for each query."""
    made = [{"name": tool, "args": {"query": query}, "id": f"{tool}-{query}"} for query in queries]
    return AIMessage(content="", tool_calls=made)


def create_agent(model: Any, tools: Sequence[Any]) -> Any:
    """LangChain 1's agent, or LangGraph's own beside an older LangChain."""
    try:
        from langchain.agents import create_agent as make
    except ImportError:
        from langgraph.prebuilt import create_react_agent as make
    return make(model, list(tools))


def classic_retriever(name: str) -> Any:
    """A retriever class that LangChain 1 moved to langchain_classic."""
    return _classic("retrievers", name)


def classic_compressor(name: str) -> Any:
    """A document compressor of LangChain, wherever its version keeps it."""
    return _classic("retrievers.document_compressors", name)


def _classic(module: str, name: str) -> Any:
    try:
        home = import_module(f"langchain_classic.{module}")
    except ImportError:
        home = import_module(f"langchain.{module}")
    return getattr(home, name)


def shape(step: Step) -> list[tuple[str, tuple[str, ...]]]:
    """Stage and ids of each list of a step, outermost first."""
    return [(found.stage, found.ids) for found in step.retrievals]
