"""Files of people's labels: what is read, what is refused with file and line, what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.records.human_labels import HumanLabel, content_code, merged, read_human_labels, write_human_labels


def read(tmp_path: Path, *lines: object) -> list[HumanLabel]:
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return read_human_labels(path)


def test_the_least_that_a_line_must_say(tmp_path: Path) -> None:
    found = read(tmp_path, {"question_id": "q1", "label": True}, {"question_id": "q2", "label": None, "bob": 0})
    assert [(one.metric, one.value, one.weight, one.more) for one in found] == [
        ("faithfulness", 1.0, None, {}), ("faithfulness", None, None, {"bob": 0})]


@pytest.mark.parametrize(("line", "said"), [
    ({"label": 1}, "question_id: expected a non-empty text"),
    ({"question_id": 7, "label": 1}, "question_id: expected a non-empty text, got 7"),
    ({"question_id": "q"}, "the key label is missing"),
    ({"question_id": "q", "label": "good"}, "label: expected a number, true, false or null, got 'good'"),
    ({"question_id": "q", "label": 1, "weight": 0}, "weight: expected a number above 0, got 0"),
    ({"question_id": "q", "label": 1, "repeat": -1}, "repeat: expected a whole number from 0, got -1"),
    ({"question_id": "q", "label": 1, "contexts": "x"}, "contexts: expected a list of texts, got 'x'"),
    (["q", 1], "expected a JSON object"),
])
def test_anything_else_is_refused_with_its_line(tmp_path: Path, line: object, said: str) -> None:
    with pytest.raises(DataError) as raised:
        read(tmp_path, {"question_id": "fine", "label": 0}, line)
    assert f"labels.jsonl:2: {said}" in str(raised.value)


def test_a_label_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"labels.jsonl:2: question 'q' has a label for faithfulness in line 1 already"):
        read(tmp_path, {"question_id": "q", "label": 1}, {"question_id": "q", "label": 1})
    with pytest.raises(DataError, match="no label in it"):
        read(tmp_path)


@given(st.text(min_size=1), st.floats(0, 1), st.lists(st.text(), max_size=3), st.text())
def test_labels_survive_their_file(question: str, value: float, contexts: list[str], note: str) -> None:
    import tempfile

    label = HumanLabel("faithfulness", question, 2, value, "r-1", 1.5, "s", question, "a", tuple(contexts), "r", note,
                       {"bob": 1})
    with tempfile.TemporaryDirectory() as folder:
        write_human_labels(Path(folder) / "l.jsonl", [label])
        assert read_human_labels(Path(folder) / "l.jsonl") == [label]
        write_human_labels(Path(folder) / "l.jsonl", [label], include_text=False)
        found = read_human_labels(Path(folder) / "l.jsonl")[0]
    assert (found.key, found.value, found.weight, found.row) == (label.key, value, 1.5, "r-1")
    assert (found.question, found.contexts, found.note, found.more) == ("", (), "", {})


def test_the_newer_label_counts() -> None:
    old = [HumanLabel("f", "a", 0, 0.0), HumanLabel("f", "b", 0, 0.0)]
    found, replaced = merged(old, [HumanLabel("f", "b", 0, 1.0), HumanLabel("g", "b", 0, 1.0)])
    assert ([(one.metric, one.question_id, one.value) for one in found], replaced) == (
        [("f", "a", 0.0), ("f", "b", 1.0), ("g", "b", 1.0)], 1)


def test_another_text_has_another_code() -> None:
    codes = {content_code(*given) for given in (
        ("q", 0, ["a", "b"]), ("q", 0, ["ab"]), ("q", 0, ["a", "b", None]), ("q", 1, ["a", "b"]), ("p", 0, ["a", "b"]))}
    assert len(codes) == 5 and all(code.startswith("r-") for code in codes)
