"""Rules as they are written, the questions they are about, and how high a metric can come at all."""

from __future__ import annotations

import math

import pytest

from ragkit.comparison.ceilings import attainable, out_of_reach
from ragkit.comparison.rules import USUAL, parse_rule, parse_rules, questions_of
from ragkit.comparison.sides import QuestionFacts
from ragkit.errors import DataError
from ragkit.metrics.registry import parse


@pytest.mark.parametrize(("text", "metric", "where", "compare", "threshold"), [
    ("mrr>=0.7", "mrr", (), ">=", 0.7),
    ("  nDCG@10 > .5 ", "ndcg@10", (), ">", 0.5),
    ("recall[category=how-to]>=0.8", "recall", (("category", "how-to"),), ">=", 0.8),
    ("recall [category = how to, or not] >= 8e-1", "recall", (("category", "how to, or not"),), ">=", 0.8),
    ("recall[category=a>=b]>=0.8", "recall", (("category", "a>=b"),), ">=", 0.8),
    ("recall[category=[x]]==1", "recall", (("category", "[x]"),), "==", 1.0),
    ("P@5[gold=multi-hop][tag=x=y]<=0.4", "precision@5", (("gold", "multi-hop"), ("tag", "x=y")), "<=", 0.4),
    ("rerank_lift<-0.1", "rerank_lift", (), "<", -0.1),
])
def test_a_rule_says_what_it_says_and_parses_back(text: str, metric: str, where: object, compare: str,
                                                  threshold: float) -> None:
    rule = parse_rule(text)
    assert (rule.metric.name, rule.where, rule.compare, rule.threshold) == (metric, where, compare, threshold)
    assert parse_rule(rule.text) == rule


@pytest.mark.parametrize(("text", "said"), [
    ("mrr", "expected METRIC[SLICING=SLICE] COMPARE NUMBER"), ("mrr=0.7", "expected METRIC"), ("", "expected METRIC"),
    ("mrr!=0.7", "expected METRIC"), ("mrr>=much", "expected a number after >=, got 'much'"),
    ("mrr>=nan", "expected a number after >="), ("mrr>=0.7 and more", "expected METRIC"),
    ("mmr>=0.7", "unknown metric 'mmr'; did you mean mrr"), ("precision>=0.7", "a cut is needed"),
    ("recall[how-to]>=0.7", "expected [SLICING=SLICE], such as [category=how-to], got [how-to]"),
    ("recall[category=]>=0.7", "expected [SLICING=SLICE]"), ("cumulative_recall>=0.7", "a value a step"),
])
def test_what_is_no_rule_is_told_with_the_rule(text: str, said: str) -> None:
    with pytest.raises(DataError) as error:
        parse_rule(text)
    assert said in str(error.value) and str(error.value).startswith(f"rule {text!r}: ")


def test_the_usual_targets_are_strictly_above() -> None:
    assert USUAL == ("mrr>0.7", "precision@5>0.6")
    assert [rule.text for rule in parse_rules((), ["usual"])] == list(USUAL)
    assert not parse_rule(USUAL[0]).holds(0.7) and parse_rule(USUAL[0]).holds(0.7001)
    with pytest.raises(DataError, match="--targets 'best': expected usual"):
        parse_rules((), ["best"])


def test_a_mean_that_differs_from_the_threshold_by_rounding_is_equal_to_it() -> None:
    mean = math.nextafter(0.7, 0)
    held = {op: parse_rule(f"mrr{op}0.7").holds(mean) for op in (">=", "<=", "==", ">", "<")}
    assert held == {">=": True, "<=": True, "==": True, ">": False, "<": False}


FACTS = [QuestionFacts("q1", category="a", tags=("x", "y"), n_gold=1, label_state="labelled", metadata={"lang": "de"}),
         QuestionFacts("q2", n_gold=2, label_state="labelled", metadata={"lang": "en"}),
         QuestionFacts("q3", category="a", tags=("x",), n_gold=0, label_state="unanswerable")]


@pytest.mark.parametrize(("slices", "questions"), [
    ("", "q1 q2 q3"), ("[category=a]", "q1 q3"), ("[category=(no category)]", "q2"), ("[gold=multi-hop]", "q2"),
    ("[gold=1]", "q1"), ("[labels=unanswerable]", "q3"), ("[tag=x]", "q1 q3"), ("[tag=(no tag)]", "q2"),
    ("[metadata.lang=de]", "q1"), ("[category=a][tag=y]", "q1"),
])
def test_a_rule_is_about_the_questions_of_its_slices(slices: str, questions: str) -> None:
    assert questions_of(parse_rule(f"mrr{slices}>0"), FACTS) == tuple(questions.split())


def test_a_slice_that_all_questions_are_in_and_a_key_with_many_values_are_slices_too() -> None:
    one = [QuestionFacts(f"q{n}", category="a", metadata={"page": str(n)}) for n in range(30)]
    assert len(questions_of(parse_rule("mrr[category=a]>0"), one)) == 30
    assert questions_of(parse_rule("mrr[metadata.page=17]>0"), one) == ("q17",)


@pytest.mark.parametrize(("slices", "said"), [
    ("[category=b]", "no question in category 'b'; expected one of: a, (no category)"),
    ("[gold=7]", "no question in gold '7'; expected one of: 0, 1, 2"),
    ("[step=0]", "no slicing 'step'; expected category, gold, labels, length, tag or metadata.KEY"),
    ("[metadata.land=de]", "no question in metadata.land 'de'; expected one of: none known"),
    ("[gold=2][category=a]", "no question is in all of its slices"),
])
def test_a_slice_without_a_question_is_an_error_that_names_those_there_are(slices: str, said: str) -> None:
    with pytest.raises(DataError) as error:
        questions_of(parse_rule(f"mrr{slices}>0"), FACTS)
    assert said in str(error.value)


def facts(*gold: int, grade: float = 1.0) -> list[QuestionFacts]:
    return [QuestionFacts(f"q{n}", n_gold=count, label_state="labelled",
                          grades={f"d{d}": grade for d in range(count)}) for n, count in enumerate(gold)]


@pytest.mark.parametrize(("metric", "gold", "ceiling"), [
    ("precision@5", (2, 2), 0.4), ("precision@5", (2, 1, 0), 0.3), ("precision@5", (9,), 1.0),
    ("recall@2", (4, 2), 0.75), ("map@2", (4,), 0.5), ("allhit@2", (3, 1), 0.5), ("hit@1", (3, 1), 1.0),
    ("mrr", (3,), 1.0), ("ndcg@10", (12,), 1.0), ("precision_set", (2,), 1.0), ("aucr@5", (2,), 1.0),
    ("faithfulness", (2,), 1.0), ("precision@5", (), 1.0),
])
def test_the_ceiling_is_what_an_ideal_list_reaches(metric: str, gold: tuple[int, ...], ceiling: float) -> None:
    assert attainable(parse(metric), facts(*gold)).high == pytest.approx(ceiling)


def test_a_ceiling_knows_the_level_and_which_way_is_better() -> None:
    half = facts(4, grade=1.0)
    assert attainable(parse("recall@2"), half, level=2.0).high == 1.0, "no document counts: nothing is known"
    first = attainable(parse("first_relevant_rank"), facts(2))
    assert (first.low, first.high, first.gold) == (1.0, None, None)
    assert attainable(parse("precision@5"), facts(1, 3)).gold == "1 to 3 gold passages each, 2.0 in the mean"


@pytest.mark.parametrize(("rule", "said"), [
    ("precision@5>0.6", "above its ceiling: precision@5 cannot exceed 0.4 (2 gold passages each)"),
    ("precision@5>=0.4", None), ("precision@5>0.4", "cannot exceed 0.4"), ("precision@5==0.4", None),
    ("precision@5==0.5", "cannot exceed 0.4"), ("precision@5<=0.9", None), ("precision@5<0", "below its floor"),
    ("mrr>1", "above its ceiling: mrr cannot exceed 1 (its range)"),
    ("first_relevant_rank<=0.5", "cannot fall below 1"),
    ("first_relevant_rank>=40", None), ("first_relevant_rank==0", "cannot fall below 1"),
])
def test_a_rule_that_no_app_could_keep_is_out_of_reach(rule: str, said: str | None) -> None:
    parsed = parse_rule(rule)
    told = out_of_reach(parsed, attainable(parsed.metric, facts(2, 2)))
    assert told == said if said is None else told is not None and said in told


def test_an_ideal_list_has_the_best_grades_first() -> None:
    graded = [QuestionFacts("q", n_gold=2, label_state="labelled", grades={"a": 1.0, "b": 3.0, "c": 0.0})]
    assert attainable(parse("dcg@1"), graded).high == 3.0
    assert attainable(parse("ndcg@1"), graded).high == 1.0
