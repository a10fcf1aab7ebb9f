"""Variants of an app as results in memory or run folders: a question is asked, and its list is what the test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ragkit
from ragkit.evaluation.result import Evaluation
from ragkit.records.questions import Dataset, Question
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

GOLD = "g"


def dataset(count: int = 6, gold: Sequence[str] = (GOLD,), **more: Any) -> Dataset:
    """Questions q0, q1, … with these gold ids each."""
    questions = tuple(Question(f"q{n}", f"What is number {n}?", ("This.",), **more) for n in range(count))
    return Dataset(questions, {question.id: dict.fromkeys(gold, 1.0) for question in questions})


def at_rank(rank: int | None, depth: int = 10) -> tuple[str, ...]:
    """A list of `depth` passages with the gold one at this rank; without it where None."""
    return tuple(GOLD if place == rank else f"x{place}" for place in range(1, depth + 1))


def answered(question: Question, ids: Sequence[str], repeat: int = 0, **more: Any) -> Trajectory:
    found = Retrieval("retrieve", question.text, tuple(Passage(name, f"Text of {name}.") for name in ids))
    return Trajectory(question.id, question.text, (Step(0, (found,)),), Retrieval("context", "", found.passages),
                      **{"answer": "This.", "repeat": repeat, **more})


def variant(lists: Mapping[str, Sequence[Sequence[str]] | None], data: Dataset | None = None, out: Path | None = None,
            metrics: str = "mrr,recall@5,exact_match", **options: Any) -> Evaluation:
    """A result of one list a repeat and question; None: the app failed on the question."""
    data = data or dataset(len(lists))
    trajectories = []
    for name, repeats in lists.items():
        question = data.by_id[name]
        if repeats is None:
            trajectories.append(Trajectory(name, question.text, error="no answer"))
        else:
            trajectories += [answered(question, ids, place) for place, ids in enumerate(repeats)]
    return ragkit.score(trajectories, data, metrics=metrics, out=out, **options)


def ranked(*ranks: int | None, **options: Any) -> Evaluation:
    """A variant that finds the gold of q0, q1, … at these ranks."""
    return variant({f"q{n}": [at_rank(rank)] for n, rank in enumerate(ranks)}, **options)
