"""What judging costs, as a user meets it: the plan, hard limits, one store for all variants, and what all runs spent."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Done, command
from tests.support.openai_server import OpenAIServer
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
        assert judged(server, "run", "experiment.yaml", *money).code == 0
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
