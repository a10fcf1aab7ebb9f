"""What scoring a run adds to the notes of its reader: holes in the labels, short lists, nothing relevant, no overlap.

How the notes are worded for people is in ragkit.report.rank_table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ragkit.errors import DataError
from ragkit.metrics.batch import RankBatch
from ragkit.records.readers.runfiles import read_question
from ragkit.records.runs import JudgedRun, Note, RunRules

EXAMPLES = 5


def notes_on_labels(batch: RankBatch, questions: Sequence[str]) -> tuple[Note, ...]:
    """"nothing_relevant": the questions of which no document reaches the level."""
    places = np.flatnonzero(batch.n_relevant == 0)
    if not len(places):
        return ()
    return (Note("nothing_relevant", len(places), tuple(questions[i] for i in places[:EXAMPLES])),)


def notes_on_run(
    run: JudgedRun, qrels: Mapping[str, Mapping[str, float]], path: Path, rules: RunRules, cut: int | None
) -> tuple[Note, ...]:
    """The reader's notes with "no_overlap", "unjudged" and "short_lists" among them.

    `cut` is the greatest k asked: "unjudged" counts documents without a label in the top `cut`, its text is the share
    of judged ones; "short_lists" the answered questions with fewer than `cut` results.
    """
    found = [*_no_overlap(run, qrels, path, rules), *run.notes]
    deep = run.lengths if cut is None else np.minimum(run.lengths, cut)
    inside = np.ones(len(run.ranks), dtype=np.bool_) if cut is None else run.ranks <= cut
    known = np.bincount(run.rows[inside], minlength=len(run.questions))
    labelled = np.bincount(run.rows[inside & ~run.copies], minlength=len(run.questions))
    holes = deep - known
    if holes.sum() > 0:
        worst = np.argsort(-holes, kind="stable")[:EXAMPLES]
        share = labelled.sum() / (holes.sum() + labelled.sum())
        found.append(Note("unjudged", int(holes.sum()), tuple(run.questions[i] for i in worst if holes[i]),
                          f"{share:.6f}"))
    if cut is not None:
        short = np.flatnonzero(run.answered & (run.lengths > 0) & (run.lengths < cut))
        if len(short):
            examples = tuple(f"{run.questions[i]} ({run.lengths[i]})" for i in short[:EXAMPLES])
            found.append(Note("short_lists", len(short), examples))
    return tuple(found)


def _no_overlap(
    run: JudgedRun, qrels: Mapping[str, Mapping[str, float]], path: Path, rules: RunRules
) -> tuple[Note, ...]:
    """Nothing in common: most often the wrong file, or ids written in another way."""
    if not run.answered.any():
        others = next((note.examples for note in run.notes if note.kind == "unknown_questions"), ())
        return (Note("no_overlap", len(run.questions), (
            f"questions of the qrels: {', '.join(run.questions[:EXAMPLES])}",
            f"questions of the run: {', '.join(others[:EXAMPLES])}"), "questions"),)
    answered = [run.questions[place] for place in np.flatnonzero(run.answered) if qrels[run.questions[place]]]
    if len(run.rows) or not answered or any(note.kind == "self" for note in run.notes):
        return ()
    shown = [(question, returned) for question in answered[:EXAMPLES]
             if (returned := _returned(path, question, rules))]
    if not shown and not run.lengths.any():
        return ()  # empty lists hold nothing that could be met; they are told as missing
    question, returned = shown[0] if shown else (answered[0], ["?"])
    return (Note("no_overlap", len(answered), (
        f"documents of the qrels for {question}: {', '.join(list(qrels[question])[:EXAMPLES])}",
        f"documents of the run for {question}: {', '.join(returned[:EXAMPLES])}"), "documents"),)


def _returned(path: Path, question: str, rules: RunRules) -> list[str]:
    try:
        return [identifier for identifier, _ in read_question(path, question, rules)]
    except DataError:  # a question whose id was normalised on the way: an example is not worth failing for
        return []
