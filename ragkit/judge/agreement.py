"""The judge judged: how far its scores agree with people's labels, and people with each other, whole and by slice.

The statistics are in metrics/agreement.py, the reading of labels in labelled.py, the choice of a threshold in
calibration.py. Asks nobody: ratings.py does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ragkit.errors import DataError
from ragkit.judge.calibration import Threshold, calibrate, hold_out
from ragkit.judge.labelled import Ratings
from ragkit.metrics.agreement import Weights, confusion, decision_figures, rating_figures, score_figures
from ragkit.metrics.resampling import Figure, Resampling

SCHEMA = "ragkit.agreement/1"
Kind = Literal["grades", "decisions", "scores", "categories"]
_SAME_SCALE = 0.95  # of a judge's ratings must lie on the scale of the labels, or it is another scale
_NO_THRESHOLD = "too few labels to choose a threshold on other rows"


@dataclass(frozen=True)
class Rules:
    """How ratings are compared.

    `weights` is of kappa for grades. `level`: a label from there on is a yes; None is the first grade above the
    middle of the scale. `threshold`: a score from there on is a yes; None chooses it on other rows than those it
    decides. `scale` (lowest, highest) is that of the labels themselves where None. `row_weights`: how many rows of
    the whole each labelled row stands for, where the rows are such a sample.
    """

    weights: Weights | None = "quadratic"
    level: float | None = None
    threshold: float | None = None
    scale: tuple[float, float] | None = None
    seed: int = 0
    resamples: int = 2000
    row_weights: Sequence[float] | None = None

    def scale_of(self, labels: Sequence[float]) -> tuple[float, float]:
        """The lowest and the highest value that a label can have."""
        return self.scale or (min(labels), max(labels))

    def level_of(self, labels: Sequence[float]) -> float:
        """From which label on one is a yes."""
        return middle_level(labels, self.scale_of(labels)) if self.level is None else self.level

    def resampling(self, groups: Sequence[Hashable], places: Sequence[int]) -> Resampling:
        """The rows at these places, as figures are computed of them."""
        weights = None if self.row_weights is None else [self.row_weights[place] for place in places]
        return Resampling(len(places), [groups[place] for place in places], self.seed, self.resamples, weights)


@dataclass(frozen=True)
class Comparison:
    """Two raters compared on the rows that both rated; `slice` None is all of them.

    `kind`: grades on one scale, yes-or-no decisions, scores against labels, or named categories. `missing` counts the
    rows that are left out, by reason; `off_scale` the second rater's ratings that the scale does not have, by value
    (they are kept: each is a disagreement, at most as wide as the scale). `thresholds` decided where the second rater
    gave scores.
    """

    human: str
    judge: str
    slice: str | None
    kind: Kind
    n: int
    n_questions: int
    missing: Mapping[str, int]
    figures: Mapping[str, Figure]
    level: float | None = None
    scale: tuple[float, float] | None = None
    off_scale: Mapping[float, int] = field(default_factory=dict)
    thresholds: tuple[float, ...] = ()
    threshold_given: bool = False
    levels: tuple[str, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data, for --json and for what prints it."""
        found = asdict(self)
        found["off_scale"] = {f"{value:g}": count for value, count in self.off_scale.items()}
        return found


def compare(human: Ratings, judge: Ratings, groups: Sequence[Hashable], rules: Rules | None = None,
            places: Sequence[int] | None = None, slice_name: str | None = None) -> Comparison:
    """Compare a judge (or a second person) with the labels, on the rows `places` (all of them where None).

    `groups` names the question of each row: intervals resample questions. Counts are of rows, also where the rules
    give the rows weights.

    >>> human, judge = Ratings("ann", (0, 1, 2, 2)), Ratings("m1", (0, 1, 2, 1))
    >>> found = compare(human, judge, ["q1", "q2", "q3", "q4"])
    >>> found.kind, round(found.figures["kappa_quadratic"].value, 3), found.figures["auroc"].value
    ('grades', 0.8, 0.875)
    """
    rules = rules or Rules()
    both = _rated(human, judge, places)
    out = Counter(human.reasons.get(place) or judge.reasons.get(place, "no rating")
                  for place in (range(len(human.values)) if places is None else places)
                  if human.values[place] is None or judge.values[place] is None)
    rows = rules.resampling(groups, both)
    shared = (human.name, judge.name, slice_name)
    counts = (len(both), rows.n_groups, dict(out.most_common()))
    if human.categories or judge.categories:
        return _compare_categories(shared, counts, (_names(human, both), _names(judge, both)), rows)
    known, every = _numbers(human), _numbers(judge)
    scale, level = rules.scale_of(known), rules.level_of(known)
    pair = _Pair(both, _numbers(human, both), _numbers(judge, both), level, rows)
    made = Comparison(*shared, "scores", *counts, score_figures(pair.positive, pair.ratings, rows), level, scale)
    if not is_same_scale(known, every, scale):
        decided, thresholds = _decide(_all_rows(human, judge, groups, rules), rules)
        made = replace(made, thresholds=thresholds, threshold_given=rules.threshold is not None)
        return _with_decisions(made, pair, decided)
    if set(known) | set(every) <= {0.0, 1.0}:
        return _with_grades(replace(made, kind="decisions"), pair, scale, None)
    return _with_grades(replace(made, kind="grades"), pair, scale, rules.weights)


def compare_all(humans: Sequence[Ratings], judges: Sequence[Ratings], groups: Sequence[Hashable],
                rules: Rules | None = None, slices: Mapping[str, Sequence[int]] | None = None) -> list[Comparison]:
    """Annotators with each other, then each judge with each annotator; on all rows first, then slice by slice.

    >>> ann, bob = Ratings("ann", (0, 1, 1)), Ratings("bob", (0, 1, 0))
    >>> [(one.human, one.judge) for one in compare_all([ann, bob], [Ratings("m1", (0, 1, 1))], "abc")]
    [('ann', 'bob'), ('ann', 'm1'), ('bob', 'm1')]
    """
    pairs = [(one, other) for place, one in enumerate(humans) for other in humans[place + 1:]]
    pairs += [(human, judge) for judge in judges for human in humans]
    if not pairs:
        raise DataError("agreement: expected two raters: --judge SPEC, --column NAME, or a second --human field")
    parts: list[tuple[str | None, Sequence[int] | None]] = [(None, None), *(slices or {}).items()]
    return [compare(human, judge, groups, rules, places, name) for name, places in parts for human, judge in pairs]


def calibrated(metric: str, who: Mapping[str, str | None], raters: tuple[Ratings, Ratings], groups: Sequence[Hashable],
               rules: Rules, labels: Mapping[str, Any]) -> Threshold:
    """The threshold of a metric scored by `who`, chosen on the rows that both raters (labels, judge) rated."""
    human, judge = raters
    if human.categories or judge.categories:
        raise DataError("calibrate: expected numbers, got names; say which names are a yes: --positive NAME")
    pair = _all_rows(human, judge, groups, rules)
    known_as = {**labels, "level": pair.level, "weighted": rules.row_weights is not None}
    return calibrate(metric, who, (pair.positive, pair.ratings), pair.rows, known_as, rules.seed)


def middle_level(labels: Sequence[float], scale: tuple[float, float]) -> float:
    """The first label that occurs above the middle of the scale: 1 of 0 and 1, 2 of 0 to 3, 4 of 1 to 5.

    >>> middle_level([0, 1, 2, 3], (0, 3)), middle_level([-2, -1, 0, 1, 2], (-2, 2))
    (2, 1)
    """
    middle = (scale[0] + scale[1]) / 2
    return min((label for label in labels if label > middle), default=scale[1])


def is_same_scale(labels: Sequence[float], ratings: Sequence[float], scale: tuple[float, float]) -> bool:
    """Whether ratings are on the scale of the labels: whole numbers, of which hardly any lies outside.

    >>> is_same_scale([0, 1, 2, 3], [0, 3, 2, 5] + [1] * 50, (0, 3)), is_same_scale([0, 1], [0.2, 0.9], (0, 1))
    (True, False)
    """
    if not all(value.is_integer() for value in map(float, (*labels, *ratings))):
        return False
    return sum(scale[0] <= rating <= scale[1] for rating in ratings) >= _SAME_SCALE * len(ratings)


class _Pair(NamedTuple):
    """The rows that both raters rated: their places, the labels, the ratings, and from which label on one is a yes."""

    places: list[int]
    labels: list[float]
    ratings: list[float]
    level: float
    rows: Resampling

    @property
    def positive(self) -> list[bool]:
        return [label >= self.level for label in self.labels]


def _rated(human: Ratings, judge: Ratings, places: Sequence[int] | None = None) -> list[int]:
    """The places, of these or of all, of the rows that both rated."""
    return [place for place in (range(len(human.values)) if places is None else places)
            if human.values[place] is not None and judge.values[place] is not None]


def _numbers(rater: Ratings, places: Sequence[int] | None = None) -> list[float]:
    values = rater.values if places is None else [rater.values[place] for place in places]
    return [float(value) for value in values if value is not None]


def _all_rows(human: Ratings, judge: Ratings, groups: Sequence[Hashable], rules: Rules) -> _Pair:
    both = _rated(human, judge)
    return _Pair(both, _numbers(human, both), _numbers(judge, both), rules.level_of(_numbers(human)),
                 rules.resampling(groups, both))


def _decide(every: _Pair, rules: Rules) -> tuple[dict[int, bool] | None, tuple[float, ...]]:
    """Yes or no for each row that both rated, and the thresholds that said so. Chosen on all rows, also where a slice
    is looked at: a threshold belongs to the judge, and a slice shows where it fails."""
    if rules.threshold is not None:
        return {place: score >= rules.threshold for place, score in zip(every.places, every.ratings, strict=True)}, (
            rules.threshold,)
    found = hold_out(every.positive, every.ratings, every.rows.group.tolist(), rules.seed, every.rows.weights.tolist())
    decided = None if found.decided is None else dict(zip(every.places, found.decided, strict=True))
    return decided, found.thresholds


def _with_decisions(made: Comparison, pair: _Pair, decided: Mapping[int, bool] | None) -> Comparison:
    """The comparison of scores, with what the decisions about its rows are worth."""
    if decided is None:
        unknown = dict.fromkeys(("balanced_accuracy", "kappa"), Figure(None, reason=_NO_THRESHOLD))
        return replace(made, figures={**made.figures, **unknown})
    own = [decided[place] for place in pair.places]
    levels, table = _table([float(yes) for yes in pair.positive], [float(yes) for yes in own], {0: "no", 1: "yes"})
    figures = {**made.figures, **decision_figures(pair.positive, own, pair.rows)}
    return replace(made, figures=figures, levels=levels, confusion=table)


def _with_grades(made: Comparison, pair: _Pair, scale: tuple[float, float], weights: Weights | None) -> Comparison:
    """The comparison of ratings on the scale of the labels."""
    decisions = decision_figures(pair.positive, [rating >= pair.level for rating in pair.ratings], pair.rows)
    figures = {**made.figures,
               **{name: decisions[name] for name in ("balanced_accuracy", "sensitivity", "specificity")},
               **rating_figures(pair.labels, pair.ratings, weights, pair.rows, scale[1] - scale[0] or None)}
    off = Counter(rating for rating in pair.ratings if not scale[0] <= rating <= scale[1])
    levels, table = _table(pair.labels, pair.ratings, {})
    return replace(made, figures=figures, off_scale=dict(sorted(off.items())), levels=levels, confusion=table)


def _compare_categories(shared: tuple[str, str, str | None], counts: tuple[int, int, dict[str, int]],
                        named: tuple[list[str], list[str]], rows: Resampling) -> Comparison:
    names = sorted({*named[0], *named[1]})
    number = {name: float(place) for place, name in enumerate(names)}
    a, b = ([number[name] for name in one] for one in named)
    levels, table = _table(a, b, {place: name for name, place in number.items()})
    return Comparison(*shared, "categories", *counts, rating_figures(a, b, None, rows), levels=levels, confusion=table)


def _names(rater: Ratings, places: Sequence[int]) -> list[str]:
    if not rater.categories:
        raise DataError(f"agreement: {rater.name} gives numbers and the other rater names; say which names are a yes: "
                        "--positive NAME")
    return [str(rater.values[place]) for place in places]


def _table(a: Sequence[float], b: Sequence[float],
           names: Mapping[float, str]) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    found = confusion(a, b)
    return tuple(names.get(level, f"{level:g}") for level in found.levels), found.counts
