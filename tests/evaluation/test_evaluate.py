"""The whole path in Python: files, summary, resume, judge, event loops, hostile texts."""

import asyncio
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ragkit
from ragkit.errors import DataError, JudgeError
from ragkit.evaluation.runfolder import safe_name
from ragkit.judge.settings import JudgeSettings
from tests.support.openai_server import Answer, OpenAIServer, error, lexical_judge
from tests.support.small_app import PASSAGES, ROWS, app

ENTRY = {"mean", "low", "high", "worst", "best", "n_scored", "n_asked", "n_undefined", "n_failed", "labels", "reasons"}
RAGAS = ["context_precision", "context_recall", "faithfulness", "answer_relevancy"]


def strict(path: Path) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_the_run_folder_holds_everything(tmp_path: Path) -> None:
    result = ragkit.evaluate(app, ROWS, out=tmp_path / "base")
    folder = tmp_path / "base"
    assert {p.name for p in folder.iterdir()} >= {
        "run.json",
        "trajectories.jsonl",
        "scores.parquet",
        "summary.json",
        "report.html",
        "report.md",
    }
    summary = strict(folder / "summary.json")
    assert summary == json.loads(json.dumps(result.summary))
    assert list(summary) == [
        "schema",
        "variant",
        "questions",
        "metrics",
        "per_step",
        "categories",
        "outcomes",
        "app",
        "judge",
        "funnel",
        "retrieval",
        "per_turn",
        "recall_spread",
    ]
    assert (summary["schema"], summary["variant"]) == ("ragkit.summary/1", "base")
    assert summary["questions"] == {"asked": 4, "labelled": 2, "unanswerable": 1, "unlabelled": 1}
    reached = summary["metrics"]["steps_to_evidence"]
    assert (reached.pop("share"), reached.pop("median")) == ({"mean": 1.0, "low": 1.0, "high": 1.0}, 1.5)
    assert all(set(entry) == ENTRY for entry in summary["metrics"].values())
    assert list(summary["per_step"]) == ["0", "1"]
    assert all(set(entry) == ENTRY for step in summary["per_step"].values() for entry in step.values())
    assert list(summary["categories"]) == ["(no category)", "factual", "multi-hop", "out of scope"][1:]
    assert strict(folder / "run.json")["state"] == "complete"


def test_values_by_hand(tmp_path: Path) -> None:
    metrics = ragkit.evaluate(app, ROWS).summary
    at_end, steps = metrics["metrics"], metrics["per_step"]
    # q1 finds d1 in the first search; q2 finds d1 first and d2 in the second: both are complete at the end
    assert (at_end["recall"]["mean"], at_end["recall"]["n_scored"], at_end["recall"]["n_asked"]) == (1.0, 2, 4)
    assert at_end["recall"]["reasons"] == {"declared unanswerable": 1, "unlabelled": 1}
    assert at_end["allhit"]["mean"] == 1.0
    assert at_end["mrr"]["mean"] is None and at_end["mrr"]["reasons"]["no order"] == 2
    assert at_end["steps_to_evidence"]["mean"] == 1.5
    assert steps["0"]["cumulative_recall"]["mean"] == 0.75
    assert steps["1"]["cumulative_recall"]["mean"] == 1.0
    assert steps["0"]["recall"]["mean"] == 0.75
    assert at_end["faithfulness"]["mean"] is None
    assert at_end["faithfulness"]["n_scored"] == 0 and at_end["faithfulness"]["reasons"] == {"needs a judge": 4}


def test_the_scores_table_is_tidy(tmp_path: Path) -> None:
    scores = ragkit.evaluate(app, ROWS, out=tmp_path / "run").scores
    assert list(scores.columns) == [
        "variant",
        "question_id",
        "repeat",
        "category",
        "step",
        "stage",
        "metric",
        "value",
        "status",
        "reason",
        "labels",
        "judge",
        "n_calls",
        "n_stored",
    ]
    for column in ("variant", "question_id", "step", "stage", "metric", "status", "reason"):
        assert isinstance(scores[column].dtype, pd.CategoricalDtype)
    assert scores["value"].notna().equals(scores["status"] == "scored")
    assert scores["reason"].notna().equals(scores["status"] != "scored")
    assert set(scores["step"].cat.categories) == {"0", "1", "final"}
    kept = pd.read_parquet(tmp_path / "run" / "scores.parquet")
    pd.testing.assert_frame_equal(kept, scores, check_categorical=False)


def test_the_same_command_asks_nothing_again_and_adds_metrics(tmp_path: Path) -> None:
    asked: list[str] = []

    def counted(question: str) -> str:
        asked.append(question)
        return app(question)

    ragkit.evaluate(counted, ROWS, metrics="recall", out=tmp_path / "run")
    result = ragkit.evaluate(counted, ROWS, metrics="mrr", out=tmp_path / "run")
    assert len(asked) == 4
    assert list(result.summary["metrics"]) == ["recall", "mrr"]


def test_a_changed_configuration_is_refused(tmp_path: Path) -> None:
    ragkit.evaluate(app, ROWS, out=tmp_path / "run")
    with pytest.raises(DataError, match=r"another configuration \(level: 1.0 there, 2.0 now\)"):
        ragkit.evaluate(app, ROWS, out=tmp_path / "run", level=2.0)


def test_labels_and_questions_may_be_mended_in_the_same_folder(tmp_path: Path) -> None:
    asked: list[str] = []

    def counted(question: str) -> str:
        asked.append(question)
        return app(question)

    ragkit.evaluate(counted, ROWS[:2], out=tmp_path / "run", metrics="recall")
    mended = [{**ROWS[0], "gold_ids": "d1;d9"}, {**ROWS[1], "question": "Who ropes?"}, ROWS[2]]
    result = ragkit.evaluate(counted, mended, out=tmp_path / "run", metrics="recall")
    assert sorted(asked[2:]) == sorted(["Who ropes?", ROWS[2]["question"]])
    assert result.scores.query("question_id == 'q1' and step == 'final'")["value"].tolist() == [0.5]
    with pytest.raises(DataError, match="is not the data set"):
        (tmp_path / "run" / "dataset" / "queries.jsonl").write_text('{"_id": "q1", "text": "x"}\n', encoding="utf-8")
        asyncio.run(ragkit.areport(tmp_path / "run"))


def test_ids_of_another_form_are_said_aloud() -> None:
    def other_ids(question: str) -> str:
        trace = ragkit.current_trace()
        assert trace is not None
        trace.step(question, [ragkit.Passage("uuid-1")])
        return "x"

    data = ragkit.evaluate(other_ids, ROWS, metrics="recall").data
    assert data.fix_first.startswith("Check the ids first: none of the 3 gold ids occurs")
    assert any("gold 'd1', returned for example 'uuid-1'" in note for note in data.notes)


def test_the_report_is_built_again_from_the_folder(tmp_path: Path) -> None:
    before = ragkit.evaluate(app, ROWS, out=tmp_path / "run")
    again = asyncio.run(ragkit.areport(tmp_path / "run"))
    assert again.summary == before.summary
    assert again.data.worst == before.data.worst
    assert again.data.fix_first == before.data.fix_first


def test_an_interrupted_run_is_not_taken_for_whole(tmp_path: Path) -> None:
    seen: list[str] = []

    def interrupt(trajectory: ragkit.Trajectory) -> None:
        seen.append(trajectory.question_id)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ragkit.evaluate(app, ROWS, out=tmp_path / "run", concurrency=1, on_recorded=interrupt)
    with pytest.raises(DataError, match="was not finished"):
        asyncio.run(ragkit.areport(tmp_path / "run"))
    kept = ragkit.read_trajectories(tmp_path / "run" / "trajectories.jsonl")
    assert [trajectory.question_id for trajectory in kept] == ["q1", "q2"]
    assert ragkit.evaluate(app, ROWS, out=tmp_path / "run").summary["questions"]["asked"] == 4


def test_a_wrong_call_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    recorder = ragkit.Recorder()
    for row in ROWS:
        with recorder.trace(ragkit.Question(row["id"], row["question"])):
            app(row["question"])
    found = recorder.trajectories
    wrong: list[tuple[Any, Any, dict[str, Any]]] = [
        (found, ROWS, {"level": 0}),
        (found, ROWS, {"metrics": "ndgc@5"}),
        ([], ROWS, {}),
        (found, [{"question": "another data set"}], {}),
    ]
    for given, rows, options in wrong:
        with pytest.raises(DataError):
            ragkit.score(given, rows, out=tmp_path / "run", **options)
        assert not (tmp_path / "run" / "run.json").exists()
    ragkit.score(found, ROWS, out=tmp_path / "run")
    with pytest.raises(DataError):
        ragkit.score(found, ROWS, out=tmp_path / "run", metrics="ndgc@5")
    assert asyncio.run(ragkit.areport(tmp_path / "run")).summary["questions"]["asked"] == 4


def test_wrong_input_is_found_before_the_app_is_asked(tmp_path: Path) -> None:
    def never(question: str) -> str:
        raise AssertionError("the app was asked")

    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "When?"}\n', encoding="utf-8")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n', encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tzzz\t1\n", encoding="utf-8")
    with pytest.raises(DataError, match="not in the corpus"):
        ragkit.evaluate(never, tmp_path)
    for options in (
        {"level": 0},
        {"level": float("nan")},
        {"metrics": 5},
        {"metrics": [None]},
        {"timeout": "5"},
        {"repeats": 1.5},
        {"level": None},
        {"repeat": 2},
        {"k_values": (0,)},
    ):
        with pytest.raises(DataError):
            ragkit.evaluate(never, ROWS, **options)


def test_another_app_does_not_take_over_answers(tmp_path: Path) -> None:
    class Rag:
        def __init__(self, answer: str) -> None:
            self.answer = answer

        def __call__(self, question: str) -> str:
            return self.answer

    ragkit.evaluate(Rag("one"), ROWS, out=tmp_path / "object")
    with pytest.raises(DataError, match=r"another configuration \(app"):
        ragkit.evaluate(Rag("two"), ROWS, out=tmp_path / "object")
    ragkit.evaluate(lambda question: "one", ROWS, out=tmp_path / "lambda")
    with pytest.raises(DataError, match=r"another configuration \(app"):
        ragkit.evaluate(lambda question: "two", ROWS, out=tmp_path / "lambda")


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path) -> None:
    refused: list[str] = []

    def nested(question: str) -> str:
        try:
            ragkit.evaluate(app, ROWS, out=tmp_path / "run", config={"system": {"name": "same"}})
        except DataError as error:
            refused.append(str(error))
        return "x"

    ragkit.evaluate(nested, ROWS, out=tmp_path / "run", config={"system": {"name": "same"}})
    assert len(refused) == 4 and all("another run is writing to this folder" in message for message in refused)


def test_repeats_are_averaged_per_question_first() -> None:
    calls: dict[str, int] = {}

    def moody(question: str) -> str:
        calls[question] = calls.get(question, 0) + 1
        trace = ragkit.current_trace()
        assert trace is not None
        trace.step(question, [ragkit.Passage("d1" if calls[question] == 1 else "d9")])
        return "x"

    rows = [{"id": f"q{i}", "question": f"q{i}", "gold_ids": "d1"} for i in range(3)]
    entry = ragkit.evaluate(moody, rows, metrics="recall", repeats=2, concurrency=1).summary["metrics"]["recall"]
    assert (entry["mean"], entry["low"], entry["high"]) == (0.5, 0.5, 0.5)  # .5 a question, not six of 0 and 1
    assert (entry["n_scored"], entry["n_asked"]) == (3, 3)


def test_every_question_has_a_category_or_stands_under_none() -> None:
    rows = [
        {"id": str(i), "question": f"q{i}", "reference": "x", "category": category}
        for i, category in enumerate(["a", None, "a", "b", None])
    ]
    answers = {"q0": "x", "q1": "y", "q2": "x", "q3": "y", "q4": "x"}
    summary = ragkit.evaluate(answers.__getitem__, rows, metrics="exact_match").summary
    found = {
        name: (part["exact_match"]["mean"], part["exact_match"]["n_scored"])
        for name, part in summary["categories"].items()
    }
    assert found == {"a": (1.0, 2), "b": (0.0, 1), "(no category)": (0.5, 2)}
    assert summary["metrics"]["exact_match"]["mean"] == pytest.approx(0.6)


def test_an_app_that_fails_on_one_question_is_shown_and_asked_again(tmp_path: Path) -> None:
    broken = True

    def fragile(question: str) -> str:
        if broken and "ferry" in question:
            raise ValueError("no pier")
        return app(question)

    result = ragkit.evaluate(fragile, ROWS, out=tmp_path / "run")
    assert result.partial
    assert result.data.failures == (("q4", "app", "ValueError: no pier"),)
    entry = result.summary["metrics"]["lexical_support"]
    assert entry["n_failed"] == 1 and entry["reasons"] == {"app failed: ValueError: no pier": 1, "answer refused": 1}
    assert "no pier" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    broken = False
    assert not ragkit.evaluate(fragile, ROWS, out=tmp_path / "run").partial


def test_a_failed_app_is_in_no_mean_of_any_step() -> None:
    def fragile(question: str) -> str:
        if "built" in question:
            raise ValueError("boom")
        return app(question)

    steps = ragkit.evaluate(fragile, ROWS).summary["per_step"]
    assert [(steps[s]["cumulative_recall"]["mean"], steps[s]["cumulative_recall"]["n_failed"]) for s in ("0", "1")] == [
        (0.5, 1),
        (1.0, 1),
    ]


def test_steps_not_taken_carry_the_last_value_and_none_is_zero() -> None:
    recorder = ragkit.Recorder()
    passage = ragkit.Passage
    rows = [{"id": f"q{i}", "question": f"q{i}", "gold_ids": "a;b"} for i in range(3)]
    with recorder.trace(ragkit.Question("q0", "q0")) as trace:
        trace.step("x", [passage("a")])
        trace.step("y", [passage("b")])
    with recorder.trace(ragkit.Question("q1", "q1")) as trace:
        trace.step("x", [passage("a")])
    with recorder.trace(ragkit.Question("q2", "q2")):
        pass
    steps = ragkit.score(recorder.trajectories, rows).summary["per_step"]
    assert steps["0"]["cumulative_recall"]["mean"] == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert steps["1"]["cumulative_recall"]["mean"] == pytest.approx((1.0 + 0.5 + 0) / 3)
    assert (steps["1"]["recall"]["n_asked"], steps["1"]["recall"]["mean"]) == (1, 0.5)
    nothing = ragkit.score(recorder.trajectories, rows, level=2).summary["per_step"]
    assert nothing["1"]["cumulative_recall"]["reasons"] == {"no relevant document": 3}


def test_lists_without_an_order_make_a_union_without_one() -> None:
    recorder = ragkit.Recorder()
    with recorder.trace(ragkit.Question("q", "q")) as trace:
        trace.answer("x")
    step = ragkit.Step(0, (ragkit.Retrieval("retrieve", passages=(ragkit.Passage("a"),), ranked=False),))
    trajectory = ragkit.Trajectory("q", "q", (step, ragkit.Step(1, step.retrievals)))
    rows = [{"id": "q", "question": "q", "gold_ids": "a"}]
    metrics = ragkit.score([trajectory], rows, metrics="recall,mrr,map").summary["metrics"]
    assert metrics["recall"]["mean"] == 1.0
    assert metrics["mrr"]["reasons"] == metrics["map"]["reasons"] == {"no order": 1}


def test_reasons_count_questions_not_repeats() -> None:
    calls: list[str] = []

    def fails_once(question: str) -> str:
        calls.append(question)
        if len(calls) == 1:
            raise ValueError("once")
        return "x"

    rows = [{"id": "q1", "question": "one", "reference": "x"}, {"id": "q2", "question": "two"}]
    entry = ragkit.evaluate(fails_once, rows, metrics="exact_match", repeats=2, concurrency=1).summary["metrics"]
    assert entry["exact_match"]["reasons"] == {"no reference answer": 1}
    assert (entry["exact_match"]["n_scored"], entry["exact_match"]["n_undefined"]) == (1, 1)


def test_questions_not_asked_are_listed_or_counted() -> None:
    recorder = ragkit.Recorder()
    with recorder.trace(ROWS[0]["question"]) as trace:  # no id: joined by its text
        trace.step("x", [ragkit.Passage("d1")])
    listed = ragkit.score(recorder.trajectories, ROWS, metrics="recall")
    assert listed.summary["metrics"]["recall"]["mean"] == 1.0
    assert listed.summary["questions"]["asked"] == 1
    assert "1 trajectory was joined to its question by its text, not by an id" in listed.data.notes
    assert any("3 questions of the data set were not asked" in note and "q2" in note for note in listed.data.notes)
    counted = ragkit.score(recorder.trajectories, ROWS, metrics="recall", all_questions=True)
    assert counted.summary["metrics"]["recall"]["mean"] == 0.5
    assert counted.summary["questions"]["asked"] == 4


def test_trajectories_of_another_data_set_are_refused() -> None:
    recorder = ragkit.Recorder()
    with recorder.trace("Something else?") as trace:
        trace.step("x", ["d1"])
    with pytest.raises(DataError, match="none of 1 belongs to a question"):
        ragkit.score(recorder.trajectories, ROWS)


def test_evidence_found_only_by_the_second_search_counts() -> None:
    recorder = ragkit.Recorder()
    question = ragkit.Question("q", "q")
    with recorder.trace(question) as trace:
        first = [ragkit.Passage(f"x{i}") for i in range(5)]
        trace.step("one", first)
        trace.step("two", [ragkit.Passage("d1"), *(ragkit.Passage(f"y{i}") for i in range(4))])
        trace.context([*first, ragkit.Passage("d1")], ranked=False)
    rows = [{"id": "q", "question": "q", "gold_ids": "d1"}]
    at_end = ragkit.score(recorder.trajectories, rows, metrics="recall,allhit,recall@5,mrr").summary["metrics"]
    assert (at_end["recall"]["mean"], at_end["allhit"]["mean"]) == (1.0, 1.0)
    assert at_end["recall@5"]["reasons"] == at_end["mrr"]["reasons"] == {"no order": 1}


def test_gold_ids_that_no_document_has(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in PASSAGES.items()), encoding="utf-8"
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "When?"}\n', encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t1\nq1\tnone\t1\n", encoding="utf-8"
    )
    notes = ragkit.evaluate(app, tmp_path, metrics="recall").data.notes
    assert any("1 gold ids are in no document of the corpus: none; see ragkit labels check" in note for note in notes)
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\td2\t1\nq1\tb\t1\n", encoding="utf-8")
    with pytest.raises(DataError, match="2 of 3 gold ids are not in the corpus"):
        ragkit.evaluate(app, tmp_path, metrics="recall")
    (tmp_path / "corpus.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"empty|no document"):
        ragkit.evaluate(app, tmp_path, metrics="recall")


# --- with a judge -----------------------------------------------------------------------------------------------------


def test_ragas_metrics_stand_beside_rank_metrics_and_are_paid_once(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        first = ragkit.evaluate(
            app,
            ROWS,
            judge="test-model",
            judge_url=server.url,
            out=tmp_path / "run",
            judge_settings=JudgeSettings(embeddings=f"{server.url}#vectors"),
        )
        asked = len(server.calls)
        again = ragkit.evaluate(
            app,
            ROWS,
            judge="test-model",
            judge_url=server.url,
            out=tmp_path / "run",
            judge_settings=JudgeSettings(embeddings=f"{server.url}#vectors"),
        )
        assert len(server.calls) == asked
    metrics = first.summary["metrics"]
    assert metrics["faithfulness"]["mean"] == 1.0
    assert metrics["faithfulness"]["reasons"] == {"answer refused": 1}
    assert metrics["context_precision"]["reasons"]["no order"] == 2  # a set has no order-based precision
    assert metrics["context_recall"]["n_scored"] == 2
    assert metrics["answer_relevancy"]["n_scored"] == 4
    for name in RAGAS:
        assert again.summary["metrics"][name] == metrics[name]
    assert again.summary["judge"]["calls"] == 0 and again.summary["judge"]["stored"] >= asked
    assert first.summary["judge"]["calls"] == asked
    rebuilt = asyncio.run(ragkit.areport(tmp_path / "run"))
    assert rebuilt.summary["metrics"] == metrics
    assert rebuilt.data.worst == first.data.worst


def test_the_judge_is_tried_before_the_app_is_asked(tmp_path: Path) -> None:
    def never(question: str) -> str:
        raise AssertionError("the app was asked")

    with pytest.raises(JudgeError, match=r"127.0.0.1:9"):
        ragkit.evaluate(
            never,
            ROWS,
            judge="m",
            judge_url="http://127.0.0.1:9/v1",
            out=tmp_path / "run",
            judge_settings=JudgeSettings(backoff=0.01),
        )
    assert not (tmp_path / "run" / "run.json").exists()
    with (
        OpenAIServer(reply=lambda _: error(401, "invalid_api_key", "Incorrect API key")) as server,
        pytest.raises(JudgeError, match=r"(?i)key"),
    ):
        ragkit.evaluate(never, ROWS, judge="m", judge_url=server.url)


def test_a_run_that_fails_before_it_writes_leaves_the_folder_finished(tmp_path: Path) -> None:
    asked: list[str] = []

    def counted(question: str) -> str:
        asked.append(question)
        return app(question)

    first = ragkit.evaluate(counted, ROWS, out=tmp_path / "asked", metrics="recall")
    ragkit.score(first.trajectories, ROWS, out=tmp_path / "scored", metrics="recall")
    before = {path: path.read_bytes() for path in tmp_path.glob("*/*.*") if path.suffix != ".sqlite"}
    dead: dict[str, Any] = {"judge": "m", "judge_url": "http://127.0.0.1:9/v1", "metrics": "faithfulness",
                            "judge_settings": JudgeSettings(backoff=0.01)}
    mended = [{**ROWS[0], "gold_ids": "d1;d9"}, *ROWS[1:]]
    for rows in (ROWS, mended):
        with pytest.raises(JudgeError):
            ragkit.evaluate(counted, rows, out=tmp_path / "asked", **dead)
        for folder in ("scored", "new"):
            with pytest.raises(JudgeError):
                ragkit.score(first.trajectories, rows, out=tmp_path / folder, **dead)
    assert {path: path.read_bytes() for path in before} == before and len(asked) == 4
    for folder in ("asked", "scored"):
        assert asyncio.run(ragkit.areport(tmp_path / folder)).summary["metrics"]["recall"]["mean"] == 1.0
    assert not (tmp_path / "new" / "run.json").exists()


def test_a_judge_may_be_named_by_its_address_alone() -> None:
    with OpenAIServer(models=["only-one"]) as server:
        for address in (server.url, f"{server.url}#other-one"):
            result = ragkit.evaluate(app, ROWS, metrics=["faithfulness"], judge_url=address)
            assert result.summary["judge"]["judge"] == (address.partition("#")[2] or "only-one")
            assert result.summary["metrics"]["faithfulness"]["n_scored"] == 3
    with OpenAIServer(models=["a", "b"]) as server, pytest.raises(JudgeError, match=r"it lists a, b; name one"):
        ragkit.evaluate(app, ROWS, metrics=["faithfulness"], judge_url=server.url)


def test_a_quota_that_ends_midway_keeps_what_was_judged(tmp_path: Path) -> None:
    def reply(request: Any) -> Any:
        return (
            lexical_judge(request) if request.number <= 3 else error(429, "insufficient_quota", "Your quota is used up")
        )

    with OpenAIServer(reply=reply) as server:
        result = ragkit.evaluate(
            app,
            ROWS,
            metrics=["recall", "context_recall", "faithfulness"],
            judge="m",
            judge_url=server.url,
            out=tmp_path / "run",
            judge_settings=JudgeSettings(concurrency=1),
        )
    assert result.partial
    assert result.summary["metrics"]["recall"]["mean"] == 1.0
    failed = (
        result.summary["metrics"]["context_recall"]["n_failed"] + result.summary["metrics"]["faithfulness"]["n_failed"]
    )
    scored = (
        result.summary["metrics"]["context_recall"]["n_scored"] + result.summary["metrics"]["faithfulness"]["n_scored"]
    )
    assert failed > 0 and scored > 0
    assert any("Your quota is used up" in reason for _, _, reason in result.data.failures)


def test_a_failed_judgement_is_no_number_and_keeps_its_reply(tmp_path: Path) -> None:
    def reply(request: Any) -> Any:
        return "I'm sorry, but I can't help with that." if "lighthouse" in request.prompt else lexical_judge(request)

    with OpenAIServer(reply=reply) as server:
        result = ragkit.evaluate(
            app,
            ROWS,
            metrics=["context_recall"],
            judge="m",
            judge_url=server.url,
            judge_settings=JudgeSettings(backoff=0.01),
        )
    entry = result.summary["metrics"]["context_recall"]
    assert entry["mean"] is None and entry["n_failed"] == 2
    assert (entry["worst"], entry["best"]) == (0.0, 1.0)
    shown = [score for view in result.data.worst for score in view.scores if score.status == "failed"]
    assert shown and all("can't help" in (score.raw or "") for score in shown)


# --- event loops, hostile texts, consoles -----------------------------------------------------------------------------


def test_it_works_inside_a_running_loop_twice_and_from_a_thread() -> None:
    before = (asyncio.run, asyncio.new_event_loop, type(asyncio.new_event_loop()))

    async def main() -> list[Any]:
        return [ragkit.evaluate(app, ROWS, metrics="recall").summary["metrics"] for _ in range(2)]

    first, second = asyncio.run(main()), asyncio.run(main())
    assert first == second and first[0] == first[1]
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(ragkit.evaluate(app, ROWS, metrics="recall").summary["metrics"])
    )
    thread.start()
    thread.join(30)
    assert found == [first[0]]
    assert before[:2] == (asyncio.run, asyncio.new_event_loop)


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    from html.parser import HTMLParser

    contexts = ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "a & b < c", "&lt;already&gt;"]
    rows = [{"id": "<b>q</b>", "question": "<script>alert(3)</script>?", "gold_ids": "c0", "category": "</script><i>"}]

    def answering(texts: list[str], answer: str) -> Any:
        def answers(question: str) -> str:
            trace = ragkit.current_trace()
            assert trace is not None
            trace.step(question, [(f"c{i}", text) for i, text in enumerate(texts)])
            return answer

        return answers

    ragkit.evaluate(answering(contexts, "<svg onload=alert(4)>"), rows, out=tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    harmless = [{"id": "q", "question": "harmless?", "gold_ids": "c0", "category": "c"}]
    ragkit.evaluate(answering(list("abcd"), "harmless"), harmless, out=tmp_path / "plain")
    plain = (tmp_path / "plain" / "report.html").read_text(encoding="utf-8")

    class Elements(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.scripts, self.handlers, self.texts = 0, 0, list[str]()

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            self.scripts += tag == "script"
            self.handlers += sum(name.startswith("on") for name, _ in attrs)

        def handle_data(self, data: str) -> None:
            self.texts.append(data)

    found, expected = Elements(), Elements()
    found.feed(page)
    expected.feed(plain)
    assert (found.scripts, found.handlers) == (expected.scripts, expected.handlers)
    assert any("&lt;already&gt;" in text for text in found.texts)
    assert any("<script>alert(1)</script>" in text for text in found.texts)
    strict(tmp_path / "run" / "summary.json")


def test_texts_may_be_kept_out_of_what_is_shared(tmp_path: Path) -> None:
    ragkit.evaluate(app, ROWS, out=tmp_path / "run", include_text=False)
    for path in (tmp_path / "run").glob("*.*"):
        if path.suffix in (".json", ".jsonl", ".html", ".md"):
            assert "Mina Holt" not in path.read_text(encoding="utf-8"), path.name
    with pytest.raises(DataError, match="holds hashes instead of texts"):
        asyncio.run(ragkit.areport(tmp_path / "run"))
    with pytest.raises(DataError, match="hold hashes instead of texts"):
        ragkit.score(tmp_path / "run" / "trajectories.jsonl", ROWS)
    first = ragkit.evaluate(app, ROWS, out=tmp_path / "again", include_text=False).summary
    again = ragkit.evaluate(app, ROWS, out=tmp_path / "again", include_text=False).summary
    assert again["metrics"] == first["metrics"] and again["outcomes"] == first["outcomes"]


def test_an_old_console_and_a_c_locale_lose_nothing(tmp_path: Path) -> None:
    script = """
import ragkit, sys
from rich.console import Console
from ragkit.report.terminal import print_summary
TEXT = "\\u2705 \\u77e5\\u8b58 \\U0001f600 \\u00e9"
def app(question):
    ragkit.current_trace().step(question, [("d1", TEXT)])
    return TEXT
result = ragkit.evaluate(app, [{"id": "q1", "question": TEXT, "gold_ids": "d1"}], out=sys.argv[1])
print_summary(result.data, Console())
"""
    environment = {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "cp1252",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "run")],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("cp1252")
    for name in ("report.html", "report.md", "trajectories.jsonl", "summary.json", "run.json"):
        text = (tmp_path / "run" / name).read_bytes().decode("utf-8")
        assert name in ("summary.json", "run.json") or "知識" in text or "\\u77e5" in text, name
    assert all(re.fullmatch(r'[^<>:"/\\|?*]*[^. ]', path.name) for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("name", ['a<b>c:d"e/f\\g|h?i*j', "dot.", "blank ", "con", "NUL.txt", "", "\x00"])
def test_generated_names_hold_on_every_system(name: str) -> None:
    safe = safe_name(name)
    assert safe and not re.search(r'[<>:"/\\|?*\x00-\x1f]', safe) and safe[-1] not in ". "
    assert safe.split(".")[0].lower() not in ("con", "nul")


def test_secrets_in_arguments_are_never_written(tmp_path: Path) -> None:
    config = {
        "system": {"app": {"call": "a:b", "args": {"api_key": "sk-SECRET1", "base_url": "http://u:SECRET2@h/v1"}}}
    }
    ragkit.evaluate(app, ROWS, out=tmp_path / "run", config=config)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"SECRET" in path.read_bytes()]


def test_torn_characters_in_errors_and_categories_are_kept_readable(tmp_path: Path) -> None:
    def broken(question: str) -> str:
        raise ValueError("file \udce9.txt not found")

    rows = [{"id": "q1", "question": "one", "category": "a\ud83d"}]
    result = ragkit.evaluate(broken, rows, out=tmp_path / "run")
    assert result.partial
    assert "\\udce9" in pd.read_parquet(tmp_path / "run" / "scores.parquet")["reason"].astype(str).iloc[0]


def test_a_key_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-test-4242-secret"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    with OpenAIServer(
        reply=lambda request: lexical_judge(request) if request.number != 2 else Answer(status=500)
    ) as server:
        ragkit.evaluate(
            app,
            ROWS,
            metrics=["faithfulness"],
            judge="m",
            judge_url=server.url,
            out=tmp_path / "run",
            judge_settings=JudgeSettings(backoff=0.01),
        )
        assert any(secret in call.headers.get("Authorization", "") for call in server.calls)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
