"""Laws of means corrected by labels: unbiased under weights, intervals that hold, the labels alone where judges say
nothing."""

from __future__ import annotations

import csv
import math
import random as standard_random
from collections.abc import Mapping
from statistics import fmean, variance

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.metrics.prediction_powered import UNKNOWN_DRAW, Labelled, corrected_difference, corrected_mean
from tests.support.data import data_folder

Scores = Mapping[str, float]


def labels_of(judged: Scores, human: Scores, chosen: list[str], weight: float | None = 1.0) -> dict[str, Labelled]:
    return {q: Labelled(judged[q], human[q], weight) for q in chosen}


def stratified(judged: Scores, human: Scores, each: int, random: np.random.Generator) -> dict[str, Labelled]:
    """As many labels of what the judge rejects as of what it accepts."""
    made: dict[str, Labelled] = {}
    for name, high in (("low", False), ("high", True)):
        band = [q for q in judged if (judged[q] >= 0.5) is high]
        count = min(each, len(band))
        for q in random.choice(band, count, replace=False) if count else []:
            made[str(q)] = Labelled(judged[q], human[q], len(band) / count, name)
    return made


def world(
    random: np.random.Generator, questions: int, base: float, wrong: tuple[float, float]
) -> tuple[Scores, Scores]:
    """What people would say of each question, and a judge that errs on the wrong and on the right ones."""
    human = (random.random(questions) < base).astype(float)
    flips = random.random(questions) < np.where(human == 1, wrong[1], wrong[0])
    judge = np.where(flips, 1 - human, human)
    names = [f"q{i}" for i in range(questions)]
    return dict(zip(names, judge.tolist(), strict=True)), dict(zip(names, human.tolist(), strict=True))


def test_values_by_hand() -> None:
    judged = {f"q{i}": score for i, score in enumerate([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])}
    human = {"q0": 1.0, "q1": 0.0, "q4": 0.0, "q5": 0.0}
    made = corrected_mean(judged, labels_of(judged, human, list(human), 2.0))
    # slope of human on judge over the four: cov .25 / var .5 over n - 1 = 3: (1/3 * .5) / (1/3 * 1) = .5
    assert made.trust == pytest.approx(0.5)
    assert made.mean == pytest.approx(0.5 * 0.5 + fmean([0.5, -0.5, 0.0, 0.0]))
    assert (made.raw, made.bias) == (0.5, pytest.approx(0.25))
    assert made.spread == pytest.approx(variance([1.0, 0.0, 0.0, 0.0]))
    assert (made.n_labels, made.n_questions, made.weighted, made.warning) == (4, 8, True, None)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.floats(0, 1), st.integers(0, 30))
def test_a_judge_that_says_the_same_of_all_leaves_the_mean_of_the_labels(human: list[float], said: float,
                                                                        more: int) -> None:
    judged = {f"q{i}": said for i in range(len(human) + more)}
    made = corrected_mean(judged, {f"q{i}": Labelled(said, value, 3.0) for i, value in enumerate(human)})
    assert made.mean == pytest.approx(fmean(human), abs=1e-12)
    assert made.trust == 0.0
    assert made.low is not None and made.high is not None
    half = 1.959 * math.sqrt(variance(human) / len(human))  # never narrower than the labels by themselves
    assert made.low <= max(0.0, fmean(human) - half) + 1e-9 and made.high >= min(1.0, fmean(human) + half) - 1e-9


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=20))
def test_with_all_questions_labelled_the_judge_plays_no_part(pairs: list[tuple[float, float]]) -> None:
    judged = {f"q{i}": judge for i, (judge, _) in enumerate(pairs)}
    made = corrected_mean(judged, {f"q{i}": Labelled(judge, human, 1.0) for i, (judge, human) in enumerate(pairs)})
    assert made.mean == pytest.approx(fmean(human for _, human in pairs), abs=1e-9)


@given(st.floats(0.2, 5), st.permutations(range(8)))
def test_neither_order_nor_scale_of_the_weights_matters(scale: float, order: list[int]) -> None:
    judged = {f"q{i}": (i % 3) / 2 for i in range(20)}
    rows = {f"q{i}": Labelled(judged[f"q{i}"], (i % 2) * 0.5, 1.0 + i, "ab"[i % 2]) for i in range(8)}
    scaled = {f"q{i}": rows[f"q{i}"]._replace(weight=scale * (1.0 + i)) for i in order}
    one, other = corrected_mean(judged, rows), corrected_mean(judged, scaled)
    assert other.mean == pytest.approx(one.mean) and other.low == pytest.approx(one.low)


@given(st.floats(0.1, 1))
def test_a_judge_that_is_off_by_a_constant_costs_nothing(off: float) -> None:
    human = {f"q{i}": (i % 5) / 10 for i in range(40)}
    judged = {q: value + off for q, value in human.items()}
    made = corrected_mean(judged, labels_of(judged, human, [f"q{i}" for i in range(10)], 4.0), (None, None))
    assert made.mean == pytest.approx(fmean(human.values()))
    assert made.bias == pytest.approx(off)
    assert made.trust == pytest.approx(1.0)


@pytest.mark.parametrize(("questions", "labels", "base", "wrong", "in_bands"), [
    (300, 60, 0.7, (0.3, 0.1), False),
    (300, 60, 0.7, (0.3, 0.1), True),
    (300, 60, 0.9, (0.02, 0.02), True),  # errors so rare that most samples show none
    (1000, 60, 0.9, (0.5, 0.03), True),  # a judge that lets half of the bad ones pass
    (100, 20, 0.8, (0.2, 0.2), False),
])
def test_the_interval_holds_the_truth_and_the_mean_is_unbiased(
    questions: int, labels: int, base: float, wrong: tuple[float, float], in_bands: bool
) -> None:
    random, held, means, raw = np.random.default_rng(7), 0, [], []
    for _ in range(200):
        judged, human = world(random, questions, base, wrong)
        chosen = [f"q{i}" for i in random.choice(questions, labels, replace=False)]
        rows = stratified(judged, human, labels // 2, random) if in_bands else labels_of(judged, human, chosen)
        made = corrected_mean(judged, rows)
        assert made.mean is not None and made.low is not None and made.high is not None
        held += made.low <= base <= made.high
        means.append(made.mean)
        raw.append(made.raw or 0.0)
    assert held >= 0.91 * 200  # 95 %, less what 200 draws leave open
    assert fmean(means) == pytest.approx(base, abs=0.018)  # two standard errors of 200 draws
    expected_raw = base * (1 - wrong[1]) + (1 - base) * wrong[0]
    assert fmean(raw) == pytest.approx(expected_raw, abs=0.01)


def test_a_sample_that_prefers_some_questions_misleads_without_its_weights_and_is_warned_of() -> None:
    random, weighted, bare = np.random.default_rng(3), [], []
    names = [f"q{i}" for i in range(400)]
    judged = dict.fromkeys(names, 1.0)
    for _ in range(50):
        human = {q: float(random.random() < (0.5 if place < 40 else 0.95)) for place, q in enumerate(names)}
        hard, rest = random.choice(names[:40], 30, replace=False), random.choice(names[40:], 30, replace=False)
        rows = {str(q): Labelled(1.0, human[q], 40 / 30, "hard") for q in hard}
        rows |= {str(q): Labelled(1.0, human[q], 360 / 30, "rest") for q in rest}
        made = corrected_mean(judged, rows)
        unknown = corrected_mean(judged, {q: row._replace(weight=None) for q, row in rows.items()})
        assert (made.weighted, made.warning) == (True, None)
        assert (unknown.weighted, unknown.warning) == (False, UNKNOWN_DRAW)
        weighted.append(made.mean or 0.0)
        bare.append(unknown.mean or 0.0)
    assert fmean(weighted) == pytest.approx(0.905, abs=0.01)
    assert fmean(bare) == pytest.approx(0.725, abs=0.02)


def test_a_good_judge_narrows_the_interval_and_a_blind_one_does_not_widen_it() -> None:
    random = np.random.default_rng(5)
    widths: dict[str, list[float]] = {"good": [], "blind": [], "labels": []}
    for _ in range(60):
        for name, wrong in (("good", (0.08, 0.08)), ("blind", (0.5, 0.5))):
            judged, human = world(random, 500, 0.5, wrong)
            chosen = [f"q{i}" for i in random.choice(500, 60, replace=False)]
            made = corrected_mean(judged, labels_of(judged, human, chosen))
            widths[name].append((made.high or 0) - (made.low or 0))
            if name == "blind":
                spread = math.sqrt(variance([human[q] for q in chosen]) / 60)
                widths["labels"].append(2 * 1.96 * spread)
    assert fmean(widths["good"]) < 0.75 * fmean(widths["labels"])
    assert fmean(widths["blind"]) < 1.08 * fmean(widths["labels"])


def test_differences_of_two_runs_are_paired_where_both_are_labelled() -> None:
    random, held, widths = np.random.default_rng(11), {"paired": 0, "apart": 0}, {"paired": 0.0, "apart": 0.0}
    for _ in range(150):
        judged, human = world(random, 300, 0.6, (0.25, 0.15))
        better = {q: max(value, float(random.random() < 0.3)) for q, value in human.items()}  # truth: +0.4 * 0.3
        flips = {q: float(random.random() < 0.2) for q in human}
        judged_better = {q: abs(better[q] - flips[q]) for q in human}
        chosen = [f"q{i}" for i in random.choice(300, 120, replace=False)]
        one = labels_of(judged, human, chosen[:60])
        for name, own in (("paired", chosen[:60]), ("apart", chosen[60:])):
            made = corrected_difference((judged, one), (judged_better, labels_of(judged_better, better, own)))
            assert made.low is not None and made.high is not None
            held[name] += made.low <= 0.12 <= made.high
            widths[name] += made.high - made.low
    assert held["paired"] >= 0.91 * 150 and held["apart"] >= 0.91 * 150
    assert widths["paired"] < 0.9 * widths["apart"]


def test_a_run_against_itself_differs_by_nothing() -> None:
    judged, human = world(np.random.default_rng(2), 80, 0.7, (0.2, 0.2))
    rows = labels_of(judged, human, [f"q{i}" for i in range(0, 80, 4)])
    made = corrected_difference((judged, rows), (judged, rows))
    assert (made.mean, made.raw, made.bias) == (0.0, 0.0, 0.0)
    assert made.low is not None and made.high is not None and made.low <= 0 <= made.high


def test_labels_of_one_run_say_nothing_of_the_other() -> None:
    judged, human = world(np.random.default_rng(2), 30, 0.7, (0.2, 0.2))
    made = corrected_difference((judged, labels_of(judged, human, ["q1", "q2", "q3"])), (judged, {}))
    assert made.mean is None and made.reason is not None and "each run" in made.reason


def test_only_questions_that_both_runs_scored_are_compared() -> None:
    judged = {f"q{i}": 0.5 for i in range(6)}
    rows = {f"q{i}": Labelled(0.5, i / 10, 2.0) for i in range(4)}
    fewer = {q: score for q, score in judged.items() if q != "q0"}
    made = corrected_difference((judged, rows), (fewer, {q: row for q, row in rows.items() if q != "q0"}))
    assert (made.n_questions, made.n_labels) == (5, 3)


def test_labels_to_decide_falls_with_the_difference_and_knows_when_questions_are_too_few() -> None:
    judged, human = world(np.random.default_rng(1), 2000, 0.8, (0.3, 0.1))
    made = corrected_mean(judged, labels_of(judged, human, [f"q{i}" for i in range(60)]))
    needed = [made.labels_to_decide(size) for size in (0.2, 0.1, 0.05)]
    assert needed == sorted(needed, key=lambda count: count or 0) and needed[0] and needed[2]
    assert made.labels_to_decide(0.005) is None  # 2,000 questions cannot tell half a point
    # four of five samples of that size tell the difference, by the very variance that it came from
    found = needed[1] or 0
    left = made.spread / 2000 + (1 / found - 1 / 2000) * made.noise
    assert 0.1 / math.sqrt(left) == pytest.approx(1.96 + 0.8416, rel=0.02)
    for asked in (made.labels_to_decide, made.questions_to_decide):
        with pytest.raises(DataError, match="other than 0"):
            asked(0)


def test_too_few_labels_and_wrong_weights() -> None:
    judged = {"a": 1.0, "b": 0.0}
    made = corrected_mean(judged, {"a": Labelled(1, 1, 1)})
    assert (made.mean, made.low, made.raw) == (None, None, 0.5)
    assert made.reason == "expected at least 2 labels, got 1" and made.labels_to_decide(0.1) is None
    assert corrected_mean({}, {}).reason == "no question with a judge's score"
    for weight in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(DataError, match="a weight above 0"):
            corrected_mean(judged, {"a": Labelled(1, 1, weight), "b": Labelled(0, 0, 1)})
    with pytest.raises(DataError, match="scored no such question"):
        corrected_mean(judged, {"z": Labelled(1, 1, 1)})


def test_repeats_leave_something_open_even_where_every_question_has_a_label() -> None:
    judged = {f"q{i}": 0.5 for i in range(10)}
    rows = {f"q{i}": Labelled(0.5, float(i % 2), 1.0) for i in range(10)}
    whole, part = corrected_mean(judged, rows), corrected_mean(judged, rows, finite=False)
    assert whole.mean == part.mean
    assert (part.high or 0) - (part.low or 0) > (whole.high or 0) - (whole.low or 0)


@pytest.mark.data
def test_real_judges_are_corrected_to_what_people_said() -> None:
    with (data_folder("llmjudge_dl23") / "judgments_wide.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    human = {f"{r['query-id']}/{r['corpus-id']}": int(r["human"]) / 3 for r in rows}
    truth, random = fmean(human.values()), standard_random.Random(1)
    held, off, raw = 0, [], []
    for column in list(rows[0])[3::4]:
        judge = {q: min(3, int(float(r[column]))) / 3 for q, r in zip(human, rows, strict=True)}
        raw.append(abs(fmean(judge.values()) - truth))
        for _ in range(8):
            pool = random.sample(list(human), 1000)
            chosen = random.sample(pool, 80)
            made = corrected_mean({q: judge[q] for q in pool}, labels_of(judge, human, chosen))
            assert made.mean is not None and made.low is not None and made.high is not None
            held += made.low <= truth <= made.high
            off.append(made.mean - truth)
    assert len(off) == 72 and held >= 0.9 * 72
    assert abs(fmean(off)) < 0.01 < fmean(raw)  # the judges themselves are off by more
