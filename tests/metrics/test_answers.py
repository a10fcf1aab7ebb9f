"""Keyless answer metrics: values, gaps, flags, and what they measure on human labels."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from ragkit.metrics.answers import (
    AnswerSample,
    answer_f1,
    exact_match,
    idf_table,
    lexical_coverage,
    lexical_support,
    support_details,
)
from ragkit.metrics.registry import definitions
from ragkit.metrics.text import tokens
from ragkit.records.judgements import Score
from tests.support.data import data_folder

ALL = (lexical_support, lexical_coverage, answer_f1, exact_match)


def test_lexical_support_is_rouge_l_precision() -> None:
    contexts = ("The tower stands in Paris.", "It was built in 1889.")
    assert lexical_support(AnswerSample("?", "The tower was built in 1889", contexts)).value == 1.0, "over the join"
    assert lexical_support(AnswerSample("?", "built in Paris the tower", contexts)).value == pytest.approx(2 / 5)
    assert lexical_support(AnswerSample("?", "Nothing shared here", contexts)).value == 0.0
    assert lexical_support(AnswerSample("?", "重置密码", ("如何重置您的密码",))).value == 1.0


def test_lexical_coverage_weighs_rare_words_more() -> None:
    contexts = ("the cat", "the dog")
    known, rare = 1.0, np.log(3) + 1
    assert lexical_coverage(AnswerSample("?", "the the zebra", contexts)).value == pytest.approx(known / (known + rare))
    table = {"the": 0.0, "zebra": 5.0}
    assert lexical_coverage(AnswerSample("?", "the zebra", contexts, idf=table)).value == 0.0
    assert lexical_coverage(AnswerSample("?", "the cat", contexts, idf=table)).value == 1.0, "unknown: the rarest"
    assert lexical_coverage(AnswerSample("?", "dog the", contexts)).value == 1.0, "blind to order"
    assert lexical_coverage(AnswerSample("?", "the", contexts, idf={"the": 0.0})).value == 0.0


@pytest.mark.parametrize(("answer", "references", "f1", "exact"), [
    ("The Eiffel Tower!", ("eiffel tower",), 1.0, 1.0), ("Marie Curie", ("Curie", "Marie Sklodowska Curie"), 0.8, 0.0),
    ("Rome", ("Paris", "Rome"), 1.0, 1.0), ("Rome Rome", ("Rome",), 2 / 3, 0.0), ("London", ("Paris",), 0.0, 0.0),
    ("the", ("a",), 1.0, 1.0), ("the", ("Paris",), 0.0, 0.0), ("北京市", ("北京",), 0.8, 0.0),
    ("NA", ("NA",), 1.0, 1.0),
    ("", ("Paris",), 0.0, 0.0), (" \n", ("Paris", "Rome"), 0.0, 0.0), ("", ("the",), 0.0, 0.0),
    ("I don't know", ("Paris",), 0.0, 0.0),
])
def test_against_references(answer: str, references: tuple[str, ...], f1: float, exact: float) -> None:
    sample = AnswerSample("?", answer, (), references)
    assert answer_f1(sample).value == pytest.approx(f1)
    assert exact_match(sample).value == exact


@pytest.mark.parametrize(("sample", "reasons"), [
    (AnswerSample("?", None, ("c",), ("r",)), ["no answer"] * 4),
    (AnswerSample("?", "  ", ("c",), ("r",)), ["no answer", "no answer", None, None]),
    (AnswerSample("?", "a", (), ("r",)), ["no context", "no context", None, None]),
    (AnswerSample("?", "a", ("", "..."), ("r",)), ["no context", "no context", None, None]),
    (AnswerSample("?", "I don't know.", ("c",), ("r",)), ["answer refused", "answer refused", None, None]),
    (AnswerSample("?", "a", ("c",), (" ",)), [None, None, "no reference answer", "no reference answer"]),
])
def test_gaps(sample: AnswerSample, reasons: list[str | None]) -> None:
    assert [metric(sample).reason for metric in ALL] == reasons


def test_support_details() -> None:
    sample = AnswerSample("?", "In 1889 Gustave Eiffel built it. It is 330 m high, says NASA. Rome!", (
        "Nothing to see.", "Eiffel built it in 1889."))
    first, second, third = support_details(sample)
    assert (first.text, first.passage, first.missing_numbers) == ("In 1889 Gustave Eiffel built it.", 1, ())
    assert first.missing_names == ("Gustave",)
    assert (second.missing_numbers, second.missing_names) == (("330",), ("NASA",))
    assert (third.support, third.passage, third.missing_names) == (0.0, None, ()), "it opens the sentence"
    assert first.support > second.support


def test_details_of_nothing() -> None:
    assert support_details(AnswerSample("?", "I don't know.", ("c",))) == []
    assert support_details(AnswerSample("?", None, ("c",))) == []
    (bare,) = support_details(AnswerSample("?", "Built in 1889.", ()))
    assert (bare.support, bare.coverage, bare.missing_numbers) == (0.0, 0.0, ("1889",))


@given(st.text(max_size=40) | st.none(), st.lists(st.text(max_size=40), max_size=3), st.lists(st.text(max_size=20),
                                                                                            max_size=2))
def test_laws(answer: str | None, contexts: list[str], references: list[str]) -> None:
    sample = AnswerSample("?", answer, tuple(contexts), tuple(references))
    for metric in ALL:
        score = metric(sample)
        assert score.status != "failed"
        assert score.value is None or 0 <= score.value <= 1
    assert all(0 <= part.support <= 1 and 0 <= part.coverage <= 1 for part in support_details(sample))


@given(st.text(alphabet="ab 重.", min_size=1, max_size=30))
def test_an_answer_copied_from_the_context_is_carried_whole(text: str) -> None:
    sample = AnswerSample("?", text, ("first", f"before {text} after"), (text,))
    if tokens(text):
        assert lexical_support(sample).value == lexical_coverage(sample).value == exact_match(sample).value == 1.0


def test_registered_functions_are_these() -> None:
    assert tuple(d.function for d in definitions("answer")) == ALL


def test_long_answers_in_long_contexts_are_quick() -> None:
    words = [f"w{i % 700}" for i in range(3000)]
    sample = AnswerSample("?", " ".join(words[::-6]), (" ".join(words),))
    start = time.process_time()
    lexical_support(sample)
    assert time.process_time() - start < 1.0


def auroc(metric: Callable[[AnswerSample], Score], name: str, limit: int) -> float:
    lines = (data_folder(name) / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["faithful"] is not None][:limit]
    idf = idf_table(tokens(context) for row in rows for context in row["contexts"])
    scores = [metric(AnswerSample(row["question"], row["answer"], tuple(row["contexts"]), idf=idf)) for row in rows]
    labels = np.array([row["faithful"] for row in rows])[[score.value is not None for score in scores]]
    ranks = rankdata([score.value for score in scores if score.value is not None])
    n_true, n_false = labels.sum(), (1 - labels).sum()
    return float((ranks[labels == 1].sum() - n_true * (n_true + 1) / 2) / (n_true * n_false))


@pytest.mark.data
@pytest.mark.parametrize(("metric", "name", "expected"), [
    (lexical_support, "q2_wow", 0.726), (lexical_coverage, "q2_wow", 0.705),
    (lexical_support, "begin", 0.941), (lexical_coverage, "begin", 0.949)])
def test_agreement_with_human_labels(metric: Callable[[AnswerSample], Score], name: str, expected: float) -> None:
    assert auroc(metric, name, 1500) == pytest.approx(expected, abs=0.01)
