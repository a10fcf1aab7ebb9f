"""A dataset as a folder: queries.jsonl, and corpus.jsonl and qrels where there are any (BEIR's layout, extended)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.records.files import read_jsonl, write_jsonl
from ragkit.records.questions import Dataset, Document
from ragkit.records.readers.rows import Row, dataset_from_rows, identifier
from ragkit.records.readers.tables import read_table
from ragkit.records.readers.trec import read_qrels, read_topics

_LAYOUT = "queries.jsonl, and optionally corpus.jsonl and qrels/SPLIT.tsv or qrels.tsv"
_QUERIES = ("queries.jsonl", "queries.jsonl.gz")
_TOPICS = ("queries.tsv", "topics.tsv", "topics.txt", "topics.trec", "topics")
_CORPUS = ("corpus.jsonl", "corpus.jsonl.gz")
_QRELS = ("qrels.tsv", "qrels.trec", "qrels.txt", "qrels.tsv.gz", "qrels.trec.gz", "qrels.txt.gz")


def load_folder(folder: Path, columns: Mapping[str, str] | None, split: str) -> Dataset:
    """The dataset in `folder`. Lines of queries.jsonl are {_id, text, answers?, category?, unanswerable?, gold_texts?,
    metadata?}; qrels may name grades. Questions that only another split's qrels name are left out."""
    rows = _queries(folder)
    dataset = dataset_from_rows(rows, columns, folder.resolve().name, str(folder / _QUERIES[0]))
    qrels = {question: dict(row) for question, row in dataset.qrels.items()}
    labels, elsewhere = _labels(folder, split)
    for question, row in labels.items():
        qrels.setdefault(question, {}).update(row)
    kept = tuple(question for question in dataset.questions if question.id not in elsewhere)
    if not kept:
        raise DataError(f"{folder}: no question is in split {split!r}; expected qrels of that split, or split=NAME")
    corpus = next((folder / name for name in _CORPUS if (folder / name).exists()), None)
    return replace(dataset, questions=kept, qrels=qrels, corpus=None if corpus is None else read_corpus(corpus))


def _queries(folder: Path) -> list[Row]:
    for name in _QUERIES:
        if (folder / name).exists():
            return read_table(folder / name)
    for name in _TOPICS:
        if (folder / name).is_file():
            return [(str(folder / name), {"_id": topic, "text": text})
                    for topic, text in read_topics(folder / name).items()]
    found = ", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "nothing"
    raise DataError(f"{folder}: no queries.jsonl; expected {_LAYOUT}; found {found}")


def _labels(folder: Path, split: str) -> tuple[dict[str, dict[str, float]], set[str]]:
    """The qrels of the split, and the ids of questions that only other splits name."""
    files = {path.name.split(".")[0]: path for path in sorted((folder / "qrels").glob("*")) if path.is_file()}
    if split in files:
        labels = read_qrels(files[split])
        others = {question for name, path in files.items() if name != split for question in read_qrels(path)}
        return labels, others - set(labels)
    single = next((folder / name for name in _QRELS if (folder / name).exists()), None)
    if single is not None:
        return read_qrels(single), set()
    if files:
        raise DataError(f"{folder / 'qrels'}: no split {split!r}; expected one of {', '.join(files)}: name it")
    return {}, set()


def read_corpus(path: str | Path) -> dict[str, Document]:
    """The documents of a corpus.jsonl {_id, title?, text, metadata?} by id, in its order; empty texts are kept.

    Other keys go into the metadata. A repeated id, and a file without any document, is a DataError.
    """
    path = Path(path)
    corpus: dict[str, Document] = {}
    lines: dict[str, int] = {}
    for number, row in read_jsonl(path):
        document = _document(row, f"{path}:{number}")
        first = lines.setdefault(document.id, number)
        if first != number:
            raise DataError(f"{path}:{number}: document id {document.id!r} stands already in line {first}; "
                            "expected each id once")
        corpus[document.id] = document
    if not corpus:
        raise DataError(f"{path}: the corpus is empty; expected at least one document {{_id, title, text}}: "
                        "fill the file, or remove it (the corpus is optional)")
    return corpus


def _document(row: Any, where: str) -> Document:
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: expected a JSON object (one document), got {type(row).__name__}")
    id_key = next((key for key in ("_id", "id", "doc_id", "docid") if row.get(key) is not None), None)
    text_key = next((key for key in ("text", "contents", "page_content") if row.get(key) is not None), None)
    if id_key is None or text_key is None:
        missing = "_id" if id_key is None else "text"
        raise DataError(f"{where}: expected {missing!r}; the keys are {', '.join(map(str, row)) or 'none'}")
    title, text, metadata = row.get("title") or "", row[text_key], row.get("metadata") or {}
    if not isinstance(title, str) or not isinstance(text, str) or not isinstance(metadata, Mapping):
        raise DataError(f"{where}: expected strings for title and text and an object for metadata")
    others = {key: value for key, value in row.items() if key not in (id_key, text_key, "title", "metadata")}
    return Document(identifier(row[id_key], where), text, title, {**others, **metadata})


def write_folder(folder: Path, dataset: Dataset) -> None:
    """Write a dataset so that `load_folder` reads the same one; the gold stands beside its question."""
    rows: list[dict[str, Any]] = []
    for question in dataset.questions:
        gold = [{key: value for key, value in asdict(text).items() if value not in (None, "")}
                for text in question.gold_texts]
        row = {"_id": question.id, "text": question.text, "answers": list(question.answers),
               "category": question.category, "unanswerable": question.unanswerable, "gold_texts": gold,
               "gold_ids": dict(dataset.qrels.get(question.id, {})), "tags": list(question.tags),
               "history": [dict(message) for message in question.history], "metadata": dict(question.metadata)}
        rows.append({key: value for key, value in row.items() if value or key in ("_id", "text")})
    write_jsonl(folder / _QUERIES[0], rows)
    if dataset.corpus is not None:
        documents = dataset.corpus.values()
        write_jsonl(folder / _CORPUS[0], ({"_id": d.id, "title": d.title, "text": d.text, "metadata": dict(d.metadata)}
                                          for d in documents))
