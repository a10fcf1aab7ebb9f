"""Noise without a change: the variance split against theory, and margins that a release without a change keeps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ragkit.errors import DataError
from ragkit.metrics.noise import detectable_of_run, repeats_to_decide, smallest_margin, variance_split
from ragkit.metrics.statistics import bootstrap

Run = dict[str, list[float]]
Release = Callable[[], np.ndarray]


def run_of(*repeats: np.ndarray) -> Run:
    return {f"q{i}": [float(values[i]) for values in repeats] for i in range(len(repeats[0]))}


def test_the_split_finds_the_variances_that_made_the_values() -> None:
    random = np.random.default_rng(0)
    truth = random.normal(0, 0.3, 4000)
    split = variance_split(run_of(*(truth + random.normal(0, 0.2, 4000) for _ in range(3))))
    assert split.question == pytest.approx(0.09, rel=0.06)
    assert split.app == pytest.approx(0.04, rel=0.04)
    assert (split.repeats, split.n) == (3.0, 4000)


def test_without_repeats_the_app_is_unknown_and_not_zero() -> None:
    split = variance_split({"a": [1.0], "b": [0.0], "c": []})
    assert (split.question, split.app, split.repeats, split.n) == (0.5, None, 1.0, 2)
    assert variance_split({}).question is None


def test_uneven_repeats_weigh_as_the_values_they_have() -> None:
    split = variance_split({"a": [0.0, 1.0, 1.0, 0.0], "b": [1.0, 1.0], "c": [0.5]})
    assert split.app == pytest.approx(1.0 / 4)  # squares 1 + 0 over 3 + 1 degrees of freedom
    assert split.repeats == pytest.approx(3 / (1 / 4 + 1 / 2 + 1))


def test_a_run_with_repeats_detects_less_noise_than_the_bound_of_one_without() -> None:
    random = np.random.default_rng(1)
    truth = random.random(100)
    repeats = [truth + random.normal(0, 0.05, 100) for _ in range(3)]
    sharp, bound = detectable_of_run(run_of(*repeats)), detectable_of_run(run_of(repeats[0]))
    assert sharp is not None
    assert bound is not None
    assert sharp == pytest.approx(2.8016 * np.sqrt(2 * 0.0025 / 3 / 100), rel=0.15)
    assert bound > 5 * sharp
    assert detectable_of_run({"q": [1.0, 0.0]}) is None
    assert detectable_of_run(run_of(truth, truth)) is None, "repeats that agree are no perfect power"


def test_repeats_that_decide_are_found_where_noise_hides_the_difference() -> None:
    random = np.random.default_rng(2)
    truth = random.random(2000)
    sides = [run_of(*(truth + gain + random.normal(0, 0.4, 2000) for _ in range(2))) for gain in (0.0, 0.014)]
    found = repeats_to_decide(0.014, *sides)
    assert found is not None
    assert 6 <= found <= 9  # (1.96 + .84)^2 * 2 * .16 / .000196 / 2000 = 6.4
    assert repeats_to_decide(0.0, *sides) is None
    assert repeats_to_decide(0.08, run_of(truth), run_of(truth + 0.08)) is None
    gains = np.tile([1.0, -0.9], 1000)  # no number of repeats makes these questions agree
    mixed = [run_of(truth, truth + 0.001), run_of(truth + gains, truth + gains)]
    assert repeats_to_decide(0.02, *mixed) is None


def release(kind: str, n: int, random: np.random.Generator) -> Release:
    if kind == "normal":
        truth = random.random(n)
        return lambda: truth + random.normal(0, 0.15, n)
    rare = np.where(random.random(n) < 0.1, random.random(n), 1.0)  # nearly every question always right
    chance = rare if kind == "rare" else random.beta(0.5, 0.3, n)
    return lambda: (random.random(n) < chance).astype(float)


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("kind", ["normal", "hit", "rare"])
@pytest.mark.parametrize("repeats", [1, 3])
def test_a_release_without_a_change_keeps_the_margin(kind: str, n: int, repeats: int) -> None:
    random = np.random.default_rng(11)
    passed = 0
    for seed in range(200):
        answers = release(kind, n, random)
        baseline = run_of(*(answers() for _ in range(repeats)))
        known = [baseline] if repeats > 1 else [baseline, run_of(answers())]
        margin = smallest_margin(known, (0, 1))
        candidate = run_of(*(answers() for _ in range(repeats)))
        gains = [float(np.mean(candidate[question]) - np.mean(found)) for question, found in baseline.items()]
        low, _ = bootstrap(gains, seed, 400)
        assert margin is not None
        assert low is not None
        passed += low > -margin
    assert passed >= 190


def test_a_margin_is_no_wider_than_it_must_be() -> None:
    random = np.random.default_rng(5)
    answers = release("normal", 300, random)
    margin = smallest_margin([run_of(answers(), answers(), answers())], (0, 1))
    assert margin == pytest.approx(2 * 1.968 * 0.15 * np.sqrt(2 / 3) / np.sqrt(300), rel=0.08)


def test_what_never_changed_still_has_a_margin_and_one_plain_run_has_none() -> None:
    same = run_of(np.ones(40), np.ones(40))
    assert smallest_margin([same], (0, 1)) == pytest.approx(2 * 2.0227 * np.sqrt(2 / 40 / 2 / 40), rel=1e-3)
    assert smallest_margin([same], (0, None)) == 0.0
    assert smallest_margin([run_of(np.ones(40))], (0, 1)) is None
    assert smallest_margin([run_of(np.ones(1), np.ones(1))], (0, 1)) is None
    with pytest.raises(DataError, match="at least one run"):
        smallest_margin([], (0, 1))
