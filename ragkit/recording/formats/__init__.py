"""Traces and results of other tools -> trajectories. Each format has a file of its own, loaded when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

from ragkit.recording.formats.imported import Imported

__all__ = ["FORMATS", "Imported"]

_NAMES = ("openinference", "langsmith", "ragas", "deepeval", "autorag")


class _Formats(Mapping[str, Callable[[Path], Imported]]):
    """The readers by the name of their format; a reader's module is imported only when it is looked up."""

    def __getitem__(self, name: str) -> Callable[[Path], Imported]:
        if name not in _NAMES:
            raise KeyError(name)
        reader: Callable[[Path], Imported] = getattr(import_module(f"{__name__}.{name}"), f"read_{name}")
        return reader

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __contains__(self, name: object) -> bool:  # without importing the reader
        return name in _NAMES


FORMATS: Mapping[str, Callable[[Path], Imported]] = _Formats()
"""format -> reader of its files; every reader raises DataError for a file that is something else."""
