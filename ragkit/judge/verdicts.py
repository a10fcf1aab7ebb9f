"""Judgements by content: what needs no asking, what was judged before, and the score of stored verdicts.

Imports no ragas: a run whose judgements are all in the store needs neither ragas nor a call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from ragkit.errors import DataError
from ragkit.judge.gateway import Gateway
from ragkit.judge.prompts import PromptBook
from ragkit.judge.samples import JudgeSample
from ragkit.judge.store import JudgementStore, StoredVerdicts
from ragkit.metrics.registry import Metric
from ragkit.metrics.text import is_refusal
from ragkit.models.embeddings import Embedder, load_embedder
from ragkit.records.judgements import Judgement, Score

PINNED_RAGAS = "0.4.3"
STRICTNESS = 3
"""Questions generated from an answer for answer_relevancy, as ragas does by default."""

READS: Mapping[str, tuple[str, ...]] = {
    "context_precision": ("question", "reference", "contexts"),
    "context_precision_without_reference": ("question", "answer", "contexts"),
    "context_recall": ("question", "reference", "contexts"),
    "faithfulness": ("question", "answer", "contexts"),
    "answer_relevancy": ("question", "answer"),
    "context_relevance": ("question", "contexts"),
    "response_groundedness": ("answer", "contexts"),
    "answer_accuracy": ("question", "answer", "reference"),
    "factual_correctness": ("answer", "reference"),
    "noise_sensitivity": ("question", "answer", "reference", "contexts"),
}
"""What a metric reads of a sample: that is what its judgement depends on, and what must be there."""
RAGAS_METRICS = tuple(READS)
CONTEXT_METRICS = tuple(name for name, reads in READS.items() if name.startswith("context_"))
"""Those that judge a list of passages, so that each step of a trajectory can be judged by them too."""
_NEEDS_ORDER = ("context_precision", "context_precision_without_reference")
_MISSING = {"answer": "no answer", "reference": "no reference answer", "contexts": "no context"}


def undefined_reason(metric: str, sample: JudgeSample) -> str | None:
    """Why there is nothing to judge, so that no call is made; None where there is.

    >>> undefined_reason("faithfulness", JudgeSample(("q1",), "Who?", answer="Ann.", contexts=()))
    'no context'
    """
    texts = {"question": sample.question, "answer": sample.answer, "reference": sample.reference,
             "contexts": "".join(sample.contexts)}
    for name in READS[metric]:
        if not (texts[name] or "").strip():
            return _MISSING[name]
    return "no order" if metric in _NEEDS_ORDER and not sample.contexts_ranked else None


class JudgementBook:
    """The judgements of one judge in its store, by metric and content of the sample."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.store: JudgementStore = gateway.store
        self.embedder: Embedder | None = None
        self.prompts = PromptBook(gateway)
        self._ragas = _ragas_version()

    def key(self, metric: str, sample: JudgeSample) -> str:
        """The key of a judgement: the metric, what it reads of the sample, the judge, and whose prompts were used."""
        content: list[Any] = [getattr(sample, name) for name in READS[metric]]
        content += [STRICTNESS, self.embedding()] if metric == "answer_relevancy" else []
        content += self.prompts.mark(metric, sample.question)
        # Not keys.digest: it parts the words in another way, and all that was judged before would be asked again.
        data = json.dumps(["verdicts/1", self._ragas, metric, self.gateway.fingerprint, content], ensure_ascii=True)
        return hashlib.sha256(data.encode()).hexdigest()

    def ready(self, metric: Metric, sample: JudgeSample) -> Judgement | None:
        """The judgement that needs no asking: nothing to judge, or judged before. None: the judge must be asked."""
        reason = undefined_reason(metric.name, sample)
        if reason is not None:
            return Judgement(metric.name, self.gateway.name, Score.undefined(reason))
        key = self.key(metric.name, sample)
        found = self.store.verdicts(key)
        if found is not None:
            return self.judgement(metric, found, 0, found.n_calls)
        failed = self.store.failure(key) if self.gateway.settings.frozen else None
        if failed is None:
            return None
        return Judgement(metric.name, self.gateway.name, Score.failed(failed[0]), raw=failed[1])

    def judgement(self, metric: Metric, found: StoredVerdicts, n_calls: int, n_stored: int) -> Judgement:
        """The score is the metric's own arithmetic over the verdicts, unless there was nothing to give a verdict on."""
        if found.undefined is not None:
            score = Score.undefined(found.undefined)
        else:
            score = metric.definition.function(found.verdicts)
        return Judgement(metric.name, self.gateway.name, score, found.verdicts, n_calls, n_stored)

    def keep(self, metric: Metric, sample: JudgeSample, judgement: Judgement) -> None:
        """Writes a judgement down. A failed one is kept for reading only: the next run asks again."""
        key, score = self.key(metric.name, sample), judgement.score
        if score.status == "failed":
            self.store.keep_failure(key, self.gateway.name, metric.name, score.reason or "", judgement.raw)
            return
        found = StoredVerdicts(judgement.verdicts, score.reason, judgement.n_calls + judgement.n_stored)
        self.store.keep_verdicts(key, self.gateway.name, metric.name, score, found)

    def embedding(self) -> str:
        """The fingerprint of the embedding model. It is loaded only where the fingerprint is not known from before."""
        if self.embedder is None:
            spec = self.gateway.settings.embeddings
            known = self.store.note(f"embedding:{spec}") if _names_its_weights(spec) else None
            if known is not None:
                return known
        return self.load_embedder().fingerprint

    def load_embedder(self) -> Embedder:
        """The embedding model for answer_relevancy, loaded once."""
        if self.embedder is None:
            spec = self.gateway.settings.embeddings
            self.embedder = load_embedder(spec)
            if _names_its_weights(spec):
                self.store.keep_note(f"embedding:{spec}", self.embedder.fingerprint)
        return self.embedder


def no_statement(answer: str | None) -> str:
    """Why an answer has no statement to support: it refuses, or the judge found none in it."""
    return "answer refused" if is_refusal(answer or "") else "no statement"


def judgeable(work: Iterable[tuple[JudgeSample, Metric]]) -> list[tuple[JudgeSample, Metric]]:
    """The work, each thing once; a metric that a judge does not score is a DataError."""
    wanted = list(dict.fromkeys(work))
    for metric in dict.fromkeys(metric for _, metric in wanted):
        if metric.name not in RAGAS_METRICS:
            raise DataError(f"metric {metric.name!r}: expected one that a judge scores: {', '.join(RAGAS_METRICS)}")
    return wanted


def count_missing(gateway: Gateway, work: Iterable[tuple[JudgeSample, Metric]]) -> int:
    """Judgements that the judge would have to be asked for: 0 means that a run needs no call and no ragas."""
    book = JudgementBook(gateway)
    return len({book.key(metric.name, sample) for sample, metric in judgeable(work)
                if book.ready(metric, sample) is None})


def _names_its_weights(spec: object) -> bool:
    """Whether the name alone says which model it is; a path or a package may hold others tomorrow."""
    return isinstance(spec, str) and (spec == "minilm" or (":" in spec and not spec.startswith("st:")))


def _ragas_version() -> str:
    try:
        return f"ragas-{metadata.version('ragas')}"
    except metadata.PackageNotFoundError:
        return f"ragas-{PINNED_RAGAS}"

