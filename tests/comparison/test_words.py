"""The sentences of a conclusion: which way is better, what would decide, and how much is said of many metrics."""

from __future__ import annotations

from typing import Any

import pytest

from ragkit.comparison.words import conclusion
from ragkit.metrics.registry import parse_all

PLAIN = {"difference": 0.05, "low": 0.03, "high": 0.07, "p": 0.0001, "p_holm": 0.0001, "wins": 40, "ties": 450,
         "losses": 10, "n": 500, "decided": True, "questions_to_decide": 300, "repeats_to_decide": None,
         "corrected": None}
OPEN = {**PLAIN, "difference": 0.01, "low": -0.01, "high": 0.03, "p": 0.3, "p_holm": 0.3, "decided": False,
        "questions_to_decide": 820}


def said(metric: str = "ndcg@10", **figures: Any) -> str:
    lines = conclusion({metric: {"reranked": {**PLAIN, **figures}}}, parse_all(metric), "dense")
    assert len(lines) == 1
    return lines[0]


def test_what_is_decided() -> None:
    assert said() == "reranked is better than dense on ndcg@10 by 0.050 [0.030, 0.070] (decided, 500 questions)"
    assert said(difference=-0.05, low=-0.07, high=-0.03) == \
        "reranked is worse than dense on ndcg@10 by 0.050 [0.030, 0.070] (decided, 500 questions)"
    assert said("steps_to_evidence").startswith("reranked is worse than dense on steps_to_evidence by 0.050")
    assert said("steps_to_evidence", difference=-0.05, low=-0.07, high=-0.03).startswith("reranked is better")
    assert said(n=1, low=None, high=None) == "reranked is better than dense on ndcg@10 by 0.050 (decided, 1 question)"


@pytest.mark.parametrize(("figures", "end"), [
    ({}, "; 320 more questions would do"),
    ({"repeats_to_decide": 4}, "; 320 more questions, or 4 repeats each, would do"),
    ({"questions_to_decide": 501}, "; 1 more question would do"),
    ({"questions_to_decide": 400}, "; so many questions show a difference of this size in four of five cases: this was "
                                   "the fifth, or chance"),
    ({"difference": 0.0, "questions_to_decide": None}, "; no number of questions tells a difference of nothing"),
    ({"p": 0.03, "p_holm": 0.09}, "; by itself it would be (p = 0.030), not among 1 differences tested together: name "
                                  "fewer metrics beforehand (-m), or ask more questions"),
])
def test_what_is_not_decided_says_what_would_do(figures: dict[str, Any], end: str) -> None:
    line = said(**{**OPEN, **figures})
    assert line.startswith("not decided: reranked and dense on ndcg@10, a difference of 0.0")
    assert line.endswith(end), line


def test_the_same_and_not_scored() -> None:
    assert said(**{**OPEN, "wins": 0, "losses": 0, "difference": 0.0}) == \
        "reranked and dense are the same on every metric compared (500 questions)"
    nothing = dict.fromkeys(PLAIN) | {"wins": 0, "ties": 0, "losses": 0, "n": 0, "decided": False}
    assert said(**nothing) == "reranked and dense cannot be compared on ndcg@10: no question was scored in both"


def test_of_many_metrics_the_leading_ones_have_a_sentence_and_the_others_are_named() -> None:
    names = "hit@1,hit@5,ndcg@5,ndcg@10,recall,precision@5,mrr,novelty"
    table = {metric.name: {"new": OPEN if metric.name in ("recall", "hit@5") else PLAIN}
             for metric in parse_all(names)}
    assert conclusion(table, parse_all(names), "old") == [
        "new is better than old on ndcg@10 by 0.050 [0.030, 0.070] (decided, 500 questions)",
        "new is better than old on mrr by 0.050 [0.030, 0.070] (decided, 500 questions)",
        "not decided: new and old on recall, a difference of 0.010 [-0.010, 0.030] (500 questions); 320 more questions "
        "would do",
        "new is better than old also on: hit@1, ndcg@5, precision@5, novelty (decided)",
        "not decided between new and old: hit@5",
    ]
