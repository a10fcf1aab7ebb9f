"""ragas' own metric classes over the gateway: they write the prompts, the gateway asks, the verdicts are kept.

The only file that imports ragas, when a judgement is missing. ragas' own arithmetic is not used: metrics/judged.py
computes the number from the verdicts, and a test holds it equal to ragas' on the same replies.
"""

from __future__ import annotations

import asyncio
import functools
import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragkit.errors import JudgeError, MissingPackageError
from ragkit.judge.calls import UnusableReplyError
from ragkit.judge.gateway import Gateway, Reply
from ragkit.judge.judging import Vectors, judge_samples
from ragkit.judge.prompt_text import quick_prompts
from ragkit.judge.prompts import AdaptedPrompts, apply
from ragkit.judge.samples import JudgeSample
from ragkit.judge.store import StoredVerdicts
from ragkit.judge.verdicts import PINNED_RAGAS, STRICTNESS, no_statement
from ragkit.records.judgements import Verdict

__all__ = ["ASK", "RagasNames", "Scope", "judge_samples", "load_ragas"]

_TRACKING = "RAGAS_DO_NOT_TRACK"


class Scope:
    """The model that ragas sees while it judges one sample by one metric.

    `numbered`: the same prompt asked again is another question (answer_relevancy asks three times); elsewhere it is
    the same one, as with a passage that was retrieved twice.
    """

    def __init__(self, gateway: Gateway, metric: str, *, numbered: bool) -> None:
        self.gateway, self.metric, self.numbered = gateway, metric, numbered
        self.replies: list[Mapping[str, Any]] = []
        self.prompts: AdaptedPrompts | None = None  # instead of ragas' own
        self.asked = self.shared = 0
        self.last: str | None = None
        self._seen: Counter[str] = Counter()
        self._early: dict[tuple[str, int], Reply] = {}
        self._statements: int | None = None

    async def answer(self, prompt: str, model: Any) -> Any:
        """What ragas gets for a prompt: an instance of its response model."""
        replicate = self._seen[prompt] if self.numbered else 0
        self._seen[prompt] += 1
        reply = self._early.get((prompt, replicate)) or await self._ask(prompt, replicate, model)
        self.replies.append(reply.data)
        if self._statements is None and isinstance(reply.data.get("statements"), list):
            self._statements = len(reply.data["statements"])
        return model.model_validate(reply.data)

    async def prepare(self, prompts: Sequence[tuple[str, int]], model: Any) -> None:
        """Asks together what ragas will ask one after the other; the prompts depend on nothing but the sample."""
        wanted = list(dict.fromkeys(prompts))
        done = await asyncio.gather(*(self._ask(prompt, n, model) for prompt, n in wanted), return_exceptions=True)
        for reply in done:
            if isinstance(reply, BaseException):
                raise reply
        self._early.update({key: reply for key, reply in zip(wanted, done, strict=True) if isinstance(reply, Reply)})

    async def _ask(self, prompt: str, replicate: int, model: Any) -> Reply:
        reply = await self.gateway.complete(prompt, _schema(model), metric=self.metric, replicate=replicate,
                                            check=self._check)
        self.asked += reply.source == "asked"
        self.shared += reply.source != "asked"
        self.last = reply.text
        return reply

    def _check(self, data: Any) -> None:
        """What the schema cannot say. ragas divides by the verdicts that came: a dropped one would go unnoticed."""
        rows = data.get("statements")
        if self._statements is not None and isinstance(rows, list) and len(rows) != self._statements:
            raise UnusableReplyError(f"expected {self._statements} verdicts, one for each statement, got {len(rows)}")
        if "question" in data and not data["question"].strip():
            raise UnusableReplyError("expected a question, got an empty one")


@functools.cache
def _schema(model: Any) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = model.model_json_schema()
    return schema


def build(vendor: RagasNames, name: str, scope: Any, vectors: Vectors) -> Any:
    """ragas' metric over a scope, with the prompts of the scope: ragas' own where those are None."""
    given = {"llm": vendor.llm(scope)}
    if name == "answer_relevancy":
        given.update(embeddings=vendor.embedding(vectors), strictness=STRICTNESS)
    return apply(getattr(vendor, name)(**given), scope.prompts)


async def _context_precision(vendor: RagasNames, scope: Scope, sample: JudgeSample,
                             vectors: Vectors) -> StoredVerdicts:
    metric = build(vendor, "context_precision", scope, vectors)
    inputs = [metric.prompt.input_model(question=sample.question, context=text, answer=sample.reference)
              for text in sample.contexts]
    await scope.prepare([(metric.prompt.to_string(item), 0) for item in inputs], metric.prompt.output_model)
    await metric.ascore(user_input=sample.question, reference=sample.reference,
                        retrieved_contexts=list(sample.contexts))
    verdicts = [Verdict(reply["verdict"], f"passage {rank}", reply["reason"])
                for rank, reply in enumerate(scope.replies, 1)]
    return StoredVerdicts(tuple(verdicts), None, 0)


async def _context_recall(vendor: RagasNames, scope: Scope, sample: JudgeSample,
                             vectors: Vectors) -> StoredVerdicts:
    metric = build(vendor, "context_recall", scope, vectors)
    await metric.ascore(user_input=sample.question, reference=sample.reference,
                        retrieved_contexts=list(sample.contexts))
    rows = scope.replies[-1]["classifications"]
    return StoredVerdicts(tuple(Verdict(r["attributed"], r["statement"], r["reason"]) for r in rows), None, 0)


async def _faithfulness(vendor: RagasNames, scope: Scope, sample: JudgeSample,
                             vectors: Vectors) -> StoredVerdicts:
    metric = build(vendor, "faithfulness", scope, vectors)
    await metric.ascore(user_input=sample.question, response=sample.answer, retrieved_contexts=list(sample.contexts))
    if len(scope.replies) < 2:
        return StoredVerdicts((), no_statement(sample.answer), 0)
    statements, rows = scope.replies[0]["statements"], scope.replies[1]["statements"]
    verdicts = [Verdict(row["verdict"], row["statement"] or statement, row["reason"])
                for statement, row in zip(statements, rows, strict=True)]
    return StoredVerdicts(tuple(verdicts), None, 0)


async def _answer_relevancy(vendor: RagasNames, scope: Scope, sample: JudgeSample,
                            vectors: Vectors) -> StoredVerdicts:
    metric = build(vendor, "answer_relevancy", scope, vectors)
    prompt = metric.prompt.to_string(metric.prompt.input_model(response=sample.answer))
    await scope.prepare([(prompt, n) for n in range(STRICTNESS)], metric.prompt.output_model)
    with np.errstate(invalid="ignore"):  # a zero vector, which is looked at below
        await metric.ascore(user_input=sample.question, response=sample.answer)
    asked = np.asarray(await vectors.of(sample.question))
    verdicts = []
    for reply in scope.replies:
        made = np.asarray(await vectors.of(reply["question"]))
        length = float(np.linalg.norm(asked) * np.linalg.norm(made))
        if length == 0.0:
            return StoredVerdicts((), "zero vector", 0)
        flags = ("noncommittal",) if reply["noncommittal"] else ()
        verdicts.append(Verdict(float(np.dot(made, asked)) / length, reply["question"], "", flags))
    return StoredVerdicts(tuple(verdicts), None, 0)


ASK = {"context_precision": _context_precision, "context_recall": _context_recall, "faithfulness": _faithfulness,
        "answer_relevancy": _answer_relevancy}


@dataclass(frozen=True)
class RagasNames:
    """All that is used of ragas: four metric classes, and its two base classes made into ours."""

    context_precision: Any
    context_recall: Any
    faithfulness: Any
    answer_relevancy: Any
    llm: Callable[[Scope], Any]
    embedding: Callable[[Vectors], Any]


@functools.cache
def load_ragas() -> RagasNames:
    """ragas, with its telemetry off. Missing: MissingPackageError. Broken by other versions: JudgeError, one line."""
    before = os.environ.get(_TRACKING)
    os.environ[_TRACKING] = "true"  # only this word counts; it is read once and remembered, also by us below
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from ragas import _analytics
            from ragas.embeddings.base import BaseRagasEmbedding
            from ragas.llms.base import InstructorBaseRagasLLM
            from ragas.metrics.collections import AnswerRelevancy, ContextPrecision, ContextRecall, Faithfulness
            from ragas.prompt.metrics.base_prompt import BasePrompt
        _analytics.do_not_track.cache_clear()
        if not _analytics.do_not_track():
            raise JudgeError(f"ragas: its telemetry could not be turned off; expected ragas {PINNED_RAGAS}")
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "ragas":
            raise MissingPackageError("ragas", "ragas", "judging with the RAGAS metrics") from error
        raise JudgeError(f"ragas is installed and cannot be imported ({' '.join(str(error).split())}): "
                         'pip install "ragkit-eval[ragas]" brings the versions that fit together') from error
    finally:
        if before is None:
            os.environ.pop(_TRACKING, None)
        else:
            os.environ[_TRACKING] = before

    class GatewayLLM(InstructorBaseRagasLLM):
        is_async = True

        def __init__(self, scope: Scope) -> None:
            self._scope = scope

        def generate(self, prompt: str, response_model: Any) -> Any:
            raise NotImplementedError("the judge is asked with agenerate")

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            return await self._scope.answer(prompt, response_model)

    class GatewayEmbedding(BaseRagasEmbedding):
        def __init__(self, vectors: Vectors) -> None:
            super().__init__()
            self._vectors = vectors

        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            raise NotImplementedError("texts are embedded with aembed_text")

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            return await self._vectors.of(text)

    def quick(metric: Any) -> Callable[..., Any]:
        return lambda **given: quick_prompts(metric(**given), BasePrompt)

    return RagasNames(quick(ContextPrecision), quick(ContextRecall), quick(Faithfulness), quick(AnswerRelevancy),
                      GatewayLLM, GatewayEmbedding)
