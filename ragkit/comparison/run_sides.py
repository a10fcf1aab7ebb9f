"""Variants that are run files: scored against labels in a file, as `ragkit rank` does. Compares nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit.comparison.sides import QuestionFacts, Side, question_facts
from ragkit.errors import DataError
from ragkit.evaluation.rank_files import MetricResult, RankResult, RunResult, plain, rank_files
from ragkit.metrics.registry import Metric, parse_all
from ragkit.records.judgements import Score
from ragkit.records.questions import Dataset, Question
from ragkit.records.readers import load_dataset
from ragkit.records.readers.runfiles import read_lists
from ragkit.records.readers.trec import read_qrels
from ragkit.records.runs import PLAIN_RULES, RunRules
from ragkit.report.rank_table import Settings, note_words

if TYPE_CHECKING:
    from ragkit.records.questions import Qrels

DEFAULT = "ndcg@10,mrr@10,map,precision@5,recall@10,recall@100,hit@1,hit@5,allhit@5"
_TOLD = ("no_overlap", "missing", "similar_ids", "ties")  # notes that a reader of differences must know


def sides_of_runs(
    qrels: str | Path, runs: Mapping[str, str | Path] | Sequence[str | Path],
    metrics: str | Sequence[str] | Sequence[Metric] | None = None, *, level: float = 1.0, rules: RunRules | None = None,
    dataset: str | Path | None = None,
) -> list[Side]:
    """A side for each run file, all on the questions of the qrels; a mapping names them, else their files do.

    `dataset` is where the questions' texts, categories and tags are found, for slices, and the texts of passages.
    Raises DataError as `rank_files` does.
    """
    paths = [str(path) for path in (runs.values() if isinstance(runs, Mapping) else runs)]
    rules = rules or PLAIN_RULES
    asked = parse_all([str(metric) for metric in ([metrics] if isinstance(metrics, str) else metrics or [DEFAULT])])
    result = rank_files(qrels, paths, asked, level=level, rules=rules)
    labels = read_qrels(qrels, normalize_ids=rules.normalize_ids)
    data = None if dataset is None else load_dataset(dataset)
    facts = _facts(labels, level, data, str(dataset))
    names = list(runs) if isinstance(runs, Mapping) else [run.name for run in result.runs]
    made = [_side(name, result, run, labels, facts, str(qrels)) for name, run in zip(names, result.runs, strict=True)]
    return [replace(side, corpus=data.corpus) for side in made] if data is not None else made


def _side(name: str, result: RankResult, run: RunResult, labels: Qrels, facts: Mapping[str, QuestionFacts],
          qrels: str) -> Side:
    scores = {metric.name: _scores(metric, result.questions, definition)
              for metric, definition in zip(run.metrics, _undefined(run), strict=True)}
    settings = Settings(result.rules, result.level, result.trec)
    told = result.to_json(texts=True)["notes"]
    notes = [note_words(note, settings) for note in told if note.get("run") == run.name and note["kind"] in _TOLD]
    return Side(name, scores, {}, frozenset(scores),
                {"run": str(run.path), "qrels": qrels, "level": result.level, "notes": notes},
                known_questions=facts, read_lists=partial(read_lists, run.path, labels, result.rules))


def _undefined(run: RunResult) -> list[str]:
    return [parse_all(metric.name)[0].definition.undefined for metric in run.metrics]


def _scores(metric: MetricResult, questions: Sequence[str], undefined: str) -> dict[str, dict[int, Score]]:
    return {question: {0: Score.undefined(undefined) if value is None else Score.scored(value)}
            for question, value in zip(questions, plain(metric.values), strict=True)}


def _facts(labels: Qrels, level: float, dataset: Dataset | None, where: str) -> dict[str, QuestionFacts]:
    known = {} if dataset is None else dataset.by_id
    if dataset is not None and not known.keys() & labels.keys():
        raise DataError(f"{where}: holds no question of the qrels (the first of those is {next(iter(labels), '')!r}); "
                        "expected the questions that the labels are of")
    found = {}
    for question, grades in labels.items():
        n_gold = sum(grade >= level for grade in grades.values())
        state = "labelled" if any(grade > 0 for grade in grades.values()) else "unanswerable"
        own: Question | None = known.get(question)
        found[question] = question_facts(own, state, grades, level) if own is not None else \
            QuestionFacts(question, n_gold=n_gold, label_state=state, grades=grades)
    return found

