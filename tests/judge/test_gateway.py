"""The gateway over a scripted server: each question paid once, every limit held, every loss typed."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import BudgetExceeded, DataError, JudgeError
from ragkit.judge.calls import CallError, UnusableReplyError
from ragkit.judge.gateway import Gateway, Reply
from tests.support.judging import NO, VERDICT, YES, quick_judge
from tests.support.openai_server import Answer, OpenAIServer, Request, error


def ask(gateway: Gateway, *prompts: str, **more: Any) -> list[Reply | BaseException]:
    """All prompts at once, in a loop of their own."""
    async def main() -> list[Reply | BaseException]:
        async with gateway.running():
            return await asyncio.gather(*(gateway.complete(p, VERDICT, metric="m", **more) for p in prompts),
                                        return_exceptions=True)

    return asyncio.run(main())


def one(gateway: Gateway, prompt: str = "p", **more: Any) -> Reply:
    found = ask(gateway, prompt, **more)[0]
    if isinstance(found, BaseException):
        raise found
    return found


def yes(request: Request) -> str:
    return YES


# --- each question is paid once

def test_a_question_is_asked_once_pooled_in_flight_and_then_stored(tmp_path: Path) -> None:
    with OpenAIServer(yes, latency=0.05) as server:
        with quick_judge(server.url, store=tmp_path / "j.sqlite") as gateway:
            sources = Counter(r.source for r in ask(gateway, *["p"] * 5, "q") if isinstance(r, Reply))
            assert sources == {"asked": 2, "pooled": 4}
            ledger = gateway.ledger
            assert (ledger["calls"], ledger["pooled"], ledger["stored"]) == (2, 4, 0)
        with quick_judge(server.url, store=tmp_path / "j.sqlite") as again:
            assert one(again).source == "stored"
        assert len(server.calls) == 2


def test_replicates_are_questions_of_their_own() -> None:
    with OpenAIServer(yes) as server, quick_judge(server.url) as gateway:
        for replicate in (0, 1, 2, 0):
            one(gateway, replicate=replicate)
        assert len(server.calls) == 3


def test_no_answer_of_another_model_endpoint_or_parameter(tmp_path: Path) -> None:
    store = tmp_path / "j.sqlite"

    def by_model(request: Request) -> str:
        return YES if request.body["model"] == "m1" else NO

    def mean(url: str, model: str, **settings: Any) -> float:
        with quick_judge(url, model, store=store, **settings) as gateway:
            found = ask(gateway, *(f"p{n}" for n in range(5)))
            return sum(r.data["verdict"] for r in found if isinstance(r, Reply)) / 5

    with OpenAIServer(by_model) as server, OpenAIServer(lambda r: NO) as other:
        assert (mean(server.url, "m1"), len(server.calls)) == (1.0, 5)
        assert (mean(server.url, "m2"), len(server.calls)) == (0.0, 10)
        assert (mean(other.url, "m1"), len(other.calls)) == (0.0, 5)
        assert (mean(server.url, "m1"), len(server.calls)) == (1.0, 10)
        assert (mean(server.url, "m1", temperature=0.7), len(server.calls)) == (1.0, 15)


def test_a_stored_reply_that_a_stricter_check_refuses_is_asked_again(tmp_path: Path) -> None:
    def refuse(data: Any) -> None:
        if data["reason"] == "r":
            raise UnusableReplyError("expected another reason")

    script = [YES, '{"reason": "new", "verdict": 0}']
    with OpenAIServer(script=script) as server, quick_judge(server.url, store=tmp_path / "j.sqlite") as gateway:
        assert one(gateway).data["verdict"] == 1
        assert one(gateway, check=refuse).data == {"reason": "new", "verdict": 0}
        assert one(gateway, check=refuse).source == "stored", "and takes the place of the one that was of no use"


def test_a_cancelled_waiter_takes_nobody_elses_answer() -> None:
    async def main(gateway: Gateway) -> Reply:
        async with gateway.running():
            first = asyncio.create_task(gateway.complete("p", VERDICT))
            await asyncio.sleep(0.02)
            second = asyncio.create_task(gateway.complete("p", VERDICT))
            await asyncio.sleep(0.02)
            first.cancel()
            return await second

    with OpenAIServer(yes, latency=0.1) as server, quick_judge(server.url) as gateway:
        assert asyncio.run(main(gateway)).source == "pooled"
        assert len(server.calls) == 1


def test_killed_while_the_fourth_call_runs(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, signal, sys\n"
        "from tests.support.judging import quick_judge, VERDICT\n"
        "from pathlib import Path\n"
        "async def main():\n"
        "    g = quick_judge(sys.argv[1], store=Path(sys.argv[2]), concurrency=1)\n"
        "    print([(await g.complete(f'p{n}', VERDICT)).data['verdict'] for n in range(5)])\n"
        "asyncio.run(main())\n")

    def reply(request: Request) -> str:
        if len(server.calls) == 4 and process is not None:
            process.kill()
        return YES if request.prompt in ("p1", "p4") else NO

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", script, server.url, str(tmp_path / "j.sqlite")],
                                stdout=subprocess.PIPE, text=True)

    process: subprocess.Popen[str] | None = None
    with OpenAIServer(reply, latency=0.05) as server:
        process = start()
        assert process.wait(60) == -9
        server.calls.clear()
        process, resumed = None, start()
        assert resumed.communicate(timeout=60)[0].strip() == "[0, 1, 0, 0, 1]"
        assert [call.prompt for call in server.calls] == ["p3", "p4"]


# --- servers that fail

FLAWS = {
    "500": error(500, "boom"), "503 html": Answer(status=503, text="<html>busy</html>"), "reset": Answer(reset=True),
    "cut body": Answer(YES, cut_body=True), "no completion": Answer(body={"choices": []}),
    "no json": Answer(text="not json"), "hang": Answer(YES, delay=3.0),
    "malformed": Answer('{"verdict": '), "empty": Answer(""), "null": Answer(None), "two answers": Answer(YES + NO),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_mended_by_another_try(flaw: str) -> None:
    with OpenAIServer(yes, script=[FLAWS[flaw]]) as server, quick_judge(server.url, timeout=1.0) as gateway:
        assert one(gateway).data["verdict"] == 1
        assert (gateway.ledger["calls"], gateway.ledger["retried"], gateway.ledger["failed"]) == (2, 1, 0)


def test_nothing_is_lost_to_a_flaky_server_and_no_answer_lands_in_anothers_row() -> None:
    dice = random.Random(7)

    def flaky(request: Request) -> Answer | str:
        chance = dice.random()
        if chance < 0.05:
            return error(500, "boom")
        if chance < 0.08:
            return Answer("{ no json")
        if chance < 0.10:
            return Answer(delay=2.0)
        if chance < 0.13:
            return error(429, "rate_limit_exceeded", Retry_After="0.1")
        if chance < 0.15:
            return Answer(reset=True)
        return json.dumps({"reason": request.first_prompt, "verdict": 1})

    with OpenAIServer(flaky, latency=0.01) as server, quick_judge(server.url, concurrency=32, timeout=0.8) as gateway:
        prompts = [f"row {n}" for n in range(200)]
        found = ask(gateway, *prompts)
        assert [r.data["reason"] if isinstance(r, Reply) else r for r in found] == prompts
        assert gateway.ledger["failed"] == 0
        assert gateway.ledger["retried"] == len(server.calls) - 200 > 10


def test_a_server_that_never_delivers_is_a_typed_failure_and_is_asked_again_next_time() -> None:
    with OpenAIServer(lambda r: error(500, "boom")) as server:
        with quick_judge(server.url, attempts=3) as gateway, pytest.raises(CallError, match="server error 500: boom"):
            one(gateway)
        assert len(server.calls) == 3
        assert gateway.ledger["failures"] == {"server error": 1}
        server.reply = yes
        with quick_judge(server.url) as gateway:
            assert one(gateway).data["verdict"] == 1


def test_a_server_that_is_gone_stops_the_run_after_a_few_lost_calls() -> None:
    with quick_judge("http://127.0.0.1:9/v1", attempts=1, concurrency=1) as gateway:
        found = ask(gateway, *(f"p{n}" for n in range(20)))
        assert all(isinstance(e, CallError) and "cannot reach" in e.reason for e in found[:8])
        assert all(isinstance(e, JudgeError) and "8 calls in a row were lost" in str(e) for e in found[8:])


def test_a_hang_is_given_up_after_its_tries() -> None:
    with OpenAIServer(lambda r: Answer(delay=30)) as server, quick_judge(server.url, timeout=0.3) as gateway:
        began = time.monotonic()
        with pytest.raises(CallError, match=r"no answer within 0\.3 s \(3 tries\)"):
            one(gateway)
        assert time.monotonic() - began < 3


def test_a_rate_limit_is_waited_for_by_all_calls() -> None:
    limit = error(429, "rate_limit_exceeded", Retry_After="1")
    with OpenAIServer(yes, script=[limit]) as server, quick_judge(server.url, concurrency=1) as gateway:
        began = time.monotonic()
        assert all(isinstance(r, Reply) for r in ask(gateway, *(f"p{n}" for n in range(5))))
        assert 1.0 <= time.monotonic() - began < 3.0
        assert len(server.calls) == 6


def test_an_exhausted_quota_stops_the_run_and_keeps_what_is_finished(tmp_path: Path) -> None:
    quota = error(429, "insufficient_quota", "Your quota is used up")
    with OpenAIServer(lambda r: quota, script=[YES]) as server:
        with quick_judge(server.url, concurrency=1, store=tmp_path / "j.sqlite") as gateway:
            found = ask(gateway, *(f"p{n}" for n in range(5)))
            assert isinstance(found[0], Reply)
            assert all(type(e) is JudgeError and "Your quota is used up" in str(e) for e in found[1:])
            assert len(server.calls) == 2
            assert "Your quota is used up" in gateway.ledger["stopped"]
        server.reply = yes
        with quick_judge(server.url, store=tmp_path / "j.sqlite") as gateway:
            assert sum(r.source == "stored" for r in ask(gateway, "p0", "p1") if isinstance(r, Reply)) == 1


# --- models that refuse

def picky(request: Request) -> Answer | str:
    """A model as some are: no temperature, no max_tokens, no json_schema."""
    for name, message in (("temperature", "Unsupported value: 'temperature' does not support 0 with this model."),
                          ("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")):
        if name in request.body:
            return error(400, "unsupported", message, param=name)
    if request.response_format == "json_schema":
        return error(400, "invalid", "response_format of type json_schema is not supported")
    return YES


def test_refused_parameters_are_dropped_once_and_remembered() -> None:
    with OpenAIServer(picky, latency=0.02) as server, quick_judge(server.url, concurrency=8) as gateway:
        assert all(isinstance(r, Reply) for r in ask(gateway, *(f"p{n}" for n in range(16))))
        asked = len(server.calls)
        assert asked <= 16 + 3 * 8
        assert one(gateway, "one more").data["verdict"] == 1
        assert len(server.calls) == asked + 1
        last = server.calls[-1]
        assert "temperature" not in last.body
        assert last.body["max_completion_tokens"] == 2048
        assert last.response_format == "json_object", "one rung down the ladder, however many calls were refused"
        assert last.body["response_format"]["schema"]["additionalProperties"] is False
        assert gateway.ledger["dropped_parameters"] == ["temperature", "json_schema"]


def test_the_ladder_ends_with_the_prompt_alone() -> None:
    def none(request: Request) -> Answer | str:
        return error(400, "x", "unknown field response_format") if request.response_format != "none" else "Yes."

    with OpenAIServer(none) as server, quick_judge(server.url) as gateway:
        assert one(gateway).data == {"reason": "", "verdict": 1}
        assert [c.response_format for c in server.calls] == ["json_schema", "json_object", "json_object", "none"]


def test_a_model_without_a_system_role_gets_the_same_words_in_the_prompt() -> None:
    def none(request: Request) -> Answer | str:
        return error(400, "x", "System role not supported") if request.system else YES

    with OpenAIServer(none) as server, quick_judge(server.url) as gateway:
        assert one(gateway, "the prompt").data["verdict"] == 1
        assert server.calls[0].system in server.calls[-1].prompt
        assert server.calls[-1].prompt.endswith("the prompt")


def test_a_truncated_reply_is_asked_again_with_more_room() -> None:
    def short(request: Request) -> Answer:
        enough = request.body["max_tokens"] >= 8192
        return Answer(YES if enough else '{"reason": "very lo', finish="stop" if enough else "length")

    with OpenAIServer(short) as server, quick_judge(server.url) as gateway:
        assert one(gateway).data["verdict"] == 1
        assert [c.body["max_tokens"] for c in server.calls] == [2048, 4096, 8192]
        assert all(len(c.messages) == 2 for c in server.calls), "the same prompt each time"
    with OpenAIServer(short) as server, quick_judge(server.url, largest_max_tokens=4096) as gateway:
        with pytest.raises(CallError, match="truncated at 4096 tokens") as caught:
            one(gateway)
        assert caught.value.raw == '{"reason": "very lo'


def test_a_verdict_that_was_not_offered_is_asked_again_then_failed_with_the_raw_reply() -> None:
    bad = '{"reason": "r", "verdict": 2}'
    with OpenAIServer(yes, script=[bad]) as server, quick_judge(server.url) as gateway:
        assert one(gateway).data["verdict"] == 1
        first, second = (call.messages for call in server.calls)
        assert second[: len(first)] == first, "ragas' prompt stays as it is"
        assert [m["role"] for m in second[len(first):]] == ["assistant", "user"]
        assert second[-2]["content"] == bad
        assert "expected a verdict of 0 or 1, got '2'" in second[-1]["content"]
    with OpenAIServer(lambda r: bad) as server, quick_judge(server.url) as gateway:
        with pytest.raises(CallError, match="unusable reply, asked 3 times: expected a verdict of 0 or 1") as caught:
            one(gateway)
        assert caught.value.raw == bad
        assert gateway.ledger["failures"] == {"unusable reply": 1}


@pytest.mark.parametrize("answer", [
    Answer("I'm sorry, but I can't help with that."),
    Answer(None, message={"refusal": "I'm sorry, but I can't help with that."}),
    Answer("", finish="content_filter"),
])
def test_a_judge_that_refuses_is_failed_at_once_with_its_words(answer: Answer) -> None:
    with OpenAIServer(lambda r: answer) as server, quick_judge(server.url) as gateway:
        with pytest.raises(CallError, match="the judge refused") as caught:
            one(gateway)
        assert caught.value.raw in ("I'm sorry, but I can't help with that.", "content_filter")
        assert len(server.calls) == 1


def test_an_empty_reply_is_failed_with_what_came() -> None:
    with OpenAIServer(lambda r: "") as server, quick_judge(server.url) as gateway:
        with pytest.raises(CallError, match="an empty reply") as caught:
            one(gateway)
        assert caught.value.raw == ""
        assert len(server.calls) == 3


def test_too_long_for_the_judge_is_said_and_the_others_are_judged() -> None:
    def small(request: Request) -> Answer | str:
        return error(400, "context_length_exceeded", "too many tokens") if len(request.prompt) > 50_000 else YES

    with OpenAIServer(small) as server, quick_judge(server.url) as gateway:
        first, second, third = ask(gateway, "a", "b" * 400_000, "c")
        assert isinstance(first, Reply)
        assert isinstance(third, Reply)
        assert isinstance(second, CallError)
        assert second.reason.startswith("too long for the judge")
        assert len(server.calls) == 3


def test_a_server_that_cuts_prompts_silently_is_warned_of() -> None:
    with OpenAIServer(lambda r: Answer(YES, prompt_tokens=4096)) as server, quick_judge(server.url) as gateway:
        ask(gateway, "word " * 80_000)
        (warning,) = gateway.ledger["warnings"]
        assert "far fewer tokens than were sent" in warning
    with OpenAIServer(yes) as server, quick_judge(server.url) as gateway:
        ask(gateway, "word " * 80_000)
        assert gateway.ledger["warnings"] == {}


# --- limits

def test_the_concurrency_is_one_limit_for_all_calls() -> None:
    with OpenAIServer(yes, latency=0.05) as server, quick_judge(server.url, concurrency=4) as gateway:
        began = time.monotonic()
        ask(gateway, *(f"p{n}" for n in range(40)))
        assert server.most_in_flight == 4
        assert time.monotonic() - began < 2 * 40 * 0.05 / 4


def test_requests_per_minute_are_held() -> None:
    with OpenAIServer(yes) as server, quick_judge(server.url, rpm=600) as gateway:
        began = time.monotonic()
        ask(gateway, *(f"p{n}" for n in range(25)))
        assert 1.4 <= time.monotonic() - began < 3.0, "10 at once, then one every 0.1 s"


def test_max_calls_counts_every_request_and_keeps_what_is_finished(tmp_path: Path) -> None:
    with OpenAIServer(yes, script=[error(500, "boom")], latency=0.01) as server:
        with quick_judge(server.url, max_calls=7, store=tmp_path / "j.sqlite") as gateway:
            found = ask(gateway, *(f"p{n}" for n in range(20)))
            assert len(server.calls) == 7 == gateway.ledger["calls"]
            assert sum(isinstance(r, Reply) for r in found) == 6
            assert all(isinstance(r, Reply | BudgetExceeded) for r in found)
        with quick_judge(server.url, store=tmp_path / "j.sqlite") as gateway:
            ask(gateway, *(f"p{n}" for n in range(20)))
            assert (gateway.ledger["stored"], gateway.ledger["calls"]) == (6, 14)


def test_a_budget_is_used_and_never_overrun() -> None:
    with OpenAIServer(yes, latency=0.005) as server:
        settings = {"price": (1000.0, 1000.0), "budget": 20.0, "max_tokens": 2048, "concurrency": 16}
        with quick_judge(server.url, **settings) as gateway:
            found = ask(gateway, *(f"p{n}" for n in range(400)))
            spent = gateway.ledger["cost"]
            assert any(isinstance(r, BudgetExceeded) for r in found)
            assert "budget of 20" in gateway.ledger["stopped"]
            assert 15.0 < spent <= 20.0
            tokens = gateway.ledger["tokens"]
            assert spent == pytest.approx((tokens["input"] + tokens["output"]) / 1000)


@pytest.mark.parametrize(("lost", "calls"), [(Answer(reset=True), 3), (Answer(YES, cut_body=True), 3),
                                             (Answer(YES, delay=3.0), 3), (error(500, "boom"), 9)])
def test_a_budget_takes_the_worst_of_a_call_whose_reply_was_lost(lost: Answer, calls: int) -> None:
    """Who lost the connection does not know what the server worked on; an error that it sent cost nothing."""
    with OpenAIServer(lambda request: lost) as server:
        settings = {"price": (0.0, 1000.0), "budget": 7.0, "max_tokens": 2000, "concurrency": 1, "timeout": 0.3,
                    "attempts": 9}
        with quick_judge(server.url, **settings) as gateway:
            found = ask(gateway, "p")[0]
            assert len(server.calls) == calls
            assert isinstance(found, BudgetExceeded if calls == 3 else CallError)
            assert gateway.account.spent == (6.0 if calls == 3 else 0.0)


def test_a_call_that_is_cancelled_gives_its_reserve_back() -> None:
    with OpenAIServer(lambda request: Answer(YES, delay=5.0 if "slow" in request.first_prompt else 0.0)) as server:
        settings = {"price": (0.0, 1000.0), "budget": 3.0, "max_tokens": 2000}
        with quick_judge(server.url, **settings) as gateway:
            async def main() -> Reply:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.3), gateway.running():
                        await gateway.complete("slow", VERDICT, metric="m")
                async with asyncio.timeout(4.0):
                    return await gateway.complete("quick", VERDICT, metric="m")

            assert asyncio.run(main()).data["verdict"] == 1


def test_tokens_that_the_server_does_not_tell_are_guessed_from_bytes() -> None:
    text = json.dumps({"reason": "\u5929" * 300, "verdict": 1}, ensure_ascii=False)
    body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    with (OpenAIServer(lambda request: Answer(body=body)) as server,
          quick_judge(server.url, price=(1000.0, 1000.0)) as gateway):
        one(gateway, "\u5929" * 3000)
        tokens = gateway.ledger["tokens"]
        assert tokens["unmeasured_calls"] == 1
        assert 3000 < tokens["input"] < 3300, "three bytes a sign, three bytes a token, and the system message"
        assert 300 < tokens["output"] < 320


def test_a_header_that_the_server_repeats_is_masked() -> None:
    def refuse(request: Request) -> Answer:
        return error(403, "forbidden", "the team token-of-the-team may not ask")

    with OpenAIServer(refuse) as server, quick_judge(server.url, headers={"X-Team": "token-of-the-team"}) as gateway:
        with pytest.raises(JudgeError, match=r"the team \*\*\* may not ask") as caught:
            one(gateway)
        assert "token-of-the-team" not in f"{caught.value} {gateway.ledger}"


def test_a_budget_needs_a_price() -> None:
    with pytest.raises(DataError, match=r"the price of m at http://127\.0\.0\.1:1/v1 is unknown"):
        quick_judge("http://127.0.0.1:1/v1", "m", budget=5.0)


def test_an_unknown_price_is_null_and_not_zero() -> None:
    with OpenAIServer(yes) as server, quick_judge(server.url) as gateway:
        one(gateway)
        assert gateway.ledger["cost"] is None
        assert gateway.ledger["price"] is None
        assert gateway.ledger["tokens"]["input"] > 0


def test_frozen_asks_nobody(tmp_path: Path) -> None:
    with OpenAIServer(yes) as server:
        with quick_judge(server.url, store=tmp_path / "j.sqlite") as gateway:
            one(gateway, "known")
        with quick_judge(server.url, store=tmp_path / "j.sqlite", frozen=True) as gateway:
            asyncio.run(gateway.check())
            known, unknown = ask(gateway, "known", "unknown")
            assert isinstance(known, Reply)
            assert isinstance(unknown, CallError)
            assert "frozen" in unknown.reason
        assert len(server.calls) == 1


# --- event loops

def test_any_loop_again_and_again_and_from_threads() -> None:
    with OpenAIServer(yes, latency=0.05) as server, quick_judge(server.url) as gateway:
        loop_class, run = asyncio.new_event_loop().__class__, asyncio.run
        for n in range(2):
            assert one(gateway, f"run {n}").data["verdict"] == 1
        found: list[Reply] = []
        threads = [threading.Thread(target=lambda n=n: found.append(one(gateway, f"thread {n}"))) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(found) == 3
        assert not gateway._runs, "every connection is closed with its run"

        async def inside() -> Reply:
            return await gateway.complete("inside a running loop", VERDICT)

        assert asyncio.run(inside()).source == "asked"
        assert asyncio.new_event_loop().__class__ is loop_class
        assert asyncio.run is run
