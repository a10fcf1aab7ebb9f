"""Laws that hold for every registered rank metric that declares them, and proof that it holds no law it does not."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays, score_batch
from ragkit.metrics.registry import Definition, Law, Metric, definitions, parse

DEFINITIONS = definitions("ranking")
CUTS = (1, 2, 3, 5, 50)
METRICS = [Metric(d, k) for d in DEFINITIONS
           for k in ([None] if d.cut != "required" else []) + (list(CUTS) if d.cut != "none" else [])]
IDS = st.text(alphabet="ab7é知😀\u200b ", min_size=1, max_size=4)
GRADE = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 1.0, 1.9, 2.0, 3.0])
GOLD = st.dictionaries(IDS, GRADE, max_size=8)
LEVEL = st.sampled_from([0.5, 1.0, 2.0])
SLACK = 1e-12


@st.composite
def ranking(draw: st.DrawFn, copies: bool = True) -> tuple[list[str], dict[str, float]]:
    gold = draw(GOLD)
    pool = st.sampled_from(sorted(gold)) | IDS if gold else IDS
    return draw(st.lists(pool, max_size=10, unique=not copies)), gold


def obeying(law: Law) -> list[Metric]:
    return [metric for metric in METRICS if law in metric.definition.laws]


def values(ids: Sequence[str], gold: Mapping[str, float], metrics: list[Metric], level: float = 1.0) -> list[float]:
    batch = build_batch([RankedIds("q", ids)], {"q": gold}, level=level)
    found: list[float] = score_arrays(batch, metrics)[0].tolist()
    return found


@given(ranking(), LEVEL)
def test_in_range(case: tuple[list[str], dict[str, float]], level: float) -> None:
    metrics = obeying("in_range")
    for metric, value in zip(metrics, values(*case, metrics, level), strict=True):
        low, high = metric.definition.range
        if not math.isnan(value):
            assert low is None or value >= low, metric.name
            assert high is None or value <= high, metric.name


@given(GOLD)
def test_perfect_is_one(gold: dict[str, float]) -> None:
    gold = {i: grade for i, grade in gold.items() if grade <= 0 or grade >= 1}
    ideal = sorted((i for i in gold if gold[i] > 0), key=lambda i: -gold[i])
    if not ideal:
        return
    metrics = [m for m in obeying("perfect_is_one") if m.k is None or m.k >= len(ideal)]
    for metric, value in zip(metrics, values(ideal, gold, metrics), strict=True):
        assert value == 1.0, metric.name


@given(ranking(copies=False), LEVEL, st.data())
def test_swap_up(case: tuple[list[str], dict[str, float]], level: float, data: st.DataObject) -> None:
    ids, gold = case
    pairs = [(i, j) for j in range(len(ids)) for i in range(j) if gold.get(ids[i], 0) < gold.get(ids[j], 0)]
    if not pairs:
        return
    i, j = data.draw(st.sampled_from(pairs))
    swapped = list(ids)
    swapped[i], swapped[j] = swapped[j], swapped[i]
    metrics = obeying("swap_up")
    for metric, before, after in zip(metrics, values(ids, gold, metrics, level),
                                     values(swapped, gold, metrics, level), strict=True):
        if math.isnan(before):
            assert math.isnan(after), metric.name
        elif metric.definition.direction == "lower":
            assert after <= before + SLACK, metric.name
        else:
            assert after >= before - SLACK, metric.name


@given(ranking(), st.randoms(use_true_random=False))
def test_rename(case: tuple[list[str], dict[str, float]], shuffler: random.Random) -> None:
    ids, gold = case
    names = list(dict.fromkeys([*ids, *gold]))
    other = [f"doc-{i}" for i in range(len(names))]
    shuffler.shuffle(other)
    new = dict(zip(names, other, strict=True))
    metrics = obeying("rename")
    renamed = values([new[i] for i in ids], {new[i]: grade for i, grade in gold.items()}, metrics)
    np.testing.assert_array_equal(values(ids, gold, metrics), renamed)


@given(ranking())
def test_nothing_relevant_undefined(case: tuple[list[str], dict[str, float]]) -> None:
    ids, gold = case
    metrics = obeying("nothing_relevant_undefined")
    assert np.isnan(values(ids, {i: min(grade, 0.0) for i, grade in gold.items()}, metrics)).all()


@settings(max_examples=50)
@given(st.lists(ranking(), max_size=6), LEVEL)
def test_batch_equals_single(cases: list[tuple[list[str], dict[str, float]]], level: float) -> None:
    metrics = obeying("batch_equals_single")
    ranks = [RankedIds(f"q{i}", ids, ranked=i % 3 != 2) for i, (ids, _) in enumerate(cases)]
    qrels = {f"q{i}": gold for i, (_, gold) in enumerate(cases)}
    together = score_batch(build_batch(ranks, qrels, level=level), metrics)
    alone = [score_batch(build_batch([rank], qrels, level=level), metrics)[0] for rank in ranks]
    assert together == alone


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda d: d.name)
def test_the_laws_that_all_obey(definition: Definition) -> None:
    assert {"in_range", "rename", "batch_equals_single"} <= definition.laws


# (metric, law) -> why it is not declared: inputs before and after, or one input, that break it.
BROKEN: dict[tuple[str, Law], tuple[str, tuple[list[str], dict[str, float]], object]] = {
    ("precision", "perfect_is_one"): ("precision@3", (["a"], {"a": 1}), None),
    ("dcg", "perfect_is_one"): ("dcg@2", (["a", "b"], {"a": 1, "b": 1}), None),
    ("ap_retrieved", "swap_up"): ("ap_retrieved@3", (["a", "x", "y", "b"], {"a": 1, "b": 1}), (2, 3)),
    ("judged", "nothing_relevant_undefined"): ("judged@1", (["a"], {"a": 0}), None),
}
NO_DIRECTION = {("judged", "swap_up")}  # a coverage of labels is neither good nor bad


def test_no_law_is_left_out_without_a_counterexample() -> None:
    laws: tuple[Law, ...] = ("perfect_is_one", "swap_up", "nothing_relevant_undefined")
    left_out = {(d.name, law) for d in DEFINITIONS for law in laws if law not in d.laws}
    assert left_out == set(BROKEN) | NO_DIRECTION


@pytest.mark.parametrize(("key", "example"), BROKEN.items(), ids=str)
def test_counterexample(key: tuple[str, Law], example: tuple[str, tuple[list[str], dict[str, float]], object]) -> None:
    name, (ids, gold), places = example
    (value,) = values(ids, gold, [parse(name)])
    if key[1] == "perfect_is_one":
        assert value != 1.0
    elif key[1] == "nothing_relevant_undefined":
        assert not math.isnan(value)
    else:
        assert isinstance(places, tuple)
        swapped = list(ids)
        swapped[places[0]], swapped[places[1]] = ids[places[1]], ids[places[0]]
        assert values(swapped, gold, [parse(name)])[0] < value
