"""One decorated function is all of a new metric: names, values, explanations, the page of definitions, the laws."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis.errors import NoSuchExample

from ragkit.errors import DataError
from ragkit.metrics import registry
from ragkit.metrics.batch import Floats, RankBatch, RankedIds
from ragkit.metrics.explain import EXAMPLE, explain
from ragkit.metrics.ranking import LAWS, build_batch, score_arrays, score_batch
from ragkit.metrics.registry import definitions, metric, parse, parse_all
from ragkit.report.definitions import metrics_page
from tests.metrics.test_laws import counterexample, undeclared
from tests.support.laws import CHECKS, RankCase, metrics_of, rank_cases


@pytest.fixture(autouse=True)
def rbp() -> Iterator[None]:
    before = dict(registry._DEFINITIONS), dict(registry._ALIASES)

    @metric("rbp[@k]", kind="ranking", undefined="no document reaches the level", laws=LAWS - {"perfect_is_one"},
            aliases=("patience",), source="Moffat & Zobel 2008, patience 0.8",
            formula="0.2 * sum over i <= k of rel_i * 0.8^(i - 1)")
    def rank_biased_precision(batch: RankBatch, k: int | None) -> Floats:
        """The rate of relevant documents for a reader who goes on to the next one four times in five."""
        return batch.where_relevant(batch.total(0.2 * 0.8 ** (batch.ranks - 1.0) * batch.relevant, k, "patience"))

    yield
    registry._DEFINITIONS.clear()
    registry._ALIASES.clear()
    registry._DEFINITIONS.update(before[0])
    registry._ALIASES.update(before[1])


def test_it_has_a_name_and_a_value() -> None:
    assert [found.name for found in parse_all("rbp@3, patience@2, rbp")] == ["rbp@3", "rbp@2", "rbp"]
    batch = build_batch([RankedIds("q", EXAMPLE[0]), RankedIds("?", ["A"])], {"q": EXAMPLE[1]})
    assert score_arrays(batch, parse_all("rbp@2,rbp,map"))[0] == pytest.approx([0.2, 0.328, 0.555556], abs=1e-6)
    assert score_batch(batch, parse_all("rbp"))[1][0].reason == "unlabelled"


def test_it_is_explained() -> None:
    found = explain(parse("rbp@5"), *EXAMPLE)
    assert found.value == pytest.approx(0.328)
    (one,) = found.sums
    assert (one.label, one.terms) == ("patience", ((1, pytest.approx(0.2)), (3, pytest.approx(0.128))))
    assert found.formula.startswith("0.2 * sum")


def test_it_stands_on_the_page_of_definitions() -> None:
    page = metrics_page()
    assert "**`rbp[@k]`** The rate of relevant documents for a reader" in page
    assert "also called patience; source: Moffat & Zobel 2008" in page


def test_it_is_held_to_its_laws() -> None:
    definition = parse("rbp").definition
    assert definition in definitions("ranking")
    for law in definition.laws:
        assert definition in {found.definition for found in metrics_of("ranking", law)}
    (left_out,) = undeclared(definition)
    assert left_out == "perfect_is_one"
    counterexample(definition, left_out)


@settings(max_examples=30)
@given(rank_cases())
def test_it_obeys_them(case: RankCase) -> None:
    for law, check in CHECKS["ranking"].items():
        metrics = [found for found in metrics_of("ranking", law) if found.definition.name == "rbp"]
        assert all(check(metrics, case)), law


def test_a_law_that_it_breaks_is_found_and_one_that_it_keeps_in_silence_too() -> None:
    declare = metric("flat", kind="ranking", undefined="never", laws={"in_range", "swap_up"})
    declare(lambda batch, k: batch.where_relevant(1.0 / (1.0 + batch.first_hit)))
    assert "batch_equals_single" in undeclared(parse("flat").definition)
    with pytest.raises(NoSuchExample):
        counterexample(parse("flat").definition, "batch_equals_single", tries=100)
    wrong = metric("wrong", kind="ranking", undefined="never", laws={"in_range"})
    wrong(lambda batch, k: batch.hits(k))
    with pytest.raises(DataError, match=r"metric wrong: expected values in its range \(0\.0, 1\.0\), got 2"):
        score_arrays(build_batch([RankedIds("q", EXAMPLE[0])], {"q": EXAMPLE[1]}), parse_all("wrong"))


@pytest.mark.parametrize(("name", "details", "told"), [
    ("up", {"direction": "up"}, "a direction of"), ("law", {"laws": {"in_rangee"}}, "unknown law 'in_rangee'"),
    ("Bad,7@x", {}, "expected a name"), ("turned", {"range": (1.0, 0.0)}, "from low to high")])
def test_a_wrong_declaration_is_refused(name: str, details: dict[str, object], told: str) -> None:
    with pytest.raises(DataError, match=told):
        metric(name, kind="ranking", undefined="never", **details)(lambda batch, k: batch.hits(k))


@pytest.mark.parametrize(("values", "told"), [
    (lambda batch, k: batch.hits(k)[:0], "expected an array of 1 values"), (lambda batch, k: {}[k], "KeyError")])
def test_the_faults_of_its_function_are_told_as_its_own(values: object, told: str) -> None:
    metric("faulty", kind="ranking", undefined="never")(values)  # type: ignore[type-var]
    with pytest.raises(DataError, match=f"metric faulty: .*{told}"):
        score_arrays(build_batch([RankedIds("q", EXAMPLE[0])], {"q": EXAMPLE[1]}), parse_all("faulty"))


def test_nothing_is_left_behind_by_the_tests_above() -> None:
    assert {"flat", "wrong"}.isdisjoint(definition.name for definition in definitions())
