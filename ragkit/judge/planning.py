"""What a judge would be asked: the way of asking itself, over a model that is not there. Sends and changes nothing.

Every prompt is built as it would be sent and looked up in a copy of the store, so that what is stored or shared is
counted exactly; only where a prompt depends on an earlier reply does a made-up reply stand in for it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ragkit.judge.archive import copy_store, stats
from ragkit.judge.calls import SYSTEM_MESSAGE, Backend, UnusableReplyError
from ragkit.judge.gateway import Check, Gateway, Reply
from ragkit.judge.limits import Slots
from ragkit.judge.replies import Schema, read_reply
from ragkit.judge.settings import JudgeSettings
from ragkit.metrics.text import sentences

BYTES_PER_TOKEN = 4.5  # of ragas' own prompts with a tokenizer of 200,000 words
_ENOUGH = 5  # measured calls, from which their mean is taken
_TEXTS = ("answer", "response", "reference", "text", "question")  # what a made-up reply has a statement a sentence of
_REASON = "a sentence of about the length that judges write when they are asked for their reason, no more"  # ~25 tokens
_STATEMENT = "a statement in one plain sentence of about this length"


@dataclass
class Asks:
    """What one metric would ask: `calls` to pay for, stored and shared ones, and the tokens of those to pay for."""

    calls: float = 0
    calls_stored: float = 0
    calls_shared: float = 0
    tokens_in: float = 0.0
    tokens_out: float = 0.0


class PlanningGateway(Gateway):
    """Takes the place of a judge's gateway: answers from the store, or makes a reply up and counts it as a call.

    `made` holds the made-up replies by the call's key; planners of several runs on one store have it in common, so that
    what they share is counted as shared.
    """

    def __init__(self, backend: Backend, settings: JudgeSettings, fingerprint: str | None = None,
                 measured: Mapping[str, float] | None = None, made: dict[str, Reply] | None = None) -> None:
        super().__init__(backend, settings, fingerprint)
        self.measured = measured or {}  # metric -> mean tokens of its replies
        self._asks: dict[str, Asks] = defaultdict(Asks)
        self._sent: dict[str, float] = defaultdict(float)
        self._made = {} if made is None else made
        self._seen_bytes = self._seen_tokens = self._seen = 0

    async def complete(self, prompt: str, schema: Schema | None, *, metric: str = "other", replicate: int = 0,
                       check: Check | None = None) -> Reply:
        key, asks = self.call_key(prompt, schema, replicate), self._asks[metric]
        stored = self._stored(key, prompt, schema, check)
        if stored is not None:
            asks.calls_stored += 1
            return stored
        if key in self._made:
            asks.calls_shared += 1
            return replace(self._made[key], source="pooled")
        data = "1" if schema is None else stand_in(schema, prompt)
        text = json.dumps(data)
        asks.calls += 1
        asks.tokens_out += self.measured.get(metric, len(text) / BYTES_PER_TOKEN)
        self._sent[metric] += _size(prompt)
        self._made[key] = Reply(data, text, "asked")
        return self._made[key]

    def _stored(self, key: str, prompt: str, schema: Schema | None, check: Check | None) -> Reply | None:
        found = self.store.reply(key)
        if found is None:
            return None
        try:
            data = found.text if schema is None else read_reply(found.text, schema)
            if check is not None:
                check(data)
        except UnusableReplyError:
            return None
        if found.tokens_in:
            self._seen += 1
            self._seen_bytes += _size(prompt)
            self._seen_tokens += found.tokens_in
        return Reply(data, found.text, "stored")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Any]:
        """No connection is opened; the work is begun in its order all the same."""
        yield SimpleNamespace(slots=Slots(self.settings.concurrency))

    async def check(self, *, ask: bool = True) -> None:
        """Nobody is asked whether they answer."""

    @property
    def bytes_per_token(self) -> float:
        """Measured on this judge's stored calls where there are enough of them, else as usual for ragas' prompts."""
        return self._seen_bytes / self._seen_tokens if self.is_measured else BYTES_PER_TOKEN

    @property
    def is_measured(self) -> bool:
        return self._seen >= _ENOUGH

    def asks(self) -> dict[str, Asks]:
        """By the ledger's name for what is asked."""
        return {metric: replace(found, tokens_in=self._sent[metric] / self.bytes_per_token)
                for metric, found in self._asks.items()}


@contextmanager
def planning_gateway(judge: Gateway, store: Path | None,
                     made: dict[str, Reply] | None = None) -> Iterator[PlanningGateway]:
    """A planner in the place of an opened judge, on a copy of the store: whatever is written there is thrown away."""
    with tempfile.TemporaryDirectory(prefix="ragkit-plan-") as folder:
        copy, measured = Path(folder) / "judgements.sqlite", dict[str, float]()
        if store is not None and store.exists():
            copy_store(store, copy)
            measured = {entry["metric"]: entry["tokens"]["output"] / entry["calls"] for entry in stats(copy)["content"]
                        if entry["judge"] == judge.name and entry["calls"] >= _ENOUGH and entry["tokens"]["output"]}
            prompts = store.parent / "prompts"  # in other languages, beside the store
            if prompts.is_dir():
                shutil.copytree(prompts, copy.parent / "prompts")
        settings = replace(judge.settings, store=copy, budget=None, max_calls=None, allowance=None, lost=None,
                           frozen=False)
        planner = PlanningGateway(judge.backend, settings, judge.fingerprint, measured, made)
        spec = settings.embeddings
        known = planner.store.note(f"embedding:{spec}") if isinstance(spec, str) else getattr(spec, "fingerprint", None)
        planner.settings = replace(settings, embeddings=_NoEmbedder(known or "not known"))
        try:
            yield planner
        finally:
            planner.close()


@dataclass(frozen=True)
class _NoEmbedder:
    """Stands for an embedding model: its vectors cost nothing, so they need not be known."""

    fingerprint: str
    dimension: int = 1

    def embed_documents(self, texts: Any) -> Any:
        return np.ones((len(texts), 1), dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return np.ones(1, dtype=np.float32)


def stand_in(schema: Schema, prompt: str) -> Any:
    """A reply that fits the schema, as long as a judge's usually is: a statement for each sentence of the answer.

    >>> verdict = {"type": "object", "properties": {"reason": {"type": "string"}, "verdict": {"type": "integer"}}}
    >>> stand_in(verdict, 'input: {"question": "Who?"}')["verdict"]
    0
    """
    return _made(schema, schema.get("$defs", {}), _things(_input(prompt)))


def _made(schema: Mapping[str, Any], named: Mapping[str, Any], things: Sequence[str], name: str = "",
          own: str = _STATEMENT) -> Any:
    if "$ref" in schema:
        schema = named[schema["$ref"].rpartition("/")[2]]
    kind = schema.get("type")
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {key: _made(part, named, things, key, own) for key, part in schema.get("properties", {}).items()}
    if kind == "array":  # numbers are a choice among the things, and none is chosen
        return [] if (part := schema.get("items", {})).get("type") == "integer" else [
            _made(part, named, things, "", thing) for thing in things]
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    return False if kind == "boolean" else _REASON if name == "reason" else own


def _things(given: Any) -> list[str]:
    """What a reply speaks of: the statements that it was given, else the sentences of the text it was given."""
    if isinstance(given, Mapping):
        if not isinstance(given.get("statements"), list):
            text = next((given[name] for name in _TEXTS if isinstance(given.get(name), str)), "")
            return sentences(text) or [text]
        return [str(thing) for thing in given["statements"]]
    if isinstance(given, list):  # texts to translate: prompts with other examples are other prompts
        return [f"{thing} ~" for thing in given]
    return [_STATEMENT]


def _input(prompt: str) -> Any:
    """The JSON at the end of a prompt: after "input:", or a list of texts on its own."""
    for mark in ("\ninput: ", "\nInput: ", ":\n"):
        tail = prompt.rpartition(mark)[2]
        try:
            return json.JSONDecoder().raw_decode(tail)[0]
        except ValueError:
            continue
    return {}


def _size(prompt: str) -> int:
    return len(prompt.encode("utf-8", "replace")) + len(SYSTEM_MESSAGE)
