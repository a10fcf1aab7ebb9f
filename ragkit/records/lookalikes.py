"""Ids that look the same and are other bytes: what they have in common, and how to say where they differ."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_INVISIBLE = ("Cf", "Cc")  # format signs (zero width, direction) and control signs


def visible_form(text: str) -> str:
    """The text in Unicode form NFC, without invisible signs and with plain blanks: equal for ids that look the same.

    >>> visible_form("cafe\\u0301") == visible_form("caf\\u00e9"), visible_form("doc\\u200b-7")
    (True, 'doc-7')
    """
    if text.isascii() and text.isprintable():
        return text
    kept = (c for c in unicodedata.normalize("NFC", text)
            if unicodedata.category(c) not in _INVISIBLE and not "\ufe00" <= c <= "\ufe0f")
    plain = "".join(" " if unicodedata.category(c) == "Zs" else c for c in kept).strip()
    return unicodedata.normalize("NFC", plain) or text


def codes(text: str) -> str:
    """The text with its signs that are not plain ASCII written out, so that a difference can be seen.

    >>> codes("doc\\u200b-7")
    'doc\\\\u200b-7'
    """
    return text.encode("unicode_escape").decode("ascii")


def lookalikes(gold: Iterable[str], others: Iterable[str]) -> list[tuple[str, str]]:
    """(id of the gold, id of the others) that look the same and are not, in the order of the gold.

    >>> [tuple(map(ascii, pair)) for pair in lookalikes(["a", "caf\\u00e9"], ["b", "cafe\\u0301"])]
    [("'caf\\\\xe9'", "'cafe\\\\u0301'")]
    """
    forms: dict[str, list[str]] = {}
    for other in others:
        forms.setdefault(visible_form(other), []).append(other)
    return [(one, other) for one in gold for other in forms.get(visible_form(one), ()) if other != one]
