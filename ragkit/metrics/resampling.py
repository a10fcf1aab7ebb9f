"""Statistics with intervals that resample questions: rows that share a question are drawn together.

Means of metrics have their own interval in statistics.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragkit.errors import DataError

Array = np.ndarray[Any, np.dtype[Any]]

NOTHING = "nothing to compare"
CELLS_AT_ONCE = 4_000_000  # bounds the memory of the resampling to some 100 MB
_MOST_UNDEFINED = 0.1  # of the resamples: with more, an interval would describe the fortunate ones


@dataclass(frozen=True, slots=True)
class Figure:
    """A statistic with its 95 % percentile bootstrap interval.

    value None: undefined, for `reason`. low and high None: no interval, where a single question or too few labels of
    a class leave none.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


def generator(seed: int) -> np.random.Generator:
    """The random numbers of a seed, which is any whole number: numpy refuses negative ones.

    >>> generator(-1).random() == generator(2**64 - 1).random()
    True
    """
    return np.random.default_rng(seed if seed >= 0 else seed & (2**64 - 1))


class Resampling:
    """Draws of questions with replacement: rows that share a question are drawn together.

    `groups` names the question of each row; without it each row stands for itself. `weights` tells how many rows of
    the whole each row of a sample stands for. The same arguments give the same draws, so that figures of several
    judges on the same rows may be compared.
    """

    def __init__(self, n_rows: int, groups: Sequence[Hashable] | None = None, seed: int = 0,
                 resamples: int = 2000, weights: Sequence[float] | None = None) -> None:
        if groups is not None and len(groups) != n_rows:
            raise DataError(f"groups: expected the question of each of {n_rows} rows, got {len(groups)}")
        if resamples < 1:
            raise DataError(f"resamples: expected at least 1, got {resamples}")
        self.weights = np.ones(n_rows) if weights is None else np.asarray(weights, np.float64)
        if self.weights.shape != (n_rows,) or not np.all((self.weights > 0) & np.isfinite(self.weights)):
            raise DataError(f"weights: expected a number above 0 for each of {n_rows} rows")
        known: dict[Hashable, int] = {}
        self.group = np.array([known.setdefault(g, len(known)) for g in (groups or range(n_rows))], dtype=np.int64)
        self.n_groups = len(known)
        self._seed, self._resamples = seed, resamples

    def of_rows(self, reason: str, statistic: Callable[[Array], Array]) -> Figure:
        """The figure of a statistic that is computed from the weight of each row, a line a resample; NaN where it is
        undefined, for `reason`."""
        if not len(self.group):
            return Figure(None, reason=NOTHING)
        rows = max(1, CELLS_AT_ONCE // max(len(self.group), 1))

        def drawn() -> Iterator[Array]:
            random = generator(self._seed)
            for done in range(0, self._resamples, rows):
                count = min(rows, self._resamples - done)
                picks = random.integers(0, self.n_groups, size=(count, self.n_groups), dtype=np.int32)
                flat = (picks + np.arange(count, dtype=np.int64)[:, None] * self.n_groups).ravel()
                times = np.bincount(flat, minlength=count * self.n_groups).reshape(count, self.n_groups)
                yield statistic(times[:, self.group] * self.weights)

        return self._figure(float(statistic(self.weights[None])[0]), reason, drawn)

    def of_tables(self, places: Array, shape: tuple[int, int], reason: str,
                  statistic: Callable[[Array], Array]) -> Figure:
        """The figure of a statistic of a table of counts; `places` is the cell of each row in it, laid flat.

        Questions with the same table of their own are interchangeable, so that few numbers need drawing.
        """
        if not len(places):
            return Figure(None, reason=NOTHING)
        cells = shape[0] * shape[1]
        counted = np.bincount(self.group * cells + places, self.weights, minlength=self.n_groups * cells)
        kinds, many = np.unique(counted.reshape(self.n_groups, cells), axis=0, return_counts=True)
        whole = float(statistic((many @ kinds).reshape(1, *shape))[0])

        def drawn() -> Iterator[Array]:
            random = generator(self._seed)
            times = random.multinomial(self.n_groups, many / self.n_groups, size=self._resamples)
            yield statistic((times @ kinds).reshape(-1, *shape))

        return self._figure(whole, reason, drawn)

    def _figure(self, value: float, reason: str, drawn: Callable[[], Iterator[Array]]) -> Figure:
        if np.isnan(value):
            return Figure(None, reason=reason)
        if self.n_groups < 2:
            return Figure(value, reason="one question gives no interval")
        values = np.concatenate(list(drawn()))
        missing = np.isnan(values)
        if missing.mean() > _MOST_UNDEFINED:
            return Figure(value, reason="too few labels of one class for an interval")
        low, high = np.quantile(values[~missing], (0.025, 0.975))
        return Figure(value, float(low), float(high))
