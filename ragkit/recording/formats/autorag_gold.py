"""Questions, gold and corpus of AutoRAG -> Dataset. Its gold is an AND of ORs: a passage of each inner list will do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.records.questions import Dataset, Document, Question
from ragkit.records.readers.rows import identifier

Table = list[dict[str, Any]]


def read_parquet(path: Path) -> Table:
    """The rows of a Parquet file as plain values."""
    import pyarrow
    import pyarrow.parquet

    try:
        rows: Table = pyarrow.parquet.read_table(path).to_pylist()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; expected a Parquet file of AutoRAG") from None
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        why = str(error).replace(f" '{path}'", "").splitlines()[0]
        raise DataError(f"{path}: expected a Parquet file of AutoRAG, or its project or trial folder ({why})") from None
    return rows


def groups_of(value: Any, where: str) -> list[list[str]]:
    """The inner lists of a `retrieval_gt` cell, without empty ids; a bare list is one group of alternatives, as AutoRAG
    takes it.

    >>> groups_of([["a", "b"], ["c"], [""]], "row 1"), groups_of(["a", "b"], "row 1"), groups_of("a", "row 1")
    ([['a', 'b'], ['c']], [['a', 'b']], [['a']])
    """
    if value is None:
        return []
    if isinstance(value, str):
        value = [[value]]
    if not isinstance(value, list):
        raise DataError(f"{where}: retrieval_gt: expected a list of lists of ids, got {shown(value)}")
    if value and not isinstance(value[0], list):
        value = [value]
    groups = [[identifier(one, f"{where}: retrieval_gt") for one in group if one not in (None, "")] for group in value]
    return [group for group in groups if group]


def gold_of(groups: Sequence[Sequence[str]]) -> tuple[dict[str, float], dict[str, list[str]]]:
    """(grades, alternatives): each group is one gold passage, called by an id that no other group is called by, and the
    ids that do as well. A group in which every id names another group already asks for nothing new.

    >>> gold_of([["a", "b"], ["c"]])
    ({'a': 1.0, 'c': 1.0}, {'a': ['b']})
    >>> gold_of([["a", "b"], ["a"]])
    ({'b': 1.0, 'a': 1.0}, {})
    """
    alone = {group[0] for group in groups if len(set(group)) == 1}
    grades: dict[str, float] = {}
    alternatives: dict[str, list[str]] = {}
    for group in groups:
        names = group if len(set(group)) == 1 else [one for one in group if one not in alone]
        name = next((one for one in names if one not in grades), None)
        if name is not None:
            grades[name] = 1.0
            alternatives[name] = [one for one in dict.fromkeys(group) if one != name and one not in alone]
    return grades, {name: others for name, others in alternatives.items() if others}


def questions_of(path: Path) -> tuple[Dataset, list[str]]:
    """The dataset of a qa file, with the corpus that lies beside it, and what is to be said of its gold.

    Alternatives stand in the question's metadata as `gold_alternatives`, where ragkit.score finds them.
    """
    questions, qrels = [], {}
    either = shared = 0
    for place, row in enumerate(read_parquet(path)):
        where = f"{path}: row {place}"
        groups = groups_of(row.get("retrieval_gt"), where)
        grades, alternatives = gold_of(groups)
        either += any(len(set(group)) > 1 for group in groups)
        shared += len({one for group in groups for one in set(group)}) < sum(len(set(group)) for group in groups)
        question_id = identifier(row.get("qid"), f"{where}: qid")
        if grades:
            qrels[question_id] = grades
        answers = row.get("generation_gt")
        answers = [answers] if isinstance(answers, str) else answers or ()
        metadata = {"gold_alternatives": alternatives} if alternatives else {}
        questions.append(Question(question_id, _text(row, "query", where), tuple(map(str, answers)), metadata=metadata))
    if not questions:
        raise DataError(f"{path}: no question; expected at least one row")
    corpus = _beside(path)
    dataset = Dataset(tuple(questions), qrels, None if corpus is None else _corpus(corpus), path.name.split(".")[0])
    return dataset, _notes(len(questions), len(qrels), either, shared)


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: {name}: expected a text, got {shown(value)}")
    return value


def _notes(questions: int, labelled: int, either: int, shared: int) -> list[str]:
    notes = []
    if either:
        notes.append(f"{either:,} of {questions:,} questions have gold that any of several passages will do for: each "
                     "such group is one gold passage for ragkit score (gold_alternatives in the question's metadata); "
                     "qrels alone name the first of it")
    if shared:
        notes.append(f"{shared:,} questions name a passage in several of these groups: it counts for one of them")
    if labelled < questions:
        notes.append(f"{questions - labelled:,} of {questions:,} questions have no gold")
    return notes


def _beside(path: Path) -> Path | None:
    """The corpus of a qa file: the file with corpus in the place of qa in its name."""
    head, _, tail = path.name.rpartition("qa")
    for name in (f"{head}corpus{tail}", path.name.replace("qa", "corpus", 1)):
        if name != path.name and path.with_name(name).is_file():
            return path.with_name(name)
    return None


def _corpus(path: Path) -> dict[str, Document]:
    corpus: dict[str, Document] = {}
    for place, row in enumerate(read_parquet(path)):
        document = identifier(row.get("doc_id"), f"{path}: row {place}: doc_id")
        if document in corpus:
            raise DataError(f"{path}: row {place}: doc_id {document!r} stands twice; expected each id once")
        corpus[document] = Document(document, str(row.get("contents") or ""), metadata=row.get("metadata") or {})
    return corpus
