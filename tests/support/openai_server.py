"""A scripted OpenAI-compatible server on 127.0.0.1 for tests: faults on demand, and a judge that reads ragas' prompts.

It runs in a thread of its own. Nothing of ragkit is imported here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Request:
    """One chat/completions request as it came in; `number` counts from 1."""

    number: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    path: str = ""  # with its query

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def prompt(self) -> str:
        """The last user message."""
        return next((str(m["content"]) for m in reversed(self.messages) if m["role"] == "user"), "")

    @property
    def first_prompt(self) -> str:
        """The first user message: the question of a judge's prompt, also when it was asked again."""
        return next((str(m["content"]) for m in self.messages if m["role"] == "user"), "")

    @property
    def system(self) -> str:
        return next((str(m["content"]) for m in self.messages if m["role"] == "system"), "")

    @property
    def response_format(self) -> str:
        return str((self.body.get("response_format") or {}).get("type", "none"))


@dataclass(frozen=True)
class Answer:
    """What the server does with one request. `body` replaces the whole JSON (errors); `reset` drops the connection."""

    content: str | None = ""
    finish: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    text: str | None = None  # a body that is no JSON
    delay: float = 0.0  # seconds before the answer; more than the client's time-out is a hang
    prompt_tokens: int | None = None
    message: Mapping[str, Any] = field(default_factory=dict)  # more of the message: tool_calls, refusal
    reset: bool = False
    cut_body: bool = False  # the connection ends in the middle of the body


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Reply = Callable[[Request], Answer | str | Mapping[str, Any]]


def error(status: int, code: str, message: str = "", param: str | None = None, **headers: str) -> Answer:
    """An error in OpenAI's form; header names are written with underscores: Retry_After="2"."""
    body = {"error": {"message": message or code, "type": code, "code": code, "param": param}}
    return Answer(status=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def ragas_input(prompt: str) -> dict[str, Any]:
    """The input JSON at the end of one of ragas' prompts ({} where there is none)."""
    _, _, tail = prompt.rpartition("\ninput: ")
    try:
        value = json.JSONDecoder().raw_decode(tail)[0] if tail else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+", text) if part.strip()]


def _holds(context: str, statement: str) -> int:
    asked = words(statement)
    return int(len(asked & words(context)) >= 0.7 * len(asked)) if asked else 0


def lexical_judge(request: Request) -> str:
    """Valid replies to the prompts of ragas' metrics, by word overlap; other prompts get a sentence back.

    Only what stands inside the input JSON is read.
    """
    prompt = request.first_prompt
    data = ragas_input(prompt)
    if "user_answer" in data:
        return json.dumps({"rating": 4 * _holds(data["reference_answer"], data["user_answer"])})
    if "context" in data and ("user_input" in data or "response" in data):
        return json.dumps({"rating": 2 * _holds(data["context"], data.get("response") or data["user_input"])})
    if "atomicity" in data:
        return json.dumps({"claims": sentences(data["response"])})
    if "statements" in data and "context" in data:
        return json.dumps({"statements": [
            {"statement": s, "reason": "overlap", "verdict": _holds(data["context"], s)} for s in data["statements"]]})
    if "context" in data and "classif" in prompt:
        return json.dumps({"classifications": [
            {"statement": s, "reason": "overlap", "attributed": _holds(data["context"], s)}
            for s in sentences(data["answer"])]})
    if "context" in data:
        useful = len(words(data["answer"]) & words(data["context"])) >= 0.5 * len(words(data["answer"]))
        return json.dumps({"reason": "overlap", "verdict": int(useful)})
    if "response" in data:
        evasive = "don't know" in data["response"].lower()
        return json.dumps({"question": f"What is said by: {data['response']}", "noncommittal": int(evasive)})
    if "answer" in data:
        refused = "don't know" in data["answer"].lower()
        return json.dumps({"statements": [] if refused else sentences(data["answer"])})
    return "1"


def vector(text: str, dimension: int = 32) -> list[float]:
    """A bag-of-words vector: the same for the same words in every process."""
    values = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()):
        values[int(hashlib.sha1(word.encode()).hexdigest(), 16) % dimension] += 1.0
    return values


class OpenAIServer:
    """`with OpenAIServer(reply=…) as server:` serves chat/completions, embeddings and models under server.url.

    `script` answers the first requests in its order; after that `reply` does (by default the lexical judge).
    `latency` is added to each. `calls` holds the chat requests, `in_flight` and `most_in_flight` count them. `routes`
    are POST handlers of other paths (other providers).
    """

    def __init__(self, reply: Reply = lexical_judge, *, script: Iterable[Answer | str] = (), latency: float = 0.0,
                 models: Iterable[str] = ("test-model",), routes: Mapping[str, Handler] | None = None) -> None:
        self.reply = reply
        self.script = list(script)
        self.latency = latency
        self.models = list(models)
        self.routes = dict(routes or {})
        self.calls: list[Request] = []
        self.embedded: list[str] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        assert self._ready.wait(20), "the scripted server did not start"
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._run())
        left = asyncio.all_tasks(self._loop)  # answers that nobody waits for any more
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    async def _run(self) -> None:
        app = web.Application(client_max_size=64 * 2**20)
        for path, handler in self.routes.items():
            app.router.add_post(path, handler)
        app.router.add_post("/{prefix:.*}/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        request = Request(len(self.calls) + 1, await http.json(), dict(http.headers), http.path_qs)
        self.calls.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            made = self.script.pop(0) if self.script else self.reply(request)
            answer = made if isinstance(made, Answer) else Answer(made if isinstance(made, str) else json.dumps(made))
            await asyncio.sleep(self.latency + answer.delay)
            return await self._send(http, request, answer)
        finally:
            self.in_flight -= 1

    async def _send(self, http: web.Request, request: Request, answer: Answer) -> web.StreamResponse:
        if answer.reset:
            assert http.transport is not None
            http.transport.abort()
            return web.Response()
        if answer.text is not None:
            return web.Response(status=answer.status, text=answer.text, headers=answer.headers)
        body = answer.body if answer.body is not None else _completion(request, answer)
        if answer.cut_body:
            data = json.dumps(body).encode()
            stream = web.StreamResponse(headers={"Content-Length": str(len(data)), "Content-Type": "application/json"})
            await stream.prepare(http)
            await stream.write(data[: len(data) // 2])
            assert http.transport is not None
            http.transport.close()
            return stream
        return web.json_response(body, status=answer.status, headers=answer.headers)

    async def _embeddings(self, http: web.Request) -> web.Response:
        body = await http.json()
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        self.embedded.extend(map(str, texts))
        rows = [{"object": "embedding", "index": i, "embedding": vector(str(t))} for i, t in enumerate(texts)]
        return web.json_response({"object": "list", "data": rows, "model": body.get("model", ""),
                                  "usage": {"prompt_tokens": len(texts), "total_tokens": len(texts)}})

    async def _models(self, http: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": m, "object": "model"} for m in self.models]})


def _completion(request: Request, answer: Answer) -> dict[str, Any]:
    sent = sum(len(str(m.get("content") or "")) for m in request.messages)
    prompt_tokens = answer.prompt_tokens if answer.prompt_tokens is not None else max(1, sent // 4)
    completion_tokens = max(1, len(answer.content or "") // 4)
    return {
        "id": f"chatcmpl-{request.number}", "object": "chat.completion", "created": 0,
        "model": request.body.get("model", ""),
        "choices": [{"index": 0, "finish_reason": answer.finish,
                     "message": {"role": "assistant", "content": answer.content, **answer.message}}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
                  "total_tokens": prompt_tokens + completion_tokens},
    }
