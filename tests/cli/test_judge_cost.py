"""What judging costs, as a user meets it: the plan, hard limits, one store for all variants, what all runs spent."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import MissingPackageError
from tests.support.command import Done, command
from tests.support.openai_server import OpenAIServer, lexical_judge
from tests.support.small_app import PASSAGES, ROWS

METRICS = "context_precision,context_recall,faithfulness"
VARIANTS = "pipeline: {retriever: lexical, k: 2}\nvariants: {two: {}, three: {pipeline: {k: 3}}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a data set whose questions all have a reference answer, which the test runs in."""
    data = tmp_path / "data"
    data.mkdir()
    rows = [{"_id": r["id"], "text": r["question"], "answers": [r.get("reference", "Nobody knows it.")]} for r in ROWS]
    lines = {"queries.jsonl": rows, "corpus.jsonl": [{"_id": k, "text": v} for k, v in PASSAGES.items()]}
    for name, objects in lines.items():
        (data / name).write_text("".join(json.dumps(o) + "\n" for o in objects), encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(f"dataset: data\nout: runs\nmetrics: [{METRICS}]\n{VARIANTS}",
                                              encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(server: OpenAIServer, *arguments: object) -> Done:
    return command(*arguments, "--judge", "test-model", "--judge-url", server.url)


def summary(folder: Path, variant: str = "two") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "runs" / variant / "summary.json").read_text(encoding="utf-8"))
    return found


def test_all_variants_share_one_store_and_what_one_asked_the_other_need_not(folder: Path) -> None:
    with OpenAIServer() as server:
        assert judged(server, "run", "experiment.yaml").code == 0
        asked = len(server.calls)
        first, second = summary(folder)["judge"], summary(folder, "three")["judge"]
        assert not list(folder.glob("runs/*/judgements.sqlite"))
        with sqlite3.connect(folder / "runs" / "judgements.sqlite") as base:
            assert base.execute("SELECT count(*) FROM calls").fetchone() == (asked,)
        assert len({call.first_prompt for call in server.calls}) == asked, "no question was asked twice"
        assert first["calls"] + second["calls"] == asked
        assert second["stored"] >= 4 and second["calls"] < first["calls"]
        assert second["all_runs"]["calls"] == asked and second["all_runs"]["runs"] == 2
        again = judged(server, "run", "experiment.yaml", "--json")
        assert len(server.calls) == asked and [one["judge"]["calls"] for one in json.loads(again.out)] == [0, 0]


def test_max_calls_is_one_limit_for_all_variants_and_the_rest_comes_later(folder: Path) -> None:
    with OpenAIServer() as server:
        whole = judged(server, "run", "experiment.yaml", "--out", "whole")
        needed = len(server.calls)
        server.calls.clear()
        done = judged(server, "run", "experiment.yaml", "--max-calls", 9)
        assert done.code == 3 and len(server.calls) == 9
        lines = done.err.splitlines()
        assert "ragkit: two: judge: the limit of 9 calls is reached; all finished judgements are kept" in lines[0]
        assert "; not judged: " in lines[0] and lines[1].startswith("ragkit: three: judge: the limit of 9 calls")
        lost = summary(folder)["judge"]["not_judged"]
        assert lost and all(0 < entry["missing"] <= entry["of"] == 4 for entry in lost.values())
        for name, entry in lost.items():
            assert summary(folder)["metrics"][name]["n_failed"] == entry["missing"]
        assert summary(folder, "three")["judge"]["calls"] == 0 < len(summary(folder, "three")["judge"]["not_judged"])
        assert "Not judged" in (folder / "runs" / "two" / "report.md").read_text(encoding="utf-8")
        assert judged(server, "run", "experiment.yaml").code == whole.code == 0
        assert len(server.calls) == needed, "nothing was paid twice"
        means = [{n: m["mean"] for n, m in json.loads((folder / out / "three" / "summary.json").read_text(
            encoding="utf-8"))["metrics"].items()} for out in ("runs", "whole")]
        assert means[0] == means[1]


def test_a_budget_is_never_overrun_and_what_all_runs_spent_is_kept(folder: Path) -> None:
    with OpenAIServer() as server:
        assert "is unknown; give it" in judged(server, "run", "experiment.yaml", "--budget", 1).error
        money = ("--price", "10,100", "--judge-option", "max_tokens=100")
        done = judged(server, "run", "experiment.yaml", "--budget", 0.2, *money)
        assert done.code == 3 and "the budget of 0.2 is reached" in done.err
        spent = [summary(folder, name)["judge"]["cost"] for name in ("two", "three")]
        assert 0.1 < sum(spent) <= 0.2
        used = [summary(folder, name)["judge"]["tokens"] for name in ("two", "three")]
        assert sum(spent) == pytest.approx(sum(10 * u["input"] + 100 * u["output"] for u in used) / 1e6, abs=1e-5)
        again = judged(server, "run", "experiment.yaml", *money)
        assert again.code == 0 and "Judge: " in again.out and "All runs on this store: " in again.out
        found = summary(folder, "three")["judge"]
        more = summary(folder)["judge"]["cost"] + found["cost"]
        assert found["all_runs"]["cost"] == pytest.approx(sum(spent) + more, abs=1e-5) and more > 0
        assert found["all_runs"]["calls"] == len(server.calls)


def test_prices_come_from_a_file_of_ones_own(folder: Path) -> None:
    (folder / "prices.yaml").write_text("test-model: {input: 1, output: 2, at: 127.0.0.1}\n", encoding="utf-8")
    with OpenAIServer() as server:
        done = judged(server, "run", "experiment.yaml", "--variant", "two", "--prices", "prices.yaml", "--json")
        judge = json.loads(done.out)["judge"]
        assert judge["price"] == {"input": 1.0, "output": 2.0} and judge["cost"] > 0
        (folder / "prices.yaml").write_text("test-model: {in: 1, out: 2}\n", encoding="utf-8")
        wrong = judged(server, "run", "experiment.yaml", "--variant", "two", "--prices", "prices.yaml")
        assert "prices.yaml: test-model: unknown key 'in'" in wrong.error
        assert "expected IN,OUT" in judged(server, "run", "experiment.yaml", "--price", "cheap").error


def planned(server: OpenAIServer, *arguments: object) -> dict[str, Any]:
    done = judged(server, *arguments, "--dry-run", "--json")
    assert done.code == 0, done
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_a_plan_says_exactly_what_will_be_asked_once_trajectories_exist(folder: Path) -> None:
    command("run", "experiment.yaml", "--variant", "three")
    metrics = f"{METRICS},answer_relevancy,factual_correctness,noise_sensitivity,answer_accuracy"
    score = ("score", "runs/three/trajectories.jsonl", "--dataset", "data", "--out", "scored", "-m", metrics,
             "--relevance", "judge")
    with OpenAIServer(embedder) as server:
        before = planned(server, *score)
        assert not server.calls and not (folder / "scored").exists(), "nobody was asked, nothing was written"
        assert judged(server, *score, "--max-calls", 20).code == 3
        store = folder / "scored" / "judgements.sqlite"
        content = store.read_bytes()
        between = planned(server, *score)
        assert len(server.calls) == 20 and store.read_bytes() == content
        assert sorted(path.name for path in (folder / "scored").glob("judgements*")) == ["judgements.sqlite"]
        for plan in (before, between):
            assert not plan["upper_bound"] and plan["total"]["cost"] is None
            for name, one in plan["metrics"].items():
                assert one["judgements"] > 0, name
        assert between["total"]["calls_stored"] > 0
        judged(server, *score)
        made = {"answer_relevancy", "context_precision", "context_recall", "relevance", "statements"}
        made_calls = json.loads((folder / "scored" / "summary.json").read_text(encoding="utf-8"))["judge"]["metrics"]
        for name in made:  # the prompts of the others hold what the judge replied before
            assert between["metrics"][name]["calls"] == made_calls.get(name, {}).get("calls", 0), name
        assert before["total"]["calls"] >= len(server.calls)
        tokens = sum(len(message["content"]) for call in server.calls for message in call.messages) / 4
        assert before["total"]["tokens"]["input"] == pytest.approx(tokens, rel=0.3)
        after = planned(server, *score)
        assert after["total"]["calls"] == 0
        whole = after["metrics"]["faithfulness"]
        assert whole["stored"] >= 3 and whole["stored"] + whole["undefined"] == 4
        text = judged(server, *score, "--dry-run", "--price", "1,2").out
        assert "judge calls: 0, cost 0.00" in text and "price 1 in, 2 out" in text


def test_a_plan_of_recorded_variants_counts_what_they_share_once(folder: Path) -> None:
    command("run", "experiment.yaml")
    with OpenAIServer() as server:
        arguments = ("run", "experiment.yaml", "-m", "context_precision,answer_relevancy")
        plans: Any = planned(server, *arguments)
        assert plans[1]["metrics"]["context_precision"]["calls_shared"] >= 4
        needed = sum(plan["total"]["calls"] for plan in plans)
        assert f"all variants: {needed} judge calls, " in judged(server, *arguments, "--dry-run").out
        judged(server, *arguments)
        assert len(server.calls) == needed


def test_variants_beside_each_other_tell_how_many_questions_and_why_one_failed(folder: Path) -> None:
    with OpenAIServer() as server:
        assert judged(server, "run", "experiment.yaml", "--max-calls", 9).code == 3
        done = judged(server, "run", "experiment.yaml", "--frozen")
    found = {name: summary(folder, name)["metrics"]["context_precision"] for name in ("two", "three")}
    assert all(0 < entry["n_scored"] < 4 for entry in found.values())
    line = next(line for line in done.out.splitlines() if "context_precision" in line and "id_" not in line)
    assert line.split() == ["context_precision", *(part for entry in found.values() for part in (
        f"{entry['mean']:.3f}", f"({entry['n_scored']})"))]
    assert "(n): the mean of n scored questions" in done.out
    lines = done.err.splitlines()
    assert lines[0].startswith("ragkit: two: ") and lines[1].startswith("ragkit: three: ")
    assert all("frozen: not in the store" in text for text in lines[:2]) and lines[2].startswith("ragkit: failed in")


def embedder(request: Any) -> Any:
    """The lexical judge, which also answers the prompts that it does not know with what their schema asks for."""
    from ragkit.judge.planning import stand_in

    form = request.body.get("response_format") or {}
    found = lexical_judge(request)
    return found if found != "1" or "json_schema" not in form else json.dumps(
        stand_in(form["json_schema"]["schema"], request.first_prompt))


def test_a_plan_before_anything_is_recorded_is_an_upper_bound_and_says_so(folder: Path) -> None:
    with OpenAIServer() as server:
        bound = json.loads(judged(server, "run", "experiment.yaml", "--dry-run", "--json", "--price", "1,1").out)
        assert [plan["upper_bound"] for plan in bound] == [True, True] and not (folder / "runs").exists()
        assert [plan["metrics"]["context_precision"]["calls"] for plan in bound] == [8, 12]
        text = judged(server, "run", "experiment.yaml", "--dry-run", "--max-calls", 3, "--price", "1,1").out
        assert "an upper bound, for 3 passages an answer" in text and "--max-calls 3 is less than" in text
        assert "all variants: at most" in text and not server.calls
        judged(server, "run", "experiment.yaml")
        assert len(server.calls) <= sum(plan["total"]["calls"] for plan in bound)


def test_a_plan_without_ragas_counts_by_a_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragkit.judge import ragas_scores

    def missing() -> None:
        raise MissingPackageError("ragas", "ragas", "judging with the RAGAS metrics")

    with OpenAIServer() as server:
        exact = planned(server, "run", "experiment.yaml", "--variant", "two")
        monkeypatch.setattr(ragas_scores, "load_ragas", missing)
        table = planned(server, "run", "experiment.yaml", "--variant", "two")
    assert "from a table" in table["basis"] and "of the prompts" in exact["basis"]
    for name, one in exact["metrics"].items():
        assert table["metrics"][name]["calls"] == one["calls"]
        for side in ("input", "output"):
            assert table["metrics"][name]["tokens"][side] == pytest.approx(one["tokens"][side], rel=0.5), (name, side)


def test_a_judge_that_cannot_be_opened_is_planned_all_the_same(folder: Path) -> None:
    done = command("run", "experiment.yaml", "--variant", "two", "--dry-run", "--judge", "nosuchprovider:m")
    assert done.code == 0 and "the judge could not be opened" in done.out and "judge calls: at most" in done.out
    done = command("run", "experiment.yaml", "--variant", "two", "--dry-run")
    assert "judge calls: 0 (no judge" in done.out


def test_one_store_serves_many_runs_and_other_prompts_are_other_questions(folder: Path) -> None:
    command("run", "experiment.yaml", "--variant", "three")
    score = ("score", "runs/three/trajectories.jsonl", "--dataset", "data", "--store", "shared.sqlite", "-m",
             "context_recall")
    with OpenAIServer() as server:
        assert judged(server, *score, "--out", "a").code == 0 and server.calls
        asked = len(server.calls)
        assert judged(server, *score, "--out", "b").code == 0 and len(server.calls) == asked
        assert not (folder / "a" / "judgements.sqlite").exists() and (folder / "shared.sqlite").exists()
        german = planned(server, *score, "--out", "c", "--judge-language", "german")
        assert german["metrics"]["context_recall"]["calls"] == asked, "the prompts in German were never sent"
        assert german["metrics"]["adapting prompts"]["calls"] > 0 and not (folder / "prompts").exists()


def test_a_plan_of_another_judge_tells_what_the_bridge_costs(folder: Path) -> None:
    command("run", "experiment.yaml", "--variant", "three")
    score = ("score", "runs/three/trajectories.jsonl", "--dataset", "data", "--out", "scored", "-m", "faithfulness")
    with OpenAIServer() as server:
        assert judged(server, *score).code == 0
        other = ("--judge", "other-model", "--judge-url", server.url, "--dry-run", "--price", "10000,10000")
        assert "this run would be refused" in command(*score, *other).out
        text = command(*score, *other, "--rejudge", 2).out
    assert "of these first, as a bridge to the earlier judge: 2 of 3 questions, 4 calls, " in text, "one has no context"
    assert "judge calls: 6, cost " in text and "refused" not in text


def test_what_limits_a_judge_is_refused_where_none_is_named(folder: Path) -> None:
    score = ("score", "trajectories.jsonl", "--dataset", "data", "--out", "run")
    for verb in (score, ("run", "experiment.yaml")):
        for flag in (("--budget", "1"), ("--max-calls", "3"), ("--rpm", "5"), ("--judge-language", "de")):
            done = command(*verb, *flag)
            assert done.code == 2, verb
            assert f"{flag[0]} is about a judge, and none is named: add --judge" in done.error
