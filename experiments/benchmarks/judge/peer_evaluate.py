"""ragas.evaluate with LangChain's ChatOpenAI: as many workers as calls are wanted in flight."""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Sequence
from typing import Any

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
warnings.simplefilter("ignore")

from common import MODEL, TIMEOUT, Judge, Sample, Values, contender, embed  # noqa: E402
from langchain_core.embeddings import Embeddings  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from ragas import EvaluationDataset, RunConfig, evaluate  # noqa: E402
from ragas.dataset_schema import SingleTurnSample  # noqa: E402
from ragas.embeddings import LangchainEmbeddingsWrapper  # noqa: E402
from ragas.llms import LangchainLLMWrapper  # noqa: E402
from ragas.metrics import answer_relevancy, context_precision, context_recall, faithfulness  # noqa: E402

METRICS = {"context_precision": context_precision, "context_recall": context_recall, "faithfulness": faithfulness,
           "answer_relevancy": answer_relevancy}


class Words(Embeddings):
    """The shared embedding, as LangChain takes one."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


def make(given: argparse.Namespace) -> Judge:
    more: dict[str, Any] = {"timeout": TIMEOUT} if given.work == "flaky" else {}
    chat = ChatOpenAI(model=MODEL, base_url=given.url, api_key="none", temperature=0, **more)

    def judge(samples: Sequence[Sample], metrics: tuple[str, ...]) -> Values:
        rows: Any = [SingleTurnSample(user_input=s.question, response=s.answer, retrieved_contexts=list(s.contexts),
                                      reference=s.reference) for s in samples]
        result: Any = evaluate(EvaluationDataset(samples=rows), [METRICS[name] for name in metrics],
                               llm=LangchainLLMWrapper(chat), embeddings=LangchainEmbeddingsWrapper(Words()),
                               run_config=RunConfig(max_workers=given.in_flight), show_progress=False,
                               raise_exceptions=False)
        return {f"{s.key} {name}": None if math.isnan(row[name]) else float(row[name])
                for s, row in zip(samples, result.scores, strict=True) for name in metrics}

    return judge


if __name__ == "__main__":
    contender(make)
