"""How numbers are written: rounding, missing values, units; and cells that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import math

import pytest

from ragkit.report import numbers
from ragkit.report.exports import csv_cell

CELLS = (  # texts of a public report of formula injection in exported evaluations; the first seven must not run
    '=HYPERLINK("http://evil.example","x")', "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "\u200b=1+1",
    "plain, with comma", 'quote " inside', "two\nlines",
)


@pytest.mark.parametrize("write", [
    numbers.number, numbers.count, numbers.plain, numbers.percent, numbers.milliseconds, numbers.tokens, numbers.money,
    numbers.retrieval_score, numbers.anything, lambda value: numbers.interval(value, value),
    lambda value: numbers.of(value, value),
])
@pytest.mark.parametrize("value", [None, math.nan])
def test_no_value_is_said_and_never_a_number(write, value):
    text = write(value)
    assert "nan" not in text.lower() and "None" not in text
    assert not any(character.isdigit() for character in text)


@pytest.mark.parametrize(("value", "text"), [
    (0.9999999999, "1.000"), (-0.00004, "0.000"), (-0.2, "-0.200"), (1, "1.000"), (0.0005, "0.001"), (True, "–"),
    (math.inf, "–"),
])
def test_number(value, text):
    assert numbers.number(value) == text


def test_intervals_with_a_negative_end_do_not_read_as_a_difference():
    assert numbers.interval(-0.5, -0.25) == "-0.500 to -0.250"
    assert numbers.interval(0.1, None) == "–"


@pytest.mark.parametrize(("value", "text"), [
    (0, "0.0 ms"), (9.96, "10 ms"), (999.4, "999 ms"), (999.6, "1.00 s"), (59_996, "1 min 00 s"),
    (3_600_000, "60 min 00 s"),
])
def test_milliseconds_change_the_unit_without_a_gap(value, text):
    assert numbers.milliseconds(value) == text


def test_unknown_money_is_not_nothing():
    assert numbers.money(None) == "unknown" and numbers.money(0) == "$0.00"
    assert numbers.money(0.00001) == "under $0.0001" and numbers.money(1234.5) == "$1,234.50"


def test_reasons_take_a_mapping_or_a_text():
    assert numbers.reasons({"timed out": 2}) == "2 × timed out"
    assert numbers.reasons("needs a judge") == "needs a judge" and numbers.reasons(None) == ""


def test_csv_cells_cannot_run_and_survive_a_round_trip():
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([[csv_cell(cell), csv_cell(-0.2)] for cell in CELLS])
    rows = list(csv.reader(io.StringIO(buffer.getvalue(), newline="")))
    assert len(rows) == 10
    assert [row[0] for row in rows] == [*(f"'{cell}" for cell in CELLS[:7]), *CELLS[7:]]
    assert {row[1] for row in rows} == {"-0.2"}


@pytest.mark.parametrize(("value", "cell"), [
    (None, ""), ("", ""), (3, 3), (-0.2, -0.2), ("-0.2", "-0.2"), ("+1e-3", "+1e-3"), ("-", "'-"), ("＝1", "'＝1"),
    ("a=1", "a=1"), (" =1", "' =1"), ("\n=1", "'\n=1"),
])
def test_csv_cell(value, cell):
    assert csv_cell(value) == cell
