"""What a judge is asked about: one question with its answer, contexts and reference. Asks nothing itself."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from ragkit.errors import DataError
from ragkit.records.unseen import spelt_out


@dataclass(frozen=True, slots=True)
class JudgeSample:
    """One thing to judge. `key` is the caller's own name for it (question id, repeat, step, variant …).

    `contexts` are the passages' texts in rank order; `contexts_ranked=False` says that their order means nothing.
    `reference` is the reference answer that ragas sees. Two samples of the same content share their judgement.
    """

    key: tuple[Hashable, ...]
    question: str
    answer: str | None = None
    contexts: tuple[str, ...] = ()
    contexts_ranked: bool = True
    reference: str | None = None

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise DataError(f"judge sample {self.key!r}: expected a non-empty question")


def judge_text(text: str) -> str:
    """The text as a judge is given it: with every character in sight that a reader would not see.

    Lone surrogates, which no JSON request can carry, become U+FFFD.

    >>> judge_text("a\\ud800b") == "a\\ufffdb", judge_text("30\\u202e days")
    (True, '30[U+202E] days')
    """
    return spelt_out(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
