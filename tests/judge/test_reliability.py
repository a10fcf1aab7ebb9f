"""Servers that fail in every way, processes that are killed or share a store: nothing is lost, nothing mixed up."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragkit.errors import JudgeError
from ragkit.judge.attempts import Room
from ragkit.judge.calls import CallError, ModelReply
from ragkit.judge.gateway import Gateway, Reply
from ragkit.judge.store import JudgementStore
from tests.support.judged_runs import Commands, final_scores, recorded, score_command
from tests.support.judging import VERDICT, YES, quick_judge
from tests.support.openai_server import Answer, OpenAIServer, Request, error, lexical_judge, ragas_input

ROOT = Path(__file__).parents[2]


def ask(gateway: Gateway, *prompts: str) -> list[Reply | BaseException]:
    async def main() -> list[Reply | BaseException]:
        async with gateway.running():
            return await asyncio.gather(*(gateway.complete(p, VERDICT, metric="m") for p in prompts),
                                        return_exceptions=True)

    return asyncio.run(main())


def echo(request: Request) -> str:
    return json.dumps({"reason": request.first_prompt, "verdict": 1})


# --- servers that fail: nothing is lost where another try helps

FAULTS: dict[str, tuple[float, Callable[[], Answer]]] = {
    "500": (0.05, lambda: error(500, "boom")),
    "malformed": (0.02, lambda: Answer('{"reason": "r", "verd')),
    "hang": (0.02, lambda: Answer(YES, delay=30.0)),
    "429": (0.05, lambda: error(429, "rate_limit_exceeded", Retry_After="0.1")),
    "429 that does not say how long": (0.05, lambda: error(429, "rate_limit_exceeded")),
    "429 that says zero": (0.05, lambda: error(429, "rate_limit_exceeded", Retry_After="0")),
    "reset": (0.03, lambda: Answer(reset=True)),
    "cut body": (0.03, lambda: Answer(YES, cut_body=True)),
    "slow first byte": (0.05, lambda: Answer("", delay=0.4)),
    "a proxy's page": (0.03, lambda: Answer(status=502, text="<html>bad gateway</html>")),
    "an error with status 200": (0.03, lambda: Answer(body={"error": {"code": 429, "message": "provider is busy"}})),
}


@pytest.mark.parametrize("name", [*FAULTS, "all"])
def test_no_judgement_is_lost_to_a_flaky_server(name: str) -> None:
    dice = random.Random(name)
    chosen = FAULTS if name == "all" else {name: FAULTS[name]}
    rows = 400 if name == "all" else 120
    made: Counter[str] = Counter()
    of_row: Counter[str] = Counter()

    def flaky(request: Request) -> Answer | str:
        for fault, (chance, answer) in chosen.items():
            most = 2 if fault == "malformed" else 3  # more than that would be a broken server
            if dice.random() < (chance if name == "all" else 2 * chance) and of_row[request.first_prompt] < most:
                made[fault] += 1
                of_row[request.first_prompt] += fault != "slow first byte"
                found = answer()
                return Answer(echo(request), delay=found.delay) if fault == "slow first byte" else found
        return echo(request)

    with OpenAIServer(flaky) as server, quick_judge(server.url, concurrency=32, timeout=2.0) as gateway:
        prompts = [f"row {n}" for n in range(rows)]
        found = ask(gateway, *prompts)
        assert [r.data["reason"] if isinstance(r, Reply) else r for r in found] == prompts
        ledger = gateway.ledger
        assert (ledger["failed"], ledger["failures"]) == (0, {})
        harmless = made["slow first byte"]
        assert ledger["retried"] == len(server.calls) - rows >= made.total() - harmless
        assert made.total() > 3


def test_a_limit_of_fifty_requests_a_second_is_kept_to_and_nothing_is_lost() -> None:
    taken: list[float] = []

    def limited(request: Request) -> Answer | str:
        now = time.monotonic()
        taken[:] = [t for t in taken if t > now - 1.0]
        if len(taken) >= 50:
            return error(429, "rate_limit_exceeded", "Rate limit of 50 a second", Retry_After="1")
        taken.append(now)
        return echo(request)

    with OpenAIServer(limited) as server, quick_judge(server.url, concurrency=64) as gateway:
        began = time.monotonic()
        found = ask(gateway, *(f"row {n}" for n in range(150)))
        assert all(isinstance(r, Reply) for r in found)
        assert time.monotonic() - began < 8.0, "ideal is 2 s"
        assert len(server.calls) < 2 * 150, "no storm"
        assert gateway.ledger["failed"] == 0


def test_a_burst_of_limits_holds_back_all_calls_at_once() -> None:
    sent: list[float] = []
    burst = [error(429, "rate_limit_exceeded", Retry_After="0.6") for _ in range(8)]

    def reply(request: Request) -> str:
        sent.append(time.monotonic())
        return echo(request)

    with OpenAIServer(reply, script=burst, latency=0.05) as server, quick_judge(server.url, concurrency=8) as gateway:
        began = time.monotonic()
        assert all(isinstance(r, Reply) for r in ask(gateway, *(f"row {n}" for n in range(24))))
        assert len(server.calls) == 24 + 8
        assert min(sent) - began >= 0.6


# --- where no retry helps: typed, counted, and no storm

LOSSES: dict[str, tuple[Answer, dict[str, Any], str]] = {
    "server error": (error(500, "boom"), {"attempts": 2}, "server error 500: boom"),
    "unusable reply": (Answer("no verdict here"), {}, "unusable reply"),
    "truncated": (Answer('{"reason": "lo', finish="length"), {"largest_max_tokens": 4096}, "truncated at 4096"),
    "refused by the judge": (Answer("I'm sorry, but I can't help with that."), {}, "refused"),
    "too long for the judge": (error(400, "context_length_exceeded", "too many tokens"), {}, "too long"),
    "timed out": (Answer(delay=30), {"timeout": 0.15, "attempts": 2}, "no answer within 0.15 s"),
    "request rejected": (error(422, "x", "the last message is too shouty"), {}, "refused the request"),
}


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_has_a_kind_a_reason_and_is_counted(kind: str) -> None:
    answer, settings, part = LOSSES[kind]
    with OpenAIServer(lambda r: answer) as server, quick_judge(server.url, **settings) as gateway:
        found = ask(gateway, "p1", "p2")
        assert all(isinstance(e, CallError) and e.kind == kind and part in e.reason for e in found), found
        assert (gateway.ledger["failed"], gateway.ledger["failures"]) == (2, {kind: 2})
        assert gateway.ledger["stopped"] is None


@pytest.mark.parametrize(("answer", "part"), [
    (error(429, "insufficient_quota", "Your quota is used up"), "Your quota is used up"),
    (error(429, "rate_limit_exceeded", "Daily limit", Retry_After="86400"), "asks to wait for longer than 600 s"),
    (error(401, "invalid_api_key", "Incorrect API key"), "the key was refused"),
])
def test_what_no_waiting_mends_stops_the_run_and_keeps_what_is_done(answer: Answer, part: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"store": tmp_path / "j.sqlite", "concurrency": 2}
    with OpenAIServer(lambda r: answer, script=[YES]) as server:
        with quick_judge(server.url, **settings) as gateway:
            found = ask(gateway, *(f"row {n}" for n in range(50)))
            assert sum(isinstance(r, Reply) for r in found) == 1
            assert sum(isinstance(e, JudgeError) for e in found) == 49
            assert part in gateway.ledger["stopped"]
            assert len(server.calls) <= 1 + 2 * settings["concurrency"], "no storm"
        server.reply = echo
        with quick_judge(server.url, **settings) as gateway:
            assert all(isinstance(r, Reply) for r in ask(gateway, *(f"row {n}" for n in range(50))))
            assert gateway.ledger["stored"] == 1


def test_a_server_that_is_never_in_time_is_not_asked_a_thousand_times() -> None:
    with OpenAIServer(lambda r: Answer(delay=30)) as server, quick_judge(
            server.url, timeout=0.1, attempts=2, concurrency=4) as gateway:
        found = ask(gateway, *(f"row {n}" for n in range(200)))
        assert all(isinstance(e, CallError | JudgeError) for e in found)
        assert "give it more time or fewer calls at a time" in gateway.ledger["stopped"]
        assert len(server.calls) < 20


def test_a_model_that_thinks_long_is_soon_given_room_at_once() -> None:
    def thinker(request: Request) -> Answer:
        enough = request.body["max_tokens"] >= 8192
        return Answer(YES if enough else "", finish="stop" if enough else "length")

    with OpenAIServer(thinker) as server, quick_judge(server.url, concurrency=1) as gateway:
        assert all(isinstance(r, Reply) for r in ask(gateway, *(f"row {n}" for n in range(30))))
        assert [c.body["max_tokens"] for c in server.calls[-10:]] == [8192] * 10
        assert len(server.calls) < 45, "not three for each"


def test_room_grows_only_where_truncation_is_usual() -> None:
    room = Room(2048, 16_384)
    for n in range(100):
        room.saw(2048, truncated=n % 10 == 9)
    assert room.first == 2048
    room = Room(2048, 4096)
    for _ in range(20):
        room.saw(room.first, truncated=True)
    assert room.first == 4096, "and never beyond the largest"


# --- several processes on one store

WORKER = """
import asyncio, json, sys
from contextlib import closing
from pathlib import Path
from tests.support.judged_runs import Commands, final_scores, recorded, score_command
from tests.support.judging import quick_judge, VERDICT
async def main():
    url, store, who, count = sys.argv[1:5]
    with quick_judge(url, store=Path(store), concurrency=4, headers={"X-Who": who}) as gateway:
        async with gateway.running():
            print("ready", flush=True)
            sys.stdin.readline()
            found = await asyncio.gather(*(gateway.complete(f"row {n}", VERDICT) for n in range(int(count))))
        print(json.dumps([[reply.data["reason"] for reply in found], gateway.ledger]))
asyncio.run(main())
"""


def workers(url: str, store: Path, count: int, names: str = "ab") -> list[subprocess.Popen[str]]:
    """Processes that wait until `go`."""
    started = [subprocess.Popen([sys.executable, "-c", WORKER, url, str(store), name, str(count)], text=True, cwd=ROOT,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE) for name in names]
    for worker in started:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    return started


def go(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("\n")
    worker.stdin.flush()


def test_two_processes_on_one_store_share_the_work_and_pay_once(tmp_path: Path) -> None:
    store = tmp_path / "j.sqlite"
    count = itself = 0

    def numbered(request: Request) -> str:  # no two replies are the same, so that one of two would be seen
        nonlocal itself
        itself += 1
        return json.dumps({"reason": f"{request.first_prompt} as reply {itself}", "verdict": 1})

    with OpenAIServer(numbered, latency=0.03) as server:
        both = workers(server.url, store, 60)
        for worker in both:
            go(worker)
        (first, a), (second, b) = (json.loads(worker.communicate(timeout=60)[0]) for worker in both)
        count = len(server.calls)
        asked = Counter(call.headers["X-Who"] for call in server.calls)
    assert count == 60, "each question is paid once"
    assert a["calls"] + b["calls"] == 60
    assert a["stored"] + a["calls"] == b["stored"] + b["calls"] == 60
    assert min(asked.values()) >= 10, "and neither waits for the other to do it all"
    assert first == second, "both have the same answers"
    assert all(reason.startswith(f"row {n} ") for n, reason in enumerate(first))
    with sqlite3.connect(store) as base:
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert base.execute("SELECT count(*) FROM calls").fetchone() == (60,)
        assert base.execute("SELECT count(*) FROM claims").fetchone() == (0,)


def test_nobody_waits_for_what_a_killed_process_was_asking(tmp_path: Path) -> None:
    store = tmp_path / "j.sqlite"
    with OpenAIServer(echo, latency=5.0) as server:
        (worker,) = workers(server.url, store, 4, "a")
        go(worker)
        while len(server.calls) < 4:
            time.sleep(0.01)
        worker.kill()
        worker.wait()
        worker.communicate()
        with sqlite3.connect(store) as base:
            assert base.execute("SELECT count(*) FROM claims").fetchone() == (4,)
        server.latency = 0.0
        with quick_judge(server.url, store=store) as gateway:
            began = time.monotonic()
            assert all(isinstance(r, Reply) for r in ask(gateway, *(f"row {n}" for n in range(4))))
            assert time.monotonic() - began < 3.0


def test_a_claim_runs_out_and_is_kept_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("ragkit.judge.claims.time.time", lambda: now[0])
    stores = [JudgementStore(tmp_path / "j.sqlite") for _ in range(2)]
    ours, theirs = (store.claims for store in stores)
    assert ours.take("k")
    assert ours.take("k"), "twice is once"
    now[0] += 15
    ours.refresh()
    now[0] += 15
    assert not theirs.take("k")
    now[0] += 15
    assert theirs.take("k"), "who gives no sign of life is not waited for"
    ours.release("k")
    assert not ours.take("k"), "what another one took is not released"
    stores[1].close()
    assert ours.take("k"), "a store that is closed holds no claim"
    stores[0].close()


def test_a_claim_ends_in_the_commit_of_its_reply(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with closing(JudgementStore(path)) as ours, closing(JudgementStore(path)) as theirs:
        assert ours.claims.take("k") and not theirs.claims.take("k")
        assert ours.keep_reply("k", "judge", "faithfulness", ModelReply("{}"))
        assert theirs.claims.take("k")


def test_a_claim_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    with closing(JudgementStore(tmp_path / "j.sqlite")) as store:
        store._base.execute("DROP TABLE claims")
        assert store.claims.take("k")
        assert store.keep_reply("k", "judge", "faithfulness", ModelReply("{}"))
        store.claims.release("k")


def test_processes_may_open_a_new_store_at_the_same_moment(tmp_path: Path) -> None:
    script = ("import sys, time\nfrom pathlib import Path\nfrom ragkit.judge.store import JudgementStore\n"
              "from ragkit.judge.calls import ModelReply\n"
              "print('ready', flush=True); sys.stdin.readline()\n"
              "for n in range(20):\n"
              "    store = JudgementStore(Path(sys.argv[1]) / f'{n}.sqlite')\n"
              "    store.keep_reply(sys.argv[2], 'm', 'x', ModelReply('r')); store.close()\n")
    started = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), name], text=True, cwd=ROOT,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE) for name in "abc"]
    for worker in started:
        assert worker.stdout is not None
        worker.stdout.readline()
    for worker in started:
        go(worker)
    assert [worker.wait(60) for worker in started] == [0, 0, 0]
    for path in sorted(tmp_path.glob("*.sqlite")):
        with sqlite3.connect(path) as base:
            assert base.execute("SELECT count(*) FROM calls").fetchone() == (3,)
    for worker in started:
        worker.communicate()


# --- whole runs of `ragkit score`

METRICS = ("context_precision", "context_recall", "faithfulness")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_ten_times_a_run_ends_with_the_same_scores_and_pays_only_for_calls_in_flight(tmp_path: Path) -> None:
    pytest.importorskip("ragas")
    dice = random.Random(11)
    kills: list[int] = []
    state: dict[str, Any] = {"child": None, "at": 0, "seen": 0}

    def reply(request: Request) -> str:
        state["seen"] += 1
        if state["child"] is not None and state["seen"] == state["at"]:
            child, wait = state["child"], dice.uniform(0.0, 0.03)
            state["child"] = None
            threading.Timer(wait, kill, (child,)).start()
        return lexical_judge(request)

    def kill(child: int) -> None:
        kills.append(server.in_flight)
        os.kill(child, 9)

    commands, made, four = Commands(), recorded(tmp_path, 16), ("--concurrency", "4")
    try:
        with OpenAIServer(reply, latency=0.02) as server:
            commands.start(*score_command(made, server.url, tmp_path / "whole", METRICS, *four))
            assert commands.wait() == 0
            least = len(server.calls)
            assert least == 16 * 5
            words = score_command(made, server.url, tmp_path / "killed", METRICS, *four)
            for _ in range(10):
                state.update(seen=0, at=dice.randint(1, 9))
                state["child"] = commands.start(*words)
                assert commands.wait() == -9
            commands.start(*words)
            assert commands.wait() == 0
            paid = len(server.calls) - least
    finally:
        commands.close()
    assert len(kills) == 10
    whole = final_scores(tmp_path / "whole", METRICS)
    pd.testing.assert_frame_equal(final_scores(tmp_path / "killed", METRICS), whole)
    assert len(whole) == 16 * 3
    print(f"\n{least} calls at least, {paid} paid, in flight at the ten kills: {kills}")
    assert paid - least <= 10 * 4, "only calls in flight are asked again"


def test_of_a_hundred_rows_at_a_time_none_gets_anothers_answer(tmp_path: Path) -> None:
    pytest.importorskip("ragas")
    from ragkit.evaluation.evaluate import score

    dice = random.Random(3)

    def judge(request: Request) -> Answer | str:
        data = ragas_input(request.first_prompt)
        if "response" in data or "context" in data or "answer" in data:
            text = json.dumps(data)
            numbers = {word.strip('.?"') for word in text.split() if word.strip('.?"').isdigit()}
            assert len(numbers) == 1, text
        return Answer(lexical_judge(request), delay=dice.uniform(0.0, 0.05))

    data, trajectories = recorded(tmp_path, 100)
    with OpenAIServer(judge) as server:
        done = score(trajectories, data, metrics=list(METRICS), judge="test-model", judge_url=server.url,
                     out=tmp_path / "run")
    assert done.summary["judge"]["failed"] == 0
    found = final_scores(tmp_path / "run", METRICS).set_index(["question_id", "metric"])["value"]
    assert len(found) == 300
    for n in range(100):
        assert found[f"q{n}", "faithfulness"] == (1.0 if n % 3 else 0.0), n
        assert found[f"q{n}", "context_recall"] == 1.0
        assert round(found[f"q{n}", "context_precision"], 6) == 1.0
