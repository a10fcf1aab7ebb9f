"""The bytes of a big run file in blocks of whole lines, and whether they are written as arrow needs them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ragkit.records.readers.runfiles import COLUMNS, run_cells
from ragkit.records.readers.trec import BOM, is_comment

_BLOCK = 4 << 20  # bytes that are read at a time, a task each
_LINE = 1 << 12  # bytes to look ahead for the end of a line
_SLICE = 1 << 17  # bytes at a time: small enough for the cache, large enough that threads seldom wait for each other
_OTHER_BLANKS = (b" ", b"\t", b"\x0b", b"\x0c")


class IrregularFile(Exception):  # noqa: N818 -- no error of the user: another reader takes the file
    """The file is not written as this reader needs it."""


def blocks(file: io.BufferedReader) -> Iterator[Callable[[], bytes]]:
    """Functions that give the blocks of a file, one after the other, without a byte order mark.

    A file as it lies on the disk is read by whoever calls them; a packed one is unpacked here.
    """
    if isinstance(file.raw, io.FileIO) and hasattr(os, "pread"):
        for begin in range(0, os.fstat(file.fileno()).st_size, _BLOCK):
            yield partial(_lines_that_begin, file.fileno(), begin, begin + _BLOCK)
        return
    rest, first = b"", True
    while data := file.read(_BLOCK):
        data, first = (data.removeprefix(BOM) if first else data), False
        cut = data.rfind(b"\n") + 1
        if cut:
            yield partial(bytes, rest + data[:cut])
        rest = data[cut:] if cut else rest + data
    if rest:
        yield partial(bytes, rest + b"\n")


def _lines_that_begin(file: int, begin: int, end: int) -> bytes:
    """The lines of a file that begin at these places of it; the last one of a file ends as the others do."""
    start = max(begin - 1, 0)
    data = _read(file, start, end - start + _LINE)
    first = data.find(b"\n") + 1 if begin else len(BOM) if data.startswith(BOM) else 0
    if begin and not 0 < first <= end - start:
        return b""  # a line that began before holds all of it
    while not (last := data.find(b"\n", end - start - 1) + 1):
        more = _read(file, start + len(data), _BLOCK)
        if not more:
            return data[first:] if data.endswith(b"\n") else data[first:] + b"\n"
        data += more
    return data[first:last]


def _read(file: int, begin: int, size: int) -> bytes:
    """As many bytes as asked, fewer only at the end of the file."""
    data = os.pread(file, size, begin)
    while len(data) < size and (more := os.pread(file, size - len(data), begin + len(data))):
        data += more
    return data


def is_irregular(block: bytes, rows: int, blank: bytes) -> bool:
    """Whether a block that arrow took for so many rows holds a blank of another kind, or one beside another or at the
    end of a line.

    (One at the beginning of a line leaves the question empty, which is seen there.)
    """
    signs = np.frombuffer(block, dtype=np.uint8)
    blanks: int = 0
    for begin in range(0, len(signs), _SLICE):
        low = signs[begin:begin + _SLICE + 1] <= ord(" ")  # one sign of the next slice, so that no pair is torn
        blanks += int(np.count_nonzero(low[:_SLICE]))
        if np.count_nonzero(low[1:] & low[:-1]):
            return _is_irregular(block, blank)
    return blanks != COLUMNS * rows and _is_irregular(block, blank)


def _is_irregular(block: bytes, blank: bytes) -> bool:
    if any(sign in block for sign in _OTHER_BLANKS if sign != blank):
        return True
    if block.count(b"\r") != block.count(b"\r\n"):
        return True
    signs = np.frombuffer(block, dtype=np.uint8)
    for begin in range(0, len(signs), _SLICE):
        part = signs[begin:begin + _SLICE + 1]
        blanks = part == blank[0]
        beside = blanks | (part == ord("\n")) | (part == ord("\r"))
        if np.count_nonzero(blanks[:-1] & beside[1:]):
            return True
    return False


def tidied(block: bytes) -> bytes:
    """The block with one blank between columns, and without comments."""
    found = []
    for line in block.split(b"\n"):
        cells = run_cells(line)
        if cells is not None:
            found.append(b" ".join(cells) + b"\n")
        elif line.strip() and not is_comment(line):
            raise IrregularFile
    return b"".join(found)
