"""The command `ragkit`, called in this process as a user would call it, and `ragkit rank` on files given as bytes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from ragkit.cli.main import main


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line that a wrong call leaves on stderr, with exit code 2 and nothing on stdout."""
        lines = self.err.splitlines()
        assert self.code == 2 and self.out == "" and len(lines) == 1, self
        assert lines[0].startswith("ragkit: ")
        return lines[0]


def command(*arguments: object) -> Done:
    """What `ragkit ARGUMENTS` leaves: exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        patch.object(sys, "argv", ["ragkit", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as left:
            code = int(left.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def process(*arguments: object, after: str = "", **environment: str) -> Done:
    """The same in a process of its own; `after` is Python that runs at its end."""
    script = f"from ragkit.cli import main; main(); {after}"
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": root, **environment})
    return Done(done.returncode, done.stdout, done.stderr)


class Ranked(NamedTuple):
    """The JSON of one run: its metrics by name, and the notes by kind."""

    metrics: dict[str, dict[str, Any]]
    notes: dict[str, dict[str, Any]]

    @property
    def means(self) -> dict[str, float | None]:
        return {name: found["mean"] for name, found in self.metrics.items()}


def files(folder: Path, qrels: object, run: object) -> tuple[Path, Path]:
    """The paths of labels and run, written as they are (bytes) or as JSON."""
    paths = folder / "qrels.txt", folder / "run.txt"
    for path, content in zip(paths, (qrels, run), strict=True):
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode("utf-8"))
    return paths


def ranked(folder: Path, qrels: object, run: object, metrics: str, *options: object) -> Ranked:
    """`ragkit rank` on the two, with the values of every question."""
    done = command("rank", *files(folder, qrels, run), "-m", metrics, "--json", "--per-question", *options)
    assert done.code == 0, done
    found = json.loads(done.out, parse_constant=_refused)
    return Ranked(found["runs"]["run"], {note["kind"]: note for note in found["notes"]})


def _refused(name: str) -> None:
    raise AssertionError(f"the JSON holds {name}")
