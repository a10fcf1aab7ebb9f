"""Cells of tables that people open in a spreadsheet. Reads and writes no file."""

from __future__ import annotations

import re

# Full-width forms count too: some spreadsheets fold them (promptfoo/promptfoo#9609 shows the plain ones).
_STARTS_FORMULA = re.compile("^[\\s\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]*[=+\\-@＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def csv_cell(value: object) -> object:
    """The value as a CSV cell that no spreadsheet runs as a formula; numbers, also as text, stay numbers.

    A risky text gets a leading apostrophe; the csv module does the quoting. None becomes an empty cell.

    >>> csv_cell("=1+1"), csv_cell(-0.2), csv_cell("-0.2"), csv_cell("a - b")
    ("'=1+1", -0.2, '-0.2', 'a - b')
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    if value[:1] in ("\t", "\r", "\n") or (_STARTS_FORMULA.match(value) and not _NUMBER.fullmatch(value)):
        return "'" + value
    return value
