"""What a measurement said: a Score is a value, or undefined, or failed, never two of them; verdicts stand behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ragkit.errors import DataError

Status = Literal["scored", "undefined", "failed"]


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of one metric on one thing.

    scored: `value` is a finite number. undefined: there was nothing to measure. failed: it should have been measured
    and was not. The last two have a reason and no value, and never enter a mean.

    >>> Score.scored(0.5).value, Score.undefined("no gold").value
    (0.5, None)
    """

    value: float | None
    status: Status
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.status == "scored") != (self.value is not None):
            raise DataError(f"score: {self.status} with value {self.value!r}")
        if self.value is not None and not math.isfinite(self.value):
            raise DataError(f"score: expected a finite value, got {self.value!r}")
        if self.status != "scored" and not self.reason:
            raise DataError(f"score: {self.status} needs a reason")

    @classmethod
    def scored(cls, value: float) -> Score:
        """A measured value; DataError where it is not finite."""
        return cls(float(value), "scored")

    @classmethod
    def undefined(cls, reason: str) -> Score:
        """There was nothing to measure, for this reason."""
        return cls(None, "undefined", reason)

    @classmethod
    def failed(cls, reason: str) -> Score:
        """It should have been measured and was not, for this reason."""
        return cls(None, "failed", reason)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One decision of a judge about one thing (`subject`: a passage, a statement, a generated question).

    `value` is what the formula reads (0 or 1; a cosine for answer relevancy); `flags` mark it ("noncommittal").
    """

    value: float
    subject: str = ""
    reason: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judged outcome of one metric on one sample, with the verdicts behind it and what it cost in calls."""

    metric: str
    judge: str
    score: Score
    verdicts: tuple[Verdict, ...] = ()
    n_calls: int = 0
    n_stored: int = 0
    raw: str | None = None  # of a failed one: the reply as it came
