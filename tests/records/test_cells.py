"""Cells of a spreadsheet: what could run as a formula is marked, whatever stands before it; numbers stay numbers."""

from __future__ import annotations

import csv
import io

import pytest

from ragkit.records.cells import neutral, plain

RISKY = (  # texts of a public report of formula injection in exported evaluations, and their like
    '=HYPERLINK("http://evil.example","x")', "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "\n=1", "\u200b=1+1",
    " =1", "\u2060@A1", "\u202e=1", "\u00ad=1", "＝1", "\u200b－1", "-", "+", "'=1", "\ttext",
)
HARMLESS = (
    "", "plain, with comma", 'quote " inside', "two\nlines", "a=1", "a - b", "-0.2", "+3", "-1,5", "+1e-3", "-.5",
)


def test_marked_cells_survive_a_round_trip_through_csv() -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([neutral(cell), "end"] for cell in RISKY + HARMLESS)
    rows = list(csv.reader(io.StringIO(buffer.getvalue(), newline="")))
    assert [cell for cell, _ in rows] == [*(f"'{cell}" for cell in RISKY), *HARMLESS]
    assert [plain(cell) for cell, _ in rows] == [*RISKY, *HARMLESS]


@pytest.mark.parametrize("cell", ["-1+1", "+1 2", "-1e", "-1.2.3", "+.", "-١=1"])
def test_what_only_begins_as_a_number_is_marked(cell: str) -> None:
    assert neutral(cell) == f"'{cell}"
