"""Calls and tokens of a judgement by a table of what ragas' prompts measure: for where ragas cannot build them."""

from __future__ import annotations

from ragkit.judge.planning import BYTES_PER_TOKEN, Asks
from ragkit.judge.samples import JudgeSample
from ragkit.judge.verdicts import READS
from ragkit.metrics.judged import model_calls
from ragkit.metrics.registry import Metric
from ragkit.metrics.text import sentences

_PER_CALL = {  # tokens of the fixed part of a prompt, of a reply, and of a reply for each statement it speaks of
    "context_precision": (876, 40, 0), "context_precision_without_reference": (876, 40, 0),
    "context_recall": (1226, 0, 40), "faithfulness": (510, 0, 28), "answer_relevancy": (427, 20, 0),
    "context_relevance": (455, 8, 0), "response_groundedness": (474, 8, 0), "answer_accuracy": (505, 8, 0),
    "factual_correctness": (508, 0, 28), "noise_sensitivity": (640, 0, 40),
}


def estimate(metric: Metric, sample: JudgeSample) -> Asks:
    """What one judgement takes, before any call of it is stored or shared.

    >>> from ragkit.metrics.registry import parse
    >>> estimate(parse("context_precision"), JudgeSample(("q1",), "Who?", "Ann.", ("a", "b"), True, "Ann.")).calls
    2
    """
    calls = model_calls(metric.definition.calls, len(sample.contexts))
    fixed, reply, each = _PER_CALL[metric.name]
    texts = {"question": sample.question, "answer": sample.answer or "", "reference": sample.reference or "",
             "contexts": "".join(sample.contexts)}
    read = {name: len(texts[name].encode("utf-8", "replace")) for name in READS[metric.name]}
    contexts = read.pop("contexts", 0)
    shown = contexts if metric.definition.calls == "k" else calls * contexts  # one by one, or all each time
    told = sample.reference if metric.name == "context_recall" else sample.answer
    statements = max(1, len(sentences(told or "")))
    return Asks(calls, tokens_in=calls * fixed + (calls * sum(read.values()) + shown) / BYTES_PER_TOKEN,
                tokens_out=calls * (reply + each * statements))
