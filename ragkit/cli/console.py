"""What every verb needs and costs nothing to import: exit codes, stderr and stdout, modules of the user."""

from __future__ import annotations

import sys
from collections.abc import Iterable

WRONG_INPUT, PARTIAL, INTERNAL, INTERRUPTED = 2, 3, 70, 130


def complain(text: str) -> None:
    """One line on stderr."""
    print(f"ragkit: {visible(' '.join(text.split()))}", file=sys.stderr)  # noqa: T201


def say(text: str) -> None:
    """Text on stdout."""
    print(visible(text))  # noqa: T201


def visible(text: str) -> str:
    """The text with what a terminal would obey (escape sequences, direction overrides) written out.

    >>> visible(chr(27) + "[31m")
    '\\\\x1b[31m'
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def import_modules(names: Iterable[str] | None) -> None:
    """Import modules that declare metrics (--import); the working directory is searched too."""
    import importlib
    from pathlib import Path

    from ragkit.errors import DataError, describe

    here = str(Path.cwd())
    for name in names or ():
        if here not in sys.path:
            sys.path.insert(0, here)
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            hint = f"; expected a module's name, without the ending: {name.removesuffix('.py')}" \
                if name.endswith(".py") else "; run from the folder it lies in" \
                if isinstance(error, ModuleNotFoundError) else ""
            raise DataError(f"--import {name}: importing it failed: {describe(error)}{hint}") from error
