"""64-bit hashes of many strings at once, straight from arrow's memory. Equal strings have equal hashes; whoever must be
sure that equal hashes are equal strings compares the strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragkit.records.keys import Keys

_ODD = np.uint64(0x9E3779B97F4A7C15)
_ODD_TOO = np.uint64(0xD6E8FEB86659FD93)
_SLICE = 1 << 16  # at a time: small enough for the cache, large enough that threads seldom wait for each other
_KEPT = np.array([(1 << (8 * length)) - 1 for length in range(9)], dtype=np.uint64)  # of a word, its first bytes


def hash_strings(strings: Any) -> Keys:
    """A hash of each string of an arrow array of type string.

    >>> from ragkit.records.readers.arrow import arrow_strings
    >>> first, second, again = hash_strings(arrow_strings(["a", "b", "a"]))
    >>> bool(first == again), bool(first == second)
    (True, False)
    """
    count = len(strings)
    if not count:
        return np.zeros(0, dtype=np.uint64)
    _, ends, data = strings.buffers()
    offsets = np.frombuffer(ends, dtype=np.int32)[strings.offset:strings.offset + count + 1]
    base, end = int(offsets[0]), int(offsets[-1])
    text = np.zeros(end - base + 8, dtype=np.uint8)  # a word may be read beyond the last byte
    if data is not None:
        text[:end - base] = np.frombuffer(data, dtype=np.uint8)[base:end]
    words = np.lib.stride_tricks.as_strided(text[:8].view(np.uint64), shape=(end - base + 1,), strides=(1,))
    hashes = np.empty(count, dtype=np.uint64)
    for begin in range(0, count, _SLICE):
        bounds = offsets[begin:begin + _SLICE + 1] - base
        hashes[begin:begin + _SLICE] = _hash_slice(words, bounds[:-1], np.diff(bounds))
    return hashes


def _hash_slice(words: Keys, starts: NDArray[np.int32], lengths: NDArray[np.int32]) -> Keys:
    hashes = lengths.astype(np.uint64)
    hashes *= _ODD_TOO
    hashes = _next_word(hashes, words, starts, lengths)
    for first in range(8, int(lengths.max()), 8):
        longer = np.flatnonzero(lengths > first)  # a string's hash depends on nothing but the string
        hashes[longer] = _next_word(hashes[longer], words, starts[longer] + first, lengths[longer] - first)
    return hashes


def _next_word(hashes: Keys, words: Keys, starts: NDArray[np.int32], lengths: NDArray[np.int32]) -> Keys:
    word = words[starts]
    word &= _KEPT[np.minimum(lengths, 8)]
    hashes ^= word
    hashes *= _ODD
    hashes ^= hashes >> np.uint64(32)
    return hashes
