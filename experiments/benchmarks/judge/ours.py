"""ragkit: ragas' metrics over its own gateway, with a store on disk that is committed call by call."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import FOUR, MODEL, TIMEOUT, Judge, Sample, Values, contender, embed

from ragkit.judge.judging import judge_samples
from ragkit.judge.open import JudgeSettings, open_judge
from ragkit.judge.samples import JudgeSample
from ragkit.metrics.registry import parse_all


class Words:
    """The shared embedding, as ragkit takes one."""

    fingerprint, dimension = "words", 32

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return np.asarray([embed(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        return np.asarray(embed(text))


def make(given: argparse.Namespace) -> Judge:
    folder = tempfile.TemporaryDirectory()
    timeout = TIMEOUT if given.work == "flaky" else 60.0

    def settings(store: str) -> JudgeSettings:
        return JudgeSettings(store=Path(store), concurrency=given.in_flight, timeout=timeout, embeddings=Words())

    def judge(samples: Sequence[Sample], metrics: tuple[str, ...]) -> Values:
        first = samples[0].key == "warm-up"
        store = f"{folder.name}/warm-up.sqlite" if first else given.store or f"{folder.name}/judgements.sqlite"
        asked = [JudgeSample((s.key,), s.question, s.answer, s.contexts, reference=s.reference) for s in samples]
        with open_judge(MODEL, given.url, settings(store)) as gateway:
            found = asyncio.run(judge_samples(gateway, asked, parse_all(metrics)))
        return {f"{key[0]} {name}": judgement.score.value for (key, name), judgement in found.items()}

    if given.work != "warm":
        from ragkit.judge.ragas_scores import load_ragas

        load_ragas()
    else:
        parse_all(FOUR)  # the registry of metrics is loaded
    return judge


if __name__ == "__main__":
    contender(make)
