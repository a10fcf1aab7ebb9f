"""An OpenAI-compatible server that costs next to nothing: prebuilt replies to ragas' prompts after a fixed latency.

    python server.py --latency 0.2 [--flaky]        prints its port; GET /stats says what came in

It is a process of its own, so that only the client's work is on the client's clock. The reply is chosen by a word of
the prompt, and speaks of the "tower-17" that stands last in it. `--flaky`: 5 % of the calls get a 500, 2 % broken
JSON, 2 % no answer at all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import Counter

import common

STATEMENTS = 3
_LENGTH = re.compile(rb"content-length:\s*(\d+)", re.I)
_TOWER = re.compile(rb"tower-\d+")
_SEVERAL = re.compile(rb'"n":\s*3\b')
USEFUL = common.USEFUL.encode()
WARM_UP = f"tower-{common.WARM_UP}".encode()
CUT = b"-----------------------------"  # behind ragas' examples, before the input


def content(body: bytes, turns: Counter[bytes]) -> str:
    """The judge's reply to one of ragas' prompts."""
    towers = _TOWER.findall(body)
    tower = towers[-1] if towers else b"tower-0"
    if b"noncommittal" in body:
        turns[tower] += 1  # another question each time, as from a model that is not at temperature 0
        asked = ("Where is {}?", "How tall is {}?", "Who built {}?")[turns[tower] % 3].format(tower.decode())
        return json.dumps({"question": asked, "noncommittal": 0})
    rows = [{"statement": f"Statement {n} of {tower.decode()}.", "reason": "The text says so."}
            for n in range(STATEMENTS)]
    if b"attributed" in body:
        return json.dumps({"classifications": [{**row, "attributed": int(n > 0)} for n, row in enumerate(rows)]})
    if b"faithfulness of a series" in body:
        return json.dumps({"statements": [{**row, "verdict": int(n < 2)} for n, row in enumerate(rows)]})
    if b"useful in arriving" in body:
        useful = USEFUL in body[body.rfind(CUT):]
        return json.dumps({"reason": "The passage was compared with the answer.", "verdict": int(useful)})
    return json.dumps({"statements": [row["statement"] for row in rows]})


def completion(texts: list[str], sent: int) -> bytes:
    """A chat.completion body; tokens are a quarter of the bytes."""
    out = sum(map(len, texts)) // 4
    choices = [{"index": n, "finish_reason": "stop", "logprobs": None,
                "message": {"role": "assistant", "content": text, "refusal": None}} for n, text in enumerate(texts)]
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "m", "choices": choices,
                       "usage": {"prompt_tokens": sent // 4, "completion_tokens": out,
                                 "total_tokens": sent // 4 + out}}).encode()


def _answers(body: bytes) -> int:
    """How many answers are asked for: the parameter stands behind the messages, or before them."""
    return 3 if _SEVERAL.search(body, max(0, len(body) - 300)) or _SEVERAL.search(body, 0, 300) else 1


class Server:
    """What all connections share."""

    def __init__(self, latency: float, flaky: bool) -> None:
        self.latency, self.flaky = latency, flaky
        self.counts: Counter[str] = Counter()
        self.turns: Counter[bytes] = Counter()
        self.distinct: set[bytes] = set()
        self.in_flight = self.most = 0
        self.dice = random.Random(7)

    def answer(self, body: bytes) -> tuple[int, bytes] | None:
        """Status and body; None is a hang."""
        if WARM_UP in body:
            self.counts["warm-up"] += 1
            return 200, completion([content(body, self.turns)] * _answers(body), len(body))
        self.counts["calls"] += 1
        self.distinct.add(body)
        luck = self.dice.random() if self.flaky else 1.0
        if luck < 0.05:
            self.counts["500"] += 1
            return 500, b'{"error": {"message": "overloaded", "type": "server_error"}}'
        if luck < 0.07:
            self.counts["hangs"] += 1
            return None
        texts = [content(body, self.turns) for _ in range(_answers(body))]
        if luck < 0.09:
            self.counts["broken"] += 1
            texts = [text[: len(text) // 2] for text in texts]
        return 200, completion(texts, len(body))


class Talk(asyncio.Protocol):
    """One connection; a request at a time, as HTTP/1.1 clients send them."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.buffer = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        found = _LENGTH.search(self.buffer, 0, end)
        length = int(found.group(1)) if found else 0
        if len(self.buffer) < end + 4 + length:
            return
        head, body = self.buffer[:end], self.buffer[end + 4: end + 4 + length]
        self.buffer = self.buffer[end + 4 + length:]
        path = head.split(b" ", 2)[1]
        if path.endswith(b"/chat/completions"):
            self._chat(body)
        elif path.endswith(b"/models"):
            self._send(200, b'{"object": "list", "data": [{"id": "m", "object": "model"}]}')
        else:
            stats = {**self.server.counts, "distinct": len(self.server.distinct), "most_in_flight": self.server.most}
            self._send(200, json.dumps(stats).encode())

    def _chat(self, body: bytes) -> None:
        server = self.server
        answer = server.answer(body)
        server.in_flight += 1
        server.most = max(server.most, server.in_flight)
        if answer is None:
            server.in_flight -= 1
            return
        asyncio.get_running_loop().call_later(server.latency, self._later, *answer)

    def _later(self, status: int, body: bytes) -> None:
        self.server.in_flight -= 1
        self._send(status, body)

    def _send(self, status: int, body: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)


async def serve(latency: float, flaky: bool) -> None:
    state = Server(latency, flaky)
    made = await asyncio.get_running_loop().create_server(lambda: Talk(state), "127.0.0.1", 0, backlog=1024)
    print(made.sockets[0].getsockname()[1], flush=True)
    await made.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--flaky", action="store_true")
    given = parser.parse_args()
    asyncio.run(serve(given.latency, given.flaky))
