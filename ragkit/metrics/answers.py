"""Keyless answer metrics: word overlap with the context or with a reference answer. Deterministic; asks no model.

Overlap is not faithfulness: it sees no negation, no wrong relation and no paraphrase, hence names of its own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ragkit.metrics.registry import metric
from ragkit.metrics.text import (
    is_number,
    is_refusal,
    longest_common_subsequence,
    normalized_tokens,
    sentences,
    tokens,
)
from ragkit.records.judgements import Score

_LAWS = frozenset({"in_range", "deterministic"})
_WORD = re.compile(r"[^\W\d_](?:[^\W_]|['’.-](?=[^\W_]))*")


@dataclass(frozen=True)
class AnswerSample:
    """An answer with the texts that it was written from and the right answers, where known.

    answer: None where it is unknown; an empty one is known, and wrong. idf: the weight of a token in
    lexical_coverage; without it the sample's own contexts give the weights.
    """

    question: str
    answer: str | None
    contexts: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    idf: Mapping[str, float] | None = None

    @cached_property
    def answer_tokens(self) -> list[str]:
        """The words of the answer; none where it is unknown."""
        return tokens(self.answer or "")

    @cached_property
    def refused(self) -> bool:
        """Whether the answer only says that it cannot be given."""
        return is_refusal(self.answer or "")

    @cached_property
    def context_tokens(self) -> tuple[list[str], ...]:
        """The words of each context."""
        return tuple(tokens(text) for text in self.contexts)

    @cached_property
    def joined(self) -> list[str]:
        """The words of all contexts, one after the other."""
        return [token for context in self.context_tokens for token in context]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Every word that some context holds."""
        return frozenset(self.joined)

    def weight(self, token: str) -> float:
        """The idf of a token: from the table, else log((1 + n) / (1 + df)) + 1 over the sample's contexts."""
        table = self._own_weights if self.idf is None else self.idf
        found = table.get(token)
        return (math.log1p(len(self.contexts)) + 1 if self.idf is None else self._rarest) if found is None else found

    @cached_property
    def _own_weights(self) -> Mapping[str, float]:
        return idf_table(self.context_tokens)

    @cached_property
    def _rarest(self) -> float:
        return max(self.idf.values(), default=1.0) if self.idf else 1.0


@dataclass(frozen=True)
class StatementSupport:
    """How far the contexts carry one sentence of an answer.

    support and coverage as lexical_support and lexical_coverage of this sentence; passage: the place (from 0) of the
    context that carries most of it; missing_numbers, missing_names: those that no context holds.
    """

    text: str
    support: float
    coverage: float
    passage: int | None
    missing_numbers: tuple[str, ...] = ()
    missing_names: tuple[str, ...] = ()


def idf_table(documents: Iterable[Sequence[str]]) -> dict[str, float]:
    """Smoothed inverse document frequencies, log((1 + n) / (1 + df)) + 1, of tokenised texts.

    >>> table = idf_table([["a", "b"], ["a"]])
    >>> round(table["a"], 3), round(table["b"], 3)
    (1.0, 1.405)
    """
    frequency: Counter[str] = Counter()
    count = 0
    for document in documents:
        frequency.update(set(document))
        count += 1
    return {token: math.log((1 + count) / (1 + seen)) + 1 for token, seen in frequency.items()}


@metric("lexical_support", kind="answer", undefined="no answer, a refusal, or no context", laws=_LAWS,
        source="ROUGE-L precision (Lin 2004) of the answer in the joined context",
        formula="longest common subsequence of answer and contexts / tokens of the answer")
def lexical_support(sample: AnswerSample) -> Score:
    """The longest common subsequence of the answer and the joined contexts, divided by the answer's tokens.

    Word overlap, not faithfulness: it sees no negation, no wrong relation and no paraphrase, and has no threshold.

    >>> lexical_support(AnswerSample("Where?", "It is in Rome", ("The tower is in Paris",))).value
    0.5
    """
    return _without_support(sample) or Score.scored(_support(sample.answer_tokens, sample.joined))


@metric("lexical_coverage", kind="answer", undefined="no answer, a refusal, or no context", laws=_LAWS,
        source="idf-weighted token overlap",
        formula="sum of idf of the answer's distinct tokens that a context holds / sum of idf of all of them")
def lexical_coverage(sample: AnswerSample) -> Score:
    """The idf weight of the answer's distinct tokens that some context holds, divided by that of all of them.

    As lexical_support, and blind to the order of the words; rare words count more.
    """
    return _without_support(sample) or Score.scored(_coverage(sample.answer_tokens, sample))


@metric("answer_f1", kind="answer", undefined="no answer, or no reference answer", laws=_LAWS, source="SQuAD F1",
        formula="2 * shared tokens / (tokens of the answer + tokens of the reference)")
def answer_f1(sample: AnswerSample) -> Score:
    """Harmonic mean of token precision and recall against the reference answer; the best of all references.

    Case, punctuation and English articles are left out. 0 for a refusal that the references do not hold, and for an
    empty answer; undefined where the answer is unknown (None).

    >>> answer_f1(AnswerSample("Who?", "Marie Curie", references=("Curie", "Marie Sklodowska Curie"))).value
    0.8
    """
    return _best(sample, _f1)


@metric("exact_match", kind="answer", undefined="no answer, or no reference answer", laws=_LAWS, source="SQuAD EM",
        formula="1 if the normalised answer equals a normalised reference, else 0")
def exact_match(sample: AnswerSample) -> Score:
    """1 if the answer equals one of the reference answers, case, punctuation and English articles aside, else 0.

    An empty answer is wrong; one that is unknown (None) leaves it undefined.

    >>> exact_match(AnswerSample("Where?", "the Rome.", references=("Rome",))).value
    1.0
    """
    return _best(sample, lambda answer, reference: float(answer == reference))


def support_details(sample: AnswerSample) -> list[StatementSupport]:
    """The support of each sentence of the answer, with the numbers and names that no context holds.

    Names are words with a capital that do not open a sentence. Empty for an empty or refused answer.

    >>> details = support_details(AnswerSample("When?", "In 1990 it moved to Rome.", ("It moved in 1991.",)))
    >>> details[0].missing_numbers, details[0].missing_names
    (('1990',), ('Rome',))
    """
    if not sample.answer_tokens or sample.refused:
        return []
    details = []
    for statement in sentences(sample.answer or ""):
        words = tokens(statement)
        by_passage = [_support(words, context) for context in sample.context_tokens]
        best = max(by_passage, default=0.0)
        numbers = dict.fromkeys(word for word in words if is_number(word) and word not in sample.vocabulary)
        details.append(StatementSupport(
            text=statement, support=_support(words, sample.joined), coverage=_coverage(words, sample),
            passage=by_passage.index(best) if best > 0 else None,
            missing_numbers=tuple(numbers), missing_names=_missing_names(statement, sample.vocabulary)))
    return details


def _without_support(sample: AnswerSample) -> Score | None:
    if not sample.answer_tokens:
        return Score.undefined("no answer")
    if sample.refused:
        return Score.undefined("answer refused")
    return None if sample.joined else Score.undefined("no context")


def _support(words: Sequence[str], context: Sequence[str]) -> float:
    return longest_common_subsequence(words, context) / len(words)


def _coverage(words: Sequence[str], sample: AnswerSample) -> float:
    weights = [(sample.weight(word), word in sample.vocabulary) for word in dict.fromkeys(words)]
    total = math.fsum(weight for weight, _ in weights)
    return min(math.fsum(weight for weight, held in weights if held) / total, 1.0) if total > 0 else 0.0


def _best(sample: AnswerSample, compare: Callable[[list[str], list[str]], float]) -> Score:
    references = [reference for reference in sample.references if reference.strip()]
    if not references:
        return Score.undefined("no reference answer")
    if sample.answer is None:
        return Score.undefined("no answer")
    if not sample.answer.strip():
        return Score.scored(0.0)  # SQuAD's rule: an empty prediction is wrong, whatever the reference leaves of itself
    answer = normalized_tokens(sample.answer)
    return Score.scored(max(compare(answer, normalized_tokens(reference)) for reference in references))


def _f1(answer: list[str], reference: list[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    common = (Counter(answer) & Counter(reference)).total()
    return 2 * common / (len(answer) + len(reference))


def _missing_names(statement: str, vocabulary: frozenset[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for place, match in enumerate(_WORD.finditer(statement)):
        word = match.group()
        shouted = len(word) > 1 and word.isupper()
        if (shouted or (place > 0 and word[0].isupper() and len(word) > 1)) \
                and not vocabulary.issuperset(tokens(word.removesuffix("'s").removesuffix("’s"))):
            found[word] = None
    return tuple(found)
