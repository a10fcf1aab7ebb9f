"""Runs in memory, judged as those of files are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragkit.records.questions import Qrels
from ragkit.records.readers.judging import Judging
from ragkit.records.readers.runfiles import results_of
from ragkit.records.runs import PLAIN_RULES, JudgedRun, RunRules


def judge_results(results: Mapping[str, Any], qrels: Qrels, rules: RunRules = PLAIN_RULES, name: str = "") -> JudgedRun:
    """A run as question -> {document: score}, pairs, or ids in their own order."""
    judging = Judging(qrels, rules)
    for question, row in results.items():
        judging.add(question, results_of(row, f"question {question!r}"))
    return judging.finish(name)
