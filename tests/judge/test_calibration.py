"""A threshold on labels: the best cut, figures of rows that it was not chosen on, and a file that refuses nonsense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.judge.calibration import (
    calibrate,
    choose_threshold,
    hold_out,
    read_threshold,
    write_threshold,
)
from ragkit.metrics.agreement import balanced_accuracy
from ragkit.metrics.resampling import Resampling

SCORED = st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=2, max_size=40)
JUDGE = {"name": "m1", "endpoint": "http://host/v1", "fingerprint": "f" * 64}


def worth(truth: list[bool], scores: list[float], threshold: float) -> float:
    return balanced_accuracy(truth, [score >= threshold for score in scores]) or 0


@given(SCORED)
def test_no_other_cut_is_better(rows: list[tuple[bool, float]]) -> None:
    truth, scores = [yes for yes, _ in rows], [score for _, score in rows]
    found = choose_threshold(truth, scores)
    if len(set(truth)) < 2 or len(set(scores)) < 2:
        assert found is None
        return
    assert found is not None
    assert min(scores) < found <= max(scores)
    assert worth(truth, scores, found) >= max(worth(truth, scores, cut) for cut in sorted(set(scores))[1:]) - 1e-9


def test_the_cut_lies_in_the_widest_of_equally_good_gaps_in_few_digits() -> None:
    assert choose_threshold([0, 0, 1, 1], [0.1, 0.31, 0.72, 0.9]) == 0.5
    assert choose_threshold([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]) == 0.6  # 0.15 and 0.6 are as good
    assert choose_threshold([0, 1], [0.61801, 0.61802]) == pytest.approx(0.618015, abs=6e-6)
    assert choose_threshold([0, 1], [1, 2]) == 2
    assert choose_threshold([0, 0, 1, 1], [0, 0, 1, 1]) == 0.5


def test_weights_move_the_cut() -> None:
    truth, scores = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]
    assert choose_threshold(truth, scores, [1, 9, 1, 1]) == 0.2
    assert choose_threshold(truth, scores, [1, 1, 9, 1]) == 0.35


def test_labels_that_mean_nothing_look_like_nothing() -> None:
    """Chosen and measured on the same rows, a threshold on noise looks like a find."""
    draw = np.random.default_rng(5)
    held_out, same = [], []
    for seed in range(60):
        truth, scores = (draw.random(40) < 0.5).tolist(), draw.random(40).tolist()
        same.append(worth(truth, scores, choose_threshold(truth, scores) or 0))
        held_out.append(balanced_accuracy(truth, hold_out(truth, scores, seed=seed).decided or ()) or 0)
    assert np.mean(same) > 0.56
    assert abs(np.mean(held_out) - 0.5) < 0.03


def test_copies_of_a_question_do_not_tell_its_fold_the_answer() -> None:
    draw = np.random.default_rng(0)
    apart, together = [], []
    for seed in range(40):
        truth = np.repeat(draw.random(12) < 0.5, 10).tolist()
        scores = np.repeat(draw.random(12), 10).tolist()
        for groups, found in ((None, apart), (np.repeat(range(12), 10).tolist(), together)):
            decided = hold_out(truth, scores, groups, seed).decided
            if decided is not None:
                found.append(balanced_accuracy(truth, decided))
    assert np.mean(apart) > 0.6
    assert np.mean(together) < 0.53


def test_too_few_labels_of_a_class_give_no_decision() -> None:
    assert hold_out([1, *[0] * 19], [float(place) for place in range(20)]).decided is None
    rows = Resampling(3)
    with pytest.raises(DataError, match="got 1 yes and 2 no on 3 questions"):
        calibrate("faithfulness", JUDGE, ([True, False, False], [0.9, 0.1, 0.2]), rows, {})


def made(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    truth, scores = [place % 2 == 0 for place in range(40)], [0.8 - 0.5 * (place % 2) for place in range(40)]
    scores[3] = 0.9
    threshold = calibrate("faithfulness", JUDGE, (truth, scores), Resampling(40), {"file": "labels.csv"})
    path = tmp_path / "threshold.json"
    write_threshold(path, threshold)
    return path, json.loads(path.read_text(encoding="utf-8"))


def test_the_file_says_what_it_was_made_of_and_reads_back(tmp_path: Path) -> None:
    path, content = made(tmp_path)
    assert content["schema"] == "ragkit.threshold/1"
    assert content["chosen_on"] == {"rule": "largest balanced accuracy", "rows": 40, "questions": 40}
    assert content["labels"] == {"file": "labels.csv", "rows": 40, "positive": 20}
    found = read_threshold(path)
    assert found.to_json() == content
    assert 0.3 < found.threshold <= 0.8
    figure = found.held_out["figures"]["balanced_accuracy"]
    assert figure["value"] == pytest.approx(0.975)
    assert figure["low"] < 0.975 < figure["high"]
    assert found.applies_to("another name", JUDGE["fingerprint"])
    assert not found.applies_to("m1", "e" * 64)


@pytest.mark.parametrize(("change", "said"), [
    ({"schema": "ragkit.summary/1"}, "expected a threshold file"),
    ({"threshold": "0.5"}, "'threshold'"),
    ({"threshold": True}, "'threshold'"),
    ({"judge": {}}, "an object with a name"),
    ({"held_out": None}, "'held_out'"),
])
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path, content = made(tmp_path)
    path.write_text(json.dumps({**content, **change}), encoding="utf-8")
    with pytest.raises(DataError, match=said) as refused:
        read_threshold(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
