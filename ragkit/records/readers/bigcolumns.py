"""The columns of a big run file as arrays, read by arrow: what bigruns.py judges.

Ids are hashed and looked up in the gold as they come, while arrow reads on.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragkit.records.keys import has_twins, mixed
from ragkit.records.lookalikes import visible_form
from ragkit.records.questions import Qrels
from ragkit.records.readers.arrow import (
    arrow_bools,
    arrow_ints,
    arrow_strings,
    bools_of,
    floats_of,
    places_of,
    texts_at,
)
from ragkit.records.readers.bigblocks import IrregularFile, blocks, is_irregular, tidied
from ragkit.records.readers.bigranks import Gold
from ragkit.records.readers.bigrows import Part, Rows, runs
from ragkit.records.readers.hashing import hash_strings
from ragkit.records.readers.trec import open_bytes
from ragkit.records.runs import RunRules

_MOST_WORKERS = 8
_NAMES = ("question", "iteration", "document", "rank", "score", "name")


@dataclass
class Met:
    """What was met among rows.

    found: the rows whose document is in the gold, as places in the file, and which of the gold it is. answered: codes
    of the questions that have rows. odd: of a question, returned ids that are not ASCII. self_hits: documents dropped.
    """

    found: NDArray[np.int64]
    gold: NDArray[np.int64]
    answered: NDArray[np.int32]
    unknown: list[str]
    odd: dict[int, set[str]]
    self_hits: Counter[str]


@dataclass
class _Block:
    """The rows of a block of the file; whether a pair may stand twice in it, and what was met."""

    part: Part
    twice: bool
    met: Met


def read_columns(path: Path, qrels: Qrels, gold: Gold, rules: RunRules, tidy: bool) -> tuple[Rows, Met]:
    """The rows of a file that has one blank between columns, and what was met; with `tidy`, of any file, and slower.

    Raises IrregularFile where it must be read with `tidy`, or, with it, line by line.
    """
    workers = min(_MOST_WORKERS, os.cpu_count() or 1)
    parts: list[_Block | None] = []
    with open_bytes(path, "a run file") as file, ThreadPoolExecutor(workers) as pool:
        blank = b"\t" if not tidy and b"\t" in file.peek(4096).partition(b"\n")[0] else b" "
        making = _Parts({question: code for code, question in enumerate(qrels)}, gold, rules, blank, tidy)
        waiting: deque[Future[_Block | None]] = deque()
        try:
            for block in blocks(file):
                waiting.append(pool.submit(making.part, block))
                if len(waiting) > 2 * workers:
                    parts.append(waiting.popleft().result())
            parts.extend(one.result() for one in waiting)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise IrregularFile from None  # said by the reader line by line
        finally:
            pool.shutdown(cancel_futures=True)
    filled = [part for part in parts if part is not None]
    if not filled:
        raise IrregularFile
    return _joined(filled)


def _joined(some: list[_Block]) -> tuple[Rows, Met]:
    begins = np.cumsum([0, *(len(one.part.codes) for one in some)]).tolist()
    mets = [one.met for one in some]
    odd: dict[int, set[str]] = {}
    for met in mets:
        for code, documents in met.odd.items():
            odd.setdefault(code, set()).update(documents)
    return Rows([one.part for one in some], _any_twice(some)), Met(
        np.concatenate([met.found + begin for met, begin in zip(mets, begins, strict=False)]),
        np.concatenate([met.gold for met in mets]), np.concatenate([met.answered for met in mets]),
        list(dict.fromkeys(name for met in mets for name in met.unknown)), odd,
        sum((met.self_hits for met in mets), Counter()))


def _any_twice(some: list[_Block]) -> bool:
    """Whether a (question, document) may stand twice: within a part, or in questions that parts share."""
    if any(one.twice for one in some):
        return True
    parts = np.zeros(1 + max(int(one.part.groups.max(initial=0)) for one in some), dtype=np.int64)
    for one in some:
        held = np.zeros(len(parts), dtype=np.bool_)
        held[one.part.groups] = True
        parts += held
    keys = [one.part.keys[np.repeat((parts > 1)[one.part.groups], one.part.sizes)] for one in some]
    return has_twins(np.concatenate(keys))


class _Parts:
    """Makes parts of blocks; several at a time, so it keeps nothing."""

    def __init__(self, codes: dict[str, int], gold: Gold, rules: RunRules, blank: bytes, tidy: bool) -> None:
        self._codes, self._gold, self._rules, self._blank, self._tidy = codes, gold, rules, blank, tidy

    def _columns(self, block: bytes) -> list[Any]:
        """Questions, documents, scores and, where they decide ties, ranks as arrow arrays; none of no line."""
        import pyarrow
        from pyarrow import csv

        if self._tidy:
            block = tidied(block)
        types = {"question": pyarrow.string(), "document": pyarrow.string(), "score": pyarrow.float64()}
        if self._rules.ties == "rank":
            types["rank"] = pyarrow.float64()
        try:
            table = csv.read_csv(
                pyarrow.BufferReader(block),
                read_options=csv.ReadOptions(column_names=_NAMES, block_size=len(block) + 1, use_threads=False),
                parse_options=csv.ParseOptions(delimiter=self._blank.decode(), quote_char=False),
                convert_options=csv.ConvertOptions(include_columns=list(types), column_types=types, null_values=[]))
        except pyarrow.ArrowInvalid:
            if not block.strip():
                return []
            raise IrregularFile from None
        if not self._tidy and is_irregular(block, table.num_rows, self._blank):
            raise IrregularFile
        return [column.combine_chunks() if column.num_chunks > 1 else column.chunk(0) for column in table.columns] \
            if table.num_rows else []

    def part(self, read: Callable[[], bytes]) -> _Block | None:
        """The rows of a block; None where it holds none."""
        block = read()
        columns = self._columns(block)
        if not columns:
            return None
        rules = self._rules
        names, indices = _told_apart(columns[0])
        if rules.normalize_ids:
            names = list(map(visible_form, names))
        known = np.array([self._codes.get(name, -1) for name in names], dtype=np.int32)
        codes, documents = known[indices], columns[1]
        scores: NDArray[np.floating[Any]] = floats_of(columns[2])
        places = floats_of(columns[3]) if rules.ties == "rank" else None
        if np.isnan(scores).any() or "" in names or (places is not None and not np.isfinite(places).all()):
            raise IrregularFile
        if rules.normalize_ids:
            from pyarrow import compute

            strange = compute.match_substring_regex(documents, "[^ -~]")
            forms = list(map(visible_form, documents.filter(strange).to_pylist()))
            documents = compute.replace_with_mask(documents, strange, arrow_strings(forms))
        keep, self_hits = codes >= 0, Counter[str]()
        if rules.drop_self:
            own = keep & _is_self(names, indices, documents)
            self_hits = Counter(names[index] for index in indices[own].tolist())
            keep &= ~own
        if not keep.all():
            documents, codes, scores = documents.filter(arrow_bools(keep)), codes[keep], scores[keep]
            places = None if places is None else places[keep]
        odd: dict[int, set[str]] = {}
        for row in () if block.isascii() else _not_ascii(documents):
            odd.setdefault(int(codes[row]), set()).add(documents[row].as_py())
        if rules.float32:
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32)
        keys = mixed(hash_strings(documents), codes)
        found, gold = self._gold.find(keys, documents)
        met = Met(found, gold, known[known >= 0], [name for name in names if name not in self._codes], odd, self_hits)
        return _Block(Part(codes, scores, keys, documents, places), has_twins(keys), met)


def _not_ascii(documents: Any) -> list[int]:
    from pyarrow import compute

    found: list[int] = np.flatnonzero(~bools_of(compute.string_is_ascii(documents))).tolist()
    return found


def _is_self(names: list[str], indices: NDArray[np.int32], documents: Any) -> NDArray[np.bool_]:
    from pyarrow import compute

    questions = arrow_strings(names).take(arrow_ints(indices.astype(np.int64)))
    return bools_of(compute.equal(questions, documents))


def _told_apart(questions: Any) -> tuple[list[str], NDArray[np.int32]]:
    """The questions of some rows, and of each row its place among them: cheaply where rows of a question are together.

    A question may stand in the list more than once. Neighbours are told apart by their hashes.
    """
    _, sizes = runs(hash_strings(questions))
    if len(sizes) > len(questions) // 4:
        encoded = questions.dictionary_encode()
        return encoded.dictionary.to_pylist(), places_of(encoded)
    begins = np.cumsum(sizes) - sizes
    return texts_at(questions, begins), np.repeat(np.arange(len(begins), dtype=np.int32), sizes)
