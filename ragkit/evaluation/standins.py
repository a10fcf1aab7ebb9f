"""Trajectories that stand in for those that an app has not made yet, so that judging them can be planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean

from ragkit.records.questions import Dataset, Question
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

_MOST = 50  # more of the same cost time and tell nothing
_USUAL = 600  # characters of a passage where no corpus tells
_ANSWER = "This is a sentence of an answer. "


@dataclass(frozen=True)
class Shape:
    """What a run is expected to find for a question: passages a step, steps at most, passages in the context.

    `beneath` is how many passages the stages under a step's list hold together (candidates of a re-ranker, the lists
    of a fusion): a judge of relevance grades them, too. `chunk` is a passage's length in characters where the pipeline
    sets it; `known` says that a pipeline's settings set the numbers, so that they are the most there can be; else they
    are a guess.
    """

    k: int = 5
    steps: int = 1
    context_k: int | None = None
    chunk: int | None = None
    known: bool = False
    beneath: int = 0

    @property
    def context(self) -> int:
        return self.context_k or self.k * self.steps

    @property
    def note(self) -> str:
        if self.known:
            return (f"nothing is recorded yet: an upper bound, for {self.context} passages an answer that no other "
                    "question or variant shares")
        return f"nothing is recorded yet: guessed for {self.context} passages an answer that nobody shares"


def stand_in_trajectories(missing: Sequence[tuple[Question, int]], shape: Shape, data: Dataset
                          ) -> tuple[list[Trajectory], float]:
    """A trajectory for each question and repeat, or for an even sample of them; and how many each one stands for."""
    step = max(1, -(-len(missing) // _MOST))
    chosen = missing[::step]
    length = shape.chunk or _length(data)
    made = [_trajectory(question, repeat, shape, length) for question, repeat in chosen]
    return made, len(missing) / len(chosen) if chosen else 1.0


def _trajectory(question: Question, repeat: int, shape: Shape, length: int) -> Trajectory:
    def passages(count: int, first: int = 0) -> tuple[Passage, ...]:
        names = [f"{question.id} {repeat} {first + place}" for place in range(count)]
        return tuple(Passage(f"stand-in {name}", (f"{name} " + "passage " * length)[:length]) for name in names)

    width = max(shape.k, shape.beneath)
    steps = tuple(Step(index, (Retrieval("retrieve", question.text, passages(shape.k, index * width)),
                               Retrieval("retrieve", question.text, passages(width, index * width))))
                  for index in range(shape.steps))
    given = max((len(text) for text in question.answers[:1]), default=0)
    answer = f"{question.id} {repeat}: " + _ANSWER * max(2, round(given / len(_ANSWER)))
    return Trajectory(question.id, question.text, steps, Retrieval("context", passages=passages(shape.context)),
                      answer, repeat=repeat)


def _length(data: Dataset) -> int:
    documents = list(islice((data.corpus or {}).values(), 200))
    return max(20, round(fmean(len(document.content) for document in documents))) if documents else _USUAL
