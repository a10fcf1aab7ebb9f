"""Shared pieces of the judge's tests: a quick gateway to a scripted server, and a one-verdict schema."""

from __future__ import annotations

from typing import Any

from ragkit.judge.gateway import Gateway
from ragkit.judge.open import JudgeSettings, open_judge

VERDICT = {"type": "object", "title": "Output", "required": ["reason", "verdict"],
           "properties": {"reason": {"type": "string"}, "verdict": {"type": "integer"}}}
YES, NO = '{"reason": "r", "verdict": 1}', '{"reason": "r", "verdict": 0}'


def quick_judge(url: str, model: str = "test-model", **settings: Any) -> Gateway:
    """A gateway that waits little: back-off from 10 ms, calls of 5 s."""
    return open_judge(model, url, JudgeSettings(**{"backoff": 0.01, "timeout": 5.0, **settings}))
