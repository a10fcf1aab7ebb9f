"""The exceptions of ragkit. Each message says what was expected, what came, and where, in one line."""

from __future__ import annotations


class RagkitError(Exception):
    """Base of all errors that ragkit raises on purpose; the command line prints it in one line and exits with 2."""


class DataError(RagkitError):
    """The input (a file, a column, an id, an argument) is not what was expected."""


class JudgeError(RagkitError):
    """The judge cannot be asked at all: unreachable, wrong key, quota used up. One failed answer is a Score instead."""


class BudgetExceeded(JudgeError):  # noqa: N818 -- the name that callers catch
    """A limit on money or calls was reached; what was finished is kept."""


class MissingPackageError(RagkitError):
    """An optional package is needed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f'{purpose} needs the package {package}: pip install "ragkit-eval[{extra}]"')
        self.package = package
        self.extra = extra


def describe(error: BaseException) -> str:
    """An exception in one line: its type and what it says, also where its own __str__ fails.

    >>> describe(ValueError("two\\nlines")), describe(KeyError())
    ('ValueError: two lines', 'KeyError')
    """
    try:
        text = " ".join(str(error).split())
    except Exception:  # a broken __str__ must not cost what was to be told with it
        text = "(its message cannot be shown)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(value: object, length: int = 60) -> str:
    """A value in one short line for a message, whatever it is: too long, nested too deep, or not to be shown at all.

    >>> shown("Rome"), shown([1] * 50, 12)
    ("'Rome'", '[1, 1, 1, 1,…')
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an int of 5000 digits, a list nested 1000 deep, a __repr__ that fails
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= length else text[:length] + "…"
