"""The embedded judge: word overlap, deterministic, without a key or a network, and what it was measured to agree with.

Its metrics have names of their own. They are not faithfulness: overlap sees no negation, no wrong relation and no
paraphrase.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from ragkit.errors import DataError
from ragkit.judge.samples import JudgeSample
from ragkit.metrics.answers import AnswerSample, idf_table, support_details
from ragkit.metrics.registry import Metric
from ragkit.metrics.text import tokens
from ragkit.records.judgements import Judgement, Verdict

OFFLINE_JUDGE = "offline:lexical"
OfflineResults = dict[tuple[tuple[Hashable, ...], str], Judgement]

AGREEMENT: tuple[dict[str, str | float], ...] = (
    {"signal": "lexical_support", "q2_wow (600)": 0.726, "begin (4,748)": 0.938, "HaluEval (800)": 0.518,
     "FaithBench (678)": 0.645},
    {"signal": "lexical_coverage", "q2_wow (600)": 0.705, "begin (4,748)": 0.947, "HaluEval (800)": 0.539,
     "FaithBench (678)": 0.606},
)
"""AUROC of each signal against labels, by data set and its size; labels by people but for HaluEval, whose wrong answers
were written by a model. 0.5 is chance: on some kinds of wrong answers overlap sees nothing at all. The first two are
what `ragkit agreement` gives; the last two are of an earlier measurement, with another table of token weights."""


def judge_offline(samples: Sequence[JudgeSample], metrics: Iterable[Metric],
                  references: Sequence[Sequence[str]] | None = None) -> OfflineResults:
    """Scores each sample by the keyless answer metrics: {(sample key, metric name): judgement}.

    `references` gives all reference answers of each sample where it has several: answer_f1 and exact_match take the
    best. Token weights of lexical_coverage come from the contexts of all samples together. The verdicts of
    lexical_support are the support of each sentence, with the numbers and names that no passage holds as flags.
    A metric that needs a model is a DataError.

    >>> from ragkit.metrics.registry import parse_all
    >>> sample = JudgeSample(("q1",), "Where?", "In Rome.", ("It stands in Rome.",), reference="Rome")
    >>> judged = judge_offline([sample], parse_all("lexical_support,answer_f1"))
    >>> [round(judgement.score.value, 3) for judgement in judged.values()]
    [1.0, 0.667]
    """
    wanted = list(metrics)
    for metric in wanted:
        if metric.definition.kind != "answer":
            raise DataError(f"metric {metric.name!r}: the judge {OFFLINE_JUDGE} scores word overlap only; this one "
                            "needs a model, or gold labels")
    if references is not None and len(references) != len(samples):
        raise DataError(f"references: expected one list a sample, {len(samples)}, got {len(references)}")
    idf = idf_table(tokens(text) for text in dict.fromkeys(text for sample in samples for text in sample.contexts))
    found: OfflineResults = {}
    for place, sample in enumerate(samples):
        own = (sample.reference,) if sample.reference else ()
        right = tuple(references[place]) if references is not None else own
        answer = AnswerSample(sample.question, sample.answer, sample.contexts, right, idf or None)
        for metric in wanted:
            judgement = Judgement(metric.name, OFFLINE_JUDGE, metric.definition.function(answer))
            if metric.name == "lexical_support" and judgement.score.status == "scored":
                judgement = replace(judgement, verdicts=_statements(answer))
            found[sample.key, metric.name] = judgement
    return found


def _statements(answer: AnswerSample) -> tuple[Verdict, ...]:
    return tuple(
        Verdict(detail.support, detail.text, "",
                (*(f"number {n}" for n in detail.missing_numbers), *(f"name {n}" for n in detail.missing_names)))
        for detail in support_details(answer)
    )
