"""The bounds of rank metrics over what nobody judged: held against every way of filling the holes of small lists."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from ragkit.comparison.holes_bounds import bounded, extremes
from ragkit.comparison.holes_pool import pool_of
from ragkit.metrics.ranking import batch_of_lists, score_arrays
from ragkit.metrics.registry import Metric, parse, parse_all

EXACT = ("hit@3,hit,precision@3,precision_set,precision_returned@3,recall@3,recall,id_context_recall,allhit@3,allhit,"
         "mrr,mrr@2,dcg@3,ndcg@3,ndcg,ndcg_exp@3")
Lists = tuple[list[str], list[str]]


def by_hand(metric: Metric, lists: Lists, gold: dict[str, float], level: float) -> np.ndarray:
    """(value of the first list, difference to the second) of every way to fill the holes; as it is in the first row."""
    holes = [name for name in dict.fromkeys([*lists[0][:metric.k], *lists[1][:metric.k]]) if name not in gold]
    found = []
    for filled in itertools.product([False, True], repeat=len(holes)):
        more = {name: max(gold.values()) for name, is_filled in zip(holes, filled, strict=True) if is_filled}
        values = score_arrays(batch_of_lists(["q", "q"], lists, {"q": {**gold, **more}}, level=level), [metric])[:, 0]
        found.append((values[0], values[0] - values[1]))
    return np.array(found)


def cases(count: int, seed: int) -> list[tuple[Lists, dict[str, float], float]]:
    """Short lists with copies, gold with one grade or several, judged ones that are not relevant, both levels."""
    chance, made, names = random.Random(seed), [], [f"d{n}" for n in range(7)]
    while len(made) < count:
        graded = chance.random() < 0.5
        gold = {name: float(chance.choice([1, 2, 3]) if graded else 1) for name in
                chance.sample(names, chance.randint(1, 3))}
        gold.setdefault(chance.choice(names), 0.0)
        lists = [chance.sample(names, chance.randint(0, 5)) for _ in range(2)]
        lists = [[*found, found[0]] if found and chance.random() < 0.2 else found for found in lists]
        level = chance.choice([1.0, 2.0])
        if max(gold.values()) >= level:
            made.append(((lists[0], lists[1]), gold, level))
    return made


@pytest.mark.parametrize("metric", parse_all(EXACT), ids=str)
def test_bounds_are_what_filling_the_holes_in_every_way_gives(metric: Metric) -> None:
    moved = 0
    for lists, gold, level in cases(60, 1):
        every = by_hand(metric, lists, gold, level)
        pool = pool_of({"a": {"q": lists[0]}, "b": {"q": lists[1]}}, {"q": gold}, level)
        for column, baseline in enumerate((None, "b")):
            found = extremes(pool, metric, "a", baseline)
            expected = (every[0, column], every[:, column].min(), every[:, column].max())
            assert (found.value[0], found.low[0], found.high[0]) == pytest.approx(expected, abs=1e-9), (lists, gold)
            moved += expected[1] < expected[2]
    assert moved > 10, "holes that move nothing show nothing"


@pytest.mark.parametrize("name", ["map", "map@3"])
def test_bounds_of_map_are_exact_for_one_list_and_never_too_wide_for_two(name: str) -> None:
    metric, missed = parse(name), 0
    for lists, gold, level in cases(150, 2):
        every = by_hand(metric, lists, gold, level)
        pool = pool_of({"a": {"q": lists[0]}, "b": {"q": lists[1]}}, {"q": gold}, level)
        one, two = extremes(pool, metric, "a"), extremes(pool, metric, "a", "b")
        assert (one.low[0], one.high[0]) == pytest.approx((every[:, 0].min(), every[:, 0].max()))
        low, high = every[:, 1].min(), every[:, 1].max()
        assert low - 1e-9 <= two.low[0] <= two.value[0] + 1e-9 and two.value[0] - 1e-9 <= two.high[0] <= high + 1e-9
        missed += two.low[0] > low + 1e-9 or two.high[0] < high - 1e-9
    assert missed <= 5


@pytest.mark.parametrize("metric", parse_all(f"{EXACT},map,map@3"), ids=str)
def test_the_effect_of_a_hole_is_the_change_where_it_alone_is_relevant(metric: Metric) -> None:
    for lists, gold, level in cases(40, 3):
        pool = pool_of({"a": {"q": lists[0]}, "b": {"q": lists[1]}}, {"q": gold}, level)
        found = extremes(pool, metric, "a", "b")
        inside = {*lists[0][:metric.k], *lists[1][:metric.k]}
        for place, name in enumerate(pool.holes[0]):
            more = {**gold, name: max(gold.values())} if name in inside else gold
            pairs = [score_arrays(batch_of_lists(["q", "q"], lists, {"q": row}, level=level), [metric])[:, 0]
                     for row in (gold, more)]
            change = (pairs[1][0] - pairs[1][1]) - (pairs[0][0] - pairs[0][1])
            assert found.effects[0, place] == pytest.approx(change, abs=1e-9), (lists, gold, name)


def test_questions_are_bounded_each_by_itself_and_holes_behind_the_cut_move_nothing() -> None:
    lists = {"a": {"q1": ["g", "x"], "q2": ["y", "g"]}, "b": {"q1": ["x", "g"], "q2": []}}
    pool = pool_of(lists, {"q1": {"g": 1.0}, "q2": {"g": 1.0}})
    found = extremes(pool, parse("precision@1"), "a", "b")
    assert found.low.tolist() == [0, 0] and found.high.tolist() == [1, 1] and found.value.tolist() == [1, 0]
    assert extremes(pool, parse("recall@1"), "b").low.tolist() == [0, 0]
    assert pool.within(1).tolist() == [[True], [True]] and pool_of(lists, {"q1": {"g": 1.0}}, depth=1).width == 1


def test_holes_are_looked_for_in_a_hundred_places_and_gold_in_all() -> None:
    deep = [*(f"x{n}" for n in range(150)), "g"]
    pool = pool_of({"a": {"q": deep}, "b": {"q": ["g"]}}, {"q": {"g": 1.0}})
    assert len(pool.holes[0]) == 100
    assert extremes(pool, parse("mrr"), "a").value[0] == pytest.approx(1 / 151)
    assert extremes(pool, parse("recall"), "a").low[0] == 1


def test_metrics_without_bounds_say_so() -> None:
    assert bounded(parse("ndcg@10")) and bounded(parse("map"))
    others = ("first_relevant_rank", "ap_retrieved@5", "judged@10", "faithfulness")
    assert not any(bounded(parse(name)) for name in others)
