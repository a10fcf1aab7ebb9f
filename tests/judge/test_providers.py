"""Every way to name a judge: Azure and other endpoints asked straight, providers through LangChain, keys, headers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ragkit.errors import JudgeError, MissingPackageError
from ragkit.judge.calls import CallError
from ragkit.judge.gateway import Gateway, Reply
from ragkit.judge.langchain import LangChainModel
from ragkit.judge.open import JudgeSettings, model_fingerprint, open_judge
from ragkit.judge.providers import PROVIDERS
from tests.support.judging import VERDICT, YES, quick_judge
from tests.support.openai_server import Answer, Handler, OpenAIServer, Request, error

KEY = "azure-5ecret-0123456789"
VARIABLES = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "OPENAI_API_VERSION",
             "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY",
             "GEMINI_API_KEY", "HTTP_PROXY", "http_proxy", "OLLAMA_HOST")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def ask(gateway: Gateway, prompt: str = "p") -> Reply:
    async def main() -> Reply:
        async with gateway.running():
            return await gateway.complete(prompt, VERDICT, metric="m")

    return asyncio.run(main())


def quick(spec: Any, url: str | None = None, **settings: Any) -> Gateway:
    return open_judge(spec, url, JudgeSettings(**{"backoff": 0.01, "timeout": 5.0, **settings}))


def root(server: OpenAIServer) -> str:
    return server.url.removesuffix("/v1")


# --- Azure

@pytest.mark.parametrize(("given", "version", "path"), [
    ("", None, "/openai/v1/chat/completions"),
    ("/", "2024-10-21", "/openai/deployments/my%20judge/chat/completions?api-version=2024-10-21"),
    ("/openai/v1/", "2024-10-21", "/openai/v1/chat/completions"),
    ("", "preview", "/openai/v1/chat/completions"),
    ("/openai/deployments/my judge/chat/completions?api-version=2025-01-01", None,
     "/openai/deployments/my%20judge/chat/completions?api-version=2025-01-01"),
])
def test_azure_is_asked_straight(given: str, version: str | None, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    if version is not None:
        monkeypatch.setenv("OPENAI_API_VERSION", version)
    with OpenAIServer(lambda r: YES) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", root(server) + given)
        with quick("azure_openai:my judge") as gateway:
            assert ask(gateway).data["verdict"] == 1
            assert gateway.name == "my judge"
            assert KEY not in repr(gateway.ledger) + repr(gateway.backend)
        with quick("azure-openai:my judge", root(server) + given) as same:
            assert same.fingerprint == gateway.fingerprint
        (call,) = server.calls
        assert call.path == path
        assert call.headers["api-key"] == KEY
        assert "Authorization" not in call.headers
        assert call.body["model"] == "my judge"


def test_azure_takes_a_token_of_entra_id_or_a_variable_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "eyJ.token")
    monkeypatch.setenv("TEAM_KEY", KEY)
    with OpenAIServer(lambda r: YES) as server:
        with quick("azure_openai:d", root(server)) as gateway:
            ask(gateway)
        with quick("azure_openai:d", root(server), key_variable="TEAM_KEY") as gateway:
            ask(gateway)
        first, second = server.calls
        assert first.headers["Authorization"] == "Bearer eyJ.token"
        assert "api-key" not in first.headers
        assert second.headers["api-key"] == KEY


def test_the_api_version_is_part_of_who_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com")
    prints = set()
    for version in ("", "2024-10-21", "2025-01-01"):
        monkeypatch.setenv("OPENAI_API_VERSION", version)
        prints.add(open_judge("azure_openai:d").fingerprint)
    assert len(prints) == 3


def test_what_azure_lacks_is_said_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JudgeError, match="AZURE_OPENAI_ENDPOINT"):
        open_judge("azure_openai:d")
    with pytest.raises(JudgeError, match=r"no key for .*AZURE_OPENAI_API_KEY"):
        asyncio.run(open_judge("azure_openai:d", "https://me.openai.azure.com").check())
    with pytest.raises(JudgeError, match="is no address"):
        open_judge("azure_openai:d", "me.openai.azure.com")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    with OpenAIServer(lambda r: error(404, "DeploymentNotFound", "The API deployment does not exist")) as server:
        with quick("azure_openai:d", root(server)) as gateway, pytest.raises(JudgeError, match="The API deployment"):
            asyncio.run(gateway.check())
        assert len(server.calls) == 1


def test_azures_content_filter_is_a_refusal_and_leads_down_no_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)

    def filtered(request: Request) -> Answer | str:
        if request.first_prompt != "bad":
            return YES
        return error(400, "content_filter", "The response was filtered due to the prompt triggering Azure OpenAI's "
                     "content management policy.", param="prompt")

    with OpenAIServer(filtered) as server, quick("azure_openai:d", root(server)) as gateway:
        with pytest.raises(CallError, match="the judge refused: The response was filtered") as caught:
            ask(gateway, "bad")
        assert caught.value.kind == "refused by the judge"
        assert len(server.calls) == 1
        assert ask(gateway, "good").data["verdict"] == 1
        assert server.calls[-1].response_format == "json_schema"
        assert gateway.ledger["failures"] == {"refused by the judge": 1}


# --- the request, set by the user

def test_headers_body_effort_and_key_variable_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with OpenAIServer(lambda r: YES) as server, quick_judge(
            server.url, key_variable="MY_KEY", headers={"X-Tenant": "t1"}, extra_body={"top_k": 1, "seed": 3},
            reasoning_effort="low", temperature=None, max_tokens=99) as gateway:
        ask(gateway)
        (call,) = server.calls
        assert call.headers["Authorization"] == f"Bearer {KEY}"
        assert call.headers["X-Tenant"] == "t1"
        wanted = {"top_k": 1, "seed": 3, "reasoning_effort": "low", "max_tokens": 99}
        assert {name: call.body.get(name) for name in wanted} == wanted
        assert "temperature" not in call.body


def test_a_stand_in_for_a_key_is_a_word_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def picky(request: Request) -> Answer | str:
        if "temperature" in request.body:
            return error(400, "x", "none of temperature is supported: unsupported parameter 'temperature'")
        return '{"reason": "none of it", "verdict": 0}'

    with OpenAIServer(picky) as server, quick_judge(server.url) as gateway:
        assert ask(gateway).data == {"reason": "none of it", "verdict": 0}
        assert gateway.ledger["dropped_parameters"] == ["temperature"]


@pytest.mark.parametrize("changed", [{"reasoning_effort": "low"}, {"extra_body": {"top_k": 1}}, {"temperature": None},
                                     {"max_tokens": 99}])
def test_what_is_asked_with_is_part_of_who_judged(changed: dict[str, Any]) -> None:
    prints = [quick_judge("http://127.0.0.1:9/v1", **s).fingerprint for s in ({}, changed, {"headers": {"X": "y"}})]
    assert prints[0] != prints[1]
    assert prints[0] == prints[2], "a header says who pays, not who judges"


def test_a_parameter_of_the_users_own_is_dropped_where_it_is_refused() -> None:
    def picky(request: Request) -> Answer | str:
        for name in ("reasoning_effort", "top_k"):
            if name in request.body:
                return error(400, "invalid_request_error", f"Unrecognized request argument supplied: '{name}'")
        return YES

    with OpenAIServer(picky) as server, quick_judge(server.url, reasoning_effort="low",
                                                    extra_body={"top_k": 1}) as gateway:
        assert ask(gateway).data["verdict"] == 1
        assert gateway.ledger["dropped_parameters"] == ["reasoning_effort", "top_k"]
        ask(gateway, "another")
        assert len(server.calls) == 4


def test_one_request_that_is_refused_does_not_cost_the_others_their_schema() -> None:
    def some(request: Request) -> Answer | str:
        return error(400, "bad_request", "Bad Request") if request.first_prompt == "bad" else YES

    with OpenAIServer(some) as server, quick_judge(server.url) as gateway:
        with pytest.raises(CallError, match="refused the request") as caught:
            ask(gateway, "bad")
        assert caught.value.kind == "request rejected"
        assert len(server.calls) == 4, "while nothing is known of the server, every format is tried"
        ask(gateway, "good")
        assert server.calls[-1].response_format == "json_schema"
        with pytest.raises(CallError):
            ask(gateway, "bad")
        assert len(server.calls) == 6, "the server takes the format, so the request itself is at fault"


# --- providers of LangChain

def test_a_missing_package_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_google_genai", None)
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    with pytest.raises(JudgeError) as caught:
        open_judge("google_genai:gemini-2.5-flash")
    assert str(caught.value) == ("judge google_genai:gemini-2.5-flash: needs the package langchain-google-genai: "
                                 "pip install langchain-google-genai")


def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m == "langchain" or m.startswith("langchain.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langchain", None)
    with pytest.raises(MissingPackageError, match=r'pip install "ragkit-eval\[langchain\]"'):
        open_judge("ollama:llama3")


@pytest.mark.parametrize(("spec", "part"), [
    ("anthropic:claude-x", "no key; set the environment variable ANTHROPIC_API_KEY"),
    ("google_genai:gemini", "GOOGLE_API_KEY or GEMINI_API_KEY"),
    ("antropic:claude-x", "unknown provider 'antropic'; expected one of anthropic,"),
])
def test_what_a_provider_lacks_is_said_before_any_work(spec: str, part: str) -> None:
    with pytest.raises(JudgeError) as caught:
        open_judge(spec)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_setting_that_a_provider_has_no_argument_for_is_not_lost_silently() -> None:
    with pytest.raises(JudgeError, match="how this provider takes headers is not known"):
        open_judge("bedrock_converse:m", settings=JudgeSettings(headers={"X": "y"}))
    with pytest.raises(JudgeError, match="reasoning_effort is not known"):
        open_judge("bedrock_converse:m", settings=JudgeSettings(reasoning_effort="low"))


def test_the_table_of_providers_is_langchains_own() -> None:
    base = pytest.importorskip("langchain.chat_models.base")
    theirs = {name: module.split(".")[0].replace("_", "-") for name, (module, *_) in base._BUILTIN_PROVIDERS.items()}
    ours = {name: provider.package for name, provider in PROVIDERS.items()}
    assert {name: ours.get(name) for name in theirs if name not in ("openai", "azure_openai")} == {
        name: package for name, package in theirs.items() if name not in ("openai", "azure_openai")}


Seen = list[tuple[dict[str, Any], dict[str, str]]]


def anthropic(seen: Seen, replies: Iterable[tuple[int, dict[str, Any]]] = ()) -> Handler:
    """The messages route of Anthropic: the given replies first, then a verdict of 1."""
    waiting = list(replies)

    async def handle(http: web.Request) -> web.StreamResponse:
        seen.append((await http.json(), {name.lower(): value for name, value in http.headers.items()}))
        status, body = waiting.pop(0) if waiting else (200, said(YES))
        return web.json_response(body, status=status)

    return handle


def said(text: str, stop: str = "end_turn") -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": stop,
            "stop_sequence": None, "content": [{"type": "text", "text": text}] if text else [],
            "usage": {"input_tokens": 12, "output_tokens": 5}}


def failed(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def test_anthropic_is_asked_plainly_and_dropped_parameters_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_anthropic")
    monkeypatch.setenv("TEAM_KEY", KEY)
    seen: Seen = []
    first = [(529, failed("overloaded_error", "Overloaded")),
             (400, failed("invalid_request_error", "`temperature` is deprecated for this model."))]
    with OpenAIServer(routes={"/v1/messages": anthropic(seen, first)}) as server:
        with quick("anthropic:claude-x", root(server), key_variable="TEAM_KEY", headers={"X-Tenant": "t1"}) as gateway:
            reply = ask(gateway)
            assert reply.data["verdict"] == 1
            ask(gateway, "another")
            ledger = gateway.ledger
        assert (ledger["calls"], ledger["retried"], ledger["failed"]) == (4, 2, 0)
        assert ledger["tokens"] == {"input": 24, "output": 10, "unmeasured_calls": 0}
        assert ledger["dropped_parameters"] == ["temperature"]
    bodies = [body for body, _ in seen]
    assert [body.get("temperature") for body in bodies] == [0.0, 0.0, None, None]
    assert all(body["max_tokens"] == 2048 and "top_p" not in body for body in bodies)
    assert all(headers["x-tenant"] == "t1" for _, headers in seen)
    assert all(KEY in headers.get("x-api-key", headers.get("authorization", "")) for _, headers in seen)


def test_anthropics_refusals_truncations_and_limits_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    seen: Seen = []
    replies = [(200, said('{"reason": "lo', "max_tokens")), (200, said(YES)), (200, said("", "refusal")),
               (400, failed("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")),
               (401, failed("authentication_error", "invalid x-api-key"))]
    with OpenAIServer(routes={"/v1/messages": anthropic(seen, replies)}) as server, quick(
            "anthropic:claude-x", root(server)) as gateway:
        assert ask(gateway, "long").data["verdict"] == 1
        kinds = []
        for prompt in ("refuse", "too long"):
            with pytest.raises(CallError) as caught:
                ask(gateway, prompt)
            kinds.append(caught.value.kind)
        assert kinds == ["refused by the judge", "too long for the judge"]
        with pytest.raises(JudgeError, match="the key was refused"):
            ask(gateway, "key")
    assert [body["max_tokens"] for body, _ in seen[:3]] == [2048, 4096, 2048]


def test_ollama_gets_its_room_and_address() -> None:
    pytest.importorskip("langchain_ollama")
    seen: list[dict[str, Any]] = []

    async def chat(http: web.Request) -> web.StreamResponse:
        seen.append(await http.json())
        cut = len(seen) == 1
        row = {"model": "llama3:8b", "created_at": "2026-01-01T00:00:00Z", "done": True,
               "message": {"role": "assistant", "content": '{"reason": "lo' if cut else YES},
               "done_reason": "length" if cut else "stop", "prompt_eval_count": 7, "eval_count": 3}
        return web.Response(text=json.dumps(row) + "\n", content_type="application/x-ndjson")

    with OpenAIServer(routes={"/api/chat": chat}) as server, quick(
            "ollama:llama3:8b", server.url, extra_body={"num_ctx": 8192}) as gateway:
        assert ask(gateway).data["verdict"] == 1
        assert gateway.name == "llama3:8b"
        assert gateway.ledger["tokens"]["input"] == 14
    assert [body["options"]["num_predict"] for body in seen] == [2048, 4096]
    assert all(body["options"]["num_ctx"] == 8192 and body["options"]["temperature"] == 0.0 for body in seen)


def test_a_models_name_with_a_colon_is_no_provider() -> None:
    with OpenAIServer(lambda r: YES) as server, quick("llama3:8b", server.url) as gateway:
        ask(gateway)
        assert server.calls[0].body["model"] == "llama3:8b"


class Status(Exception):
    def __init__(self, text: str, **fields: Any) -> None:
        super().__init__(text)
        self.__dict__.update(fields)


class Model:
    """The least that a chat model offers."""

    model_name = "own"

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.asked: list[Any] = []

    async def ainvoke(self, messages: Any) -> Any:
        self.asked.append(messages)
        outcome = self.outcomes.pop(0) if self.outcomes else YES
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def _caused(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize("outcome", [
    Status("throttled", response={"ResponseMetadata": {"HTTPStatusCode": 503}}), Status("busy", status_code=529),
    Status("quota", code=429), _caused(RuntimeError("Error calling model"), Status("slow down", code=429)),
    RuntimeError("ResourceExhausted: try later"), ConnectionResetError("reset by peer"), TimeoutError(),
], ids=str)
def test_what_another_try_may_mend_is_tried_again(outcome: BaseException) -> None:
    model = Model(outcome)
    with quick(model) as gateway:
        assert ask(gateway).data["verdict"] == 1
        assert gateway.ledger["failed"] == 0
    assert len(model.asked) == 2


@pytest.mark.parametrize(("outcome", "kind", "part"), [
    (TypeError("Could not resolve authentication method. Expected an api_key"), JudgeError, "check the environment"),
    (Status("insufficient_quota", status_code=429), JudgeError, "quota is used up"),
    (ValueError("cannot handle this message"), CallError, "cannot handle this message"),
])
def test_what_no_try_mends_is_told_at_once(outcome: BaseException, kind: type[Exception], part: str) -> None:
    model = Model(outcome, outcome)
    with quick(model) as gateway, pytest.raises(kind, match=part):
        ask(gateway)
    assert len(model.asked) == 1


def test_a_reply_that_no_field_can_make_longer_is_not_paid_four_times() -> None:
    class Message:
        content, response_metadata = '{"reason": "lo', {"finish_reason": "length"}
        additional_kwargs, usage_metadata = None, None

    model = Model(*[Message()] * 9)
    with quick(model) as gateway, pytest.raises(CallError, match="truncated, and Model has no known field") as caught:
        ask(gateway)
    assert caught.value.kind == "truncated"
    assert len(model.asked) == 1


def test_a_model_without_a_field_for_room_can_be_checked() -> None:
    """The check asks for less room than a judgement; a model that sets none is asked as it is."""
    openai = pytest.importorskip("langchain_openai")
    with OpenAIServer(lambda r: "1") as server:
        for model in (Model("1"), openai.ChatOpenAI(model="m", base_url=server.url, api_key="none", max_retries=0)):
            with quick(model) as gateway:
                asyncio.run(gateway.check())
                assert gateway.ledger["metrics"] == {"check": {"calls": 1}}
        assert len(server.calls) == 1


def test_a_model_is_known_by_its_parameters_and_not_by_its_key() -> None:
    openai = pytest.importorskip("langchain_openai")

    def made(**more: Any) -> str:
        return model_fingerprint(openai.ChatOpenAI(**{"model": "m", "api_key": "k1", "temperature": 0.0, **more}))

    assert made() == made(api_key="k2")
    assert len({made(), made(temperature=0.5), made(model="n"), made(base_url="http://127.0.0.1:9/v1")}) == 4


def test_a_langchain_model_judges_from_python(tmp_path: Path) -> None:
    store = tmp_path / "j.sqlite"
    model = Model()
    for _ in range(2):
        with quick(model, store=store) as gateway:
            assert isinstance(gateway.backend, LangChainModel)
            assert ask(gateway).data["verdict"] == 1
    assert len(model.asked) == 1
    assert [role for role, _ in model.asked[0]] == ["system", "human"]
