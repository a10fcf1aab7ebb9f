"""Datasets of the ir_datasets catalogue, where that package is installed. Nothing is fetched before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragkit.errors import DataError
from ragkit.records.questions import Dataset, Document, Question

_TEXTS = ("text", "query", "title", "question")


def load_irds(dataset_id: str) -> Dataset:
    """The queries, qrels and documents of an ir_datasets id such as "beir/scifact/test"; documents on demand."""
    try:
        import ir_datasets
    except ImportError:
        raise DataError(f"irds:{dataset_id}: needs the package ir_datasets: pip install ir-datasets") from None
    try:
        source = ir_datasets.load(dataset_id)
    except KeyError:
        raise DataError(f"irds:{dataset_id}: no such dataset; expected an id of the ir_datasets catalogue, such as "
                        "vaswani or beir/scifact/test") from None
    if not source.has_queries():
        raise DataError(f"irds:{dataset_id}: the dataset has no queries; expected one with queries: name a subset")
    questions = tuple(Question(str(query.query_id), _text(query)) for query in source.queries_iter())
    if not questions:
        raise DataError(f"irds:{dataset_id}: no question; expected at least one")
    qrels: dict[str, dict[str, float]] = {}
    for judgement in source.qrels_iter() if source.has_qrels() else ():
        qrels.setdefault(str(judgement.query_id), {})[str(judgement.doc_id)] = float(judgement.relevance)
    return Dataset(questions, qrels, DocumentsOnDemand(source) if source.has_docs() else None, name=dataset_id)


def _text(query: Any) -> str:
    for name in _TEXTS:
        value = getattr(query, name, None)
        if isinstance(value, str) and value.strip():
            return value
    return str(query.default_text())


class DocumentsOnDemand(Mapping[str, Document]):
    """A corpus that is fetched by id or walked through, never held in memory at once."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getitem__(self, document_id: str) -> Document:
        return _document(self._source.docs_store().get(document_id))

    def __iter__(self) -> Iterator[str]:
        return (str(document.doc_id) for document in self._source.docs_iter())

    def __len__(self) -> int:
        return int(self._source.docs_count())

    def values(self) -> Any:
        """The documents in one walk, not one look-up each."""
        return (_document(document) for document in self._source.docs_iter())


def _document(document: Any) -> Document:
    title = getattr(document, "title", "")
    text = getattr(document, "text", None)
    return Document(str(document.doc_id), text if isinstance(text, str) else str(document.default_text()),
                    title if isinstance(title, str) and isinstance(text, str) else "")
