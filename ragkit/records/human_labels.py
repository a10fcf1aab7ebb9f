"""What people said of single answers: one label a (metric, question, repeat), with how it was drawn; JSON Lines.

Gold labels of documents are in labels.py; the sheets that people fill in are in label_sheets.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.records.files import read_jsonl, write_jsonl
from ragkit.records.questions import is_finite

USUAL_METRIC = "faithfulness"
_KEYS = ("metric", "question_id", "repeat", "question", "contexts", "answer", "reference", "label", "note", "stratum",
         "weight", "row")


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """A person's label of one answer by one metric, on that metric's scale; `value` None: left out by the person.

    `row` is the content_code of what was shown ("" where nobody wrote it down), `weight` how many questions the row
    stands for (None: nothing is known of how it was drawn), `stratum` what it was drawn together with. `more` holds
    further columns, such as the labels of a second annotator.
    """

    metric: str
    question_id: str
    repeat: int = 0
    value: float | None = None
    row: str = ""
    weight: float | None = None
    stratum: str = ""
    question: str = ""
    answer: str = ""
    contexts: tuple[str, ...] = ()
    reference: str = ""
    note: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, int]:
        """(metric, question id, repeat): what is labelled once."""
        return self.metric, self.question_id, self.repeat


def content_code(question_id: str, repeat: int, texts: Sequence[str | None]) -> str:
    """A short code of one answer with all that it is judged by; another text, another code.

    It begins with a letter, so that no spreadsheet takes it for a number.

    >>> content_code("q1", 0, ["Where?", "In Rome.", None])
    'r-a449765f50f96c7b'
    """
    data = json.dumps([question_id, repeat, list(texts)], ensure_ascii=True)
    return "r-" + hashlib.sha256(data.encode()).hexdigest()[:16]


def read_human_labels(path: str | Path) -> list[HumanLabel]:
    """The labels of a JSON Lines file: question_id and label (a number, true, false or null) in every line.

    `metric` is faithfulness where it is absent, `repeat` 0; weight, stratum and row are kept where they stand.
    Raises DataError with file and line for anything else, and where a (metric, question, repeat) stands twice.
    """
    labels, seen = [], dict[tuple[str, str, int], int]()
    for line, data in read_jsonl(path):
        label = _label(data, f"{path}:{line}")
        if label.key in seen:
            raise DataError(f"{path}:{line}: question {label.question_id!r} has a label for {label.metric} in line "
                            f"{seen[label.key]} already; expected one a (metric, question, repeat)")
        seen[label.key] = line
        labels.append(label)
    if not labels:
        raise DataError(f"{path}: no label in it; expected a line a label, with question_id and label")
    return labels


def write_human_labels(path: str | Path, labels: Iterable[HumanLabel], include_text: bool = True) -> None:
    """Write the labels, whole or not at all; without texts where they must not be shared."""
    write_jsonl(path, [_row(label, include_text) for label in labels])


def merged(old: Iterable[HumanLabel], new: Iterable[HumanLabel]) -> tuple[list[HumanLabel], int]:
    """Both, the new one where both label the same thing; and how many old ones were replaced.

    >>> merged([HumanLabel("f", "q1", 0, 0.0)], [HumanLabel("f", "q1", 0, 1.0)])[0][0].value
    1.0
    """
    found, replaced = {label.key: label for label in old}, 0
    for label in new:
        replaced += label.key in found
        found[label.key] = label
    return list(found.values()), replaced


def _label(data: Any, where: str) -> HumanLabel:
    if not isinstance(data, Mapping):
        raise DataError(f"{where}: expected a JSON object with question_id and label, got {shown(data)}")
    question_id, repeat, contexts = data.get("question_id"), data.get("repeat", 0), data.get("contexts") or ()
    if not isinstance(question_id, str) or not question_id:
        raise DataError(f"{where}: question_id: expected a non-empty text, got {shown(question_id)}")
    if "label" not in data:
        raise DataError(f"{where}: the key label is missing; expected a number, or null where a person left it out")
    value, weight = data["label"], data.get("weight")
    if isinstance(value, bool):
        value = float(value)
    if value is not None and not is_finite(value):
        raise DataError(f"{where}: label: expected a number, true, false or null, got {shown(value)}")
    if weight is not None and not (is_finite(weight) and weight > 0):
        raise DataError(f"{where}: weight: expected a number above 0, got {shown(weight)}")
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 0:
        raise DataError(f"{where}: repeat: expected a whole number from 0, got {shown(repeat)}")
    if isinstance(contexts, str) or not all(isinstance(text, str) for text in contexts):
        raise DataError(f"{where}: contexts: expected a list of texts, got {shown(contexts)}")
    texts = {name: str(data.get(name) or "") for name in ("row", "stratum", "question", "answer", "reference", "note")}
    return HumanLabel(
        str(data.get("metric") or USUAL_METRIC), question_id, repeat, None if value is None else float(value),
        weight=None if weight is None else float(weight), contexts=tuple(contexts), **texts,
        more={name: cell for name, cell in data.items() if name not in _KEYS})


def _row(label: HumanLabel, include_text: bool) -> dict[str, Any]:
    texts = {"question": label.question, "contexts": list(label.contexts), "answer": label.answer,
             "reference": label.reference} if include_text else {}
    drawn = {"stratum": label.stratum, "weight": label.weight, "row": label.row}
    note = {"note": label.note} if include_text and label.note else {}
    return {"metric": label.metric, "question_id": label.question_id, "repeat": label.repeat, **texts,
            "label": label.value, **note, **drawn, **(label.more if include_text else {})}
