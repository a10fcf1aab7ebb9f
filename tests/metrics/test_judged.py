"""Judged metrics from verdicts: values, edges, and equality with ragas' own formulas."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.metrics.judged import (
    FROM_ANSWER,
    FROM_REFERENCE,
    answer_accuracy,
    answer_relevancy,
    context_precision,
    context_recall,
    context_relevance,
    factual_correctness,
    faithfulness,
    model_calls,
    noise_sensitivity,
    response_groundedness,
)
from ragkit.metrics.registry import definitions, parse
from ragkit.records.judgements import Score, Verdict

BITS = st.lists(st.sampled_from([0, 1]), min_size=1, max_size=12)
BINARY = (context_precision, context_recall, faithfulness)


def verdicts(*values: float) -> list[Verdict]:
    return [Verdict(value) for value in values]


@pytest.mark.parametrize(("values", "expected"), [
    ((1, 0, 1), 0.833333), ((0, 1, 0), 0.5), ((0, 0, 0), 0.0), ((1,), 1.0), ((0, 1, 1), 0.583333),
    ((0, 0, 0, 0, 1), 0.2), ((1, 1, 1), 1.0), ((0, 1, 0, 0, 0, 1), 0.416667)])
def test_context_precision(values: tuple[int, ...], expected: float) -> None:
    assert context_precision(verdicts(*values)).value == pytest.approx(expected, abs=1e-6)


def test_a_perfect_list_is_exactly_one() -> None:
    assert context_precision(verdicts(1)).value == 1.0
    assert context_precision(verdicts(1, 1, 0)).value == 1.0


def test_shares() -> None:
    assert context_recall(verdicts(1, 0, 1, 1)).value == 0.75
    assert faithfulness(verdicts(0, 0)).value == 0.0


def test_nothing_to_judge_is_undefined() -> None:
    assert context_precision([]) == Score.undefined("no context")
    assert context_recall([]) == Score.undefined("no statement in the reference answer")
    assert faithfulness([]) == Score.undefined("answer refused")
    assert answer_relevancy([]) == Score.undefined("no question generated")


@pytest.mark.parametrize("function", BINARY)
@pytest.mark.parametrize("wrong", [2, -1, 0.5, math.nan])
def test_a_verdict_that_is_neither_0_nor_1_fails_the_metric(function, wrong) -> None:  # type: ignore[no-untyped-def]
    score = function(verdicts(1, wrong))
    assert score.status == "failed"
    assert "2: expected 0 or 1" in score.reason


def test_answer_relevancy() -> None:
    shy = ("noncommittal",)
    assert answer_relevancy(verdicts(0.9, 0.6, 0.3)).value == pytest.approx(0.6)
    assert answer_relevancy([Verdict(0.9, flags=shy), Verdict(0.5)]).value == pytest.approx(0.7), "one is ignored"
    assert answer_relevancy([Verdict(0.9, flags=shy)] * 3).value == 0.0
    assert answer_relevancy(verdicts(-1, -0.5)).value == pytest.approx(-0.75), "may be negative"
    assert answer_relevancy(verdicts(1 + 1e-7, 1 + 1e-7)).value == 1.0
    assert answer_relevancy(verdicts(0.4, math.nan)) == Score.undefined("zero vector")
    assert answer_relevancy([Verdict(0.0, flags=("zero_vector",))]) == Score.undefined("zero vector")
    assert answer_relevancy(verdicts(0.4, 1.5)).status == "failed"


@given(BITS)
def test_formulas_of_ragas(bits: list[int]) -> None:
    found = context_precision(verdicts(*bits)).value
    numerator = sum(sum(bits[:i + 1]) / (i + 1) * bits[i] for i in range(len(bits)))
    assert found == pytest.approx(numerator / (sum(bits) + 1e-10), abs=1e-9)
    assert found is not None and 0 <= found <= 1


@pytest.mark.slow  # the import of ragas alone takes seconds
def test_equal_to_ragas_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "true")
    collections = pytest.importorskip("ragas.metrics.collections", reason="ragas is not installed")
    theirs = object.__new__(collections.ContextPrecisionWithReference)._calculate_average_precision
    for bits in itertools.chain.from_iterable(itertools.product([0, 1], repeat=n) for n in range(1, 9)):
        assert context_precision(verdicts(*bits)).value == pytest.approx(theirs(list(bits)), abs=1e-9)


def test_ratings() -> None:
    assert answer_accuracy(verdicts(4, 0)).value == 0.5
    assert context_relevance(verdicts(1, 1)).value == response_groundedness(verdicts(2, 0)).value == 0.5
    for function, wrong in ((answer_accuracy, 1), (answer_accuracy, 3), (context_relevance, 4)):
        score = function(verdicts(0, wrong))
        assert (score.status, score.value) == ("failed", None)
        assert f"rating 2: expected 0, {'2, 4' if function is answer_accuracy else '1, 2'}" in str(score.reason)
    assert context_relevance(verdicts(2)).status == "failed", "ragas takes the one that is left for the mean"


def claims(own: str, expected: str) -> list[Verdict]:
    return [Verdict(int(bit), flags=(flag,)) for bits, flag in ((own, FROM_ANSWER), (expected, FROM_REFERENCE))
            for bit in bits]


@pytest.mark.parametrize(("own", "expected", "value"), [
    ("111", "11", 1.0), ("10", "1", 2 / 3), ("10", "10", 0.5), ("00", "11", 0.0), ("", "01", 0.0), ("1", "000", 0.4)])
def test_factual_correctness(own: str, expected: str, value: float) -> None:
    assert factual_correctness(claims(own, expected)).value == pytest.approx(value)


def test_factual_correctness_needs_something_to_hold_the_answer_to() -> None:
    assert factual_correctness(claims("11", "")) == Score.undefined("no claim in the reference answer")
    assert factual_correctness([Verdict(1)]).status == "failed", "nobody knows whose claim it is"
    assert factual_correctness([Verdict(2, flags=(FROM_REFERENCE,))]).status == "failed"


@given(BITS, BITS)
def test_factual_correctness_is_the_harmonic_mean(own: list[int], expected: list[int]) -> None:
    hit, wrong, missed = sum(own), own.count(0), expected.count(0)
    value = factual_correctness(claims("".join(map(str, own)), "".join(map(str, expected)))).value
    assert value == pytest.approx(2 * hit / (2 * hit + wrong + missed) if hit else 0.0)


def test_noise_sensitivity_is_worse_when_higher() -> None:
    assert noise_sensitivity(verdicts(1, 0)).value == 0.5
    assert noise_sensitivity([]).status == "undefined"
    assert parse("noise_sensitivity").definition.direction == "lower"


def test_declared_calls_and_range() -> None:
    found = {d.name: (d.calls, d.range) for d in definitions("judged")}
    whole = (0.0, 1.0)
    assert found == {
        "context_precision": ("k", whole), "context_precision_without_reference": ("k", whole),
        "context_recall": ("1", whole), "faithfulness": ("2", whole), "answer_relevancy": ("3", (-1.0, 1.0)),
        "context_relevance": ("2", whole), "response_groundedness": ("2", whole), "answer_accuracy": ("2", whole),
        "factual_correctness": ("4", whole), "noise_sensitivity": ("2k+3", whole)}


@pytest.mark.parametrize(("formula", "calls"), [("k", 5), ("2k+3", 13), ("k+1", 6), ("4", 4), ("0", 0)])
def test_model_calls(formula: str, calls: int) -> None:
    assert model_calls(formula, 5) == calls


@pytest.mark.parametrize("formula", ["", "m", "2m+1", "k*2"])
def test_a_formula_of_calls_that_nobody_can_read(formula: str) -> None:
    with pytest.raises(ValueError, match="expected a formula such as 2k"):
        model_calls(formula, 5)
