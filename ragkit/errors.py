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
