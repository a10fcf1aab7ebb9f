"""Files that the real ragas writes, read as trajectories with their gold."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pandas
import pytest

from ragkit.errors import DataError
from ragkit.evaluation.evaluate import score
from ragkit.recording.formats import FORMATS, Imported
from ragkit.records.questions import text_id
from tests.support.data import data_folder

pytest.importorskip("ragas")
os.environ["RAGAS_DO_NOT_TRACK"] = "true"

QUESTION, OTHER = "Who wrote it?", "When, and \"where\"?"
TEXTS = ["It's by\nAnn | \"Bo\".", "Nothing here, [sic]."]
GOLD = "Ann and Bo wrote it in Rome."


def samples(ids: bool = True, **more: Any) -> Any:
    """An EvaluationDataset of two samples, of which one retrieved nothing."""
    from ragas import EvaluationDataset, SingleTurnSample

    given = {"retrieved_context_ids": ["7", "d2"], "reference_context_ids": ["7", "d9"]} if ids else {}
    nothing = {"retrieved_context_ids": [], "reference_context_ids": ["d9"]} if ids else {}
    return EvaluationDataset(samples=[
        SingleTurnSample(user_input=QUESTION, retrieved_contexts=TEXTS, reference_contexts=[TEXTS[0], GOLD],
                         response="=Ann", reference="Ann", **given, **more),
        SingleTurnSample(user_input=OTHER, retrieved_contexts=[], reference_contexts=[GOLD], response="-1",
                         reference="Rome", **nothing, **more)])


def read(path: Path) -> Imported:
    return FORMATS["ragas"](path)


def write(kind: str, folder: Path, data: Any) -> Path:
    path = folder / f"rows.{kind.rpartition(' ')[2]}"
    if kind == "csv":
        data.to_csv(path)
    elif kind == "jsonl":
        data.to_jsonl(path)
    elif kind.startswith("pandas"):
        data.to_pandas().to_csv(path) if path.suffix == ".csv" else data.to_pandas().to_json(path, orient="records")
    elif kind == "datasets disk":
        data.to_hf_dataset().save_to_disk(path)
    else:
        getattr(data.to_hf_dataset(), f"to_{path.suffix[1:]}")(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "pandas csv", "pandas json", "datasets csv", "datasets json",
                                  "datasets parquet", "datasets disk"])
@pytest.mark.parametrize("ids", [True, False])
def test_single_turns_in_every_file_that_ragas_writes(tmp_path: Path, kind: str, ids: bool) -> None:
    found = read(write(kind, tmp_path, samples(ids)))
    first, second = found.trajectories
    assert [one.question for one in found.trajectories] == [QUESTION, OTHER]
    assert [one.question_id for one in found.trajectories] == [text_id(QUESTION), text_id(OTHER)]
    assert [step.outermost.query for step in first.steps] == [QUESTION]
    assert first.context is not None and first.context.passages == first.steps[0].outermost.passages
    assert [passage.text for passage in first.context.passages] == TEXTS
    assert first.context.ids == (("7", "d2") if ids else tuple(map(text_id, TEXTS)))
    assert first.answer == "=Ann" and second.answer == "-1"
    assert second.context is not None and second.context.passages == () and len(second.steps) == 1
    assert found.dataset is not None
    question = found.dataset.by_id[first.question_id]
    assert question.answers == ("Ann",)
    if ids:
        assert found.dataset.qrels[first.question_id] == {"7": 1.0, "d9": 1.0} and not question.gold_texts
    else:
        assert [gold.text for gold in question.gold_texts] == [TEXTS[0], GOLD] and not found.dataset.qrels
    assert any(note.startswith("no retrieval scores in this file") for note in found.notes)


@pytest.mark.parametrize("ids", [True, False])
def test_what_was_read_is_scored(tmp_path: Path, ids: bool) -> None:
    found = read(write("jsonl", tmp_path, samples(ids)))
    summary = score(found.trajectories, found.dataset, metrics=["recall", "exact_match"]).summary
    assert summary["metrics"]["recall"]["mean"] == 0.25
    assert summary["per_step"]["0"]["recall"]["n_scored"] == 2
    assert summary["questions"]["labelled"] == 2


def test_gold_by_id_is_of_no_use_where_the_contexts_have_none(tmp_path: Path) -> None:
    rows = [{**row, "retrieved_context_ids": None} for row in samples().to_list()]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = read(path)
    assert found.dataset is not None and not found.dataset.qrels and found.dataset.questions[0].gold_texts
    assert "gold is taken from reference_contexts, not from reference_context_ids: the contexts have no ids" \
        in found.notes


def test_results_keep_their_scores_beside(tmp_path: Path) -> None:
    from ragas.callbacks import ChainRun
    from ragas.dataset_schema import EvaluationResult

    run = ChainRun(run_id="r", parent_run_id=None, name="evaluation", inputs={}, metadata={}, outputs={}, children=[])
    result = EvaluationResult(scores=[{"faithfulness": 0.5, "recall": float("nan")}, {"faithfulness": 1, "recall": 1}],
                              dataset=samples(), ragas_traces={"r": run})
    result.to_pandas().to_csv(tmp_path / "result.csv", index=False)
    found = read(tmp_path / "result.csv")
    assert [one.meta["source"]["scores"] for one in found.trajectories] == [
        {"faithfulness": 0.5, "recall": None}, {"faithfulness": 1.0, "recall": 1.0}]
    assert any("(faithfulness, recall) are kept with each trajectory" in note for note in found.notes)


@pytest.mark.parametrize("backend", ["csv", "jsonl"])
def test_experiments_of_ragas_backends(tmp_path: Path, backend: str) -> None:
    from ragas import Dataset, Experiment

    rows = [{"id": "a", **row, "run": "one", "score": 1} for row in samples(ids=False).to_list()]
    rows[1] = {**rows[0], "response": "Bo", "score": 0}
    for kind in (Dataset, Experiment):
        table = kind("mine", f"local/{backend}", root_dir=str(tmp_path))
        for row in rows:
            table.append(row)
        table.save()
    for folder in ("datasets", "experiments"):
        found = read(tmp_path / folder / f"mine.{backend}")
        assert [(one.key, one.answer) for one in found.trajectories] == [(("a", 0), "=Ann"), (("a", 1), "Bo")]
        assert found.trajectories[0].meta["source"] == {
            "format": "ragas", "trace_id": None, "metadata": {"run": "one"}, "scores": {"score": 1.0}}
        assert found.dataset is not None and [q.id for q in found.dataset.questions] == ["a"]


def test_the_old_names(tmp_path: Path) -> None:
    frame = pandas.DataFrame([{"question": QUESTION, "contexts": TEXTS, "answer": "Ann", "ground_truth": "Ann and Bo"}])
    frame.to_parquet(tmp_path / "old.parquet")
    found = read(tmp_path / "old.parquet")
    assert found.trajectories[0].answer == "Ann" and found.dataset is not None
    assert found.dataset.questions[0].answers == ("Ann and Bo",)
    assert [passage.text for passage in found.trajectories[0].steps[0].outermost.passages] == TEXTS


def test_a_test_set_is_questions_alone(tmp_path: Path) -> None:
    from ragas import SingleTurnSample
    from ragas.testset.synthesizers.testset_schema import Testset, TestsetSample

    sample = SingleTurnSample(user_input=QUESTION, reference_contexts=[GOLD], reference="Ann")
    Testset(samples=[TestsetSample(eval_sample=sample, synthesizer_name="single_hop")]).to_jsonl(tmp_path / "t.jsonl")
    found = read(tmp_path / "t.jsonl")
    assert found.trajectories == () and found.dataset is not None
    assert found.dataset.questions[0].category == "single_hop"
    assert found.notes == ("1 of 1 rows are questions alone: no answer, no contexts",)


@pytest.mark.parametrize(("row", "told"), [
    ({"user_input": "Who?", "retrieved_contexts": ["a"], "retrieved_context_ids": ["1", "2"]}, "2 ids and 1 contexts"),
    ({"user_input": "Who?", "retrieved_contexts": [3]}, "expected a Passage, Document"),
    ({"user_input": "", "response": "a"}, "expected a question (user_input)"),
    ({"user_input": "[{'content' nan}]", "response": "a"}, "a list of messages that cannot be read"),
    ({"user_input": "Who?", "note": "x"}, "no row holds a response"),
    ({"response": "a"}, "no column with the question"),
    ({"user_input": "Who?", "response": {"a": 1}}, "expected a text as response"),
])
def test_what_is_refused_names_file_and_line(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(path) in str(caught.value) and told in str(caught.value) and "\n" not in str(caught.value)


def test_the_real_samples(tmp_path: Path) -> None:
    folder = data_folder("tool_formats/ragas")
    answers = read(folder / "edited_chain_runs.json")
    assert len(answers.trajectories) == 18 and answers.dataset is not None
    assert not any(one.steps for one in answers.trajectories)
    assert {one.meta["source"]["scores"]["answer_correctness"] for one in answers.trajectories} == {0.0, 1.0}
    assert any("18 of 18 answers come without contexts" in note for note in answers.notes)
    questions = read(folder / "hf_doc_qa_eval.csv")
    assert questions.trajectories == () and questions.dataset is not None and len(questions.dataset.questions) > 50
    with pytest.raises(DataError, match="an object with the keys state, streaming_queue"):
        read(folder / "repeated_removal.json")
