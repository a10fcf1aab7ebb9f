"""What may be set about an evaluation, with its usual values. Reads nothing but the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.evaluation.scoring import FUSED, UNION
from ragkit.judge.settings import JudgeSettings
from ragkit.records.human_labels import HumanLabel
from ragkit.records.questions import Question
from ragkit.records.trajectory import Trajectory


@dataclass(frozen=True)
class Options:
    """The keywords of `evaluate` and `score` that have a usual value.

    `timeout` is seconds a question, `retries` is for the app's own rate limits, `limit` a seeded sample of the
    questions, `level` the grade from which a document is relevant, `answer_threshold` the limit of the rule by which
    an answer counts as right, `config` what else identifies the run (a changed one is refused in the same folder).
    `threshold` is a file of `ragkit agreement --calibrate`, or several.
    `include_text=False` writes hashes instead of texts in all that may be shared. `relevance="judge"` lets the judge
    grade the passages of every list, `per_step_query` those of each step against the step's own query. `judge_steps`
    lets the judged metrics of a list (context_precision, context_recall …) be asked of each step's list, too.
    `labels` are what people said of a part of the answers (a file or a list): means are corrected by them. `rejudge`
    lets another judge go on in a folder, after so many questions were asked of both. `without_context` says what stands
    at the end where the app shows no final context: the "union" of the steps' lists, uncut, or one ranking of them by
    reciprocal rank fusion ("rrf").
    """

    variant: str | None = None
    k_values: tuple[int, ...] = ()
    repeats: int = 1
    concurrency: int = 4
    timeout: float = 120.0
    retries: int = 3
    limit: int | None = None
    seed: int = 0
    level: float = 1.0
    answer_threshold: float = 0.5
    all_questions: bool = False
    include_text: bool = True
    columns: Mapping[str, str] | None = None
    split: str = "test"
    to_input: Callable[[Question], Any] | None = None
    to_answer: Callable[[Any], str | None] | None = None
    relevance: str | None = None
    per_step_query: bool = False
    judge_steps: bool = False
    labels: str | Path | Sequence[HumanLabel] = ()
    rejudge: int | None = None
    without_context: str = UNION
    threshold: Any = None
    judge_url: str | None = None
    judge_settings: JudgeSettings = field(default_factory=JudgeSettings)
    config: Mapping[str, Any] = field(default_factory=dict)
    on_recorded: Callable[[Trajectory], None] | None = None
    on_judged: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        for name, kinds in (("repeats", int), ("concurrency", int), ("retries", int), ("seed", int),
                            ("timeout", int | float), ("level", int | float), ("answer_threshold", int | float)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise DataError(f"{name}: expected a number, got {type(value).__name__} {value!r}")
        for name in ("repeats", "concurrency"):
            if getattr(self, name) < 1:
                raise DataError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.timeout <= 0:
            raise DataError(f"timeout: expected more than 0 seconds, got {self.timeout:g}")
        if not 0 < self.answer_threshold <= 1:
            raise DataError(f"answer_threshold: expected a number in (0, 1], got {self.answer_threshold:g}")
        if self.relevance not in (None, "judge"):
            raise DataError(f"relevance: expected 'judge' (or None), got {self.relevance!r}")
        if self.without_context not in (UNION, FUSED):
            raise DataError(f"without_context: expected {UNION} or {FUSED}, got {self.without_context!r}")
        if self.rejudge is not None and self.rejudge < 1:
            raise DataError(f"rejudge: expected at least 1 question, got {self.rejudge}")
        if any(k < 1 for k in self.k_values):
            raise DataError(f"k_values: a cut must be at least 1, got {min(self.k_values)}")


def options_of(given: Mapping[str, Any]) -> Options:
    """Options from keywords; an unknown one is a DataError."""
    known = {entry.name for entry in fields(Options)}
    for name in given:
        if name not in known:
            raise DataError(f"evaluate: unknown option {name!r}; known: {', '.join(sorted(known))}")
    return Options(**given)
