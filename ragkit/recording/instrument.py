"""Watching one object by patching that object alone: vector stores, raw Chroma collections, and what is inside a
retriever. Compressors and cross-encoders are patched in rerankers.py."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ragkit.errors import DataError, describe
from ragkit.recording.attribution import is_live, open_frame
from ragkit.recording.passages import as_passage, as_passages
from ragkit.recording.recorder import framed
from ragkit.records.trajectory import Passage, ScoreKind

Undo = Callable[[], None]

_SEARCHES = (
    "similarity_search",
    "similarity_search_with_score",
    "similarity_search_with_relevance_scores",
    "similarity_search_by_vector",
    "similarity_search_with_score_by_vector",
    "similarity_search_by_vector_with_relevance_scores",
    "max_marginal_relevance_search",
    "max_marginal_relevance_search_by_vector",
)
_INSIDE = ("vectorstore", "base_retriever", "base_compressor", "retriever", "retrievers", "transformers")


def patch(obj: Any) -> Undo:
    """Patches what can be watched on the object and returns what undoes it; DataError where there is nothing."""
    from ragkit.recording.rerankers import patch_compressor, patch_cross_encoder

    undos: list[Undo] = []
    if callable(getattr(obj, "similarity_search", None)):
        undos.append(_patch_store(obj))
    elif callable(getattr(obj, "compress_documents", None)):
        undos.append(patch_compressor(obj))
    elif callable(getattr(obj, "predict", None)) and callable(getattr(obj, "rank", None)):
        undos.append(patch_cross_encoder(obj))
    elif callable(getattr(obj, "query", None)) and callable(getattr(obj, "upsert", None)):
        undos.append(replace_method(obj, "query", lambda method: _watched_query(method, obj)))
    is_retriever = hasattr(obj, "_get_relevant_documents")
    if is_retriever or hasattr(obj, "transformers"):
        undos += _patch_inside(obj)
    if not undos and not is_retriever:  # a retriever's callbacks tell all that it does
        raise DataError(
            "instrument: expected a vector store (similarity_search), a compressor (compress_documents), a "
            "CrossEncoder (rank and predict), a Chroma collection (query) or a LangChain retriever, "
            f"got {type(obj).__name__}; "
            "for a function of your own use @recorder.retriever"
        )
    return all_of(undos)


def all_of(undos: list[Undo]) -> Undo:
    """One function that undoes them all, the last first."""

    def undo_all() -> None:
        for undo in reversed(undos):
            undo()

    return undo_all


def replace_method(obj: Any, name: str, wrap: Callable[[Any], Any]) -> Undo:
    """Puts a wrapper in front of one method of this one object, or counts one more user of the one that is there.
    Pydantic models refuse unknown attributes, so it goes around their `__setattr__`."""
    before = vars(obj).get(name) if hasattr(obj, "__dict__") else None
    users = getattr(before, "ragkit_users", None)
    if users is None:
        wrapper, users = wrap(getattr(obj, name)), [before]
        wrapper.ragkit_users = users
        try:
            object.__setattr__(obj, name, wrapper)
        except AttributeError as error:
            raise DataError(f"instrument: {type(obj).__name__} takes no attributes of its own "
                            f"({describe(error)})") from None
    users.append(wrap)

    def undo() -> None:
        users.pop()
        if len(users) > 1:
            return
        if users[0] is None:
            vars(obj).pop(name, None)
        else:
            object.__setattr__(obj, name, users[0])

    return undo


def watch(
    method: Any, begin: Callable[[inspect.BoundArguments], Any], read: Callable[[Any], tuple[Passage, ...]]
) -> Any:
    """The method, sync or async, with a frame around each call. `begin` opens the frame."""
    signature = inspect.signature(method)

    def start(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return begin(signature.bind(*args, **kwargs))
        except (TypeError, DataError):  # a wrong call is the method's own error to raise
            return None

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def watched_async(*args: Any, **kwargs: Any) -> Any:
            if not is_live():
                return await method(*args, **kwargs)
            with framed(start(args, kwargs), read) as end:
                return end(await method(*args, **kwargs))

        return watched_async

    @functools.wraps(method)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if not is_live():
            return method(*args, **kwargs)
        with framed(start(args, kwargs), read) as end:
            return end(method(*args, **kwargs))

    return watched


def score_kind_of(store: Any, method: str) -> ScoreKind:
    """What this store's scores are. Chroma gives distances in every space, also by the method that calls them
    relevance scores; other stores are asked by their own conversion: one that falls turns distances around."""
    if method == "similarity_search_with_relevance_scores":
        return "similarity"
    classes = {one.__name__ for one in type(store).__mro__}
    if "Chroma" in classes:
        return "distance"
    if "InMemoryVectorStore" in classes:
        return "similarity"
    if "FAISS" in classes:
        metric = getattr(getattr(store, "index", None), "metric_type", None)  # 0: inner product, 1: L2
        return "similarity" if metric == 0 else "distance" if metric == 1 else "unknown"
    try:
        convert = store._select_relevance_score_fn()
        if "inner_product" in getattr(convert, "__name__", ""):
            return "unknown"  # stores disagree on the sign
        low, high = float(convert(0.1)), float(convert(0.9))
    except Exception:  # not every store has one, and some ask their server for it
        return "unknown"
    return "similarity" if low < high else "distance" if low > high else "unknown"


def _patch_store(store: Any) -> Undo:
    undos = []
    for base in _SEARCHES:
        for name in (base, f"a{base}"):
            if callable(getattr(store, name, None)):
                undos.append(replace_method(store, name, functools.partial(_watched_search, store, base)))
    return all_of(undos)


def _watched_search(store: Any, base: str, method: Any) -> Any:
    name = type(store).__name__
    kind = score_kind_of(store, base) if "score" in base else "unknown"

    def begin(bound: inspect.BoundArguments) -> Any:
        query = bound.arguments.get("query", "")
        frame = open_frame("store", name, query if isinstance(query, str) else "", "retrieve")
        if frame is not None:
            frame.score_kind = kind
        return frame

    return watch(method, begin, as_passages)


def _watched_query(method: Any, collection: Any) -> Any:
    """A raw Chroma `query`: one list for each query that it was asked, all in one call and so in one turn."""
    signature = inspect.signature(method)
    name = str(getattr(collection, "name", "chroma"))

    @functools.wraps(method)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if not is_live():
            return method(*args, **kwargs)
        texts = signature.bind_partial(*args, **kwargs).arguments.get("query_texts")
        texts = [texts] if isinstance(texts, str) else list(texts or [""])
        first = open_frame("store", name, texts[0], "retrieve")
        with framed(first, _chroma_list) as end:
            result = end(method(*args, **kwargs))
        for number in range(len(result["ids"]) if first is not None else 0):
            frame = first if number == 0 else open_frame("store", name, dict(enumerate(texts)).get(number, ""))
            if frame is not None and first is not None:
                frame.score_kind, frame.begun, frame.started = "distance", first.begun, first.started
                frame.close(_chroma_list(result, number))
        return result

    return watched


def _chroma_list(result: Any, number: int = 0) -> tuple[Passage, ...]:
    if not isinstance(result, Mapping) or "ids" not in result:
        raise DataError(f"chroma query: expected a result with ids, got {type(result).__name__}")
    columns = [(result.get(key) or {number: None})[number] for key in ("documents", "metadatas", "distances")]
    rows = enumerate(result["ids"][number])
    return tuple(_chroma_row(given, *(column[row] if column else None for column in columns)) for row, given in rows)


def _chroma_row(given: str, text: str | None, metadata: Any, distance: Any) -> Passage:
    return as_passage({"id": given, "text": text, "metadata": dict(metadata or {}), "score": distance})


def _patch_inside(retriever: Any) -> list[Undo]:
    undos: list[Undo] = []
    for name in _INSIDE:
        inner = getattr(retriever, name, None)
        for one in inner if isinstance(inner, list | tuple) else [inner]:
            try:
                undos += [] if one is None else [patch(one)]
            except DataError:
                continue
    return undos
