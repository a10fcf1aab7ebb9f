"""Watching re-rankers: LangChain document compressors and sentence-transformers cross-encoders. No scoring here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ragkit.errors import DataError, describe
from ragkit.recording.attribution import is_live, open_frame
from ragkit.recording.instrument import Undo, all_of, replace_method, watch
from ragkit.recording.log import Frame, Log
from ragkit.recording.passages import as_passage, as_passages
from ragkit.recording.recorder import framed
from ragkit.records.trajectory import Passage


def patch_compressor(compressor: Any) -> Undo:
    """Patches `compress_documents` and `acompress_documents`; a CrossEncoder inside stays the compressor's own."""
    undos = [
        replace_method(compressor, name, functools.partial(_watched_compress, type(compressor).__name__))
        for name in ("compress_documents", "acompress_documents")
        if callable(getattr(compressor, name, None))
    ]
    return all_of(undos)


def _watched_compress(name: str, method: Any) -> Any:
    def begin(bound: inspect.BoundArguments) -> Any:
        frame = open_frame("compressor", name, str(bound.arguments.get("query", "")))
        if frame is not None:
            documents = bound.arguments.get("documents") or ()
            frame.inputs = tuple(as_passage(one) for one in documents)
            frame.score_kind = "similarity"  # of the relevance_score, where it gives one
        return frame

    return watch(method, begin, _relevance)


def _relevance(documents: Any) -> tuple[Passage, ...]:
    """Compressors of LangChain leave their score in the metadata."""

    def scored(passage: Passage) -> Passage:
        score = passage.metadata.get("relevance_score")
        return replace(passage, score=float(score)) if isinstance(score, int | float) else passage

    return tuple(scored(passage) for passage in as_passages(documents))


def patch_cross_encoder(model: Any) -> Undo:
    """Patches `rank` and `predict`. Texts are matched back to the passages of the running trace."""
    name = type(model).__name__
    undos = [
        replace_method(model, "rank", lambda method: _watched_rank(method, name)),
        replace_method(model, "predict", lambda method: _watched_predict(method, name)),
    ]
    return all_of(undos)


def _watched_rank(method: Any, name: str) -> Any:
    signature = inspect.signature(method)

    @functools.wraps(method)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if not is_live():
            return method(*args, **kwargs)
        arguments = signature.bind(*args, **kwargs).arguments
        query, texts = arguments.get("query"), list(arguments.get("documents") or ())
        textual = isinstance(query, str) and all(isinstance(text, str) for text in texts)
        frame = _open(name, str(query), texts) if textual else None
        with framed(frame, lambda result: _ranked(frame, result)) as end:
            result = end(method(*args, **kwargs))
        if frame is not None:
            frame.children.clear()  # the `predict` inside is the same thing again
        return result

    return watched


def _ranked(frame: Frame | None, rows: Any) -> tuple[Passage, ...]:
    try:
        return tuple(replace(frame.inputs[row["corpus_id"]], score=float(row["score"])) for row in rows if frame)
    except (TypeError, KeyError, IndexError) as error:
        raise DataError(f"rank: expected rows with corpus_id and score, got {describe(error)}") from None


def _watched_predict(method: Any, name: str) -> Any:
    @functools.wraps(method)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if not is_live():
            return method(*args, **kwargs)
        pairs = args[0] if args else kwargs.get("sentences", kwargs.get("inputs"))
        asked = list(_by_query(pairs))
        frames = [(_open(name, query, texts), rows) for query, texts, rows in asked]
        try:
            result = method(*args, **kwargs)
        except BaseException as error:
            for frame, _ in frames:
                if frame is not None:
                    frame.close(error=error)
            raise
        for frame, rows in frames:
            if frame is not None:
                _close_predicted(frame, result, rows)
        return result

    return watched


def _close_predicted(frame: Frame, result: Any, rows: Sequence[int | None]) -> None:
    try:
        scores = [float(result if row is None else result[row]) for row in rows]
    except (TypeError, ValueError, IndexError):  # several labels a pair: no ranking
        frame.close(error=DataError("expected one score a pair"))
        return
    scored = [replace(passage, score=score) for passage, score in zip(frame.inputs, scores, strict=True)]
    earlier = _earlier_part(frame)
    if earlier is not None:  # one call a pair, or a batch: all of them are one re-ranking
        scored = [*earlier.passages, *scored]
        frame.inputs = (*earlier.inputs, *frame.inputs)
        (frame.log.frames if frame.parent is None else frame.parent.children).remove(earlier)
        frame.begun, frame.started = earlier.begun, earlier.started
    frame.close(tuple(sorted(scored, key=lambda passage: -(passage.score or 0.0))))


def _earlier_part(frame: Frame) -> Frame | None:
    siblings = frame.log.frames if frame.parent is None else frame.parent.children
    before = siblings[siblings.index(frame) - 1] if siblings.index(frame) else None
    if before is None or before.kind != "cross-encoder" or (before.name, before.query) != (frame.name, frame.query):
        return None
    again = {passage.id for passage in before.inputs} & {passage.id for passage in frame.inputs}
    return None if again or before.error or before.ended is None else before


def _by_query(pairs: Any) -> Iterator[tuple[str, list[str], list[int | None]]]:
    """(query, texts, rows of the result) of each query among the pairs; a single pair has no row."""
    if isinstance(pairs, tuple | list) and len(pairs) == 2 and all(isinstance(one, str) for one in pairs):
        yield pairs[0], [pairs[1]], [None]
        return
    groups: dict[str, tuple[list[str], list[int | None]]] = {}
    for row, pair in enumerate(pairs if isinstance(pairs, Iterable) else ()):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(one, str) for one in pair):
            return  # images and the like
        texts, rows = groups.setdefault(pair[0], ([], []))
        texts.append(pair[1])
        rows.append(row)
    for query, (texts, rows) in groups.items():
        yield query, texts, rows


def _open(name: str, query: str, texts: Sequence[str]) -> Frame | None:
    frame = open_frame("cross-encoder", name, query, "rerank")
    if frame is not None:
        known = _known_texts(frame.log)
        frame.inputs = tuple(known(text) for text in texts)
        frame.score_kind = "similarity"
    return frame


def _known_texts(log: Log) -> Callable[[str], Passage]:
    """Looks up a text among the passages seen so far, those of the latest list first; several passages of one text
    are handed out one after the other."""
    by_text: dict[str, list[Passage]] = {}

    def walk(frames: Sequence[Frame]) -> None:
        for frame in reversed(frames):
            walk(frame.children)
            lists = [*(found.passages for found in frame.lists), frame.inputs, frame.passages]
            for passage in (one for passages in reversed(lists) for one in passages):
                same = by_text.setdefault((passage.text or "").strip(), [])
                if all(passage.id != other.id for other in same):
                    same.append(passage)

    walk(log.frames)
    taken: dict[str, int] = {}

    def known(text: str) -> Passage:
        same = by_text.get(text.strip()) or [as_passage(text)]
        place = taken.get(text, 0)
        taken[text] = place + 1
        return replace(same[min(place, len(same) - 1)], score=None)

    return known

