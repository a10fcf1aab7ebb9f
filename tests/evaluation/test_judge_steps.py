"""A judge that reads the list of each step: rows a step, nothing paid twice, kept by the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ragkit
from ragkit.errors import DataError
from ragkit.judge.settings import JudgeSettings
from tests.support.command import command
from tests.support.openai_server import Answer, OpenAIServer, Request, lexical_judge
from tests.support.small_app import ROWS, app

pytest.importorskip("ragas")
METRICS = ["context_precision", "context_recall", "faithfulness"]
QUICK = JudgeSettings(backoff=0.01)


def judged(server: OpenAIServer, **more: Any) -> Any:
    given: dict[str, Any] = {"metrics": METRICS, "judge_steps": True, "judge_settings": QUICK, **more}
    return ragkit.evaluate(app, ROWS[:2], judge="test-model", judge_url=server.url, **given)


def test_each_step_has_its_own_scores_beside_those_at_the_end() -> None:
    with OpenAIServer() as server:
        result = judged(server)
    scores = result.scores[(result.scores["judge"] == "test-model") & (result.scores["status"] == "scored")]
    by_step = {step: set(rows["metric"]) for step, rows in scores.groupby("step", observed=True)}
    assert by_step == {"0": {"context_precision", "context_recall"}, "1": {"context_precision", "context_recall"},
                       "final": {"context_recall", "faithfulness"}}, "at the end is a set: it has no precision"
    for row in scores.itertuples():
        if row.metric == "context_recall" and row.step != "final":
            step = next(t for t in result.trajectories if t.question_id == row.question_id).steps[int(row.step)]
            (reference,) = [r["reference"] for r in ROWS if r["id"] == row.question_id]
            told = lexical_judge(Request(1, {"messages": [{"role": "user", "content": _recall(step, reference)}]}, {}))
            verdicts = [r["attributed"] for r in json.loads(told)["classifications"]]
            assert row.value == sum(verdicts) / len(verdicts)
    entry = result.summary["per_step"]["0"]["context_precision"]
    assert (entry["n_scored"], entry["n_asked"]) == (2, 2)
    assert "faithfulness" not in result.summary["per_step"]["0"]
    (view,) = [view for view in result.data.worst if view.id == "q2"]
    shown = {score.step: score for score in view.scores if score.metric == "context_recall"}
    assert set(shown) == {"0", "1", "final"}
    assert [value for _, value, _ in shown["0"].verdicts] == [0], "the report shows each step's own verdicts"
    assert [value for _, value, _ in shown["1"].verdicts] == [1]


def _recall(step: Any, reference: str) -> str:
    context = "\n".join(passage.text for passage in step.outermost.passages)
    return "classif\ninput: " + json.dumps({"question": "", "context": context, "answer": reference}) + "\nOutput: "


def test_a_list_that_is_the_same_at_the_end_costs_nothing_more(tmp_path: Path) -> None:
    """One search, whose list is the context: what each step is asked is what the end is asked."""
    def one_search(question: str) -> str:
        trace = ragkit.current_trace()
        assert trace is not None
        found = [("d1", "The lighthouse of Arvo was built in 1871."), ("d3", "The ferry leaves at nine.")]
        trace.step(question, found)
        trace.context(found)
        return "In 1871."

    for steps in (False, True):
        with OpenAIServer() as server:
            result = ragkit.evaluate(one_search, ROWS[:1], judge="test-model", judge_url=server.url, metrics=METRICS,
                                     judge_settings=QUICK, judge_steps=steps)
            assert len(server.calls) == 5, "2 verdicts, 1 recall, 2 of faithfulness"
            assert ("context_recall" in result.summary["per_step"].get("0", {})) is steps


def test_a_step_that_failed_or_found_nothing_is_said_and_asks_nobody() -> None:
    def broken(question: str) -> str:
        trace = ragkit.current_trace()
        assert trace is not None
        trace.step(question, [])
        trace.step(question, [("d1", "The lighthouse of Arvo was built in 1871.")])
        return "In 1871."

    with OpenAIServer() as server:
        result = ragkit.evaluate(broken, ROWS[:1], judge="test-model", judge_url=server.url, metrics=METRICS[:2],
                                 judge_settings=QUICK, judge_steps=True)
        asked = len(server.calls)
    steps = result.summary["per_step"]
    assert steps["0"]["context_recall"]["reasons"] == {"no context": 1}
    assert steps["1"]["context_recall"]["n_scored"] == 1
    assert asked == 2


def test_a_failed_verdict_of_a_step_is_no_number_and_is_listed() -> None:
    def reply(request: Request) -> Any:
        refused = "classif" in request.first_prompt and "rope makers" not in request.prompt.rpartition("input:")[2]
        return "I'm sorry, but I can't help with that." if refused else lexical_judge(request)

    with OpenAIServer(reply) as server:
        result = judged(server, metrics="context_recall")
    failed = [place for _, place, _ in result.data.failures]
    assert failed and all(place.startswith("context_recall") for place in failed)
    assert any(", step 0" in place for place in failed)
    assert sum(entry["context_recall"]["n_failed"] for entry in result.summary["per_step"].values()) == sum(
        ", step" in place for place in failed)


def test_the_folder_keeps_them_and_the_report_is_made_again_without_a_call(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        first = judged(server, out=tmp_path / "run")
        asked = len(server.calls)
        again = judged(server, out=tmp_path / "run", judge_steps=False)
        assert len(server.calls) == asked
    assert again.summary["per_step"] == first.summary["per_step"]
    assert json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["judge_steps"] is True
    done = command("report", tmp_path / "run")
    assert done.code == 0, done
    assert "context_recall" in (tmp_path / "run" / "report.md").read_text(encoding="utf-8").split("Step")[-1]


def test_what_cannot_be_is_refused_before_any_work() -> None:
    with pytest.raises(DataError, match="--judge-steps: needs a judge"):
        ragkit.evaluate(app, ROWS[:2], metrics=METRICS, judge_steps=True)
    with OpenAIServer() as server, pytest.raises(DataError, match="--judge-steps: no metric that judges a list"):
        judged(server, metrics="faithfulness")


def test_on_the_command_line_and_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ragkit.evaluate(app, ROWS[:2], metrics="recall", out="base")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS[:2]), encoding="utf-8")
    with OpenAIServer() as server:
        done = command("score", "base/trajectories.jsonl", "--dataset", "rows.jsonl", "--out", "scored",
                       "--judge-steps", "-m", "context_recall", "--judge", "test-model", "--judge-url", server.url,
                       "--json")
        assert done.code == 0, done
        assert json.loads(done.out)["per_step"]["1"]["context_recall"]["n_scored"] == 2
        (tmp_path / "e.yaml").write_text(
            "dataset: rows.jsonl\nout: runs\nmetrics: [context_recall]\njudge_steps: true\n"
            f"judge: {{model: test-model, url: '{server.url}'}}\napp: {{call: 'tests.support.small_app:app'}}\n",
            encoding="utf-8")
        done = command("run", "e.yaml", "--json")
        assert done.code == 0, done
        assert json.loads(done.out)["per_step"]["1"]["context_recall"]["n_scored"] == 2


def test_the_report_says_whose_a_claim_is() -> None:
    with OpenAIServer() as server:
        result = judged(server, metrics="factual_correctness,noise_sensitivity", judge_steps=False)
    (view,) = [view for view in result.data.worst if view.id == "q1"]
    why = {score.metric: {reason for _, _, reason in score.verdicts} for score in view.scores}
    assert why["factual_correctness"] == {"claim of the answer; overlap", "claim of the reference; overlap"}
    told = "in an irrelevant context; overlap. Supported by passage"
    assert any(told in reason for reason in why["noise_sensitivity"])


def test_an_answer_counts_as_right_where_the_judge_says_so() -> None:
    """The judge's answer_accuracy goes before word overlap, both ways."""
    def reply(request: Request) -> Any:
        return Answer(json.dumps({"rating": 4 if "lighthouse of Arvo built" in request.first_prompt else 0}))

    def answers(question: str) -> str:
        return "Nineteen centuries after the first." if "built" in question else "Mina Holt was born in Karsund."

    with OpenAIServer(reply) as server:
        result = ragkit.evaluate(answers, ROWS[:2], judge="test-model", judge_url=server.url, judge_settings=QUICK,
                                 metrics="answer_accuracy,answer_f1")
    values = {row.question_id: row.value for row in result.scores.itertuples() if row.metric == "answer_accuracy"}
    assert values == {"q1": 1.0, "q2": 0.0}
    assert result.outcomes == {("q1", 0): "incomplete_right", ("q2", 0): "incomplete_wrong"}
    assert "answer_accuracy is at least 0.5" in result.data.rule
