"""Every registered metric obeys the laws that it declares, and is shown to break each one that it does not declare.

The metrics are those of the registry when the test runs: a new one is held to its laws without an edit here.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from ragkit.evaluation.score import Scorer
from ragkit.evaluation.scoring import Scoring
from ragkit.evaluation.units import Projection
from ragkit.metrics.answers import AnswerSample
from ragkit.metrics.ranking import RankedIds, build_batch, score_batch
from ragkit.metrics.registry import LAWS, Definition, Kind, Law, definitions, parse
from ragkit.records.questions import Dataset, Question
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory
from tests.support.laws import CASES, CHECKS, RankCase, cuts_of, metrics_of, rank_cases, values

KINDS_AND_LAWS = [(kind, law) for kind, laws in CHECKS.items() for law in laws]
NO_DIRECTION: Law = "swap_up"  # says which way is better, so a metric without a good direction cannot declare it


def undeclared(definition: Definition) -> list[Law]:
    return [law for law in CHECKS[definition.kind] if law not in definition.laws
            and not (law == NO_DIRECTION and definition.direction == "none")]


def counterexample(definition: Definition, law: Law, tries: int = 5000) -> Any:
    """A case that breaks a law, in some cut of the metric; NoSuchExample where none is found."""
    metrics, check = cuts_of(definition), CHECKS[definition.kind][law]
    searching = settings(max_examples=tries, database=None, derandomize=True, phases=[Phase.generate],
                         suppress_health_check=list(HealthCheck))
    return find(CASES[definition.kind], lambda case: not all(check(metrics, case)), settings=searching)


@pytest.mark.parametrize(("kind", "law"), KINDS_AND_LAWS)
def test_every_metric_obeys_the_laws_that_it_declares(kind: Kind, law: Law) -> None:
    metrics = metrics_of(kind, law)
    assert metrics, "a law that no metric declares is no law"

    @settings(max_examples=60)
    @given(CASES[kind])
    def check(case: Any) -> None:
        broken = [m.name for m, holds in zip(metrics, CHECKS[kind][law](metrics, case), strict=True) if not holds]
        assert not broken

    check()


@pytest.mark.parametrize(("definition", "law"), [(d, law) for d in definitions() for law in undeclared(d)],
                         ids=lambda value: getattr(value, "name", value))
def test_a_law_that_is_not_declared_is_broken(definition: Definition, law: Law) -> None:
    try:
        counterexample(definition, law)
    except NoSuchExample:
        pytest.fail(f"{definition.name} seems to obey {law!r} ({LAWS[law]}): declare it")


@pytest.mark.parametrize("definition", definitions(), ids=lambda d: d.name)
def test_laws_are_declared_that_can_be_tested(definition: Definition) -> None:
    assert definition.laws <= set(CHECKS[definition.kind])
    assert {"in_range", "deterministic"} <= definition.laws
    assert not (definition.direction == "none" and NO_DIRECTION in definition.laws)


def test_which_laws_the_rank_metrics_leave_out() -> None:
    assert {(d.name, law) for d in definitions("ranking") for law in undeclared(d)} == {
        ("precision", "perfect_is_one"), ("query_precision", "perfect_is_one"), ("dcg", "perfect_is_one"),
        ("ap_retrieved", "swap_up"),
        ("judged", "nothing_relevant_undefined"), ("judged", "empty_is_zero"), ("judged", "padding"),
        ("first_relevant_rank", "empty_is_zero"), ("precision_set", "padding"), ("precision_returned", "padding"),
        ("id_context_precision", "padding")}


def test_average_precision_over_what_was_retrieved_punishes_a_better_list() -> None:
    metrics = [parse("ap_retrieved@3"), parse("map@3")]
    before = values(metrics, RankCase(("a", "x", "y", "b"), {"a": 1, "b": 1}))
    after = values(metrics, RankCase(("a", "x", "b", "y"), {"a": 1, "b": 1}))
    assert after[0] < before[0], "b came into the cut"
    assert after[1] > before[1]


@given(rank_cases(), st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=4))
@settings(max_examples=40)
def test_the_steps_of_a_trajectory_are_separate_rankings(case: RankCase, others: list[list[str]]) -> None:
    gold = {**case.gold, "a": 1.0, "c": 2.0}
    lists = [case.ids, *others]
    steps = tuple(Step(i, (Retrieval("retrieve", "?", tuple(map(Passage, ids))),)) for i, ids in enumerate(lists))
    metrics = [metric for metric in metrics_of("ranking") if metric.definition.against == "question"]
    scoring = Scoring("app", Dataset((Question("q", "?"),), {"q": gold}), (Trajectory("q", "?", steps),),
                      Projection("chunk", {"q": gold}), tuple(metrics), case.level)
    found = {(row.step, row.metric): (row.value, row.status, row.reason) for row in Scorer(scoring, None).rows()}
    for place, ids in enumerate(lists):
        (alone,) = score_batch(build_batch([RankedIds("q", ids)], {"q": gold}, level=case.level), metrics)
        for metric, score in zip(metrics, alone, strict=True):
            assert found[str(place), metric.name] == (score.value, score.status, score.reason)


@pytest.mark.parametrize(("kind", "case"), [
    ("judged", []), ("answer", AnswerSample("?", None)), ("answer", AnswerSample("?", "yes"))])
def test_nothing_to_measure_is_undefined_with_a_reason(kind: Kind, case: Any) -> None:
    for definition in definitions(kind):
        score = definition.function(case)
        assert (score.status, score.value) == ("undefined", None), definition.name
        assert score.reason


@given(rank_cases())
def test_an_undefined_rank_metric_says_why(case: RankCase) -> None:
    metrics = metrics_of("ranking")
    (row,) = score_batch(build_batch([RankedIds("q", case.ids)], {"q": case.gold}, level=case.level), metrics)
    relevant = any(grade >= case.level for grade in case.gold.values())
    for metric, score in zip(metrics, row, strict=True):
        needs_gold = "nothing_relevant_undefined" in metric.definition.laws
        if score.status == "undefined":
            expected = "unlabelled" if not case.gold else (
                "no relevant document" if needs_gold and not relevant else metric.definition.otherwise)
            assert score.reason == expected, metric.name


def test_each_law_has_words() -> None:
    assert set(LAWS) == {law for laws in CHECKS.values() for law in laws}
