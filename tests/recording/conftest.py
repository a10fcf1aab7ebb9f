"""What the recorder's tests share; nothing of LangChain is imported before a test asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from langchain_core.vectorstores import InMemoryVectorStore


@pytest.fixture
def store() -> InMemoryVectorStore:
    """A store of the small documents."""
    from langchain_core.vectorstores import InMemoryVectorStore

    from tests.support.recording_parts import WordEmbedding, documents

    made = InMemoryVectorStore(WordEmbedding())
    made.add_documents(documents())
    return made
