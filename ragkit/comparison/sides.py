"""One variant of a comparison, as far as it is known: its scores at the end, its questions, and the run behind them.

A side comes from a run folder, from an Evaluation in memory, or from a run file with labels (run_sides.py). Nothing is
compared here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError
from ragkit.evaluation.reopen import RunParts, reopen
from ragkit.evaluation.result import Evaluation
from ragkit.evaluation.runfolder import RunFolder, finished_run
from ragkit.evaluation.scoring import final_list
from ragkit.evaluation.table import FINAL, read_scores
from ragkit.evaluation.units import projection_from_json
from ragkit.metrics.text import tokens
from ragkit.records.files import read_object
from ragkit.records.judgements import Score
from ragkit.records.questions import Document, Question

if TYPE_CHECKING:
    import pandas as pd

Scores = Mapping[str, Mapping[str, Mapping[int, Score]]]
"""metric -> question id -> repeat -> score."""

GOLD, JUDGED = "gold", "judged"


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """What is known of a question apart from its scores; None where nobody knows it.

    `grades` is its gold in the unit that it was scored in; `n_gold` counts what reaches the level of the run.
    `n_words` are words (or signs, in scripts without blanks).
    """

    id: str
    text: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    n_gold: int | None = None
    label_state: str | None = None
    n_words: int | None = None
    answers: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    grades: Mapping[str, float] | None = None


@dataclass(frozen=True, repr=False)
class Side:
    """One variant. `scores` are those by gold, and those that need no labels; `judged` are those by a judge's labels.

    The two are never mixed. `by_gold` names the metrics whose scores were made with gold. `run` is run.json (of a run
    file {"run", "qrels", …}), `summary` is summary.json, `table` the whole scores table; both are empty for a run file.
    """

    name: str
    scores: Scores
    judged: Scores
    by_gold: frozenset[str]
    run: Mapping[str, Any]
    summary: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    table: pd.DataFrame | None = None
    evaluation: Evaluation | None = None
    known_questions: Mapping[str, QuestionFacts] | None = None  # of a run file, whose labels are read already
    read_lists: Callable[[], Mapping[str, tuple[str, ...]]] | None = None
    corpus: Mapping[str, Document] | None = None  # of a run file: what its ids stand for, where that is known

    def __repr__(self) -> str:
        return f"<Side {self.name!r}: {len(self.asked)} questions>"

    def named(self, name: str) -> Side:
        """The same under another name."""
        return replace(self, name=name)

    def scores_by(self, labels: str = GOLD) -> Scores:
        """All scores that belong to these labels: with "judged" those that need no labels are among them."""
        if labels == GOLD:
            return self.scores
        free = {metric: found for metric, found in self.scores.items() if metric not in self.by_gold}
        return {**free, **self.judged}

    def values(self, metric: str, labels: str = GOLD) -> dict[str, float]:
        """The values by question, repeats averaged; questions without a scored one are left out."""
        return {question: sum(found) / len(found) for question, found in self.repeats(metric, labels).items()}

    def repeats(self, metric: str, labels: str = GOLD) -> dict[str, list[float]]:
        """The values of all scored repeats by question; questions without any are left out."""
        found: dict[str, list[float]] = {}
        for question, repeats in self.scores_by(labels).get(metric, {}).items():  # a loop, since runs are long
            for score in repeats.values():
                if score.value is not None:
                    if question in found:
                        found[question].append(score.value)
                    else:
                        found[question] = [score.value]
        return found

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """The ids of all questions that there is some score of, also an undefined or failed one."""
        rows = [*self.scores.values(), *self.judged.values()]
        return tuple(dict.fromkeys(question for found in rows for question in found))

    @cached_property
    def _opened(self) -> tuple[RunParts | None, str | None]:
        if self.evaluation is not None:
            made = self.evaluation
            gold = projection_from_json(made.run["projection"], made.plan.dataset)
            return RunParts(made.run, made.plan, made.trajectories, gold), None
        if self.folder is None:
            return None, None
        try:
            return reopen(self.folder), None
        except (DataError, OSError) as error:
            return None, str(error)

    @property
    def past(self) -> RunParts | None:
        """Trajectories, plan and gold of the run, opened when first asked for; None where they cannot be had."""
        return self._opened[0]

    @property
    def why_closed(self) -> str | None:
        """Why `past` is None, where a folder is there and cannot be opened."""
        return self._opened[1]

    @cached_property
    def questions(self) -> Mapping[str, QuestionFacts]:
        """What is known of each question that was asked."""
        if self.known_questions is not None:
            return self.known_questions
        if self.past is None:
            return {question: QuestionFacts(question, category=category)
                    for question, category in _categories(self.table).items()}
        plan, qrels = self.past.plan, self.past.gold.qrels
        return {question: question_facts(plan.dataset.by_id[question], plan.dataset.label_state(question),
                                         qrels.get(question, {}), plan.level)
                for question in self.asked if question in plan.dataset.by_id}

    @cached_property
    def lists(self) -> Mapping[str, tuple[str, ...]] | None:
        """The list at the end of each question, best first, in the unit of its gold; of the first repeat.

        None where nobody knows the lists.
        """
        if self.read_lists is not None:
            return self.read_lists()
        if self.past is None:
            return None
        found: dict[str, tuple[str, ...]] = {}
        for trajectory in sorted(self.past.scoring().trajectories, key=lambda t: t.repeat):
            names = self.past.gold.names(trajectory.question_id, final_list(trajectory).passages)
            found.setdefault(trajectory.question_id, names)
        return found


def question_facts(question: Question, label_state: str, grades: Mapping[str, float], level: float) -> QuestionFacts:
    """The facts of a question of a data set, with its gold."""
    n_gold = None if label_state == "unlabelled" else sum(grade >= level for grade in grades.values())
    return QuestionFacts(question.id, question.text, question.category, question.tags, n_gold, label_state,
                         len(tokens(question.text)), question.answers, question.metadata, grades)


def side_of_folder(path: str | Path, name: str | None = None) -> Side:
    """A finished run folder, under its variant's name unless another is given; DataError where it is none."""
    folder = RunFolder(Path(path))
    run = finished_run(folder.path)
    return _side(name or run["variant"], read_scores(folder.scores), run, summary=read_object(folder.summary),
                 folder=folder.path)


def side_of_evaluation(name: str, evaluation: Evaluation, folder: str | Path | None = None) -> Side:
    """A result in memory; `folder` is where it was written to, if anywhere."""
    return _side(name, evaluation.scores, evaluation.run, summary=evaluation.summary, evaluation=evaluation,
                 folder=None if folder is None else Path(folder))


def _side(name: str, table: pd.DataFrame, run: Mapping[str, Any], **more: Any) -> Side:
    final = table[table["step"] == FINAL]
    scores: dict[str, dict[str, dict[int, Score]]] = {}
    judged: dict[str, dict[str, dict[int, Score]]] = {}
    columns = (final[column].astype(object) for column in ("metric", "question_id", "repeat", "value", "status",
                                                           "reason", "labels"))
    by_gold = set()
    for metric, question, repeat, value, status, reason, labels in zip(*columns, strict=True):
        score = Score(float(value), status) if status == "scored" else Score(None, status, str(reason))
        if labels == GOLD:
            by_gold.add(metric)
        place = judged if labels == JUDGED else scores
        place.setdefault(metric, {}).setdefault(question, {})[int(repeat)] = score
    return Side(name, scores, judged, frozenset(by_gold), run, table=table, **more)


def _categories(table: pd.DataFrame | None) -> dict[str, str | None]:
    if table is None:
        return {}
    rows = table[["question_id", "category"]].drop_duplicates("question_id")
    return {str(question): category if isinstance(category, str) else None
            for question, category in zip(rows["question_id"], rows["category"], strict=True)}
