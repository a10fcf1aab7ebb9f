"""64-bit keys of (number, string) pairs, and the search for many keys among some.

Equal pairs have equal keys; whoever must be sure that equal keys are equal pairs compares the pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]

_SLICE = 1 << 16  # at a time: small enough for the cache, large enough that threads seldom wait for each other
_ODD = np.uint64(0x9E3779B97F4A7C15)
_ODD_TOO = np.uint64(0xD6E8FEB86659FD93)


def mixed(hashes: Keys, numbers: NDArray[Any]) -> Keys:
    """A key of each pair of a string's hash and a small number from 0; takes the first array for it."""
    salt = np.arange(int(numbers.max(initial=0)) + 1, dtype=np.uint64) * _ODD
    salt ^= salt >> np.uint64(29)
    salt *= _ODD_TOO
    for begin in range(0, len(hashes), _SLICE):
        keys = hashes[begin:begin + _SLICE]
        keys += salt[numbers[begin:begin + _SLICE]]
        keys *= _ODD
        keys ^= keys >> np.uint64(32)
    return hashes


def has_twins(keys: Keys) -> bool:
    """Whether a key stands twice.

    >>> has_twins(np.array([3, 1, 3], dtype=np.uint64))
    True
    """
    ordered = np.sort(keys)
    return bool(np.any(ordered[1:] == ordered[:-1]))


def twins(keys: Keys) -> Ints:
    """The places of the keys that stand twice or more.

    >>> twins(np.array([3, 1, 3], dtype=np.uint64)).tolist()
    [0, 2]
    """
    ordered = np.sort(keys)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(keys, twice)) if len(twice) else np.zeros(0, dtype=np.int64)


class KeyTable:
    """Some keys, to be found among many. ambiguous: two of them are equal, so that one cannot be found."""

    def __init__(self, keys: Keys) -> None:
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        self._shift = np.uint64(64 - max(12, (16 * len(keys)).bit_length()))
        self._seen = np.zeros(1 << (64 - int(self._shift)), dtype=np.bool_)  # most keys are told apart by one look
        self._seen[keys >> self._shift] = True
        self.ambiguous = bool(np.any(self._keys[1:] == self._keys[:-1]))

    def find(self, keys: Keys) -> tuple[Ints, Ints]:
        """(places of the keys that the table has, their places in the table), in the order of the keys.

        >>> found, places = KeyTable(np.array([7, 5], dtype=np.uint64)).find(np.array([1, 5, 7, 5], dtype=np.uint64))
        >>> found.tolist(), places.tolist()
        ([1, 2, 3], [1, 0, 1])
        """
        pieces = [np.flatnonzero(self._seen[keys[begin:begin + _SLICE] >> self._shift]) + begin
                  for begin in range(0, len(keys), _SLICE)]
        candidates = np.concatenate([np.zeros(0, dtype=np.int64), *pieces])
        places = np.searchsorted(self._keys, keys[candidates])
        same = self._keys[np.minimum(places, len(self._keys) - 1)] == keys[candidates]
        return candidates[same], self._order[places[same]]
