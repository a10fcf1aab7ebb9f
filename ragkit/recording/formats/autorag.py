"""Files of AutoRAG: a project or trial folder, the result file of one node, or its questions (qa.parquet).

The chain of its nodes is one step: what the last one gave is the outermost list. Gold is in autorag_gold.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.recording.formats.autorag_gold import Table, groups_of, questions_of, read_parquet
from ragkit.recording.formats.flat import number, row_notes
from ragkit.recording.formats.imported import UNKNOWN, Imported, numbered
from ragkit.records.questions import Dataset
from ragkit.records.readers.rows import identifier, is_missing
from ragkit.records.readers.tables import read_csv
from ragkit.records.trajectory import Passage, Retrieval, Stage, Step, Trajectory

_STAGES: dict[str, Stage] = {"hybrid_retrieval": "fuse", "passage_reranker": "rerank", "passage_filter": "filter",
                             "passage_augmenter": "other"}
_QUESTION = {"qid", "query", "retrieval_gt"}
_SUFFIXES = ("", "_semantic", "_lexical")  # outermost first: a file of several searches holds them side by side
_EXPECTED = "expected a project or trial folder of AutoRAG, a result of one of its nodes, or its qa.parquet"


@dataclass(frozen=True)
class _Node:
    """The result of one node: what it is called, and its rows, one a question in the order of qa.parquet."""

    name: str
    path: Path
    rows: Table


def read_autorag(path: Path) -> Imported:
    """A trial as trajectories: the best module of each node is a list of the one step; the last list is the context.

    A project folder stands for its last finished trial. The questions of a result come from the project's
    data/qa.parquet, else from its own columns, else from the one qa file beside it that is as long, by the order of
    the rows; where it has AutoRAG's retrieval_recall, that must be the recall of its ids with this gold. Scores are
    similarities.
    """
    notes: list[str] = []
    if path.is_dir():
        nodes, qa = _trial(path, notes)
    else:
        rows = read_parquet(path)
        columns = {name for row in rows[:1] for name in row}
        if _is_questions(columns):
            dataset, told = questions_of(path)
            return Imported((), dataset, tuple(told))
        if not any(name.startswith(("retrieved_", "generated_texts")) for name in columns):
            is_corpus = " is a corpus;" if {"doc_id", "contents"} <= columns else ""
            raise DataError(f"{path}:{is_corpus} {_EXPECTED}; the columns are {', '.join(sorted(columns)) or 'none'}")
        nodes = [_Node(path.resolve().parent.name, path, rows)]
        qa = _project_questions(path.parent) or (path if columns >= _QUESTION else _neighbour(path, len(rows), notes))
    dataset, told = questions_of(qa)
    for node in nodes:
        _check(node, dataset, read_parquet(qa))
    trajectories = numbered(_trajectory(nodes, dataset, place) for place in range(len(dataset.questions)))
    return Imported(trajectories, dataset, (*notes, *row_notes(trajectories, len(trajectories)), *told))


def _is_questions(columns: set[str]) -> bool:
    return columns >= _QUESTION and not any(name.startswith("retrieved_") for name in columns)


def _trial(folder: Path, notes: list[str]) -> tuple[list[_Node], Path]:
    """The best results of a trial, in the order of the nodes, and the questions."""
    trials = sorted((one for one in folder.iterdir() if one.name.isdigit() and (one / "summary.csv").is_file()),
                    key=lambda one: int(one.name))
    if trials:
        notes.append(f"trial {trials[-1].name} of {len(trials)} finished trials was read")
        return _trial(trials[-1], notes)
    if not (folder / "summary.csv").is_file():
        raise DataError(f"{folder}: no summary.csv, and no trial that has one; {_EXPECTED}")
    nodes = []
    for where, row in read_csv(folder / "summary.csv", delimiter=","):
        node, file = row.get("node_type"), row.get("best_module_filename")
        if not node or not file:
            raise DataError(f"{where}: expected node_type and best_module_filename, as a trial or a node line has them")
        found = folder / (row.get("node_line_name") or "") / node / file
        if not found.resolve().is_relative_to(folder.resolve()):
            raise DataError(f"{where}: {str(found)!r} is outside of the folder; expected names of files in it")
        nodes.append(_Node(node, found, read_parquet(found)))
    if not nodes:
        raise DataError(f"{folder / 'summary.csv'}: no node; expected at least one")
    skipped = [node.name for node in nodes if node.name in ("passage_compressor", "query_expansion")]
    if skipped:
        notes.append(f"what {' and '.join(skipped)} wrote is left out: its texts are no passages of the corpus")
    qa = _project_questions(folder)
    if qa is None:
        raise DataError(f"{folder}: no data/qa.parquet in the folders above; expected the trial inside its project")
    return nodes, qa


def _project_questions(path: Path) -> Path | None:
    above = (path, *path.resolve().parents[:5])
    return next((qa for one in above if (qa := one / "data" / "qa.parquet").is_file()), None)


def _neighbour(path: Path, n_rows: int, notes: list[str]) -> Path:
    """The one file of as many questions that lies beside a result."""
    import pyarrow
    import pyarrow.parquet

    fitting = []
    for file in sorted(path.parent.glob("*.parquet")):
        with suppress(pyarrow.ArrowException):  # another file, which nobody asked to read
            found = pyarrow.parquet.ParquetFile(file)
            if found.metadata.num_rows == n_rows and _is_questions(set(found.schema_arrow.names)):
                fitting.append(file)
    if len(fitting) != 1:
        raise DataError(f"{path}: holds no questions; expected data/qa.parquet in a folder above, or one qa file with "
                        f"{n_rows} rows beside it, found {len(fitting)}")
    notes.append(f"the questions are those of {fitting[0].name}, by the order of the rows")
    return fitting[0]


def _check(node: _Node, dataset: Dataset, qa: Table) -> None:
    """The rows must be those of the questions: as many, under their qid, with the recall that AutoRAG found."""
    if len(node.rows) != len(dataset.questions):
        raise DataError(f"{node.path}: expected {len(dataset.questions)} rows, one a question, got {len(node.rows)}")
    for place, (row, question, asked) in enumerate(zip(node.rows, dataset.questions, qa, strict=True)):
        where = f"{node.path}: row {place}"
        if not is_missing(row.get("qid")) and row["qid"] != question.id:
            raise DataError(f"{where}: is of the question {row['qid']!r}, expected {question.id!r}: another qa file?")
        groups, ids, told = groups_of(asked.get("retrieval_gt"), where), row.get("retrieved_ids"), row.get(
            "retrieval_recall")
        if groups and ids is not None and told is not None:
            recall = sum(bool(set(group) & set(ids)) for group in groups) / len(groups)
            if abs(recall - told) > 1e-6:
                raise DataError(f"{where}: retrieval_recall is {told:g}, and {recall:g} with the gold of "
                                f"{question.id!r}: the rows are not in the order of the questions")


def _trajectory(nodes: Sequence[_Node], dataset: Dataset, place: int) -> Trajectory:
    question = dataset.questions[place]
    lists: list[Retrieval] = []  # outermost first
    scores: dict[str, float | None] = {}
    answer, metadata = None, {}
    for node in nodes:
        row = node.rows[place]
        scores |= {f"{node.name}.{name}" if len(nodes) > 1 else name: number(value) for name, value in row.items()
                   if isinstance(value, float) or (value is None and name.startswith("retrieval_"))}
        if isinstance(row.get("generated_texts"), str):
            answer = row["generated_texts"]
        if node.name == "query_expansion" and row.get("queries"):
            metadata["queries"] = row["queries"]
        if node.name not in ("passage_compressor", "query_expansion", "prompt_maker"):
            lists = [*_lists(node, row, question.text, place), *lists]
    lists = [found for at, found in enumerate(lists) if at == 0 or found.ids != lists[at - 1].ids
             or found.stage != lists[at - 1].stage]
    source = {"format": "autorag", "trace_id": None, "metadata": metadata, "scores": scores}
    if not lists:
        return Trajectory(question.id, question.text, answer=answer, meta={"source": source, "warnings": [UNKNOWN]})
    context = Retrieval("context", question.text, lists[0].passages, score_kind="similarity", source="manual")
    return Trajectory(question.id, question.text, (Step(0, tuple(lists)),), context, answer, meta={"source": source})


def _lists(node: _Node, row: dict[str, Any], question: str, place: int) -> list[Retrieval]:
    """The lists that a row holds: the node's own, and those of the searches that a hybrid fused."""
    found = []
    for suffix in _SUFFIXES:
        ids = row.get(f"retrieved_ids{suffix}")
        if ids is None:
            continue
        texts, scores = row.get(f"retrieved_contents{suffix}"), row.get(f"retrieve_scores{suffix}")
        where = f"{node.path}: row {place}"
        for name, column in (("retrieved_contents", texts), ("retrieve_scores", scores)):
            if column is not None and len(column) != len(ids):
                raise DataError(f"{where}: expected as many {name}{suffix} as retrieved_ids, got {len(column)} and "
                                f"{len(ids)}")
        passages = tuple(Passage(identifier(one, where), None if texts is None else texts[at], None,
                                 None if scores is None else number(scores[at])) for at, one in enumerate(ids))
        stage = _STAGES.get(node.name, "retrieve") if not suffix else "retrieve"
        found.append(Retrieval(stage, question, passages, f"{node.name}{suffix}", score_kind="similarity"))
    return found
