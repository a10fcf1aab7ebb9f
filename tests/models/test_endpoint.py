"""The JSON client: what is tried again, how often, and that no message holds a key."""

from __future__ import annotations

import pytest

from ragkit.errors import DataError, RagkitError
from ragkit.models.endpoint import bearer, post_json
from tests.support.pipeline_parts import JsonServer, free_port


def test_it_gives_up_after_the_attempts_and_says_so() -> None:
    with JsonServer(lambda path, payload: (500, {}, {"Retry-After": "0"})) as server:
        with pytest.raises(RagkitError, match=r"HTTP 500 .*\(tried 3 times\)"):
            post_json(server.url, {}, attempts=3)
        assert len(server.requests) == 3


def test_nobody_at_the_port_is_one_line() -> None:
    with pytest.raises(RagkitError, match="tried 1 times") as caught:
        post_json(f"http://127.0.0.1:{free_port()}/x", {}, attempts=1)
    assert "\n" not in str(caught.value)


def test_a_local_server_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with JsonServer(lambda path, payload: {"ok": payload["n"]}) as server:
        assert post_json(server.url, {"n": 1}, attempts=1) == {"ok": 1}


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/x", "host/x"])
def test_only_http_is_spoken(url: str) -> None:
    with pytest.raises(DataError, match=r"expected an http\(s\) URL"):
        post_json(url, {})


@pytest.mark.parametrize("status", [401, 503])
def test_no_message_holds_a_key_that_the_server_repeats(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-5ecret-0123")
    refusal = {"error": "Incorrect key sk-5ecret-0123 for tenant-42-x"}
    with JsonServer(lambda path, payload: (status, refusal)) as server, pytest.raises(RagkitError) as caught:
        post_json(server.url, {}, {**bearer("SOME_KEY"), "X-Tenant": "tenant-42-x"}, attempts=1)
    assert "Incorrect key *** for ***" in str(caught.value)


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    for url in ("http://ann:pa55word@127.0.0.1:9/v1", "ftp://ann:pa55word@host/x"):
        with pytest.raises(DataError, match="expected") as caught:
            post_json(url, {})
        assert "pa55word" not in str(caught.value)


def test_the_key_is_read_at_the_time_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    assert bearer("SOME_KEY") == {}
    monkeypatch.setenv("SOME_KEY", "k")
    assert bearer("SOME_KEY") == {"Authorization": "Bearer k"}
