"""Before any work: does the judge answer? One line that says what, where and how to mend it; and no key anywhere."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path

import pytest

from ragkit.errors import JudgeError
from ragkit.judge.calls import CallError
from ragkit.judge.open import JudgeSettings, open_judge
from tests.support.judging import VERDICT, YES, quick_judge
from tests.support.openai_server import Answer, OpenAIServer, Request, error

KEY = "sk-test-5ecret-0123456789"


def problem(url: str, **settings: object) -> str:
    with quick_judge(url, **settings) as gateway, pytest.raises(JudgeError) as caught:
        asyncio.run(gateway.check())
    text = str(caught.value)
    assert "\n" not in text
    assert KEY not in text
    return text


def test_a_listed_model_costs_no_call() -> None:
    with OpenAIServer(lambda r: "1") as server, quick_judge(server.url) as gateway:
        asyncio.run(gateway.check())
        assert server.calls == []


def test_a_model_that_is_not_listed_is_asked_once() -> None:
    with OpenAIServer(lambda r: "1", models=()) as server, quick_judge(server.url) as gateway:
        asyncio.run(gateway.check())
        asyncio.run(gateway.check())
        assert len(server.calls) == 1
        assert gateway.ledger["metrics"] == {"check": {"calls": 1}}


def test_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = problem(f"http://127.0.0.1:{port}/v1")
    assert f"http://127.0.0.1:{port}/v1" in text
    assert "cannot reach" in text
    assert "is the server running" in text


@pytest.mark.parametrize(("answer", "parts"), [
    (error(401, "invalid_api_key", f"Incorrect API key provided: {KEY}"), ["key was refused", "MY_KEY", "***"]),
    (error(404, "model_not_found", "The model `test-model` does not exist"), ["no such model", "--judge"]),
    (error(429, "insufficient_quota", "Your quota is used up"), ["Your quota is used up"]),
    (error(500, "boom"), ["server error 500", "try again"]),
    (Answer(text="<html>a proxy's page</html>"), ["no chat completion", "a proxy's page"]),
])
def test_what_is_wrong_is_said_in_one_line(answer: Answer, parts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with OpenAIServer(lambda r: answer, models=()) as server:
        text = problem(server.url, key_variable="MY_KEY")
        assert server.url in text
        assert all(part in text for part in parts), text


def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    gateway = open_judge("openai:some-model")
    with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
        asyncio.run(gateway.check())
    with OpenAIServer(lambda r: error(401, "x", "no key"), models=()) as server:
        assert "no key was sent: set the environment variable OPENAI_API_KEY" in problem(server.url)


@pytest.mark.parametrize(("spec", "url", "part"), [
    (None, None, "no model is named"), ("", "http://127.0.0.1:1/v1", "no model is named"),
    ("gpt", None, "expected PROVIDER:MODEL"), ("http://127.0.0.1:1/v1", None, "no model is named"),
    ("m", "127.0.0.1:8000", "is no address"), ("offline:lexical", None, "judge_offline"),
    ("nobody:model", None, "nobody"),
])
def test_a_spec_that_names_no_judge(spec: str | None, url: str | None, part: str) -> None:
    with pytest.raises(JudgeError) as caught:
        open_judge(spec, url)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_key_is_sent_and_never_written_or_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)

    def reply(request: Request) -> Answer | str:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        if request.first_prompt == "bad":
            return error(400, "x", f"cannot serve {KEY}")
        return YES

    store = tmp_path / "j.sqlite"
    settings = JudgeSettings(store=store, backoff=0.01)
    with OpenAIServer(reply) as server, open_judge("m", server.url, settings) as gateway:
        async def main() -> CallError:
            await gateway.check()
            await gateway.complete("good", VERDICT)
            with pytest.raises(CallError) as caught:
                await gateway.complete("bad", VERDICT)
            gateway.store.keep_failure("k", "m", "metric", caught.value.reason, caught.value.raw)
            return caught.value

        failed = asyncio.run(main())
        everything = [repr(gateway.ledger), repr(gateway.backend), repr(failed.raw), str(failed), caplog.text]
        assert all(KEY not in text for text in everything)
        assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())
        assert len(list(tmp_path.iterdir())) >= 1


def test_loopback_is_never_reached_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with OpenAIServer(lambda r: YES, models=()) as server, quick_judge(server.url) as gateway:
        asyncio.run(gateway.check())
        assert len(server.calls) == 1
