"""Between numpy and arrow by their memory alone: pyarrow's own conversions import pandas first, which costs more time
than all of the reading that is done here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MANY = 10_000


def arrow_ints(numbers: NDArray[np.int64]) -> Any:
    """An arrow array over the same memory."""
    import pyarrow

    return pyarrow.Array.from_buffers(pyarrow.int64(), len(numbers), [None, pyarrow.py_buffer(numbers)])


def arrow_strings(texts: Sequence[str]) -> Any:
    """An arrow array of type string."""
    import pyarrow

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    if ends[-1] >= 1 << 31:
        raise OverflowError("more than 2 GiB of ids")
    buffers = [None, pyarrow.py_buffer(ends.astype(np.int32)), pyarrow.py_buffer(b"".join(encoded))]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(texts), buffers)


def arrow_bools(values: NDArray[np.bool_]) -> Any:
    """An arrow array of type bool."""
    import pyarrow

    bits = pyarrow.py_buffer(np.packbits(values, bitorder="little"))
    return pyarrow.Array.from_buffers(pyarrow.bool_(), len(values), [None, bits])


def texts_at(strings: Any, places: NDArray[np.int64]) -> list[str]:
    """The strings at some places of an arrow array of type string.

    >>> texts_at(arrow_strings(["a", "", "\u00e9"]), np.array([2, 0]))
    ['\u00e9', 'a']
    """
    if len(places) > _MANY:
        found: list[str] = strings.take(arrow_ints(places)).to_pylist()
        return found
    _, ends, data = strings.buffers()  # pyarrow's own way would import pyarrow.compute for a few strings
    offsets = np.frombuffer(ends, dtype=np.int32)[strings.offset:]
    text = memoryview(data or b"")
    bounds = zip(offsets[places].tolist(), offsets[places + 1].tolist(), strict=True)
    return [str(text[begin:end], "utf-8") for begin, end in bounds]


def bools_of(array: Any) -> NDArray[np.bool_]:
    """The values of an arrow array of type bool without nulls.

    >>> import pyarrow
    >>> bools_of(pyarrow.array([True, False, True])[1:]).tolist()
    [False, True]
    """
    bits = np.frombuffer(array.buffers()[1], dtype=np.uint8)
    values = np.unpackbits(bits, bitorder="little", count=array.offset + len(array))
    return values[array.offset:].view(np.bool_)


def floats_of(array: Any) -> NDArray[np.float64]:
    """The values of an arrow array of type double without nulls, in the same memory.

    >>> import pyarrow
    >>> floats_of(pyarrow.array([1.5, 2.5])[1:]).tolist()
    [2.5]
    """
    return np.frombuffer(array.buffers()[1], dtype=np.float64)[array.offset:array.offset + len(array)]


def places_of(array: Any) -> NDArray[np.int32]:
    """Of each value of an arrow array of type dictionary, its place in the dictionary."""
    indices = array.indices
    return np.frombuffer(indices.buffers()[1], dtype=np.int32)[indices.offset:indices.offset + len(indices)]
