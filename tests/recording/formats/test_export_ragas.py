"""Rows that the real ragas reads, from JSON Lines and from CSV, and that come back through our own reader."""

from __future__ import annotations

import ast
import csv
import os
from pathlib import Path

import pandas
import pytest

from ragkit.errors import DataError
from ragkit.recording.formats.ragas import read_ragas
from ragkit.recording.formats.writers_ragas import RagasRow, write_ragas
from ragkit.records.trajectory import Trajectory

os.environ["RAGAS_DO_NOT_TRACK"] = "true"

TEXTS = ("It's \"by\"\nAnn, é \\n.", "=cmd()")
ROWS = [
    RagasRow(Trajectory("q1", "Who?", answer="=HYPERLINK(1)"), TEXTS, ("d1", "007"), "Ann", (TEXTS[0],), ("d1",),
             {"recall": 0.5, "-evil": None}),
    RagasRow(Trajectory("q1", "Who?", answer="Bo", repeat=1), (), ()),
    RagasRow(Trajectory("q2", "-1 or +1?", error="ValueError: gone")),
]


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_ragas_reads_what_was_written(tmp_path: Path, suffix: str) -> None:
    ragas = pytest.importorskip("ragas")
    path = tmp_path / "datasets" / f"rows.{suffix}"
    write_ragas(path, ROWS)
    if suffix == "jsonl":
        found = ragas.EvaluationDataset.from_jsonl(path)
    else:  # ragas' own CSV leaves lists as texts, too
        table = ragas.Dataset.load("rows", "local/csv", root_dir=str(tmp_path))
        assert [row["question_id"] for row in table] == ["q1", "q1", "q2"]
        frame = pandas.read_csv(path, dtype=str).astype(object)
        for name in ("retrieved_contexts", "retrieved_context_ids", "reference_contexts", "reference_context_ids"):
            frame[name] = [ast.literal_eval(cell) if isinstance(cell, str) else None for cell in frame[name]]
        found = ragas.EvaluationDataset.from_list(
            [{name: value for name, value in row.items() if isinstance(value, str | list)}
             for row in frame.to_dict("records")])
    first, second, third = found.samples
    assert first.user_input == "Who?" and tuple(first.retrieved_contexts) == TEXTS
    assert first.retrieved_context_ids == ["d1", "007"] and first.reference == "Ann"
    assert first.reference_contexts == [TEXTS[0]] and first.reference_context_ids == ["d1"]
    assert first.response == ("=HYPERLINK(1)" if suffix == "jsonl" else "'=HYPERLINK(1)")
    assert second.retrieved_contexts == [] and second.response == "Bo"
    assert third.response is None and third.retrieved_contexts is None and third.reference is None
    assert third.user_input == ("-1 or +1?" if suffix == "jsonl" else "'-1 or +1?")


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    write_ragas(tmp_path / "rows.csv", ROWS)
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert "'=HYPERLINK(1)" in cells and "'-1 or +1?" in cells
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_our_own_reader_takes_it_back(tmp_path: Path) -> None:
    write_ragas(tmp_path / "rows.jsonl", ROWS)
    found = read_ragas(tmp_path / "rows.jsonl")
    assert [one.key for one in found.trajectories] == [("q1", 0), ("q1", 1)]
    assert [one.answer for one in found.trajectories] == ["=HYPERLINK(1)", "Bo"]
    assert found.trajectories[0].steps[0].outermost.ids == ("d1", "007")
    assert found.trajectories[0].meta["source"]["scores"] == {"recall": 0.5}
    assert found.dataset is not None and found.dataset.qrels == {"q1": {"d1": 1.0}}


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"rows\.xlsx: expected a name that ends in \.jsonl or \.csv"):
        write_ragas(tmp_path / "rows.xlsx", ROWS)
