"""`--relevance judge` as a user meets it: no gold, variants on one pool, what is missing, and no judge at hand."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ragkit.evaluation.runfolder import RunFolder
from tests.support.command import command
from tests.support.openai_server import OpenAIServer, Request, ragas_input
from tests.support.relevance import relevance_judge

DOCUMENTS = {"film": "The film was made by Ines. [1]", "ines": "The maker Ines was born in 1951. [3]",
             "dogs": "The film maker never barked at dogs. [0]", "town": "A maker was born in town. [2]"}
EXPERIMENT = """\
dataset: data
out: runs
relevance: judge
metrics: [recall, mrr, ndcg@5]
pipeline: {retriever: lexical, k: 2}
variants: {two: {}, three: {pipeline: {k: 3}}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    (data / "queries.jsonl").write_text(json.dumps({
        "_id": "q1", "text": "When was the maker of the film born?",
        "answers": ["The film was made by Ines. The maker Ines was born in 1951."]}) + "\n", encoding="utf-8")
    (data / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in DOCUMENTS.items()), encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def summary(folder: Path, variant: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "runs" / variant / "summary.json").read_text(encoding="utf-8"))
    return found


def test_variants_of_an_experiment_are_scored_on_one_pool(folder: Path) -> None:
    with OpenAIServer(relevance_judge) as server:
        done = command("run", "experiment.yaml", "--judge", "test-model", "--judge-url", server.url)
        asked = len(server.calls)
        again = command("run", "experiment.yaml", "--judge", "test-model", "--judge-url", server.url, "--json")
        assert len(server.calls) == asked
    assert (done.code, again.code) == (0, 0), (done, again)
    two, three = summary(folder, "two"), summary(folder, "three")
    assert two["judged_labels"]["pool"]["fingerprint"] == three["judged_labels"]["pool"]["fingerprint"]
    assert (two["judged_labels"]["pool"]["of_this_run"], two["judged_labels"]["pool"]["judged"]) == (2, 3)
    assert asked == 1 + 3, "the statements, and each passage once"
    assert two["metrics"]["mrr"]["labels"] == "judged"
    assert [one["judged_labels"]["pool"] for one in json.loads(again.out)] == [
        two["judged_labels"]["pool"], three["judged_labels"]["pool"]]
    assert two["metrics"]["recall"]["mean"] <= three["metrics"]["recall"]["mean"]


def test_one_variant_alone_meets_the_pool_of_the_others(folder: Path) -> None:
    with OpenAIServer(relevance_judge) as server:
        for variant in ("three", "two"):
            assert command("run", "experiment.yaml", "--variant", variant, "--judge", "test-model", "--judge-url",
                           server.url).code == 0
        assert len(server.calls) == 4
    assert (summary(folder, "two")["judged_labels"]["pool"]["fingerprint"]
            == summary(folder, "three")["judged_labels"]["pool"]["fingerprint"])


def test_one_variant_alone_tells_which_others_lack_its_labels(folder: Path) -> None:
    with OpenAIServer(relevance_judge) as server:
        words = ("run", "experiment.yaml", "--judge", "test-model", "--judge-url", server.url)
        first = command(*words, "--variant", "two")
        second = command(*words, "--variant", "three")
        third = command(*words, "--variant", "three")
        assert first.err == ""
        for done in (second, third):
            assert (done.code, "note: two: scored on an older pool of judged labels" in done.err) == (0, True), done
        asked = len(server.calls)
        assert command(*words).err == ""
        assert command(*words, "--variant", "three").err == ""
        assert len(server.calls) == asked
    assert (summary(folder, "two")["judged_labels"]["pool"]["fingerprint"]
            == summary(folder, "three")["judged_labels"]["pool"]["fingerprint"])


def test_a_folder_that_another_run_has_by_now_is_not_written_to(folder: Path) -> None:
    """The labels of the second variant would count in the first one's folder, too."""
    with ExitStack() as held:
        def judge(request: Request) -> str:
            if (folder / "runs" / "three" / "run.json").exists() and "another" not in taken:
                taken["another"] = held.enter_context(RunFolder(folder / "runs" / "two").locked())
            return relevance_judge(request)

        taken: dict[str, None] = {}
        with OpenAIServer(judge) as server:
            words = ("run", "experiment.yaml", "--judge", "test-model", "--judge-url", server.url)
            done = command(*words)
            assert "two: another run is writing to this folder" in done.err and taken, done
            before = summary(folder, "two")["judged_labels"]["pool"]
            held.close()
            assert command(*words).err == ""
    after = summary(folder, "two")["judged_labels"]["pool"]
    assert (before["judged"], after["judged"]) == (2, 3)
    assert json.loads((folder / "runs" / "two" / "run.json").read_text(encoding="utf-8"))["state"] == "complete"


def test_a_limit_leaves_what_is_missing_and_exit_3(folder: Path) -> None:
    with OpenAIServer(relevance_judge) as server:
        done = command("run", "experiment.yaml", "--variant", "three", "--judge", "test-model", "--judge-url",
                       server.url, "--max-calls", 3, "--concurrency", 1)
        assert done.code == 3
        assert "relevance 1 of 3" in done.err
        more = command("run", "experiment.yaml", "--variant", "three", "--judge", "test-model", "--judge-url",
                       server.url)
        assert (more.code, len(server.calls)) == (0, 4)


def test_recorded_trajectories_are_scored_without_gold(folder: Path) -> None:
    with OpenAIServer(relevance_judge) as server:
        assert command("run", "experiment.yaml", "--variant", "three", "--judge", "test-model", "--judge-url",
                       server.url).code == 0
        done = command("score", "runs/three/trajectories.jsonl", "--dataset", "data", "--relevance", "judge",
                       "--per-step-query", "--judge", "test-model", "--judge-url", server.url, "--store",
                       "runs/judgements.sqlite", "-m", "mrr", "--out", "again")
        assert done.code == 0, done
        assert len(server.calls) == 4, "its only query is the question itself"
    assert "Judged labels, not people's." in done.out
    found = json.loads((folder / "again" / "summary.json").read_text(encoding="utf-8"))
    assert set(found["per_step"]["0"]) == {"mrr", "query_precision@5", "query_ndcg@5"}
    assert found["metrics"] == {"mrr": summary(folder, "three")["metrics"]["mrr"]}


def test_without_a_judge_or_with_another_word_it_is_refused(folder: Path) -> None:
    assert "--relevance judge: needs a judge" in command("run", "experiment.yaml").error
    (folder / "experiment.yaml").write_text(EXPERIMENT.replace("relevance: judge", "relevance: people"))
    assert "relevance" in command("run", "experiment.yaml").error
    (folder / "trajectories.jsonl").write_text(
        '{"schema": "ragkit.trajectory/1", "question_id": "q1", "question": "?", "steps": []}\n')
    where = ("score", "trajectories.jsonl", "--dataset", "data", "--out", "x")
    assert "expected 'judge'" in command(*where, "--relevance", "people").error
    assert "--per-step-query: needs a judge" in command(*where, "--per-step-query").error


def test_a_plan_bounds_the_candidates_beneath_a_fusion_too(folder: Path) -> None:
    pipeline = "{retriever: hybrid, embedding: wordllama, k: 1, candidates: 2}"
    (folder / "experiment.yaml").write_text(
        f"dataset: data\nout: runs\nrelevance: judge\nmetrics: [mrr]\npipeline: {pipeline}\n", encoding="utf-8")
    with OpenAIServer(relevance_judge) as server:
        judge = ("--judge", "test-model", "--judge-url", server.url)
        plan = json.loads(command("run", "experiment.yaml", *judge, "--dry-run", "--json").out)
        assert not server.calls
        command("run", "experiment.yaml", *judge)
        asked = len(server.calls)
    [bound] = plan if isinstance(plan, list) else [plan]
    assert bound["metrics"]["relevance"]["calls"] == 2 * 2, "two lists of two candidates, none in common"
    assert 1 + 2 <= asked <= bound["total"]["calls"], "more than the one passage that the answer was written from"


def test_what_the_judge_cannot_answer_is_asked_once_by_all_variants_of_a_command(folder: Path) -> None:
    """And again by the next command, which may be luckier."""
    lost = "The maker Ines was born in 1951"  # found by both variants
    well = False

    def judge(request: Request) -> str:
        data = ragas_input(request.first_prompt)
        return relevance_judge(request) if well or lost not in data.get("passage", "") else "no idea"

    with OpenAIServer(judge) as server:
        words = ("run", "experiment.yaml", "--judge", "test-model", "--judge-url", server.url)
        done = command(*words)
        assert done.code == 3, done
        assert [call.prompt.count("cannot be used") for call in server.calls].count(1) == 2, "asked three times, once"
        assert len(server.calls) == 1 + 2 + 3, "the statements, two passages, and the one that is lost"
        assert [summary(folder, name)["judge"]["failures"] for name in ("two", "three")] == [{"unusable reply": 1}] * 2
        well = True
        assert command(*words).code == 0
        assert len(server.calls) == 6 + 1


def test_so_is_a_verdict_of_a_passage_that_several_lists_hold(folder: Path) -> None:
    """Lists of other lengths are other judgements, made of the same calls."""
    def judge(request: Request) -> str:
        data = ragas_input(request.first_prompt)
        return "no idea" if "context" in data and "Ines was born" in data["context"] else relevance_judge(request)

    with OpenAIServer(judge) as server:
        done = command("run", "experiment.yaml", "--judge", "test-model", "--judge-url", server.url, "-m",
                       "context_precision")
        about = [ragas_input(call.first_prompt).get("context") for call in server.calls]
    assert done.code == 3, done
    assert about.count(DOCUMENTS["ines"]) == 3, "three tries of one call"
    assert (folder / "runs" / "three" / "summary.json").exists()


def test_the_plan_names_the_grades_that_are_stored_and_the_report_those_of_each_steps_query(folder: Path) -> None:
    with OpenAIServer(relevance_judge) as server:
        run = ("run", "experiment.yaml", "--variant", "two", "--per-step-query", "--judge", "test-model", "--judge-url",
               server.url)
        done, plan = command(*run), command(*run, "--dry-run")
    rows = {line.split()[0]: line.split()[1:] for line in plan.out.splitlines() if line.strip()}
    assert rows["relevance"] == ["2", "2", "0", "0", "0", "0", "0", "0", "0", "0.00"]
    assert "judge calls: 0, cost 0.00" in plan.out, "nothing costs nothing, though nobody knows the price"
    report = (folder / "runs" / "two" / "report.md").read_text(encoding="utf-8")
    steps = report.partition("## Step by step")[2].partition("## ")[0]
    assert "`query_precision@5` | `query_ndcg@5`" in steps
    assert done.code == 0 and "| all runs, unpriced calls | " in report and "$" not in report.partition("| Ledger")[2]


def test_stats_tell_where_the_grades_for_a_steps_query_are_counted(folder: Path) -> None:
    film = {"id": "film", "text": DOCUMENTS["film"]}
    (folder / "t.jsonl").write_text(json.dumps({
        "schema": "ragkit.trajectory/1", "question_id": "q1", "question": "When was the maker of the film born?",
        "steps": [{"index": 0, "retrievals": [{"stage": "retrieve", "query": "Who?", "passages": [film]}]}]}) + "\n")
    with OpenAIServer(relevance_judge) as server:
        assert command("score", "t.jsonl", "--dataset", "data", "--relevance", "judge", "--per-step-query", "--judge",
                       "test-model", "--judge-url", server.url, "-m", "mrr", "--out", "o").code == 0
    lines = [line.split() for line in command("judgements", "stats", "o").out.splitlines()]
    assert ["test-model", "query_relevance", "in", "relevance", "1"] in [line[:5] for line in lines]
    assert ["test-model", "relevance", "2", "1"] in [line[:4] for line in lines], "both grades, one call each"
