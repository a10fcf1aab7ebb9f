"""Foreign text made fit to show: escaped for HTML, Markdown and the console, with what cannot be seen made visible.

Texts of passages, questions, answers and judges are hostile until proven otherwise. No numbers are formatted here.
"""

from __future__ import annotations

import json
import re
from typing import Any

from markupsafe import Markup, escape

from ragkit.records.unseen import UNSEEN, codepoint, replaced, spelt_out

_MARKDOWN = re.compile(r"([\\`*_\[\]|~])")
_TRAIL = "…"
SNIPPET = 240  # characters of a passage that are shown before "show whole text"
_TYPOGRAPHY = str.maketrans({"–": "-", "—": "-", "…": "...", "·": "-", "×": "x", "→": "->", "’": "'"})


def visible(text: str) -> Markup:
    """Text as safe HTML; each invisible or bidirectional character stands as a small badge with its code point.

    >>> visible("<b>\\u200b")
    Markup('&lt;b&gt;<span class="codepoint">U+200B</span>')
    """
    if not UNSEEN.search(text):
        return escape(text)
    safe = replaced(
        text.replace("\r\n", "\n"), lambda part: str(escape(part)),
        lambda character: f'<span class="codepoint">{codepoint(character)}</span>',
    )
    return Markup(safe)  # noqa: S704  (every part of it was escaped above)


def attribute(value: object) -> Markup:
    """A value as the content of an HTML attribute in double quotes."""
    return escape(spelt_out(str(value)))


def markdown(text: object) -> str:
    """Text for one line or table cell of Markdown: no HTML, no link, no image, no mention, no line break survives.

    >>> markdown("a | <b> [x](y)")
    'a \\\\| &lt;b&gt; \\\\[x\\\\](y)'
    """
    line = " ".join(spelt_out(str(text)).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")
    return _MARKDOWN.sub(r"\\\1", line)


def code(text: object) -> str:
    """Text as a code span of Markdown, also inside a table.

    >>> code("ndcg@5")
    '`ndcg@5`'
    """
    line = " ".join(spelt_out(str(text)).split())
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|") if line else ""


def encodable(text: str, encoding: str | None) -> str:
    """Text that a console of this encoding takes: what it cannot carry becomes its plain form, or "?".

    >>> encodable("0.1–0.2 知", "ascii")
    '0.1-0.2 ?'
    """
    encoding = encoding or "ascii"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return _encoded(text, encoding)
    except LookupError:
        return _encoded(text, "ascii")
    return text


def _encoded(text: str, encoding: str) -> str:
    fits = []
    for character in text:
        try:
            character.encode(encoding)
            fits.append(character)
        except UnicodeEncodeError:
            fits.append(character.translate(_TYPOGRAPHY).encode(encoding, "replace").decode(encoding))
    return "".join(fits)


def shortened(text: str, length: int = SNIPPET) -> str:
    """The start of a text, cut at a blank where one is near, with an ellipsis where something is missing.

    >>> shortened("one two three", 9)
    'one two…'
    """
    if len(text) <= length:
        return text
    head = text[:length]
    blank = head.rfind(" ")
    return (head[:blank] if blank > length * 2 // 3 else head).rstrip() + _TRAIL


def embedded_json(value: Any) -> Markup:
    """Strict JSON for a <script type="application/json"> block: nothing in it can close the block.

    >>> embedded_json("</script>")
    Markup('"\\\\u003c/script\\\\u003e"')
    """
    dumped = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        dumped = dumped.replace(character, f"\\u{ord(character):04x}")
    return Markup(dumped)  # noqa: S704  (every character that HTML knows was just escaped)


def anchor(prefix: str, name: str, repeat: int = 0) -> str:
    """A stable HTML id for any name; two names never share one, and it needs no quoting in a link.

    >>> anchor("q", "q 1/é"), anchor("q", "7", 2)
    ('q-q.20.1.2f..e9.', 'q-7~2')
    """
    safe = re.sub(r"[^A-Za-z0-9_-]", lambda match: f".{ord(match[0]):x}.", name)
    return f"{prefix}-{safe}" + (f"~{repeat}" if repeat else "")
