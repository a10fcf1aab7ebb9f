"""Public reports of judged scores: failures in means (C37), context precision's arithmetic (C39), calls home (C59)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ragkit
from ragkit.judge.settings import JudgeSettings
from tests.support.command import command
from tests.support.openai_server import Answer, OpenAIServer, Request, lexical_judge, ragas_input

pytest.importorskip("ragas")

# C37: ready scores of 0.9 for s1 to s5, three refusals, two time-outs
FINE, REFUSED, HANGING = range(1, 6), range(6, 9), range(9, 11)


def c37_judge(request: Request) -> Answer | str:
    """Nine of ten statements are supported, where this question is judged at all."""
    data = ragas_input(request.first_prompt)
    number = int((data.get("answer") or data["statements"][0]).split()[1].rstrip(":"))
    if "statements" not in data:
        return json.dumps({"statements": [f"Answer {number}: claim {n}." for n in range(10)]})
    if number in REFUSED:
        return "I'm sorry, I can't assess this."
    rows = [{"statement": s, "reason": "", "verdict": int(n > 0)} for n, s in enumerate(data["statements"])]
    return Answer(json.dumps({"statements": rows}), delay=30.0 if number in HANGING else 0.0)


@pytest.fixture
def c37(tmp_path: Path) -> list[Any]:
    rows = [{"id": f"s{n}", "question": f"Question {n}?", "reference": "r"} for n in range(1, 11)]
    lines = []
    for row in rows:
        found = {"stage": "retrieve", "passages": [{"id": "d1", "text": "What all answers come from."}]}
        lines.append({"schema": "ragkit.trajectory/1", "question_id": row["id"], "question": row["question"],
                      "answer": f"Answer {row['id'][1:]}: claims.", "steps": [{"retrievals": [found]}]})
    for name, objects in (("data.jsonl", rows), ("trajectories.jsonl", lines)):
        (tmp_path / name).write_text("".join(json.dumps(o) + "\n" for o in objects), encoding="utf-8")
    return ["score", tmp_path / "trajectories.jsonl", "--dataset", tmp_path / "data.jsonl", "--out", tmp_path / "run",
            "-m", "faithfulness", "--judge", "test-model", "--timeout", "1.5"]


def test_c37_failed_judgements_are_counted_and_are_neither_zero_nor_nan(c37: list[Any], tmp_path: Path) -> None:
    with OpenAIServer(c37_judge) as server:
        done = command(*c37, "--judge-url", server.url, "--json")
    assert done.code == 3, "failed in part"
    entry = json.loads(done.out, parse_constant=pytest.fail)["metrics"]["faithfulness"]
    assert entry["mean"] == pytest.approx(0.9)
    assert (entry["n_scored"], entry["n_asked"], entry["n_failed"], entry["n_undefined"]) == (5, 10, 5, 0)
    assert entry["worst"] == pytest.approx(0.45) and entry["best"] == pytest.approx(0.95)
    reasons = entry["reasons"]
    assert reasons["the judge refused"] == 3
    assert sum(count for reason, count in reasons.items() if reason.startswith("no answer within")) == 2, reasons
    scores = ragkit.evaluation.evaluate.run_async(ragkit.evaluation.evaluate.areport(tmp_path / "run")).scores
    rows = scores[scores["metric"] == "faithfulness"].set_index("question_id")["status"]
    assert [rows[f"s{n}"] for n in range(1, 11)] == ["scored"] * 5 + ["failed"] * 5
    report = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    (line,) = [line for line in report.splitlines() if line.startswith("| `faithfulness` | 0.900")]
    assert "| 5 / 10 |" in line and "3 × the judge refused" in line and "0.450–0.950" in line


# C39: verdicts in rank order and the value that is right

@pytest.mark.parametrize(("verdicts", "expected"), [
    ([1, 0, 1], 0.8333333), ([0, 1], 0.5), ([0, 0, 0], 0.0), ([1, 1, 1], 1.0), ([0, 0, 1, 1], 0.4166667),
    ([], None), ([1, "n/a", 1], None)])
def test_c39_context_precision_arithmetic(verdicts: list[Any], expected: float | None) -> None:
    def reply(request: Request) -> str:
        return json.dumps({"reason": "", "verdict": verdicts[int(ragas_input(request.first_prompt)["context"])]})

    def app(question: str) -> str:
        trace = ragkit.current_trace()
        assert trace is not None
        trace.step(question, found)
        trace.context(found)
        return "a"

    found = [(f"d{n}", str(n)) for n in range(len(verdicts))]
    with OpenAIServer(reply) as server:
        result = ragkit.evaluate(app, [{"id": "q1", "question": "Which?", "reference": "This."}],
                                 metrics="context_precision", judge="test-model", judge_url=server.url,
                                 judge_settings=JudgeSettings(backoff=0.01))
        entry = result.summary["metrics"]["context_precision"]
        if expected is not None:
            assert entry["mean"] == pytest.approx(expected, abs=1e-6)
            assert len(server.calls) == len(verdicts)
            return
        assert entry["mean"] is None
        if verdicts:
            assert (entry["n_failed"], entry["n_undefined"]) == (1, 0)
        else:
            assert entry["reasons"] == {"no context": 1} and server.calls == []


# C59: a whole run with every metric of ragas under a guard that records each connection and look-up

GUARD = """
import json, os, sys
touched = set()
def hook(event, args):
    if event == "socket.connect":
        touched.add(str(args[1][0]) if isinstance(args[1], tuple) else "unix")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        touched.add(str(args[0]))
sys.addaudithook(hook)
url, out, root, metrics = sys.argv[1:]
sys.path.insert(0, root)
import ragkit
from ragkit.judge.settings import JudgeSettings
from tests.support.small_app import ROWS, app
before = set(os.environ)
result = ragkit.evaluate(app, ROWS, judge="test-model", judge_url=url, out=out, metrics=metrics, judge_steps=True,
                         judge_settings=JudgeSettings(embeddings=url + "#v"))
from ragas._analytics import do_not_track
scored = sorted(name for name, entry in {**result.summary["metrics"], **result.summary["per_step"]["0"]}.items()
                if entry["n_scored"])
print(json.dumps([sorted(touched), do_not_track(), sorted(set(os.environ) - before), scored]))
"""
ALL = ("answer_accuracy,answer_relevancy,context_precision,context_precision_without_reference,context_recall,"
       "context_relevance,factual_correctness,faithfulness,noise_sensitivity,response_groundedness")


@pytest.mark.parametrize("variable", [{}, {"DO_NOT_TRACK": "1"}])
def test_c59_only_this_machine_is_contacted(variable: dict[str, str], tmp_path: Path) -> None:
    kept = {k: v for k, v in os.environ.items() if k not in ("RAGAS_DO_NOT_TRACK", "DO_NOT_TRACK")}
    with OpenAIServer(lexical_judge) as server:
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", GUARD, server.url, str(tmp_path / "run"),
             str(Path(__file__).parents[2]), ALL],
            capture_output=True, text=True, timeout=240, check=False, env={**kept, **variable, "HOME": str(tmp_path)})
        took = time.monotonic() - begun
    assert done.returncode == 0, done.stderr
    touched, off, added, scored = json.loads(done.stdout.splitlines()[-1])
    assert touched == ["127.0.0.1"], took
    assert off is True
    assert "RAGAS_DO_NOT_TRACK" not in added, "the environment is left as it was"
    assert scored == ALL.split(",")
    assert not list(tmp_path.rglob("uuid.json")), "ragas' user id is not even made"
