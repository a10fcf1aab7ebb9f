"""ragas' newer metric classes over its llm_factory (instructor and the openai client), all scores at once.

It brings no limit of its own: a semaphore around each call holds the calls in flight.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import warnings
from collections.abc import Sequence
from typing import Any

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
warnings.simplefilter("ignore")

from common import MODEL, TIMEOUT, Judge, Sample, Values, contender, embed  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402
from ragas.embeddings.base import BaseRagasEmbedding  # noqa: E402
from ragas.llms import llm_factory  # noqa: E402
from ragas.metrics.collections import AnswerRelevancy, ContextPrecision, ContextRecall, Faithfulness  # noqa: E402


class Words(BaseRagasEmbedding):
    """The shared embedding, as ragas takes one."""

    def embed_text(self, text: str, **kwargs: Any) -> list[float]:
        return embed(text)

    async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
        return embed(text)


def make(given: argparse.Namespace) -> Judge:
    more: dict[str, Any] = {"timeout": TIMEOUT} if given.work == "flaky" else {}

    async def all_scores(samples: Sequence[Sample], metrics: tuple[str, ...]) -> Values:
        client = AsyncOpenAI(base_url=given.url, api_key="none", **more)
        model, slots = llm_factory(MODEL, client=client), asyncio.Semaphore(given.in_flight)
        ask = model.agenerate

        async def limited(prompt: str, response_model: Any) -> Any:
            async with slots:
                return await ask(prompt, response_model)

        model.agenerate = limited
        calls = {"context_precision": lambda s: ContextPrecision(llm=model).ascore(
                     user_input=s.question, reference=s.reference, retrieved_contexts=list(s.contexts)),
                 "context_recall": lambda s: ContextRecall(llm=model).ascore(
                     user_input=s.question, reference=s.reference, retrieved_contexts=list(s.contexts)),
                 "faithfulness": lambda s: Faithfulness(llm=model).ascore(
                     user_input=s.question, response=s.answer, retrieved_contexts=list(s.contexts)),
                 "answer_relevancy": lambda s: AnswerRelevancy(llm=model, embeddings=Words()).ascore(
                     user_input=s.question, response=s.answer)}

        async def one(sample: Sample, name: str) -> float | None:
            try:
                return float((await calls[name](sample)).value)
            except Exception:  # a lost judgement, whatever the reason: it is counted
                return None

        names = [(sample, name) for sample in samples for name in metrics]
        values = await asyncio.gather(*(one(*pair) for pair in names))
        return {f"{sample.key} {name}": value for (sample, name), value in zip(names, values, strict=True)}

    return lambda samples, metrics: asyncio.run(all_scores(samples, metrics))


if __name__ == "__main__":
    contender(make)
