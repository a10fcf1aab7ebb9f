"""`ragkit export` as a user meets it: each form, what is said on stderr, no text where none may be, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragkit.evaluation.evaluate import score
from ragkit.recording.formats.openinference import read_openinference
from ragkit.records.files import read_jsonl, write_trajectories
from ragkit.records.questions import Dataset, Document, GoldText, Question, text_id
from ragkit.records.readers.beir import write_folder
from ragkit.records.trajectory import Passage, Retrieval, ScoreKind, Step, Trajectory
from tests.support.command import command
from tests.support.data import data_folder

METRICS = "recall,allhit,hit,mrr,map,ndcg@3,precision@3,recall@2"


def passages(ids: str, doc: str = "", **more: Any) -> tuple[Passage, ...]:
    return tuple(Passage(one, f"The secret text of {one}.", doc_id=doc + one if doc else None,
                         score=1 / (place + 1), **more) for place, one in enumerate(ids))


def step(index: int, ids: str, kind: ScoreKind = "similarity", doc: str = "") -> Step:
    return Step(index, (Retrieval("retrieve", "secret query", passages(ids, doc), score_kind=kind),), turn=index)


def context(ids: str, ranked: bool = True) -> Retrieval:
    return Retrieval("context", passages=passages(ids), ranked=ranked)


def dataset(**gold: dict[str, float]) -> Dataset:
    corpus = {one: Document(one, f"The secret text of {one}.") for one in "abcdxyz"}
    return Dataset(tuple(Question(one, f"Secret question {one}?", ("Secret reference",)) for one in gold),
                   {one: grades for one, grades in gold.items() if grades}, corpus)


def run_folder(folder: Path, trajectories: list[Trajectory], data: Dataset) -> Path:
    write_folder(folder / "data", data)
    score(trajectories, folder / "data", metrics=METRICS.split(","), out=folder / "run", variant="my base")
    return folder / "run"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three labelled questions: a context in order, a set, only one step; and one that nobody labelled."""
    data = dataset(q1={"a": 2.0, "b": 1.0}, q2={"c": 1.0, "d": 1.0}, q3={"b": 1.0}, q4={})
    return run_folder(tmp_path, [
        Trajectory("q1", "Secret question q1?", (step(0, "xab"), step(1, "ya")), context("ba"), "Secret answer"),
        Trajectory("q2", "Secret question q2?", (step(0, "cx"),), context("xc", ranked=False), "Secret answer"),
        Trajectory("q3", "Secret question q3?", (step(0, "xyb", "distance"),), None, None),
        Trajectory("q4", "Secret question q4?", (step(0, "ab"),), None, "Secret answer"),
    ], data)


def ranked(*files: object) -> dict[str, dict[str, Any]]:
    done = command("rank", *files, "-m", METRICS, "--json", "--per-question")
    assert done.code == 0, done
    found: dict[str, dict[str, Any]] = json.loads(done.out)["runs"]
    return found


def summary(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return found


def test_ragkit_rank_gives_the_numbers_of_the_summary(run: Path) -> None:
    done = command("export", "trec", run)
    assert done.code == 0, done
    assert sorted(path.name for path in (run / "trec").iterdir()) == [
        "final.trec", "qrels.trec", "step-0.trec", "step-1.trec"]
    assert "1 lists at the end are sets: their items have the score 0" in done.err
    found = ranked(run / "trec" / "qrels.trec", *(run / "trec" / f"{name}.trec" for name in ("final", "step-0")))
    told = summary(run)
    for name, entry in told["per_step"]["0"].items():
        if name in found["step-0"]:
            assert found["step-0"][name]["mean"] == pytest.approx(entry["mean"]), name
    for name in ("recall", "allhit", "hit"):
        assert found["final"][name]["mean"] == pytest.approx(told["metrics"][name]["mean"]), name
    assert found["final"]["ndcg@3"]["per_question"]["q1"] < 1  # b stands before a, though c has no scores of its own
    assert set(found["final"]["recall"]["per_question"]) == {"q1", "q2", "q3"}
    lines = (run / "trec" / "final.trec").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("q2")] == ["q2 Q0 x 1 0 my_base", "q2 Q0 c 2 0 my_base"]


def test_scores_of_its_own_where_they_fall_from_rank_to_rank(run: Path) -> None:
    command("export", "trec", run, "--out", run / "o")
    lines = (run / "o" / "step-1.trec").read_text(encoding="utf-8").splitlines()
    assert lines == ["q1 Q0 y 1 1.0 my_base", "q1 Q0 a 2 0.5 my_base"]
    first = (run / "o" / "step-0.trec").read_text(encoding="utf-8").splitlines()
    assert first[:3] == ["q1 Q0 x 1 3 my_base", "q1 Q0 a 2 2 my_base", "q1 Q0 b 3 1 my_base"]  # q3 has distances
    assert (run / "o" / "qrels.trec").read_text(encoding="utf-8").splitlines()[0] == "q1 0 a 2"


@pytest.mark.parametrize("gold", ["documents", "texts"])
def test_other_units_and_copies_give_the_same_numbers(tmp_path: Path, gold: str) -> None:
    texts = (GoldText("The secret text of a."), GoldText("Something that no passage holds at all, ever."))
    data = Dataset((Question("q1", "Secret question q1?", gold_texts=texts if gold == "texts" else ()),),
                   {"q1": {"d:a": 1.0, "d:z": 1.0}} if gold == "documents" else {})
    twice = (*passages("xa", "d:"), Passage("a2", "The secret text of a.", "d:a"), *passages("xz", "d:"))
    run = run_folder(tmp_path, [Trajectory("q1", "Secret question q1?", (Step(0, (Retrieval(
        "retrieve", passages=twice),)),))], data)
    assert command("export", "trec", run).code == 0
    found = ranked(run / "trec" / "qrels.trec", run / "trec" / "final.trec")["final"]
    told = summary(run)["metrics"]
    for name in METRICS.split(","):
        assert found[name]["mean"] == pytest.approx(told[name]["mean"]), name
    assert found["recall"]["mean"] in (0.5, 1.0) and found["mrr"]["mean"] == 0.5


def test_repeats_have_a_folder_each(tmp_path: Path) -> None:
    some = [Trajectory("q1", "Secret question q1?", (step(0, ids),), repeat=repeat) for repeat, ids in enumerate("ab")]
    run = run_folder(tmp_path, some, dataset(q1={"a": 1.0}))
    assert command("export", "trec", run).code == 0
    assert (run / "trec" / "repeat-1" / "final.trec").read_text(encoding="utf-8").startswith("q1 Q0 b 1")
    assert (run / "trec" / "qrels.trec").exists()


def test_an_id_with_a_blank_is_refused(tmp_path: Path) -> None:
    bad = Trajectory("q1", "?", (Step(0, (Retrieval("retrieve", passages=(Passage("a b"),)),)),))
    write_trajectories(tmp_path / "t.jsonl", [bad])
    error = command("export", "trec", tmp_path / "t.jsonl").error
    assert "question 'q1': the id 'a b' holds a blank" in error and not (tmp_path / "trec").exists()


def test_rows_of_ragas_with_reference_and_scores(run: Path) -> None:
    done = command("export", "ragas", run, "--scores", "--json")
    told = json.loads(done.out)
    assert told["counts"] == {"rows": 4, "contexts": 9} and told["out"].endswith("ragas.jsonl")
    assert "ragas has no steps: the contexts of a row are those that the answer was written from" in done.err
    rows = [row for _, row in read_jsonl(run / "ragas.jsonl")]
    assert rows[0]["retrieved_context_ids"] == ["b", "a"] and rows[0]["reference"] == "Secret reference"
    assert rows[0]["reference_context_ids"] == ["a", "b"]
    assert rows[0]["reference_contexts"] == ["The secret text of a.", "The secret text of b."]
    assert rows[0]["recall"] == 1.0 and "recall" not in rows[3] and "response" not in rows[2]


def test_spans_come_back_with_their_contexts(run: Path) -> None:
    done = command("export", "openinference", run)
    assert done.code == 0 and "5 lists have no time of their own" in done.err
    found = {one.question_id: one for one in read_openinference(run / "openinference.jsonl").trajectories}
    assert found["q1"].context is not None and found["q1"].context.ids == ("b", "a")
    assert found["q2"].context is not None and not found["q2"].context.ranked
    assert [each.outermost.ids for each in found["q1"].steps] == [("x", "a", "b"), ("y", "a")]
    assert found["q1"].answer == "Secret answer" and found["q3"].context is None


@pytest.mark.parametrize("tool", ["openinference", "ragas", "trec"])
def test_no_text_writes_hashes(run: Path, tmp_path: Path, tool: str) -> None:
    out = tmp_path / ("o.jsonl" if tool != "trec" else "o")
    assert command("export", tool, run, "--no-text", "--out", out).code == 0
    files = [out] if out.is_file() else list(out.iterdir())
    assert files and all("ecret" not in file.read_text(encoding="utf-8") for file in files)
    if tool == "ragas":
        row = next(row for _, row in read_jsonl(out))
        assert row["user_input"] == text_id("Secret question q1?") and row["reference"] == text_id("Secret reference")
        assert row["retrieved_contexts"][0] == text_id("The secret text of b.")


@pytest.mark.parametrize(("tool", "source", "field"), [
    ("annotations", "openinference", "span_id"), ("feedback", "langsmith", "run_id")])
def test_scores_go_back_to_where_the_traces_came_from(tmp_path: Path, tool: str, source: str, field: str) -> None:
    meta = {"source": {"format": source, "trace_id": "t", "span_id": "root", "spans": {"0": "s0"}}}
    run = run_folder(tmp_path, [
        Trajectory("q1", "Secret question q1?", (step(0, "ax"), step(1, "x")), answer="Secret answer", meta=meta),
        Trajectory("q2", "Secret question q2?", (step(0, "ax"),))], dataset(q1={"a": 1.0}, q2={"a": 1.0}))
    done = command("export", tool, run)
    assert done.code == 0 and "scores belong to no known span and are left out" in done.err
    rows = [row for _, row in read_jsonl(run / f"{tool}.jsonl")]
    assert {row[field] for row in rows} == {"root", "s0"}
    other = command("export", "feedback" if tool == "annotations" else "annotations", run)
    assert "no score belongs to a trace of" in other.error


def test_what_is_refused(run: Path, tmp_path: Path) -> None:
    assert "expected a format of openinference, ragas, trec" in command("export", "excel", run).error
    assert "--scores adds columns to the rows of ragas" in command("export", "trec", run, "--scores").error
    assert "no run.json" in command("export", "ragas", tmp_path).error
    taken = run / "trajectories.jsonl"
    assert "exists; name another --out" in command("export", "openinference", run, "--out", taken).error
    assert command("export", "trec", run).code == 0
    assert "exists; name another --out" in command("export", "trec", run).error


def test_a_run_whose_data_set_is_gone_is_exported_without_gold(run: Path) -> None:
    (run.parent / "data" / "queries.jsonl").unlink()
    done = command("export", "trec", run)
    assert done.code == 0 and "note: without gold:" in done.err and not (run / "trec" / "qrels.trec").exists()
    assert command("export", "ragas", run).code == 0


def test_real_traces_go_round(tmp_path: Path) -> None:
    traces = data_folder("otel_traces") / "openinference_spans.jsonl"
    questions = data_folder("hotpotqa_react_traces")
    assert command("import", "openinference", traces, "--dataset", questions, "--match", "text", "--out",
                   tmp_path / "t.jsonl").code == 0
    assert command("score", tmp_path / "t.jsonl", "--dataset", questions, "--out", tmp_path / "run", "-m",
                   METRICS).code == 0
    assert command("export", "trec", tmp_path / "run").code == 0
    folder = tmp_path / "run" / "trec"
    found = ranked(folder / "qrels.trec", folder / "final.trec", folder / "step-0.trec", folder / "step-1.trec")
    told = summary(tmp_path / "run")
    for name in ("recall", "allhit", "hit", "mrr", "map"):  # the union of the steps has no cut
        assert found["final"][name]["mean"] == pytest.approx(told["metrics"][name]["mean"]), name
    for number in "01":
        for name, entry in told["per_step"][number].items():
            if name in found[f"step-{number}"]:
                assert found[f"step-{number}"][name]["mean"] == pytest.approx(entry["mean"]), name
    assert found["final"]["allhit"]["mean"] == 0.75
