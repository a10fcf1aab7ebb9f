"""Filled-in sheets into a run folder or a file of labels: checked against what was shown, then the report again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.evaluation.evaluate import areport, run_async
from ragkit.evaluation.judged_rows import judge_sample
from ragkit.evaluation.label_report import codes_of
from ragkit.evaluation.reopen import PastRun, reopen
from ragkit.evaluation.result import Evaluation
from ragkit.evaluation.runfolder import RunFolder, read_run
from ragkit.records.files import read_object, write_json
from ragkit.records.human_labels import HumanLabel, merged, read_human_labels, write_human_labels
from ragkit.report.numbers import counted


@dataclass(frozen=True)
class Imported:
    """What was written where: the labels of the file now, how many came, how many replaced earlier ones."""

    path: Path
    given: int
    empty: int
    replaced: int
    in_all: int
    evaluation: Evaluation | None = None
    page: Path | None = None

    def line(self, changed: int) -> str:
        """The same in words."""
        left = f", {counted(self.empty, 'row')} left empty" if self.empty else ""
        left += f", {counted(changed, 'changed row')} left out" if changed else ""
        old = f", {self.replaced} in the place of earlier ones" if self.replaced else ""
        return f"{self.path}: {counted(self.given, 'label')} came{old}{left}; {counted(self.in_all, 'row')} in all"


def in_a_file(path: Path, labels: Sequence[HumanLabel], annotator: str | None = None) -> Imported:
    """Add labels to a file of labels; a later one of the same answer takes the place of the earlier one."""
    old = read_human_labels(path) if path.exists() else []
    found, replaced = _added(old, labels, annotator)
    write_human_labels(path, found)
    empty = sum(label.value is None for label in labels)
    return Imported(path, len(labels) - empty, empty, replaced, len(found))


def in_a_run(run_folder: Path, labels: Sequence[HumanLabel], annotator: str | None = None) -> Imported:
    """Add labels to a run folder and make its report again, from its files: nobody is asked.

    DataError where a label is of no answer of this run, or a run is writing to the folder. Ids that a spreadsheet took
    for numbers are set right.
    """
    folder = RunFolder(run_folder)
    read_run(run_folder)  # a folder that is none must not be made by locking it
    with folder.locked():
        past = reopen(run_folder)
        made = in_a_file(folder.labels, _set_right(past, labels), annotator)
        evaluation = run_async(areport(run_folder))
        summary: dict[str, Any] = {**read_object(folder.summary), "corrected": evaluation.summary["corrected"]}
        shown = evaluation.with_summary(summary)
        write_json(folder.summary, summary)
        shown.report(folder.html)
        shown.report(folder.markdown)
    return replace(made, evaluation=shown, page=folder.html)


def _set_right(past: PastRun, labels: Sequence[HumanLabel]) -> list[HumanLabel]:
    scoring = past.scoring()
    places = {code: key for key, code in codes_of(scoring).items()}
    trajectories = {trajectory.key: trajectory for trajectory in scoring.trajectories}
    strange = [label for label in labels if label.row not in places]
    if strange:
        raise DataError(f"{past.folder.path}: {len(strange)} of {counted(len(labels), 'row')} "
                        f"{'is' if len(strange) == 1 else 'are'} of no answer of this run (the first is of question "
                        f"{strange[0].question_id!r}); expected the run that the sheet was drawn from, "
                        "with the answers that it had")
    made = []
    for label in labels:
        question_id, repeat = places[label.row]
        sample = judge_sample(scoring, trajectories[question_id, repeat])
        made.append(replace(label, question_id=question_id, repeat=repeat, question=sample.question,
                            answer=sample.answer or "", contexts=sample.contexts, reference=sample.reference or ""))
    return made


def _added(old: Sequence[HumanLabel], new: Sequence[HumanLabel],
           annotator: str | None) -> tuple[list[HumanLabel], int]:
    if annotator is None:
        return merged(old, new)
    if annotator in ("label", "metric", "question_id", "repeat", "weight", "stratum", "row"):
        raise DataError(f"--as {annotator}: is the name of a column of its own; expected the name of a person")
    first = {label.key: label for label in old}
    replaced = sum(annotator in first[label.key].more for label in new if label.key in first)
    for label in new:
        base = first.get(label.key, replace(label, value=None))
        first[label.key] = replace(base, more={**base.more, annotator: label.value})
    return list(first.values()), replaced
