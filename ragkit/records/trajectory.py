"""What the app did on one question: steps, ranked lists, the context of the answer. Checked at birth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from ragkit.errors import DataError, shown
from ragkit.records.questions import checked_id

Stage = Literal["retrieve", "rerank", "filter", "fuse", "context", "union", "other"]
ScoreKind = Literal["similarity", "distance", "unknown"]
STAGES: tuple[str, ...] = get_args(Stage)
SCORE_KINDS: tuple[str, ...] = get_args(ScoreKind)
_MOST_REPEATS = 2**31 - 1  # what a column of the scores table holds

_EMPTY: Mapping[str, Any] = MappingProxyType({})


def as_float(value: float, what: str) -> float:
    """A number as float; what no float can hold (10**400) is a DataError that opens with `what`."""
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        raise DataError(f"{what}: expected a number that a float can hold, got {shown(value)}") from None


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
        if self.score is not None and math.isnan(as_float(self.score, f"passage {self.id!r}: score")):
            raise DataError(f"passage {self.id!r}: the score is NaN")

    @property
    def truncated(self) -> bool:
        """Whether its text was cut off in the prompt, as the recorder found it there."""
        return bool(self.metadata.get("truncated"))


@dataclass(frozen=True, slots=True)
class Retrieval:
    """One list at one stage. The order of `passages` is the rank where `ranked`; never sort by a bare score.

    An `error` without a word (an empty text) says that nothing failed, and becomes None.
    """

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
        object.__setattr__(self, "error", _said(self.error))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the passages, in their order."""
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
        """The list that the app got."""
        return self.retrievals[0]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """All that was seen while the app answered one question, one time (`repeat`).

    `context` is the list that the answer was written from: None means unknown, an empty list means "nothing".
    `usage` sums tokens and cost ("input_tokens", "output_tokens", "cost"). Gold is not inside: it lives in the
    dataset and is joined by question id. `meta` holds what else was noticed (warnings, a list of strings, among it).
    Each step has an index of its own. An `error` without a word (an empty text) becomes None: nothing failed.
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
        what = f"trajectory {self.question_id!r}"
        if isinstance(self.repeat, bool) or not isinstance(self.repeat, int) or not 0 <= self.repeat <= _MOST_REPEATS:
            raise DataError(f"{what}: expected repeat >= 0, a whole number up to {_MOST_REPEATS}, "
                            f"got {shown(self.repeat)}")
        seen: set[int] = set()
        for step in self.steps:
            if step.index in seen:
                raise DataError(f"{what}: the step index {step.index} stands twice; expected unique indexes")
            seen.add(step.index)
        warnings = self.meta.get("warnings", ()) if isinstance(self.meta, Mapping) else self.meta
        if not isinstance(warnings, (list, tuple)) or not all(isinstance(warning, str) for warning in warnings):
            raise DataError(f"{what}: meta.warnings: expected a list of strings, got {shown(warnings)}")
        object.__setattr__(self, "error", _said(self.error))

    @property
    def key(self) -> tuple[str, int]:
        """(question id, repeat): unique among the trajectories of a run."""
        return (self.question_id, self.repeat)


def _said(error: str | None) -> str | None:
    return error if error and error.strip() else None
