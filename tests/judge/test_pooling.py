"""What pooling saves: each different question to the model is asked once, over variants, steps and the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ragkit.judge.judging import judge_samples
from ragkit.judge.samples import JudgeSample
from ragkit.metrics.registry import parse_all
from tests.support.judging import quick_judge
from tests.support.openai_server import OpenAIServer

pytest.importorskip("ragas")
CONTEXT = parse_all("context_precision,context_recall")


def sample(question: int, place: str, passages: Sequence[int]) -> JudgeSample:
    contexts = tuple(f"Passage {passage} on tower {question}." for passage in passages)
    return JudgeSample((question, place), f"Where is tower {question}?", "In Paris.", contexts,
                       reference=f"Tower {question} is in Paris.")


VARIANTS = [sample(q, f"variant {v}", (0, 1, 2, 10 * v + 3, 10 * v + 4)) for v in range(4) for q in range(5)]
STEPS = [sample(q, str(step), found) for q in range(6)
         for step, found in enumerate([range(5), (0, 1, 10, 11, 12) if q % 2 else (0, 1, 2, 10, 11),
                                       (11, 12, 20, 21, 22) if q % 2 else (2, 10, 11, 20, 21)])]
THE_END = [sample(q, "end", (11, 12, 20, 21, 22) if q % 2 else (2, 10, 11, 20, 21)) for q in range(6)]


@pytest.mark.parametrize(("samples", "saved"), [(VARIANTS, 0.375), ([*STEPS, *THE_END], 11 / 24)])
def test_the_calls_are_the_different_ones(samples: list[JudgeSample], saved: float) -> None:
    passages = {(s.question, text) for s in samples for text in s.contexts}
    lists = {(s.question, s.contexts) for s in samples}
    one_by_one = sum(len(s.contexts) + 1 for s in samples)
    with OpenAIServer() as server, quick_judge(server.url, concurrency=64) as gateway:
        found = asyncio.run(judge_samples(gateway, samples, CONTEXT))
        assert len(server.calls) == len(passages) + len(lists) == round(one_by_one * (1 - saved))
        assert gateway.ledger["calls"] == len(server.calls)
    assert len(found) == 2 * len(samples)
    assert all(judgement.score.status == "scored" for judgement in found.values())


def test_the_verdicts_of_one_list_are_asked_together() -> None:
    with OpenAIServer(latency=0.1) as server, quick_judge(server.url) as gateway:
        asyncio.run(judge_samples(gateway, [sample(0, "end", range(5))], parse_all("context_precision")))
        assert server.most_in_flight == 5
