"""Chat models: what a spec means, the fingerprint, and errors in one line."""

from __future__ import annotations

from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.models.chat import chat_fingerprint, load_chat_model
from tests.support.openai_server import OpenAIServer
from tests.support.recording_parts import chat


def test_an_endpoint_answers_without_any_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with OpenAIServer(reply=lambda request: f"heard {request.prompt}") as server:
        model = load_chat_model(f"{server.url}#tiny", temperature=0.0)
        assert model.invoke("hello").content == "heard hello"
        assert chat_fingerprint(model) == f"ChatOpenAI:tiny:{server.url}:temperature=0"


def test_the_fingerprint_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-3")
    model = load_chat_model("http://user:word@127.0.0.1:9/v1#tiny")
    assert chat_fingerprint(model) == "ChatOpenAI:tiny:http://127.0.0.1:9/v1"


def test_a_provider_and_a_model_go_to_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-4")
    assert chat_fingerprint(load_chat_model("openai:gpt-5-mini")).startswith("ChatOpenAI:gpt-5-mini")


def test_a_chat_model_is_taken_as_it_is() -> None:
    model = chat("yes")
    assert load_chat_model(model) is model


@pytest.mark.parametrize("spec", ["gpt-5-mini", "nobody:model", "http://127.0.0.1:9/v1", "openai:gpt-5-mini", 3])
def test_what_cannot_be_loaded_is_one_line(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DataError, match=r"^chat model") as caught:
        load_chat_model(spec)
    assert "\n" not in str(caught.value)
