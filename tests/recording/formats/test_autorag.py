"""Files of AutoRAG: questions whose gold has alternatives, results of nodes, a trial, and the real samples."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from ragkit.errors import DataError
from ragkit.evaluation.evaluate import score
from ragkit.evaluation.result import Evaluation
from ragkit.recording.formats import FORMATS, Imported
from ragkit.recording.formats.autorag_gold import gold_of
from ragkit.records.readers import load_dataset
from ragkit.records.readers.beir import write_folder
from tests.support.data import data_folder

QA = [{"qid": "q1", "query": "Where?", "retrieval_gt": [["a", "b"], ["c"]], "generation_gt": ["There", "Over there"]},
      {"qid": "q2", "query": "Who?", "retrieval_gt": [["d"]], "generation_gt": ["Ann"]},
      {"qid": "q3", "query": "Why?", "retrieval_gt": [[]], "generation_gt": ["So"]}]
CORPUS = [{"doc_id": one, "contents": f"Text of {one}.", "metadata": {"page": 1}} for one in "abcdxy"]
LEXICAL = ["xba", "xy", "x"]
SEMANTIC = ["cx", "dx", ""]
HYBRID = ["bcx", "xd", "x"]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def results(lists: list[str], recall: list[float | None], suffix: str = "") -> list[dict[str, Any]]:
    return [{f"retrieved_contents{suffix}": [f"Text of {one}." for one in ids], f"retrieved_ids{suffix}": list(ids),
             f"retrieve_scores{suffix}": [1.0 / rank for rank in range(1, len(ids) + 1)], "retrieval_recall": value}
            for ids, value in zip(lists, recall, strict=True)]


def project(folder: Path) -> Path:
    """A project with one finished trial, as AutoRAG lays it out, and one that was broken off."""
    write(folder / "data" / "qa.parquet", QA)
    write(folder / "data" / "corpus.parquet", CORPUS)
    (folder / "1").mkdir()
    line, after = folder / "0" / "retrieve_node_line", folder / "0" / "post_retrieve_node_line"
    write(line / "lexical_retrieval" / "1.parquet", results(LEXICAL, [0.5, 0.0, None]))
    write(line / "semantic_retrieval" / "0.parquet", results(SEMANTIC, [0.5, 1.0, None]))
    write(line / "hybrid_retrieval" / "0.parquet", results(HYBRID, [1.0, 1.0, None]))
    write(line / "passage_filter" / "0.parquet", results([ids[:2] for ids in HYBRID], [1.0, 1.0, None]))
    write(after / "generator" / "0.parquet", [{"generated_texts": text, "bleu": 0.5} for text in ("There", "Bo", "So")])
    rows = [("lexical_retrieval", 1), ("semantic_retrieval", 0), ("hybrid_retrieval", 0), ("passage_filter", 0)]
    head = "node_type,best_module_filename,best_module_name,best_module_params,best_execution_time"
    lines = [f"{node},{file}.parquet,M,\"{{'top_k': 2}}\",0.1" for node, file in rows]
    (line / "summary.csv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    lines = [f"retrieve_node_line,{line}" for line in lines] + ["post_retrieve_node_line,generator,0.parquet,M,{},1"]
    (folder / "0" / "summary.csv").write_text("\n".join([f"node_line_name,{head}", *lines]) + "\n", encoding="utf-8")
    return folder


def read(path: Path) -> Imported:
    return FORMATS["autorag"](path)


def scored(found: Imported, **options: Any) -> Evaluation:
    return score(found.trajectories, found.dataset, metrics=["recall", "allhit", "ndcg@3", "map"], **options)


@pytest.mark.parametrize("part", ["", "0"])
def test_a_trial_is_one_step_with_the_list_of_each_node(tmp_path: Path, part: str) -> None:
    found = read(project(tmp_path) / part)
    first, second, third = found.trajectories
    assert [one.question_id for one in found.trajectories] == ["q1", "q2", "q3"]
    assert [(one.stage, one.name, "".join(one.ids)) for one in first.steps[0].retrievals] == [
        ("filter", "passage_filter", "bc"), ("fuse", "hybrid_retrieval", "bcx"),
        ("retrieve", "semantic_retrieval", "cx"), ("retrieve", "lexical_retrieval", "xba")]
    assert first.context is not None and first.context.ids == ("b", "c") and first.answer == "There"
    assert first.steps[0].outermost.score_kind == "similarity"
    assert [passage.score for passage in first.steps[0].outermost.passages] == [1.0, 0.5]
    assert first.steps[0].outermost.passages[0].text == "Text of b." and len(third.steps) == 1
    assert second.meta["source"]["scores"]["lexical_retrieval.retrieval_recall"] == 0.0
    assert second.meta["source"]["scores"]["generator.bleu"] == 0.5
    assert found.dataset is not None and found.dataset.corpus is not None and len(found.dataset.corpus) == 6
    assert found.dataset.by_id["q1"].answers == ("There", "Over there")
    assert ("trial 0 of 1 finished trials was read" in found.notes) == (part == "")


def test_the_last_trial_is_read(tmp_path: Path) -> None:
    project(tmp_path)
    for number in ("2", "10"):
        shutil.copytree(tmp_path / "0", tmp_path / number)
    write(tmp_path / "10" / "post_retrieve_node_line" / "generator" / "0.parquet", [{"generated_texts": "Last"}] * 3)
    found = read(tmp_path)
    assert "trial 10 of 3 finished trials was read" in found.notes and found.trajectories[0].answer == "Last"


def test_any_of_the_alternatives_is_the_gold(tmp_path: Path) -> None:
    found = read(project(tmp_path))
    assert found.dataset is not None and found.dataset.qrels == {"q1": {"a": 1.0, "c": 1.0}, "q2": {"d": 1.0}}
    assert found.dataset.by_id["q1"].metadata["gold_alternatives"] == {"a": ["b"]}
    assert any(note.startswith("1 of 3 questions have gold that any of several") for note in found.notes)
    assert "1 of 3 questions have no gold" in found.notes
    means = {name: entry["mean"] for name, entry in scored(found).summary["metrics"].items()}
    assert (means["recall"], means["allhit"], means["map"]) == (1.0, 1.0, 0.75)


def test_alternatives_survive_the_dataset_folder_and_the_run_folder(tmp_path: Path) -> None:
    from ragkit.evaluation.reopen import reopen

    found = read(project(tmp_path / "project"))
    assert found.dataset is not None
    write_folder(tmp_path / "data", found.dataset)
    again = Imported(found.trajectories, load_dataset(tmp_path / "data"))
    first = scored(again, out=tmp_path / "run")
    assert first.summary["metrics"]["allhit"]["mean"] == 1.0
    run = reopen(tmp_path / "run")
    assert run.gold.names("q1", found.trajectories[0].context.passages) == ("a", "c")  # type: ignore[union-attr]


@pytest.mark.parametrize(("groups", "grades", "others"), [
    ([["a"], ["b"]], "ab", {}), ([["a", "a"]], "a", {}), ([["a", "b"], ["b", "c"]], "ab", {"a": ["b"], "b": ["c"]}),
    ([["a", "b"], ["b"], ["a"]], "ba", {}), ([], "", {}),
])
def test_groups_that_share_passages(groups: list[list[str]], grades: str, others: dict[str, list[str]]) -> None:
    found, alternatives = gold_of(groups)
    assert "".join(found) == grades and alternatives == others


def test_a_result_of_several_searches_holds_them_all(tmp_path: Path) -> None:
    project(tmp_path)
    rows = [{**QA[at], **one, **other} for at, (one, other) in enumerate(zip(
        results(HYBRID, [1.0, 1.0, None]), results(LEXICAL, [1.0, 1.0, None], "_lexical"), strict=True))]
    path = write(tmp_path / "0" / "retrieve_node_line" / "hybrid_retrieval" / "best_0.parquet", rows)
    alone = write(tmp_path / "else" / "hybrid_retrieval" / "best_0.parquet", rows)
    for one in (path, alone):
        lists = read(one).trajectories[0].steps[0].retrievals
        assert [(found.stage, found.name, "".join(found.ids)) for found in lists] == [
            ("fuse", "hybrid_retrieval", "bcx"), ("retrieve", "hybrid_retrieval_lexical", "xba")]
    shutil.copy(write(tmp_path / "other.parquet", QA[::-1]), tmp_path / "data" / "qa.parquet")
    with pytest.raises(DataError, match="row 0: is of the question 'q1', expected 'q3'"):
        read(path)


def test_a_result_beside_its_questions(tmp_path: Path) -> None:
    write(tmp_path / "qa.parquet", QA)
    path = write(tmp_path / "run.parquet", results(HYBRID, [1.0, 1.0, None]))
    found = read(path)
    assert "the questions are those of qa.parquet, by the order of the rows" in found.notes
    assert [one.question for one in found.trajectories] == ["Where?", "Who?", "Why?"]
    assert read(tmp_path / "qa.parquet").trajectories == ()


@pytest.mark.parametrize(("rows", "told"), [
    (results(HYBRID[::-1], [1.0, 1.0, None]), "row 0: retrieval_recall is 1, and 0 with the gold of 'q1'"),
    (results(HYBRID[:2], [1.0, 1.0]), "expected data/qa.parquet in a folder above, or one qa file with 2 rows"),
    ([{"retrieved_ids": ["a"], "retrieve_scores": [1.0, 2.0]}] * 3, "expected as many retrieve_scores as"),
    (CORPUS, "run.parquet: is a corpus;"),
    ([{"name": "x"}], "the columns are name"),
])
def test_what_is_refused(tmp_path: Path, rows: list[dict[str, Any]], told: str) -> None:
    write(tmp_path / "qa.parquet", QA)
    with pytest.raises(DataError) as caught:
        read(write(tmp_path / "run.parquet", rows))
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_folders_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no summary\.csv, and no trial that has one"):
        read(tmp_path)
    (tmp_path / "summary.csv").write_text("node_type,best_module_filename\n..,../etc/x.parquet\n", encoding="utf-8")
    with pytest.raises(DataError, match="outside of the folder"):
        read(tmp_path)
    (tmp_path / "x.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match="expected a Parquet file of AutoRAG, or its project or trial folder"):
        read(tmp_path / "x.parquet")


def test_the_real_samples_as_a_trial(tmp_path: Path) -> None:
    folder = data_folder("tool_formats/autorag")
    for name, own in (("qa_data_sample", "qa"), ("corpus_data_sample", "corpus")):
        (tmp_path / "data").mkdir(exist_ok=True)
        shutil.copy(folder / f"{name}.parquet", tmp_path / "data" / f"{own}.parquet")
    for line, node in (("retrieve_node_line", "lexical_retrieval"), ("retrieve_node_line", "hybrid_retrieval"),
                       ("post_retrieve_node_line", "generator")):
        (tmp_path / "0" / line / node).mkdir(parents=True)
        shutil.copy(folder / f"run__{line}__{node}__0.parquet", tmp_path / "0" / line / node / "0.parquet")
    real = (folder / "run__retrieve_node_line__summary.csv").read_text(encoding="utf-8").splitlines()
    kept = [f"retrieve_node_line,{row}" for row in real if row.startswith(("lexical", "hybrid"))]
    (tmp_path / "0" / "summary.csv").write_text("\n".join(
        [f"node_line_name,{real[0]}", *kept, "post_retrieve_node_line,generator,0.parquet,M,{},1"]), encoding="utf-8")
    found = read(tmp_path)
    assert len(found.trajectories) == 10 and all(len(one.steps[0].retrievals) == 2 for one in found.trajectories)
    assert found.dataset is not None and sum(map(len, found.dataset.qrels.values())) == 10
    assert all(one.answer for one in found.trajectories)
    theirs = [one.meta["source"]["scores"]["hybrid_retrieval.retrieval_recall"] for one in found.trajectories]
    assert scored(found).summary["metrics"]["recall"]["mean"] == pytest.approx(sum(theirs) / 10)  # type: ignore[arg-type]
