"""The draw of answers to label: strata, weights, likely negatives on purpose, the same draw from the same seed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.evaluation.label_draw import Unit, draw

ENDS = (0.0, 1.0)
UNITS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0, None])),
                 min_size=1, max_size=60).map(
    lambda found: [Unit(f"q{place}", 0, group, score) for place, (group, score) in enumerate(found)])


@given(UNITS, st.integers(1, 80), st.integers(-5, 5))
def test_weights_stand_for_all_questions_and_nobody_is_drawn_twice(units: list[Unit], count: int, seed: int) -> None:
    drawn = draw(units, count, seed, ENDS)
    assert len(drawn) == min(count, len(units))
    assert len({one.unit.question_id for one in drawn}) == len(drawn)
    assert sum(one.weight for one in drawn) == pytest.approx(len(units))
    sizes = Counter(one.stratum for one in drawn)
    alone = [one for one in drawn if sizes[one.stratum] == 1]
    assert all(one.weight == 1 for one in alone) or count < 2 * len(sizes) or len(drawn) < 2


@given(UNITS, st.integers(1, 30), st.randoms())
def test_the_order_of_the_questions_does_not_matter(units: list[Unit], count: int, random: object) -> None:
    shuffled = list(units)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert draw(shuffled, count, 3, ENDS) == draw(units, count, 3, ENDS)


def test_likely_negatives_are_drawn_on_purpose() -> None:
    units = [Unit(f"q{i}", 0, "", 1.0 if i >= 20 else 0.25) for i in range(400)]
    drawn = draw(units, 60, 0, ENDS)
    low = [one for one in drawn if one.unit.score == 0.25]
    assert len(low) == 11  # 3 would be their share: root 20 against root 380
    assert {one.weight for one in low} == {20 / 11}
    assert {one.weight for one in drawn if one.unit.score == 1.0} == {380 / 49}


def test_every_group_is_seen_in_every_band() -> None:
    units = [Unit(f"q{i}", 0, f"g{i % 5}", (i // 5 % 2) * 1.0) for i in range(500)]
    seen = Counter((one.unit.group, one.unit.score) for one in draw(units, 40, 1, ENDS))
    assert len(seen) == 10 and min(seen.values()) >= 2


def test_many_small_groups_are_put_together() -> None:
    units = [Unit(f"q{i}", 0, f"g{i}", 1.0) for i in range(50)]
    drawn = draw(units, 10, 0, ENDS)
    assert len({one.stratum for one in drawn}) <= 5
    assert all(size >= 2 for size in Counter(one.stratum for one in drawn).values())


def test_the_inclusion_is_what_the_weight_says() -> None:
    units = [Unit(f"q{i}", 0, "ab"[i % 2], 1.0 if i % 4 else 0.0) for i in range(40)]
    times: Counter[str] = Counter()
    weights: dict[str, float] = {}
    for seed in range(600):
        for one in draw(units, 16, seed, ENDS):
            times[one.unit.question_id] += 1
            weights[one.unit.question_id] = one.weight
    assert len(times) == 40
    for question, count in times.items():
        assert count / 600 == pytest.approx(1 / weights[question], abs=0.08)


def test_another_seed_draws_others_and_none_at_all_is_refused() -> None:
    units = [Unit(f"q{i}", 0, "", 1.0) for i in range(100)]
    assert draw(units, 20, 0, ENDS) == draw(units, 20, 0, ENDS) != draw(units, 20, 1, ENDS)
    with pytest.raises(DataError, match="at least 1"):
        draw(units, 0, 0, ENDS)
