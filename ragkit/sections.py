"""The sections of an experiment file: which keys they have and what is checked. Reading the file is config.py's."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _from_environment(text: str) -> str:
    """${NAME} and ${NAME:-default} stand for environment variables, so that one file serves several machines."""

    def known(match: re.Match[str]) -> str:
        found = os.environ.get(match.group(1)) or match.group(2)
        if found is None:
            raise ValueError(f"the environment variable {match.group(1)} is not set")
        return found

    return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", known, text)


class DatasetSection(Section):
    """Where the questions lie: a folder in BEIR's form, a CSV, TSV, JSON Lines file, or "irds:ID"."""

    path: str
    split: str = "test"
    columns: dict[str, str] = Field(default_factory=dict)

    @field_validator("path")
    @classmethod
    def _with_environment(cls, value: str) -> str:
        return _from_environment(value)


class ChunkingSection(Section):
    """Cut documents into chunks of about `size` characters; without it a document is one passage."""

    size: int | None = Field(default=None, ge=50)
    overlap: int = Field(default=0, ge=0)


class ChromaSection(Section):
    """Where the vectors lie: a folder (path) or a server (url); `attach` uses an existing collection read-only."""

    path: str | None = None
    url: str | None = None
    collection: str | None = None
    attach: bool = False


class AgentSection(Section):
    """none: one search. iterative: searches again with what was found. tools: a LangGraph agent with a search tool."""

    kind: Literal["none", "iterative", "tools"] = "none"
    max_steps: int = Field(default=3, ge=1)


class PipelineSection(Section):
    """A pipeline of ragkit's own."""

    chunking: ChunkingSection = ChunkingSection()
    embedding: str = "minilm"
    retriever: Literal["dense", "lexical", "hybrid"] = "hybrid"
    k: int = Field(default=10, ge=1)
    candidates: int = Field(default=50, ge=1)
    rrf_k: int = Field(default=60, ge=1)
    reranker: str | None = None
    rerank_threshold: float | None = None
    context_k: int | None = Field(default=None, ge=1)
    generator: str | None = "extractive"
    agent: AgentSection = AgentSection()
    chroma: ChromaSection = ChromaSection()


class AppSection(Section):
    """The user's own app: `call` names a function that builds it; the result is called with each question's text."""

    call: str
    args: dict[str, Any] = Field(default_factory=dict)
    to_input: str | None = None
    to_answer: str | None = None
    retries: int = Field(default=0, ge=0)

    @field_validator("call", "to_input", "to_answer")
    @classmethod
    def _module_and_name(cls, value: str | None) -> str | None:
        if value is not None and value.count(":") != 1:
            raise ValueError(f"expected package.module:name, got {value!r}")
        return value


class JudgeSection(Section):
    """Who judges, how it is asked (see JudgeSettings), and the limits on asking. The key is never in the file."""

    model: str | None = None
    url: str | None = None
    embeddings: str = "minilm"
    concurrency: int = Field(default=16, ge=1)
    timeout: float = Field(default=60.0, gt=0)
    attempts: int = Field(default=6, ge=1)
    reasks: int = Field(default=2, ge=0)
    rate_limit_wait: float = Field(default=600.0, ge=0)
    temperature: float | None = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=2048, ge=1)
    largest_max_tokens: int = Field(default=16_384, ge=1)
    reasoning_effort: str | None = None
    key_variable: str | None = None
    language: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    rpm: int | None = Field(default=None, ge=1)
    tpm: int | None = Field(default=None, ge=1)
    max_calls: int | None = Field(default=None, ge=0)
    budget: float | None = Field(default=None, ge=0)
    price: tuple[float, float] | None = None
    prices: Path | None = None
    frozen: bool = False

    @field_validator("headers")
    @classmethod
    def _with_environment(cls, value: dict[str, str]) -> dict[str, str]:
        return {name: _from_environment(text) for name, text in value.items()}
