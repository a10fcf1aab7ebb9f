"""A list or an object that a cell of text spells: as JSON writes it, as Python shows it, or as numpy prints it."""

from __future__ import annotations

import ast
import io
import json
import tokenize
from typing import Any

_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)


def written(text: str) -> Any:
    """The list or object that a cell spells, or None. pandas writes lists into CSV as Python shows them; literals alone
    are read, and nothing runs.

    datasets.Dataset.to_csv leaves the commas out, as numpy prints arrays; Python would read that as one long text.

    >>> written('["a", "b"]'), written("['a', 'b']"), written("['a' 'b']"), written("[sic] as said by [him]")
    (['a', 'b'], ['a', 'b'], ['a', 'b'], None)
    """
    stripped = text.strip()
    if stripped[:1] + stripped[-1:] not in ("[]", "{}"):
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        pass
    try:
        printed = _printed_array(stripped)
        return ast.literal_eval(stripped) if printed is None else printed
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _printed_array(text: str) -> list[Any] | None:
    """The items of a list of texts or numbers without a comma between any two of them; None for anything else."""
    try:
        tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in _LAYOUT]
    except (tokenize.TokenError, SyntaxError):
        return None
    inner = tokens[1:-1]
    if len(inner) < 2 or any(token.type not in (tokenize.STRING, tokenize.NUMBER) for token in inner):
        return None
    return [ast.literal_eval(token.string) for token in inner]
