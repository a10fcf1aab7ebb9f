"""`ragkit gate` as a user meets it: exit codes, one line of error, JSON, the table for GitHub, and its workflow."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.test_compare import strict
from tests.support.command import command
from tests.support.openai_server import OpenAIServer
from tests.support.variants import at_rank, dataset, ranked, variant

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "ragkit" / "docs" / "gate.md"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of 20 questions with two gold passages each: recall@5 .5 and mrr .75 now, a little more before; one thin."""
    folder = tmp_path_factory.mktemp("gate")
    data = dataset(20, ("g", "missing"))
    metrics = "mrr,recall@5,precision@5,steps_to_evidence"
    ranked(*[1 + n % 2 for n in range(20)], data=data, out=folder / "now", metrics=metrics)
    ranked(*[1 + (n % 2 and n > 3) for n in range(20)], data=data, out=folder / "before", metrics=metrics)
    failing: dict[str, Any] = {f"q{n}": [at_rank(1)] if n % 2 else None for n in range(20)}
    variant(failing, data, out=folder / "thin", metrics=metrics)
    variant({f"q{n}": [at_rank(1), at_rank(1 + n % 2)] for n in range(20)}, data, out=folder / "twice", metrics=metrics)
    return folder


def test_each_outcome_has_its_exit_code(runs: Path) -> None:
    passed = command("gate", runs / "now", "--rule", "mrr>=0.75", "--rule", "recall@5<=0.5")
    assert (passed.code, passed.err) == (0, "")
    assert passed.out.splitlines() == [
        "PASS       mrr>=0.75  0.750 (0.625–0.875), scored 20 / 20",
        "PASS       recall@5<=0.5  0.500 (0.500–0.500), scored 20 / 20", "The gate passes (2 pass)"]
    failed = command("gate", runs / "now", "--rule", "mrr>0.75")
    assert failed.code == 1 and failed.err == "ragkit: The gate fails (1 fail): fail: mrr>0.75: mrr is 0.750\n"
    undecided = command("gate", runs / "thin", "--rule", "mrr>=0.5")
    assert undecided.code == 4 and "scored on 10 of 20 questions that have something to be found" in undecided.err
    assert "10 x app failed: no answer" in undecided.out


@pytest.mark.parametrize(("flag", "code"), [("fail", 1), ("pass", 0), ("warn", 0)])
def test_undecided_is_what_the_flag_says_and_the_reason_is_printed(runs: Path, flag: str, code: int) -> None:
    done = command("gate", runs / "thin", "--rule", "mrr>=0.5", "--undecided", flag)
    assert done.code == code and "scored on 10 of 20" in done.err and f"--undecided {flag}" in done.err
    assert command("gate", runs / "thin", "--rule", "mrr>=0.5", "--min-scored", "0.5").code == 0


@pytest.mark.parametrize(("words", "said"), [
    (("--rule", "mmr>=0.7"), "unknown metric 'mmr'"), (("--rule", "map>=0.7"), "map was not measured in now"),
    (("--rule", "steps_to_evidence<=2"), "nothing was scored in now (0 of 20 questions: 20 x not reached)"),
    (("--rule", "mrr[category=a]>0"), "no question in category 'a'; expected one of: (no category)"),
    (("--targets", "usual"), "rule precision@5>0.6: above its ceiling: precision@5 cannot exceed 0.4 (2 gold passages "
                             "each)"),
    ((), "nothing to hold the run against"), (("--targets", "best"), "expected usual"),
    (("--rule", "mrr>0", "--undecided", "maybe"), "expected fail, pass or warn"),
    (("--rule", "mrr>0", "--margin", "0.1"), "expected --baseline RUN_DIR"),
    (("--baseline", "nowhere"), "no run.json"), (("--rule", "mrr>0", "--plan", "--margin", "1"), "--plan names"),
    (("--rule", "mrr>0", "--labels", "judged"), "has no judged labels"),
])
@pytest.mark.parametrize("undecided", [(), ("--undecided", "pass")])
def test_what_can_never_be_decided_is_one_line_and_exit_code_2(runs: Path, words: tuple[str, ...], said: str,
                                                                undecided: tuple[str, ...]) -> None:
    if "--undecided" not in words:
        words = (*words, *undecided)
    assert said in command("gate", runs / "now", *words).error


def test_a_baseline_is_held_with_a_margin(runs: Path) -> None:
    done = command("gate", runs / "now", "--baseline", runs / "before", "-m", "mrr,recall@5", "--margin", "mrr=0.2",
                   "--json")
    found = strict(done.out)
    assert (done.code, found["schema"], found["outcome"]) == (0, "ragkit.gate/1", "pass")
    mrr, recall = found["checks"]
    assert (mrr["difference"], mrr["margin"], mrr["losses"], mrr["n"]) == (pytest.approx(-0.05), 0.2, 2, 20)
    assert (recall["difference"], recall["margin"]) == (0, 0.02)
    unsure = command("gate", runs / "now", "--baseline", runs / "before", "--rule", "mrr>0.5")
    assert unsure.code == 4 and "holds the margin of 0.02" in unsure.err


def test_the_plan_names_margin_and_ceilings(runs: Path) -> None:
    alone = command("gate", runs / "now", "--plan")
    assert alone.code == 0 and "smallest margin unknown: one run without repeats" in alone.out
    two = command("gate", runs / "now", "--plan", "-m", "mrr", "--baseline", runs / "before")
    assert re.search(r"mrr: smallest margin 0\.\d+ \(20 questions, by two runs\)", two.out)
    found = strict(command("gate", runs / "twice", "--plan", "--targets", "usual", "--json").out)
    assert found["metrics"]["mrr"]["from"] == "repeats" and found["metrics"]["mrr"]["margin"] > 0
    beyond = command("gate", runs / "twice", "--plan", "--targets", "usual")
    assert beyond.code == 2 and "precision@5 cannot exceed 0.4 (2 gold passages each)" in beyond.err
    assert "mrr>0.7: ceiling 1" in beyond.out


def test_the_table_is_appended_where_github_wants_it(runs: Path, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "summary.md"
    target.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    assert command("gate", runs / "thin", "--rule", "mrr>=0.5", "--github-summary").code == 4
    text = target.read_text(encoding="utf-8")
    assert text.startswith("before\n### The gate cannot decide (1 undecided)")
    assert "| `mrr>=0.5` | **undecided** | 1.000 | 1.000–1.000 | 10 / 20 | scored on 10 of 20" in text
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    left = command("gate", runs / "now", "--rule", "mrr>=0.5", "--github-summary")
    assert left.code == 0 and "GITHUB_STEP_SUMMARY is not set" in left.err


def workflow() -> dict[str, Any]:
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_the_workflow_of_the_docs_is_one_that_github_reads() -> None:
    found = workflow()
    assert set(found[True]) == {"pull_request", "push"}, "YAML 1.1 reads `on` as true"
    for job in found["jobs"].values():
        assert job["runs-on"] == "ubuntu-latest"
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    keyless, judged = found["jobs"]["keyless"]["steps"], found["jobs"]["judged"]["steps"]
    assert not any("secrets." in json.dumps(step) for step in keyless), "a pull request from a fork has no key"
    assert any("--max-calls" in step.get("run", "") for step in judged)
    assert {step["uses"].partition("@")[0] for step in keyless if "uses" in step} >= {
        "actions/cache/restore", "actions/upload-artifact"}


def script(job: str, name: str) -> str:
    steps = workflow()["jobs"][job]["steps"]
    return str(next(step["run"] for step in steps if step.get("name") == name))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash, as GitHub's runners have it")
def test_the_commands_of_the_workflow_run(tmp_path: Path) -> None:
    """All but what GitHub does itself (checkout, cache, artifacts): `gh` is a script that brings the last run."""
    pytest.importorskip("ragas")
    rows = [{"id": f"q{n}", "question": f"Where is the mill{n}?", "reference": f"At river {n}.", "gold_ids": f"d{n}"}
            for n in range(12)]
    data = tmp_path / "data"
    data.mkdir()
    (data / "queries.jsonl").write_text("".join(json.dumps({"_id": row["id"], "text": row["question"], "answers": [
        row["reference"]]}) + "\n" for row in rows), encoding="utf-8")
    (data / "corpus.jsonl").write_text("".join(json.dumps({"_id": f"d{n}", "text": f"The mill{n} is at river {n}."})
                                               + "\n" for n in range(12)), encoding="utf-8")
    (data / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(12)),
                                    encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text("dataset: data\nmetrics: [recall, mrr, faithfulness]\n"
                                              "pipeline: {retriever: lexical, k: 2}\n", encoding="utf-8")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("gh", '[ "$2" = list ] && echo 1 || { [ -d artifact ] && cp -r artifact "${!#}"; }'),
                       ("ragkit", f'exec {sys.executable} -c "from ragkit.cli import main; main()" "$@"')):
        (tools / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (tools / name).chmod(0o755)

    def step(job: str, name: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {key: value for key, value in os.environ.items() if key != "OPENAI_API_KEY"} | {
            "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "GITHUB_WORKFLOW": "rag",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), **more}
        return subprocess.run(["bash", "-eo", "pipefail", "-c", script(job, name)], cwd=tmp_path, text=True,
                              capture_output=True, check=False, env=environment)

    with OpenAIServer() as server:
        key = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.url}
        for name, more in (("run", key), ("gate", {})):
            done = step("judged", name, **more)
            assert done.returncode == 0, (name, done)
        asked = len(server.calls)
    assert asked > 0
    shutil.rmtree(tmp_path / "runs")
    first = [step("keyless", name, OPENAI_BASE_URL=server.url) for name in ("baseline", "run", "gate")]
    assert [done.returncode for done in first] == [0, 0, 0], first
    assert "no baseline yet" in first[0].stdout and "faithfulness>=0.8" in first[2].stdout
    assert "against the baseline" not in first[2].stdout
    shutil.move(tmp_path / "runs" / "now", tmp_path / "artifact")
    second = [step("keyless", name, OPENAI_BASE_URL=server.url) for name in ("baseline", "run", "gate")]
    assert [done.returncode for done in second] == [0, 0, 0], second
    assert "recall against the baseline, margin 0.05" in second[2].stdout and "UNDECIDED" not in second[2].stdout
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").count("### The gate passes") == 3
