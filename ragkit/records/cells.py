"""Texts as cells of a spreadsheet: nothing that came from a data set or a model may run as a formula."""

from __future__ import annotations

import re

# Full-width forms count too: some spreadsheets fold them (promptfoo/promptfoo#9609 shows the plain ones).
_FORMULA = re.compile(r"[\s\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff']*[=+\-@＝＋－＠]|[\t\r\n']")
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")


def neutral(cell: str) -> str:
    """A text as a cell that no spreadsheet runs: an apostrophe stands before what could be a formula.

    Before a text that begins with an apostrophe, too, so that `plain` takes off exactly what was put on. A plain
    number is harmless and stays.

    >>> neutral("=1+1"), neutral("-0.2"), neutral("plain")
    ("'=1+1", '-0.2', 'plain')
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def plain(cell: str) -> str:
    """The text of a cell that `neutral` may have marked.

    >>> plain("'=1+1"), plain("-0.2")
    ('=1+1', '-0.2')
    """
    return cell.removeprefix("'")
