"""What the app did on one question: steps, ranked lists, the context of the answer. Checked at birth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from ragkit.errors import DataError
from ragkit.records.questions import checked_id

Stage = Literal["retrieve", "rerank", "filter", "fuse", "context", "union", "other"]
ScoreKind = Literal["similarity", "distance", "unknown"]
STAGES: tuple[str, ...] = get_args(Stage)
SCORE_KINDS: tuple[str, ...] = get_args(ScoreKind)

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Passage:
    """One unit of retrieval. `doc_id` is the document it was cut from; `score` is only read with its score_kind."""

    id: str
    text: str | None = None
    doc_id: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    def __post_init__(self) -> None:
        checked_id(self.id, "passage")
        if self.score is not None and math.isnan(self.score):
            raise DataError(f"passage {self.id!r}: the score is NaN")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One list at one stage. The order of `passages` is the rank where `ranked`; never sort by a bare score."""

    stage: Stage
    query: str = ""
    passages: tuple[Passage, ...] = ()
    name: str = ""
    turn: int = 0
    seq: int = 0
    started: float | None = None  # seconds since the epoch
    ms: float | None = None
    score_kind: ScoreKind = "unknown"
    ranked: bool = True
    error: str | None = None
    source: str | None = None  # of a context: "prompt" (found in the last prompt) or "manual"

    def __post_init__(self) -> None:
        if self.stage not in STAGES:
            raise DataError(f"retrieval: expected a stage of {', '.join(STAGES)}, got {self.stage!r}")
        if self.score_kind not in SCORE_KINDS:
            raise DataError(f"retrieval: expected a score_kind of {', '.join(SCORE_KINDS)}, got {self.score_kind!r}")

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(passage.id for passage in self.passages)


@dataclass(frozen=True, slots=True)
class Step:
    """One search. `retrievals[0]` is the outermost list, what the app got; the others are the stages beneath it."""

    index: int
    retrievals: tuple[Retrieval, ...]
    turn: int = 0
    usage: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    ms: float | None = None

    def __post_init__(self) -> None:
        if not self.retrievals:
            raise DataError(f"step {self.index}: expected at least one retrieval")

    @property
    def outermost(self) -> Retrieval:
        return self.retrievals[0]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """All that was seen while the app answered one question, one time (`repeat`).

    `context` is the list that the answer was written from: None means unknown, an empty list means "nothing".
    `usage` sums tokens and cost ("input_tokens", "output_tokens", "cost"). Gold is not inside: it lives in the
    dataset and is joined by question id. `meta` holds what else was noticed (warnings, index ids known, answers).
    """

    question_id: str
    question: str
    steps: tuple[Step, ...] = ()
    context: Retrieval | None = None
    answer: str | None = None
    error: str | None = None
    repeat: int = 0
    ms: float | None = None
    usage: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    meta: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    def __post_init__(self) -> None:
        checked_id(self.question_id, "trajectory")
        if self.repeat < 0:
            raise DataError(f"trajectory {self.question_id!r}: expected repeat >= 0, got {self.repeat}")

    @property
    def key(self) -> tuple[str, int]:
        return (self.question_id, self.repeat)
