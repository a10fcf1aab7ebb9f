"""A threshold for a judge's scores, chosen on human labels: how it is chosen, what it is worth, and its file.

The figures of a threshold are always of rows that it was not chosen on. What scoring does with it is in
evaluation/thresholds.py.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragkit.errors import DataError, shown
from ragkit.metrics.agreement import decision_figures
from ragkit.metrics.resampling import Resampling, generator
from ragkit.records.files import read_object, write_json

SCHEMA = "ragkit.threshold/1"
FOLDS = 5
RULE = "largest balanced accuracy"


@dataclass(frozen=True)
class Threshold:
    """From which score of a metric, given by one judge, people would say yes.

    `judge` is {"name", "endpoint", "fingerprint"}; of scores that came ready in a file the last two are None.
    `held_out` are figures of decisions about rows that the deciding threshold was not chosen on: see HeldOut.
    """

    metric: str
    judge: Mapping[str, str | None]
    threshold: float
    chosen_on: Mapping[str, Any]
    held_out: Mapping[str, Any]
    labels: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The content of its file."""
        return {"schema": SCHEMA, **{name: _plain(value) for name, value in self.__dict__.items()}}

    def applies_to(self, name: str, fingerprint: str | None) -> bool:
        """Whether it was made with this judge: by fingerprint, or by name where the scores came without one."""
        known = self.judge.get("fingerprint")
        return self.judge["name"] == name if known is None else known == fingerprint


@dataclass(frozen=True)
class HeldOut:
    """Each row decided by the threshold that was chosen on the other folds; `thresholds` has one a fold.

    `decided` is None where some fold's other rows had labels of one class only, or one score only.
    """

    decided: tuple[bool, ...] | None
    thresholds: tuple[float, ...] = ()


def choose_threshold(positive: Sequence[bool | float], scores: Sequence[float],
                     weights: Sequence[float] | None = None) -> float | None:
    """The score from which to say yes, with the largest balanced accuracy on these rows (weighted, where they are).

    Of equally good ones that in the widest gap between two scores, in the fewest digits that fit into the gap.
    None where the labels are of one class, or the scores all equal.

    >>> choose_threshold([0, 0, 1, 1], [0.1, 0.2, 0.9, 0.8])
    0.5
    >>> choose_threshold([1, 1], [0.1, 0.2]) is None
    True
    """
    truth = np.asarray(positive, np.bool_)
    levels, places = np.unique(np.asarray(scores, np.float64), return_inverse=True)
    if len(levels) < 2 or truth.all() or not truth.any():
        return None
    each = np.ones(len(truth)) if weights is None else np.asarray(weights, np.float64)
    ups = np.bincount(places, weights=truth * each, minlength=len(levels))
    downs = np.bincount(places, weights=~truth * each, minlength=len(levels))
    # Between levels i and i + 1: what lies above is said yes to.
    worth = (1 - np.cumsum(ups)[:-1] / ups.sum() + np.cumsum(downs)[:-1] / downs.sum()) / 2
    good = np.flatnonzero(worth >= worth.max() - 1e-12)
    best = good[np.argmax(np.diff(levels)[good])]
    return _between(float(levels[best]), float(levels[best + 1]))


def hold_out(positive: Sequence[bool | float], scores: Sequence[float], groups: Sequence[Hashable] | None = None,
             seed: int = 0, weights: Sequence[float] | None = None) -> HeldOut:
    """Decide each row by the threshold chosen on the other folds of five; rows of one question stay together.

    With fewer questions than folds each question is a fold of its own.

    >>> found = hold_out([0, 1] * 10, [0.2, 0.7] * 10)
    >>> found.decided == (False, True) * 10, set(found.thresholds)
    (True, {0.4})
    """
    count = len(scores)
    truth, values = np.asarray(positive, np.bool_), np.asarray(scores, np.float64)
    each = np.ones(count) if weights is None else np.asarray(weights, np.float64)
    fold = _folds(truth, groups, count, seed)
    decided, thresholds = np.zeros(count, np.bool_), []
    for one in range(int(fold.max(initial=0)) + 1):
        own = fold == one
        threshold = choose_threshold(truth[~own], values[~own], each[~own])
        if threshold is None:
            return HeldOut(None)
        thresholds.append(threshold)
        decided[own] = values[own] >= threshold
    return HeldOut(tuple(decided.tolist()), tuple(thresholds))


def calibrate(metric: str, judge: Mapping[str, str | None], labelled: tuple[Sequence[bool], Sequence[float]],
              rows: Resampling, labels: Mapping[str, Any], seed: int = 0) -> Threshold:
    """The threshold of a metric on labelled scores (labels, scores), with its held-out figures.

    `labels` is what the file says of them beside their numbers (its name, its hash).
    Raises DataError where no threshold can be chosen.
    """
    positive, scores = labelled
    weights = rows.weights.tolist()
    threshold = choose_threshold(positive, scores, weights)
    held_out = hold_out(positive, scores, rows.group.tolist(), seed, weights)
    if threshold is None or held_out.decided is None:
        yes = sum(map(bool, positive))
        raise DataError(f"calibrate {metric}: expected labels of both classes on several questions and scores that "
                        f"differ, got {yes} yes and {len(positive) - yes} no on {rows.n_groups} questions")
    figures = decision_figures(positive, held_out.decided, rows)
    return Threshold(
        metric, dict(judge), threshold,
        {"rule": RULE, "rows": len(scores), "questions": rows.n_groups},
        {"method": f"{len(held_out.thresholds)} folds by question: each decided by the threshold chosen on the others",
         "thresholds": list(held_out.thresholds), "rows": len(scores),
         "figures": {name: asdict(figure) for name, figure in figures.items()}},
        {**labels, "rows": len(positive), "positive": sum(map(bool, positive))})


def write_threshold(path: str | Path, threshold: Threshold) -> None:
    """Write a threshold file; it can be read by `read_threshold`, and by people."""
    write_json(path, threshold.to_json())


def read_threshold(path: str | Path) -> Threshold:
    """Read a threshold file; one of another kind, or one that was broken by hand, is a DataError."""
    found = read_object(path)
    if found.get("schema") != SCHEMA:
        raise DataError(f"{path}: expected a threshold file ({SCHEMA}), as `ragkit agreement --calibrate` writes it; "
                        f"got schema {shown(found.get('schema'))}")
    return threshold_from_json(found, str(path))


def threshold_from_json(found: Mapping[str, Any], where: str) -> Threshold:
    """The threshold that a JSON object holds; `where` is named in errors."""
    kinds = {"metric": str, "judge": dict, "threshold": int | float, "chosen_on": dict, "held_out": dict,
             "labels": dict}
    for name, kind in kinds.items():
        if not isinstance(found.get(name), kind) or isinstance(found[name], bool):
            raise DataError(f"{where}: the key {name!r}: expected {getattr(kind, '__name__', 'a number')}, "
                            f"got {shown(found.get(name))}")
    if not isinstance(found["judge"].get("name"), str):
        raise DataError(f"{where}: the key 'judge': expected an object with a name, got {shown(found['judge'])}")
    return Threshold(**{name: found[name] for name in kinds})


def _folds(truth: np.ndarray[Any, Any], groups: Sequence[Hashable] | None, count: int,
           seed: int) -> np.ndarray[Any, Any]:
    """The fold of each row: questions dealt out in a seeded order, those with positive labels first, so that each
    fold has its part of them."""
    place = Resampling(count, groups).group
    n_groups = int(place.max(initial=-1)) + 1
    size = np.bincount(place, minlength=n_groups)
    share = np.bincount(place, weights=truth, minlength=n_groups) / np.maximum(size, 1)
    order = generator(seed).permutation(n_groups)
    order = order[np.argsort(-share[order], kind="stable")]
    dealt = np.empty(n_groups, np.int64)
    dealt[order] = np.arange(n_groups) % FOLDS
    return dealt[place]


def _between(low: float, high: float) -> float:
    """A number above low and not above high, near the middle, in few digits."""
    middle = low + (high - low) / 2
    for digits in range(17):
        short = round(middle, digits)
        if low < short <= high:
            return short
    return high


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
