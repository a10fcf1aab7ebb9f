"""How a judge is asked: limits, time-outs, parameters, the store. Holds no key: keys come from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ragkit.errors import DataError
from ragkit.judge.calls import CallError
from ragkit.judge.language import language_name
from ragkit.judge.ledger import Allowance


@dataclass(frozen=True)
class JudgeSettings:
    """What may be set about a judge. Times are in seconds, `price` in money per million tokens (in, out).

    `store` None keeps the judgements in memory only. `frozen` allows no new call. `max_calls` counts every request
    that is sent, `budget` money: neither is ever overrun, and judges with one `allowance` share them. Judges with one
    `lost` share what was not delivered, by the call's key: it is not asked again. `prices` is a file that goes before
    the packaged table of prices, `price` before both.
    `temperature` None is not sent, nor is `reasoning_effort`.
    `key_variable` names the environment variable of the key, by default the provider's own. `extra_body` is more of
    the request: fields of the JSON body at an endpoint, arguments of the class for a LangChain model. `embeddings`
    is what ragkit.models.embeddings.load_embedder takes. `language` puts the examples of ragas' prompts into a language
    ("german", "de"; "auto": each question's own); None leaves them in English.
    """

    store: Path | None = None
    concurrency: int = 16
    timeout: float = 60.0
    attempts: int = 6  # requests for one reply while the server fails; half of them may time out
    reasks: int = 2  # further questions when a reply cannot be read or holds no offered verdict
    backoff: float = 0.5  # the first wait; doubled each time, up to 30 s
    rate_limit_wait: float = 600.0  # how long one call may wait for a rate limit in all
    rpm: float | None = None
    tpm: float | None = None
    max_calls: int | None = None
    budget: float | None = None
    price: tuple[float, float] | None = None
    prices: Path | None = None
    allowance: Allowance | None = field(default=None, compare=False)
    lost: dict[str, CallError] | None = field(default=None, compare=False, repr=False)
    frozen: bool = False
    embeddings: Any = "minilm"
    temperature: float | None = 0.0
    max_tokens: int = 2048
    largest_max_tokens: int = 16_384  # how far a truncated reply is asked again with more room
    reasoning_effort: str | None = None
    key_variable: str | None = None
    language: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    extra_body: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        object.__setattr__(self, "language", language_name(self.language))
        for name in ("concurrency", "timeout", "attempts", "max_tokens"):
            if getattr(self, name) <= 0:
                raise DataError(f"judge {name}: expected more than 0, got {getattr(self, name)}")
        for name in ("rpm", "tpm", "max_calls", "budget"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise DataError(f"judge {name}: expected 0 or more, got {value}")
