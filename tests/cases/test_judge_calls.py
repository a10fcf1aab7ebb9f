"""Reports of people whose judge's replies, calls, limits and stores went wrong, as whole runs: what must come out."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import ragkit
from ragkit.cli.main import main
from ragkit.evaluation.evaluate import aevaluate, ascore, score
from ragkit.judge.calls import UnusableReplyError
from ragkit.judge.replies import read_reply, read_verdict
from ragkit.judge.settings import JudgeSettings
from tests.support.judged_runs import Commands, final_scores, recorded, score_command
from tests.support.judging import VERDICT
from tests.support.openai_server import Answer, OpenAIServer, Request, error, ragas_input

pytest.importorskip("ragas")
RECALL = ("context_recall",)


def attributed(value: int) -> str:
    """One statement of the reference, attributed or not: a context recall of 1 or 0."""
    return json.dumps({"classifications": [{"statement": "s", "reason": "r", "attributed": value}]})


def run(folder: Path, server: OpenAIServer, rows: int = 5, out: str = "run", model: str = "test-model",
        metrics: str = "context_recall", **settings: Any) -> Any:
    data, trajectories = recorded(folder, rows)
    return score(trajectories, data, metrics=metrics, judge=model, judge_url=server.url, out=folder / out,
                 judge_settings=JudgeSettings(**{"backoff": 0.01, "timeout": 5.0, **settings}))


# --- C33, C35: what a judge writes

C33 = [("yes", 1), ("Yes.", 1), (" YES\n\nThe context lists the regions.", 1), ("no", 0), ("No.", 0), (1, 1), ("1", 1),
       (True, 1), ("true", 1), (0, 0), ("0", 0), (False, 0), ("No, the context never says yes.", 0),
       ("Yes, although no date is given.", 1)]


@pytest.mark.parametrize(("value", "expected"), C33)
def test_c33_verdicts_in_words(value: object, expected: int) -> None:
    assert read_verdict(value) == expected
    assert read_reply(json.dumps({"verdict": value}), VERDICT)["verdict"] == expected
    if isinstance(value, str):
        assert read_reply(value, VERDICT)["verdict"] == expected, "a bare reply, without JSON"


C35: list[tuple[str, int | None]] = [
    ('```json\n{"verdict": 1, "reason": "r"}\n```', 1),
    ('```json\n{"verdict": 0, "reason": "r"}\n```\nThe score is low because of the missing {date}.', 0),
    ('Sure! Here is the JSON:\n{"verdict": 1, "reason": "r"}\nHope this helps.', 1),
    ('```\n{"verdict": 1}\n```', 1),
    ('{"verdict": 1, "reason": "line\\nbreak"}   ', 1),
    ("I'm sorry, but I can't help with that.", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "expected"), C35)
def test_c35_a_reply_is_read_or_undetermined(text: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(UnusableReplyError):
            read_reply(text, VERDICT)
    else:
        assert read_reply(text, VERDICT)["verdict"] == expected


def test_c35_in_a_run(tmp_path: Path) -> None:
    """context_precision asks for one verdict a passage: each of the replies stands for one."""
    asked: list[str] = []
    replies = {f"Place {n} lies at river {n}.": text for n, (text, _) in enumerate(C35)}

    def judge(request: Request) -> str:
        context = ragas_input(request.first_prompt)["context"]
        asked.append(context)
        return replies.get(context, '{"verdict": 0, "reason": "r"}')

    with OpenAIServer(judge) as server:
        done = run(tmp_path, server, len(C35), metrics="context_precision")
    assert done.summary["judge"]["failures"] == {"refused by the judge": 1, "unusable reply": 1}
    counts = [asked.count(context) for context in replies]
    assert counts[:6] == [1] * 6, "no retry storm: one call each, also for the refusal"
    assert counts[6] == 3, "an empty reply is asked again, twice"
    rows = final_scores(tmp_path / "run", ["context_precision"])
    assert [None if status == "failed" else round(value) for status, value in zip(
        rows["status"].astype(str), rows["value"], strict=True)] == [verdict for _, verdict in C35]
    with sqlite3.connect(tmp_path / "run" / "judgements.sqlite") as base:
        kept = dict(base.execute("SELECT raw, reason FROM failures").fetchall())
    assert set(kept) == {C35[5][0], ""}, "the raw replies are kept for reading"
    entry = done.summary["metrics"]["context_precision"]
    assert (entry["n_scored"], entry["n_failed"], entry["n_asked"]) == (5, 2, 7)


# --- C43: too long is not wrong

def test_c43_too_long_for_the_judge_is_not_a_bad_answer(tmp_path: Path) -> None:
    def small(request: Request) -> Answer | str:
        if len(request.first_prompt) > 50_000:
            return error(400, "context_length_exceeded", "This model's maximum context length is 12000 tokens")
        return attributed(1)

    data, trajectories = recorded(tmp_path, 3)
    lines = [json.loads(line) for line in Path(trajectories).read_text(encoding="utf-8").splitlines()]
    for passages in (lines[1]["context"]["passages"], lines[1]["steps"][0]["retrievals"][0]["passages"]):
        passages[1]["text"] = "corn " * 80_000
    Path(trajectories).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with OpenAIServer(small) as server:
        done = score(trajectories, data, metrics="context_recall,recall", judge="test-model", judge_url=server.url,
                     out=tmp_path / "run")
        assert len(server.calls) == 3, "and no second try"
    rows = final_scores(tmp_path / "run", RECALL)
    assert list(rows["status"].astype(str)) == ["scored", "failed", "scored"]
    assert str(rows["reason"][1]).startswith("too long for the judge")
    entry = done.summary["metrics"]["context_recall"]
    assert (entry["mean"], entry["n_scored"], entry["n_asked"]) == (1.0, 2, 3)
    kept = done.summary["metrics"]["recall"]
    assert (kept["mean"], kept["n_scored"]) == (1.0, 3), "what needs no judge is kept"


def test_c43_a_server_that_cuts_prompts_silently_is_warned_of(tmp_path: Path) -> None:
    data, trajectories = recorded(tmp_path, 1)
    long = Path(trajectories).read_text(encoding="utf-8").replace("Mill 0 grinds corn.", "Mill 0 grinds. " * 20_000)
    Path(trajectories).write_text(long, encoding="utf-8")
    with OpenAIServer(lambda r: Answer(attributed(1), prompt_tokens=4096)) as server:
        done = score(trajectories, data, metrics="context_recall", judge="test-model", judge_url=server.url,
                     out=tmp_path / "run")
    (warning,) = done.summary["judge"]["warnings"]
    assert "far fewer tokens than were sent" in warning


# --- C45: limits that pass, and one that does not

def test_c45a_a_limit_is_waited_for_and_no_sample_is_skipped(tmp_path: Path) -> None:
    limit = Answer(status=429, headers={"Retry-After": "2"}, body={"error": {"code": "rate_limit_exceeded"}})
    with OpenAIServer(lambda r: attributed(1), script=[limit]) as server:
        began = time.monotonic()
        done = run(tmp_path, server, 1)
        assert time.monotonic() - began >= 2.0
        assert len(server.calls) == 2
    assert done.summary["metrics"]["context_recall"]["mean"] == 1.0
    with OpenAIServer(lambda r: attributed(1), script=[limit]) as server:
        many = run(tmp_path / "five", server)
        assert len(server.calls) == 6
    assert many.summary["metrics"]["context_recall"]["n_scored"] == 5


def test_c45b_a_used_up_quota_stops_the_run_says_so_and_keeps_what_is_done(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    quota = error(429, "insufficient_quota", "Your quota is used up")
    words = score_command(recorded(tmp_path, 5), "URL", tmp_path / "run", RECALL, "--concurrency", "1")
    with OpenAIServer(lambda r: quota, script=[attributed(1), attributed(1)]) as server:
        monkeypatch.setattr(sys, "argv", ["ragkit", *(server.url if word == "URL" else word for word in words)])
        with pytest.raises(SystemExit) as left:
            main()
        assert len(server.calls) == 3, "no retries, and no other sample is tried"
    assert left.value.code == 3
    assert "Your quota is used up" in capsys.readouterr().err
    rows = final_scores(tmp_path / "run", RECALL)
    assert sorted(rows["status"].astype(str)) == ["failed"] * 3 + ["scored"] * 2
    with sqlite3.connect(tmp_path / "run" / "judgements.sqlite") as base:
        assert base.execute("SELECT count(*) FROM calls").fetchone() == (2,)


# --- C47: event loops

def test_c47_importing_changes_nothing_in_asyncio() -> None:
    script = ("import asyncio\nbefore = (asyncio.run, asyncio.new_event_loop, asyncio.get_event_loop_policy(), "
              "asyncio.BaseEventLoop.run_until_complete, asyncio.Task)\n"
              "import ragkit, ragkit.judge.open\nfrom ragkit.judge.ragas_scores import load_ragas\nload_ragas()\n"
              "after = (asyncio.run, asyncio.new_event_loop, asyncio.get_event_loop_policy(), "
              "asyncio.BaseEventLoop.run_until_complete, asyncio.Task)\n"
              "assert before == after, (before, after)\n")
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_c47_twice_by_asyncio_run_inside_a_loop_and_from_a_thread(tmp_path: Path) -> None:
    data, trajectories = recorded(tmp_path, 3)
    found: list[float] = []

    def mean(done: Any) -> float:
        return float(done.summary["metrics"]["context_recall"]["mean"])

    with OpenAIServer(lambda r: attributed(1)) as server:
        judged: dict[str, Any] = {"metrics": "context_recall", "judge": "test-model", "judge_url": server.url}

        async def outer() -> float:  # a synchronous call inside a running loop, as in a notebook
            return mean(score(trajectories, data, **judged))

        async def inner() -> float:
            return mean(await ascore(trajectories, data, **judged))

        for work in (outer, outer, inner, inner):
            found.append(asyncio.run(work()))
        threads = [threading.Thread(target=lambda: found.append(mean(score(trajectories, data, **judged))))
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), "it hangs"
    assert found == [1.0] * 6


def test_c47_an_app_is_evaluated_in_a_loop_again_and_again() -> None:
    rows = [{"id": "q1", "question": "Capital of France?", "reference": "Paris"}]

    async def outer() -> float:
        done = ragkit.evaluate(lambda question: "Paris", rows, metrics="exact_match")
        again = await aevaluate(lambda question: "Paris", rows, metrics="exact_match")
        return float(done.summary["metrics"]["exact_match"]["mean"] + again.summary["metrics"]["exact_match"]["mean"])

    assert [asyncio.run(outer()) for _ in range(2)] == [2.0, 2.0]


# --- C49: one store, several judges

def test_c49_no_answer_of_another_model_or_server(tmp_path: Path) -> None:
    store = tmp_path / "judgements.sqlite"

    def by_model(request: Request) -> str:
        return attributed(int(request.body["model"] == "m1"))

    names = ("m1", "m2")
    with OpenAIServer(by_model, models=names) as server, OpenAIServer(lambda r: attributed(0), models=names) as other:
        seen = []
        for out, model, where in (("a", "m1", server), ("b", "m2", server), ("c", "m1", other), ("d", "m1", server)):
            before = len(where.calls)
            done = run(tmp_path, where, out=out, model=model, store=store)
            judge = done.summary["judge"]
            seen.append((done.summary["metrics"]["context_recall"]["mean"], len(where.calls) - before, judge["stored"]))
    assert seen == [(1.0, 5, 0), (0.0, 5, 0), (0.0, 5, 0), (1.0, 0, 5)]


# --- C51: killed

@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_c51_killed_at_the_fourth_of_five(tmp_path: Path) -> None:
    child: list[int] = []

    def judge(request: Request) -> str:
        if child and len(server.calls) == 4:
            os.kill(child.pop(), 9)
        return attributed(int("place 2" not in request.first_prompt))

    commands, made = Commands(), recorded(tmp_path, 5)
    try:
        with OpenAIServer(judge, latency=0.1) as server:
            words = score_command(made, server.url, tmp_path / "run", RECALL, "--concurrency", "1")
            child.append(commands.start(*words))
            assert commands.wait() == -9
            with sqlite3.connect(tmp_path / "run" / "judgements.sqlite") as base:
                assert base.execute("SELECT count(*) FROM calls").fetchone() == (3,)
            server.calls.clear()
            commands.start(*words)
            assert commands.wait() == 0
            assert len(server.calls) == 2, "samples 4 and 5"
            commands.start(*score_command(made, server.url, tmp_path / "whole", RECALL))
            assert commands.wait() == 0
    finally:
        commands.close()
    rows = final_scores(tmp_path / "run", RECALL)
    assert list(rows["question_id"]) == [f"q{n}" for n in range(5)]
    assert rows.equals(final_scores(tmp_path / "whole", RECALL))
    assert list(rows["value"]) == [1.0, 1.0, 0.0, 1.0, 1.0]
