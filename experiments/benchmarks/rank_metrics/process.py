"""Runs a process and takes its time and its peak of memory; and compares what two of them found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from common import MEAN, TREC_NAMES, Values, from_trec_names


@dataclass(frozen=True)
class Measured:
    """The best of several runs of one command: seconds, those of all cores together, peak memory in GiB, what it
    printed, and its error if it failed."""

    seconds: float
    cpu: float
    peak: float
    output: str
    error: str = ""


def measure_all(commands: dict[str, list[str]], repeats: int, enough: float = 30.0) -> dict[str, Measured]:
    """The best of `repeats` runs of each command, in rounds, so that a busy minute of the machine falls on all alike;
    one that took more than `enough` seconds, or failed, is not run again."""
    best: dict[str, Measured] = {}
    for _ in range(repeats):
        for name, command in commands.items():
            known = best.get(name)
            if known is None or (not known.error and known.seconds <= enough):
                found = _once(command)
                best[name] = found if known is None else min(known, found, key=lambda one: one.seconds)
    return best


def measure(command: list[str], repeats: int = 1) -> Measured:
    return measure_all({"": command}, repeats)[""]


def _once(command: list[str]) -> Measured:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, stdin=subprocess.DEVNULL)
        # The peak of this very child. The kernel counts this process's own memory in until the child starts its
        # program, so run.py loads nothing large.
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        error = errors.read().strip() or f"exit status {process.returncode}"
        return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20, output.read(),
                        error if process.returncode else "")


def read_ours(output: str) -> Values:
    (run,) = json.loads(output)["runs"].values()
    return {name: metric["per_question"] for name, metric in run.items()}


def read_trec_eval(output: str) -> Values:
    """trec_eval's lines of measure, question and value; its value has four decimals."""
    wanted = set(TREC_NAMES.values())
    found: dict[str, dict[str, float]] = {}
    for measure_name, question, value in re.findall(r"^(\S+)\s+(\S+)\s+(\S+)$", output, re.MULTILINE):
        if measure_name in wanted and question != "all":
            found.setdefault(question, {})[measure_name] = float(value)
    return from_trec_names(found)


def differences(ours: Values, theirs: Values, tolerance: float) -> tuple[int, int]:
    """How many values both have, and how many of those differ by more than the tolerance. A question that one of them
    left out, and a value that is undefined, count as 0."""
    compared = off = 0
    for name, column in theirs.items():
        mine = ours[name]
        if column.keys() == {MEAN}:
            mine = {MEAN: fmean(value or 0.0 for value in mine.values())}
        for question in mine.keys() | column.keys():
            compared += 1
            off += abs((mine.get(question) or 0.0) - (column.get(question) or 0.0)) > tolerance
    return compared, off


def installed(package: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(package) is not None


def here(script: str) -> str:
    return str(Path(__file__).with_name(script))
