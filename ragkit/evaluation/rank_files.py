"""Runs in files against qrels in a file: every metric of every question, the means, and what was met on the way.

Reading is in ragkit.records.readers, the numbers in ragkit.metrics; nothing heavy is imported, since the whole process
of `ragkit rank` is timed. What the notes that scoring adds mean is in rank_notes.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragkit.errors import DataError
from ragkit.evaluation.rank_notes import EXAMPLES, notes_on_labels, notes_on_run
from ragkit.metrics.batch import Floats, batch_of_run, check_level
from ragkit.metrics.ranking import score_arrays
from ragkit.metrics.registry import Metric
from ragkit.records.projection import DocumentMap
from ragkit.records.readers.runfiles import read_judged_run
from ragkit.records.readers.trec import read_qrels
from ragkit.records.runs import Note, RunRules


@dataclass(frozen=True, eq=False)
class MetricResult:
    """One metric of one run: a value a question of the qrels (NaN where undefined) and the mean of the scored ones."""

    name: str
    values: Floats
    mean: float | None
    n_scored: int
    n_asked: int
    n_undefined: int


@dataclass(frozen=True, eq=False)
class RunResult:
    """One run's metrics, in the order asked, and the notes on it."""

    name: str
    path: Path
    metrics: tuple[MetricResult, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, eq=False)
class RankResult:
    """Several runs on the same questions (those of the qrels, in their order), and the rules they were scored by."""

    questions: tuple[str, ...]
    runs: tuple[RunResult, ...]
    notes: tuple[Note, ...]
    level: float
    rules: RunRules
    trec: bool

    def to_json(self, per_question: bool = False, texts: bool = False) -> dict[str, Any]:
        """Plain data: {"runs": {name: {metric: {mean, n_scored, n_asked, n_undefined[, per_question]}}}, "notes"}.

        What is undefined is None. `texts`: notes carry their text too, for those who word them.
        """
        return {
            "runs": {run.name: {metric.name: self._metric(metric, per_question) for metric in run.metrics}
                     for run in self.runs},
            "notes": [_note(note, texts) for note in self.notes]
            + [_note(note, texts) | {"run": run.name} for run in self.runs for note in run.notes],
        }

    def _metric(self, metric: MetricResult, per_question: bool) -> dict[str, Any]:
        found: dict[str, Any] = {"mean": metric.mean, "n_scored": metric.n_scored, "n_asked": metric.n_asked,
                                 "n_undefined": metric.n_undefined}
        if per_question:
            found["per_question"] = dict(zip(self.questions, plain(metric.values), strict=True))
        return found


def rank_files(
    qrels_path: str | Path, run_paths: Sequence[str | Path], metrics: Sequence[Metric], *, level: float = 1.0,
    rules: RunRules | None = None, trec: bool = False,
) -> RankResult:
    """Score run files against a qrels file.

    The questions are those of the qrels: one without a result scores 0 and is listed; one to which nothing is relevant
    is undefined. `trec` is the convention of trec_eval -c: what is undefined counts as 0, for metrics that know a 0.

    Raises DataError for a metric that is no rank metric, and for files that cannot be read (with file and line).
    """
    check_level(level)
    for metric in metrics:
        require_ranking(metric)
    names = run_names(run_paths)
    rules = rules or RunRules()
    qrels = read_qrels(qrels_path, normalize_ids=rules.normalize_ids)
    runs = []
    notes: tuple[Note, ...] = ()
    for name, path in zip(names, run_paths, strict=True):
        judged = read_judged_run(path, qrels, rules, name)
        batch = batch_of_run(judged, qrels, level=level)
        values = score_arrays(batch, metrics)
        notes = notes_on_labels(batch, judged.questions)
        results = tuple(_result(metric, values[:, place], trec) for place, metric in enumerate(metrics))
        cut = max((metric.k for metric in metrics if metric.k is not None), default=None)
        runs.append(RunResult(name, Path(path), results, notes_on_run(judged, qrels, Path(path), rules, cut)))
    unknown = sorted(rules.document_of.unknown) if isinstance(rules.document_of, DocumentMap) else []
    if unknown:
        notes += (Note("unmapped", len(unknown), tuple(unknown[:EXAMPLES])),)
    return RankResult(tuple(qrels), tuple(runs), notes, level, rules, trec)


def require_ranking(metric: Metric) -> None:
    """Raise DataError unless a list of ids and its gold are enough for the metric."""
    kind = metric.definition.kind
    if kind != "ranking":
        raise DataError(f"metric {metric.name}: expected a rank metric, such as ndcg@10; this one is of the kind "
                        f"{kind!r}, which a run file does not hold")


def run_names(paths: Sequence[str | Path]) -> list[str]:
    """What runs are called: the file's name without .gz and its last suffix; equal names take the path as given.

    >>> run_names(["a/run.bm25.trec.gz", "b/dense.txt", "c/dense.txt"])
    ['run.bm25', 'b/dense.txt', 'c/dense.txt']
    """
    given = [str(path) for path in paths]
    twice = next((path for path, count in Counter(given).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"{twice}: given twice; expected each run once")
    names = [Path(Path(path).name.removesuffix(".gz")).stem or path for path in given]
    counts = Counter(names)
    chosen = [path if counts[name] > 1 else name for name, path in zip(names, given, strict=True)]
    return chosen if len(set(chosen)) == len(chosen) else given


def plain(values: Floats) -> list[float | None]:
    """Numbers for JSON: None where undefined."""
    numbers: list[float | None] = values.tolist()
    if np.isnan(values).any():
        return [None if number != number else number for number in numbers]  # noqa: PLR0124 -- NaN is not itself
    return numbers


def trec_values(values: Floats, metric: Metric) -> Floats:
    """0 for what is undefined, where the metric's range holds 0."""
    low, high = metric.definition.range
    if (low is not None and low > 0) or (high is not None and high < 0):
        return values
    return np.where(np.isnan(values), 0.0, values)


def _result(metric: Metric, values: Floats, trec: bool) -> MetricResult:
    if trec:
        values = trec_values(values, metric)
    scored = values[~np.isnan(values)].tolist()
    mean = math.fsum(scored) / len(scored) if scored else None  # exact, so the order of the questions changes nothing
    return MetricResult(metric.name, values, mean, len(scored), len(values), len(values) - len(scored))


def _note(note: Note, texts: bool) -> dict[str, Any]:
    plain_note: dict[str, Any] = {"kind": note.kind, "count": note.count, "examples": list(note.examples)}
    return plain_note | {"text": note.text} if texts else plain_note
