"""Means and paired differences beside the table of metrics, with intervals and without tests: plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from ragkit.metrics.paired import Pair, compare_pairs
from ragkit.metrics.resampling import Array

RESAMPLES = 2000


def averaged(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Values by question, those of one question averaged.

    >>> averaged([("q1", 1.0), ("q2", 0.5), ("q1", 0.0)])
    {'q1': 0.5, 'q2': 0.5}
    """
    found: dict[str, list[float]] = {}
    for question, value in pairs:
        found.setdefault(question, []).append(value)
    return {question: sum(values) / len(values) for question, values in found.items()}


def averaged_columns(questions: Sequence[str], values: Array) -> list[dict[str, float]]:
    """`averaged` of each column of values, a row for each of the questions; NaN is left out.

    >>> averaged_columns(["q1", "q2", "q1"], np.array([[1.0], [float("nan")], [0.0]]))
    [{'q1': 0.5}]
    """
    columns = values.T.tolist()
    if len(set(questions)) == len(questions) and not np.isnan(values).any():  # most calls, and many times as fast
        return [dict(zip(questions, column, strict=True)) for column in columns]
    return [averaged((question, value) for question, value in zip(questions, column, strict=True) if not isnan(value))
            for column in columns]


def means_of(columns: Sequence[Mapping[str, float]], seed: int) -> list[dict[str, Any]]:
    """{mean, low, high, n} of each column of values by question; columns of the same questions draw together."""
    zeros: dict[tuple[str, ...], dict[str, float]] = {}
    pairs = [Pair(zeros.setdefault(tuple(column), dict.fromkeys(column, 0.0)), column) for column in columns]
    return [{"mean": one.difference, "low": one.low, "high": one.high, "n": one.n}
            for one in compare_pairs(pairs, seed, RESAMPLES, test=False)]


def differences_of(pairs: Sequence[Pair], seed: int) -> list[dict[str, Any]]:
    """{difference, low, high, n, wins, losses} of each pair, on the questions that both hold."""
    return [{"difference": one.difference, "low": one.low, "high": one.high, "n": one.n, "wins": one.wins,
             "losses": one.losses} for one in compare_pairs(pairs, seed, RESAMPLES, test=False)]
