"""Characters that nobody sees: which they are, where a joiner is right, and how a text is shown with them in sight."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

# Control, format, filler and tag characters, bidirectional overrides, lone surrogates, noncharacters.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINERS = "\u200c\u200d"


def replaced(text: str, plain: Callable[[str], str], badge: Callable[[str], str]) -> str:
    """`text` with every unseen character through `badge` and all else through `plain`."""
    parts, at = [], 0
    for match in UNSEEN.finditer(text):
        if match[0] in _JOINERS and _joins(text, match.start()):
            continue
        parts += [plain(text[at : match.start()]), badge(match[0])]
        at = match.end()
    return "".join([*parts, plain(text[at:])])


def spelt_out(text: str) -> str:
    """The text with each unseen character as "[U+202E]"; a joiner that does its work in a word or an emoji stays.

    >>> spelt_out("a\\x1b[31m")
    'a[U+001B][31m'
    """
    return replaced(text.replace("\r\n", "\n"), lambda part: part, lambda character: f"[{codepoint(character)}]")


def codepoint(character: str) -> str:
    """The name of a code point.

    >>> codepoint("\\u202e")
    'U+202E'
    """
    return f"U+{ord(character):04X}"


def _joins(text: str, at: int) -> bool:
    """Whether a joiner does its work there: inside an emoji, or in a word of a script that needs it."""
    around = text[at - 1 : at] + text[at + 1 : at + 2]
    return len(around) == 2 and (
        all("\u0600" <= character <= "\u1aff" for character in around)
        or all(character == "\ufe0f" or unicodedata.category(character) in {"So", "Sk"} for character in around)
    )
