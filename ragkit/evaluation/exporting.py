"""A run folder -> what other tools can hold of it. Which form it then takes is written in recording/formats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError
from ragkit.evaluation.reopen import reopen
from ragkit.evaluation.runfolder import RunFolder, read_run
from ragkit.evaluation.scoring import final_list, passage_text
from ragkit.evaluation.table import FINAL, read_scores
from ragkit.evaluation.units import Projection
from ragkit.recording.formats.writers_ragas import RagasRow
from ragkit.recording.formats.writers_trec import RunList, names
from ragkit.records.files import read_trajectories, trajectory_from_json, trajectory_to_json
from ragkit.records.questions import Dataset, text_id
from ragkit.records.trajectory import Passage, Trajectory

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Export:
    """A run that is written for another tool. `dataset` and `gold` are None where they cannot be had any more; `notes`
    say why. With `no_text` a hash stands in the place of every text."""

    path: Path
    variant: str
    started: float
    trajectories: tuple[Trajectory, ...]
    dataset: Dataset | None = None
    gold: Projection | None = None
    no_text: bool = False
    notes: tuple[str, ...] = ()

    @property
    def shareable(self) -> tuple[Trajectory, ...]:
        """The trajectories as they may be shown: with texts, or with their hashes."""
        if not self.no_text:
            return self.trajectories
        return tuple(trajectory_from_json(trajectory_to_json(one, include_text=False), str(self.path))
                     for one in self.trajectories)

    def scores(self) -> pd.DataFrame:
        """The scores table of the run."""
        return read_scores(RunFolder(self.path).scores)


def open_export(path: Path, no_text: bool = False) -> Export:
    """A run folder, finished or recorded alone, or a file of trajectories."""
    if path.is_file():
        return Export(path, path.stem, 0.0, tuple(read_trajectories(path)), no_text=no_text,
                      notes=("a file of trajectories has no gold; give a run folder for what needs it",))
    run, folder = read_run(path), RunFolder(path)
    variant, started = str(run.get("variant") or path.resolve().name), _seconds(run.get("started"))
    try:
        past = reopen(path)
    except DataError as error:
        found = tuple(read_trajectories(folder.trajectories, allow_torn_tail=True))
        return Export(path, variant, started, found, no_text=no_text, notes=(f"without gold: {error}",))
    asked = tuple(one for one in past.scoring().trajectories if not one.meta.get("not_asked"))
    return Export(path, variant, started, asked, past.plan.dataset, past.gold, no_text)


def _seconds(text: Any) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return 0.0


def ragas_rows(run: Export, with_scores: bool = False) -> tuple[list[RagasRow], list[str]]:
    """(rows, notes): the contexts of each are the list at the end; `with_scores` adds its scores there as columns."""
    scores = _final_scores(run.scores()) if with_scores else {}
    rows, unions, unknown, textless = [], 0, 0, 0
    for one in run.shareable:
        known = one.context is not None or bool(one.steps)
        end = final_list(one)
        unions += one.context is None and len(one.steps) > 1
        unknown += not known
        texts = [_shown(passage, run) for passage in end.passages]
        textless += sum(text is None for text in texts)
        row = RagasRow(
            one, tuple(passage.id if text is None else text
                       for passage, text in zip(end.passages, texts, strict=True)) if known else None,
            tuple(passage.id for passage in end.passages), scores=scores.get(one.key, {}))
        rows.append(_with_reference(row, run))
    notes = ["ragas has no steps: the contexts of a row are those that the answer was written from"]
    if unions:
        notes.append(f"{unions:,} rows hold all that the steps found, in order of first appearance: their context is "
                     "not known")
    if unknown:
        notes.append(f"{unknown:,} rows have no contexts: neither a step nor a context is known")
    if textless:
        notes.append(f"{textless:,} contexts are ids: their texts are not known")
    return rows, [*notes, *run.notes]


def _shown(passage: Passage, run: Export) -> str | None:
    """The text of a passage, or its hash."""
    text = passage.text if run.dataset is None else passage_text(passage, run.dataset)
    if text is None or (run.no_text and passage.text is None):
        told = passage.metadata.get("text_hash")
        return told if isinstance(told, str) else None if text is None else text_id(text)
    return text


def _with_reference(row: RagasRow, run: Export) -> RagasRow:
    question = None if run.dataset is None else run.dataset.by_id.get(row.trajectory.question_id)
    if question is None or run.dataset is None:
        return row
    hide = text_id if run.no_text else str
    ids = tuple(one for one, grade in run.dataset.qrels.get(question.id, {}).items() if grade > 0)
    texts = [gold.text for gold in question.gold_texts if gold.text]
    corpus = run.dataset.corpus or {}
    if not texts and all(one in corpus for one in ids):
        texts = [corpus[one].content for one in ids]
    return replace(row, reference=hide(question.answers[0]) if question.answers else None, reference_ids=ids,
                   reference_contexts=tuple(map(hide, texts)))


def _final_scores(frame: pd.DataFrame) -> dict[tuple[str, int], dict[str, float | None]]:
    found: dict[tuple[str, int], dict[str, float | None]] = {}
    for row in frame[frame["step"] == FINAL].to_dict("records"):
        name = f"{row['metric']} (judged)" if row["labels"] == "judged" else str(row["metric"])
        value = float(row["value"])
        key = (str(row["question_id"]), int(row["repeat"]))
        found.setdefault(key, {})[name] = None if math.isnan(value) else value
    return found


def trec_lists(run: Export) -> tuple[dict[str, list[RunList]], list[str]]:
    """(file name -> lists, notes): "final.trec" and "step-N.trec", in a folder for each repeat where there are several.

    Items are called as the gold calls them (a passage by its document, say), each once.
    """
    files: dict[str, list[RunList]] = {}
    repeats = {one.repeat for one in run.trajectories}
    sets = unions = failed = 0
    for one in run.trajectories:
        folder = f"repeat-{one.repeat}/" if len(repeats) > 1 else ""
        if one.error is None:
            end = final_list(one)
            sets += not end.ranked
            unions += not end.cuttable
            scored = one.context or (one.steps[0].outermost if len(one.steps) == 1 else None)
            kind = "unknown" if scored is None else scored.score_kind
            files.setdefault(f"{folder}final.trec", []).append(_list(run, one, end.passages, end.ranked, kind))
        failed += one.error is not None
        for step in one.steps:
            own = step.outermost
            if own.error is None:
                files.setdefault(f"{folder}step-{step.index}.trec", []).append(
                    _list(run, one, own.passages, own.ranked, own.score_kind))
    notes = []
    if sets:
        notes.append(f"{sets:,} lists at the end are sets: their items have the score 0, so only recall and the like, "
                     "without @k, mean anything")
    if unions:
        notes.append(f"{unions:,} lists at the end are all that the steps found, in order of first appearance: a rank "
                     "there is nobody's, metrics with @k mean nothing")
    if failed:
        notes.append(f"{failed:,} trajectories failed and are not in final.trec: ragkit rank counts them as 0")
    return files, [*notes, *run.notes]


def trec_labels(run: Export) -> Mapping[str, Mapping[str, float]] | None:
    """The gold of the questions that were asked, in the unit of the run; None where it is not known."""
    if run.gold is None:
        return None
    return {question_id: run.gold.qrels[question_id] for question_id in dict.fromkeys(
        one.question_id for one in run.trajectories) if run.gold.qrels.get(question_id)}


def _list(run: Export, one: Trajectory, passages: Sequence[Passage], ranked: bool, score_kind: str) -> RunList:
    identifiers = [passage.id for passage in passages]
    labels = {} if run.gold is None else run.gold.qrels.get(one.question_id, {})
    titles = identifiers if run.gold is None else run.gold.names(one.question_id, passages)
    scores = tuple(passage.score for passage in passages if passage.score is not None)
    own = scores if score_kind == "similarity" and len(scores) == len(passages) else None
    return RunList(one.question_id, names(titles, identifiers, labels), own, ranked)
