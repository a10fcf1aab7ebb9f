"""Judged metrics from verdicts: values, edges, and equality with ragas' own formulas."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.metrics.judged import answer_relevancy, context_precision, context_recall, faithfulness
from ragkit.metrics.registry import definitions
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


def test_declared_calls_and_range() -> None:
    found = {d.name: (d.calls, d.range) for d in definitions("judged")}
    assert found == {"context_precision": ("k", (0.0, 1.0)), "context_recall": ("1", (0.0, 1.0)),
                     "faithfulness": ("2", (0.0, 1.0)), "answer_relevancy": ("3", (-1.0, 1.0))}
