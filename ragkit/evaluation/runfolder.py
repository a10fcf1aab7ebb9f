"""A run folder: run.json and the files beside it. Refuses a changed configuration; the same one resumes."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.metrics.registry import parse
from ragkit.records.files import write_json

try:
    import fcntl
except ImportError:  # Windows: nothing keeps a second run out there
    fcntl = None  # type: ignore[assignment]

SCHEMA = "ragkit.run/1"
RUNNING, COMPLETE = "running", "complete"
_PACKAGES = ("ragkit-eval", "numpy", "pandas", "ragas", "langchain-core", "langgraph", "chromadb",
             "sentence-transformers", "bm25s", "torch")
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f]+')


def safe_name(text: str) -> str:
    """A file name that every system takes: none of <>:"/\\|?*, no control character, no dot or blank at its end.

    >>> safe_name('dense: k=5?'), safe_name("con.")
    ('dense- k=5-', '_con')
    """
    name = _FORBIDDEN.sub("-", text).rstrip(". ")
    name = name or "run"
    reserved = {"con", "prn", "aux", "nul", *(f"{d}{i}" for d in ("com", "lpt") for i in range(1, 10))}
    return f"_{name}" if name.split(".")[0].lower() in reserved else name


@dataclass(frozen=True)
class RunFolder:
    """The paths of one run folder."""

    path: Path

    @property
    def run(self) -> Path:
        return self.path / "run.json"

    @property
    def trajectories(self) -> Path:
        return self.path / "trajectories.jsonl"

    @property
    def store(self) -> Path:
        return self.path / "judgements.sqlite"

    @property
    def labels(self) -> Path:
        """What people said of the answers, where they were asked."""
        return self.path / "labels.jsonl"

    @property
    def scores(self) -> Path:
        return self.path / "scores.parquet"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def html(self) -> Path:
        return self.path / "report.html"

    @property
    def markdown(self) -> Path:
        return self.path / "report.md"

    @property
    def holds_judged_scores(self) -> bool:
        """Whether any score in summary.json is a judge's; an unreadable file counts as one that holds some."""
        if not self.summary.exists():
            return False
        try:
            found = json.loads(self.summary.read_text(encoding="utf-8"))
            parts = [found["metrics"], *found["per_step"].values()]
            parts += [(found.get("judged_labels") or {}).get("metrics") or {}]
            return any(entry["n_scored"] and (entry["labels"] == "judged" or parse(name).definition.kind == "judged")
                       for part in parts for name, entry in part.items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError, DataError):
            return True

    def known(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """What run.json holds for this configuration, empty where the folder is new.

        A folder of another configuration is refused: its numbers would not belong together.
        """
        try:
            if self.path.exists() and not self.path.is_dir():
                raise DataError(f"{self.path}: expected a folder, found a file")
            if not self.run.exists():
                return {}
        except OSError as error:
            raise DataError(f"{self.path}: cannot be the run folder: {error.strerror}") from None
        known = read_run(self.path)
        before, now = known.get("config"), json.loads(json.dumps(config))
        if not isinstance(before, dict):
            raise DataError(f"{self.run}: expected a mapping under the key config, got {_short(before)}")
        changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if changed:
            key = changed[0]
            raise DataError(
                f"{self.path}: holds a run with another configuration ({key}: {_short(before.get(key))} there, "
                f"{_short(now.get(key))} now); choose another --out or delete the folder"
            )
        return known

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder and keep other runs out of it; a lock ends with its process, however that ends."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("a", encoding="utf-8")
        except OSError as error:
            what = f"{self.path}: cannot be made or written to: {error.strerror}"
            raise DataError(f"{what}; choose another --out") from None
        with lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    what = f"{self.path}: another run is writing to this folder"
                    raise DataError(f"{what}; wait for it, or choose another --out") from None
            yield

    def write_run(self, record: Mapping[str, Any]) -> None:
        write_json(self.run, {"schema": SCHEMA, **record})


def read_run(path: Path) -> dict[str, Any]:
    """What run.json of a run folder holds."""
    file = path / "run.json"
    if not file.exists():
        raise DataError(f"{path}: no run.json; expected a run folder that `ragkit run` or `ragkit score` wrote")
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{file}: cannot be read as JSON: {error}") from None
    if not isinstance(record, dict) or str(record.get("schema", "")).split("/")[0] != SCHEMA.split("/", maxsplit=1)[0]:
        raise DataError(f"{file}: expected the schema {SCHEMA}")
    if record["schema"] != SCHEMA:
        raise DataError(f"{file}: schema {record['schema']!r} is newer than this ragkit reads ({SCHEMA})")
    return record


def finished_run(path: Path) -> dict[str, Any]:
    """run.json of a run that was written to its end; one that was interrupted is a DataError."""
    record = read_run(path)
    if record.get("state") != COMPLETE:
        raise DataError(f"{path}: the run was not finished; give the command that made it once more, it goes on")
    return record


def environment() -> dict[str, Any]:
    """Versions of what computes, and the commit of the user's project (where the working directory is a checkout)."""
    found: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"versions": found, "git": _git(), "started": _now()}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _git() -> dict[str, Any] | None:
    def ask(*words: str) -> str | None:
        try:
            done = subprocess.run(  # noqa: S603 -- fixed words, no shell
                ["git", *words], capture_output=True, text=True, timeout=5, check=False  # noqa: S607
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = ask("rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "changed": bool(ask("status", "--porcelain", "--untracked-files=no"))}


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "..."
