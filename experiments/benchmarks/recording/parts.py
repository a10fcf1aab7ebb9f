"""What is timed: a retriever and a store that answer at once, and a small chain over a real store."""

from __future__ import annotations

import hashlib
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

PASSAGES = 10
PROMPT = ChatPromptTemplate.from_template("Answer from:\n{context}\n\nQuestion: {question}")


def document(number: int) -> Document:
    """A passage of about 600 characters, with an id and the metadata that loaders leave."""
    words = " ".join(hashlib.sha1(f"{number} {part}".encode()).hexdigest()[:7] for part in range(75))
    return Document(id=f"c{number}", page_content=words, metadata={"source": f"f{number // 5}.txt", "page": number % 5})


class AtOnce(BaseRetriever):
    """Ten passages, already made: what is left is what LangChain and its watchers take."""

    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.found


class AtOnceStore(VectorStore):
    """The same as a vector store."""

    def __init__(self) -> None:
        self.found = [(document(number), 1.0 - number / 100) for number in range(PASSAGES)]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        return self.found

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [found for found, _ in self.found]

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> AtOnceStore:
        return cls()


class Hashed(Embeddings):
    """Vectors out of hashes: no model, but the store's own arithmetic is real."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [byte / 255 - 0.5 for byte in hashlib.sha512(text.encode()).digest()]


def retriever() -> AtOnce:
    return AtOnce(found=[document(number) for number in range(PASSAGES)])


def chain(passages: int = 1000) -> tuple[Any, InMemoryVectorStore]:
    """A question-answering chain, and its store."""
    store = InMemoryVectorStore(Hashed())
    store.add_documents([document(number) for number in range(passages)])
    context = store.as_retriever(search_kwargs={"k": PASSAGES}) | (
        lambda found: "\n\n".join(one.page_content for one in found))
    model = FakeListChatModel(responses=["An answer."])
    return {"context": context, "question": RunnablePassthrough()} | PROMPT | model | StrOutputParser(), store
