"""How numbers are written: rounding, missing values, units."""

from __future__ import annotations

import math

import pytest

from ragkit.report import numbers


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
    (math.inf, "–"), (10**400, "–"),
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
