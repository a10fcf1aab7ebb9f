"""JSON files: strict, UTF-8 in every locale, whole or not at all, and errors that name the line."""

from __future__ import annotations

import datetime
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

from ragkit.errors import DataError
from ragkit.records.files import jsonable, read_json, read_jsonl, read_trajectories, write_json, write_jsonl, write_text
from ragkit.records.judgements import Score

ROOT = Path(__file__).resolve().parents[2]


def test_lines_round_trip_with_odd_separators_and_lone_surrogates(tmp_path: Path) -> None:
    rows = [{"text": "a\u2028b\x85c\rd"}, {"text": "\ud800"}, {"text": "✅ 知识 😀 é"}, {}, []]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    assert [row for _, row in read_jsonl(tmp_path / "rows.jsonl")] == rows
    text = (tmp_path / "rows.jsonl").read_text(encoding="utf-8")
    assert len(text.splitlines()) == len(rows)
    assert "✅ 知识 😀 é" in text


def test_reading_understands_crlf_blank_lines_a_byte_order_mark_and_gzip(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"a": 2}'
    (tmp_path / "rows.jsonl").write_bytes(data)
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(data))
    expected = [(1, {"a": 1}), (4, {"a": 2})]
    assert list(read_jsonl(tmp_path / "rows.jsonl")) == expected
    assert list(read_jsonl(tmp_path / "rows.jsonl.gz")) == expected


@pytest.mark.parametrize(("data", "told"), [
    (b'{"a": 1}\n{"a": \n', "rows.jsonl:2: expected JSON"),
    (b'{"a": 1}\n\n{"a": "caf\xe9"}\n', "rows.jsonl:3: byte 0xe9 (byte 11 of the line) is not UTF-8"),
    ('{"a": 1}'.encode("utf-16"), "rows.jsonl:1: the text is UTF-16"),
    (b"[" * 200_000, "rows.jsonl:1: cannot be read as JSON"),
    (b"\x1f\x8b\x08rest", "rows.jsonl: broken gzip data"),
])
def test_a_broken_line_is_named(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(data)
    with pytest.raises(DataError) as caught:
        list(read_jsonl(tmp_path / "rows.jsonl"))
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as caught:
        read_trajectories("runs/none.jsonl")
    assert "runs/none.jsonl: no such file" in str(caught.value) and str(tmp_path) in str(caught.value)
    with pytest.raises(DataError, match="is a folder"):
        read_json(tmp_path)


def test_a_file_that_could_not_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write_jsonl(path, [{"old": True}])

    def rows() -> Any:
        yield {"new": True}
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_jsonl(path, rows())
    assert [row for _, row in read_jsonl(path)] == [{"old": True}]
    assert [file.name for file in tmp_path.iterdir()] == ["rows.jsonl"]


def test_writing_where_one_cannot_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be written"):
        write_text(tmp_path / "file" / "below.txt", "x")


def test_a_link_keeps_being_a_link_and_the_mode_is_the_usual_one(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}", encoding="utf-8")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    write_json(tmp_path / "link.json", {"a": 1})
    assert (tmp_path / "link.json").is_symlink() and read_json(tmp_path / "real.json") == {"a": 1}
    (tmp_path / "usual").write_text("", encoding="utf-8")
    assert (tmp_path / "real.json").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_foreign_values_become_plain_data() -> None:
    value = {
        "array": numpy.array([[1, 2]]), "float32": numpy.float32(0.5), "int64": numpy.int64(3), "nan": float("nan"),
        "day": datetime.date(2024, 5, 1), "path": Path("a/b"), "bytes": b"\xff", "set": {2, 1}, "object": object,
        "stamp": pandas.Timestamp("2024-05-01"), "score": Score.undefined("no gold"), 3: numpy.inf,
    }
    plain = json.loads(json.dumps(jsonable(value), allow_nan=False))
    assert plain | {"object": None} == {
        "array": [[1, 2]], "float32": 0.5, "int64": 3, "nan": None, "day": "2024-05-01", "path": "a/b",
        "bytes": "\\xff", "set": [1, 2], "object": None, "stamp": "2024-05-01T00:00:00",
        "score": {"value": None, "status": "undefined", "reason": "no gold"}, "3": "inf",
    }


def test_c57_files_are_utf8_in_a_process_with_another_encoding(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from ragkit.records.files import *\n"
        "from ragkit.records.trajectory import Trajectory\n"
        "text, out = sys.stdin.buffer.read().decode('utf-8'), pathlib.Path(sys.argv[1])\n"
        "write_text(out / 'a.txt', text)\n"
        "write_json(out / 'a.json', {'text': text})\n"
        "append_trajectory(out / 'a.jsonl', Trajectory('q', text))\n"
        "assert read_trajectories(out / 'a.jsonl')[0].question == text\n"
    )
    text = "✅ 知识 😀 é"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252",
                   "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], input=text.encode(), env=environment, cwd=ROOT,
                   check=True, timeout=60)
    for name in ("a.txt", "a.json", "a.jsonl"):
        assert text in (tmp_path / name).read_bytes().decode("utf-8")
