"""Human labels for a part of the questions correct a judge's mean over all of them, with an interval that holds.

Prediction-powered inference (Angelopoulos et al., Science 2023) with the tuned weight of PPI++ (2023). Knows nothing
of runs and files; how the labelled part is drawn is in evaluation/label_sample.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ragkit.errors import DataError

_Z_POWER = 1.959964 + 0.841621  # two-sided 5 %, and 80 % power
_FEW = 5  # differences between judge and people, below which their size is not known
UNKNOWN_DRAW = ("nothing is known of how the labelled part was drawn; the corrected mean holds only if it was drawn at "
                "random")


class Labelled(NamedTuple):
    """One labelled question: the judge's score, the human one, and how many questions it stands for (1 / its chance
    to be drawn; None: nobody knows). Rows of one `stratum` were drawn together."""

    judge: float
    human: float
    weight: float | None = None
    stratum: str = ""


@dataclass(frozen=True)
class Corrected:
    """A mean (or a difference of means) corrected by labels, with its 95 % interval; None where `reason` says why.

    `raw` is the judge's own, `bias` what the judge gives more than people do (mean of judge minus human, weighted),
    `trust` the weight of the judge's scores, 0 (ignored: only the labels count) to 1. `noise` is the variance that one
    label leaves, `spread` the variance between questions.
    """

    mean: float | None
    low: float | None
    high: float | None
    raw: float | None
    bias: float | None
    trust: float
    n_labels: int
    n_questions: int
    weighted: bool
    noise: float = 0.0
    spread: float = 0.0
    warning: str | None = None
    reason: str | None = None

    def labels_to_decide(self, difference: float) -> int | None:
        """Labels in all that tell a difference of this size from 0 in four of five cases (80 % power, 5 % error).

        None where no number of labels can: the questions themselves are too few for it.

        >>> judged = {f"q{i}": float(i % 2) for i in range(100)}
        >>> labels = {f"q{i}": Labelled(i % 2, (i % 2) if i else 1.0, 5.0) for i in range(20)}
        >>> made = corrected_mean(judged, labels)
        >>> made.labels_to_decide(0.25), made.labels_to_decide(0.01)
        (16, None)
        """
        _check_difference(difference)
        if self.mean is None:
            return None
        room = (difference / _Z_POWER) ** 2 - self.spread / self.n_questions
        if room <= 0:
            return None
        if not self.noise:
            return 2
        return min(self.n_questions, max(2, math.ceil(1 / (room / self.noise + 1 / self.n_questions))))

    def questions_to_decide(self, difference: float) -> int | None:
        """The questions without which no number of labels tells this difference from 0 (80 % power, 5 % error)."""
        _check_difference(difference)
        return None if self.mean is None else math.floor(self.spread * (_Z_POWER / difference) ** 2) + 1


def corrected_mean(
    judged: Mapping[str, float], labelled: Mapping[str, Labelled],
    metric_range: tuple[float | None, float | None] = (0.0, 1.0), *, finite: bool = True,
) -> Corrected:
    """The mean over all questions that `judged` scores, corrected by those of them that people labelled.

    The estimate is trust * mean(judge, all) + weighted mean(human - trust * judge, labelled); with right weights it is
    right on average whatever the judge does, and where the judge tells questions apart its interval is narrower than
    that of the labels alone. Where the judge gives all questions the same score it is the labels' own weighted mean.
    Mean and ends are kept inside the metric's range. `finite=False`: a labelled answer is one of several to its
    question (repeats), so that even labels for all questions leave something open.
    Fewer than two labels: None, with the reason.

    >>> judged = {"q1": 1.0, "q2": 1.0, "q3": 0.0, "q4": 0.0}
    >>> made = corrected_mean(judged, {"q1": Labelled(1, 1, 2), "q3": Labelled(0, 0, 2)})
    >>> made.mean, made.raw, made.bias
    (0.5, 0.5, 0.0)
    """
    side = _Side(judged, labelled)
    return _corrected([side], metric_range, finite)


def corrected_difference(
    baseline: tuple[Mapping[str, float], Mapping[str, Labelled]],
    variant: tuple[Mapping[str, float], Mapping[str, Labelled]],
    metric_range: tuple[float | None, float | None] = (0.0, 1.0), *, finite: bool = True,
) -> Corrected:
    """The mean difference variant - baseline over the questions that both scored, each a (judged, labelled) pair.

    Questions labelled in both runs are compared as pairs, which needs far fewer labels; others count for their own run.
    Labels for one run alone say nothing of how the judge errs on the other: None, with the reason.

    >>> judged = {f"q{i}": i / 10 for i in range(10)}
    >>> labels = {f"q{i}": Labelled(i / 10, i / 10, 5.0) for i in (2, 7)}
    >>> corrected_difference((judged, labels), (judged, labels)).mean
    0.0
    """
    shared = baseline[0].keys() & variant[0].keys()
    sides = [_Side({q: judged[q] for q in judged if q in shared}, {q: row for q, row in labels.items() if q in shared})
             for judged, labels in (variant, baseline)]
    low, high = metric_range
    width = None if low is None or high is None else high - low
    return _corrected(sides, (None, None) if width is None else (-width, width), finite)


class _Side:
    """One run: all its judge scores, and its labelled questions with weights that sum to the number of questions."""

    def __init__(self, judged: Mapping[str, float], labelled: Mapping[str, Labelled]) -> None:
        strange = [question for question in labelled if question not in judged]
        if strange:
            raise DataError(f"labelled question {strange[0]!r}: the judge scored no such question")
        self.judged, self.labelled = judged, labelled
        self.known = bool(labelled) and all(row.weight is not None for row in labelled.values())
        given = {q: 1.0 if not self.known or row.weight is None else row.weight for q, row in labelled.items()}
        for question, weight in given.items():
            if not (math.isfinite(weight) and weight > 0):
                raise DataError(f"labelled question {question!r}: expected a weight above 0, got {weight!r}")
        total = math.fsum(given.values())
        self.weights = {q: weight * len(judged) / total for q, weight in given.items()}
        self.strata: dict[str, list[str]] = {}
        for question, row in labelled.items():
            self.strata.setdefault(row.stratum if self.known else "", []).append(question)

    @property
    def raw(self) -> float:
        return math.fsum(self.judged.values()) / len(self.judged)

    def mean(self, values: Mapping[str, float]) -> float:
        """The weighted mean of values of the labelled questions."""
        return math.fsum(self.weights[q] * values[q] for q in self.labelled) / len(self.judged)

    def humans(self) -> dict[str, float]:
        return {q: row.human for q, row in self.labelled.items()}

    def judges(self) -> dict[str, float]:
        return {q: row.judge for q, row in self.labelled.items()}

    def parts(self, values: Mapping[str, float]) -> dict[str, float]:
        """What each labelled question adds to the error of `mean`: its weight times its distance from its stratum."""
        made, everywhere = {}, self.mean(values)
        for questions in self.strata.values():
            count = len(questions)
            total = math.fsum(self.weights[q] for q in questions)
            own = math.fsum(self.weights[q] * values[q] for q in questions) / total if count > 1 else everywhere
            scale = math.sqrt(count / (count - 1)) if count > 1 else 1.0
            made.update({q: self.weights[q] * (values[q] - own) * scale for q in questions})
        return made

    def variance(self, values: Mapping[str, float]) -> float:
        """The variance between questions, as the labelled ones show it."""
        middle, count = self.mean(values), len(self.labelled)
        squares = math.fsum(self.weights[q] * (values[q] - middle) ** 2 for q in self.labelled)
        return squares / len(self.judged) * count / (count - 1)


def _corrected(sides: Sequence[_Side], ends: tuple[float | None, float | None], finite: bool) -> Corrected:
    """One side, or a variant and its baseline: the second is taken off the first."""
    n_questions = len(sides[0].judged)
    labelled = list(dict.fromkeys(q for side in sides for q in side.labelled))
    raw = _less_baseline([side.raw for side in sides]) if n_questions else None
    known = all(side.known for side in sides)
    fewest = min(len(side.labelled) for side in sides)
    if fewest < 2 or not n_questions:
        whose = " of each run (those of one say nothing of the judge's errors on the other)" if len(sides) > 1 else ""
        reason = f"expected at least 2 labels{whose}, got {fewest}"
        reason = reason if n_questions else "no question with a judge's score"
        return Corrected(None, None, None, raw, None, 0.0, len(labelled), n_questions, known, reason=reason)

    def total(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Of each labelled question, what it adds to the error of the whole figure."""
        return {q: _less_baseline([part.get(q, 0.0) for part in parts]) for q in labelled}

    humans = total([side.parts(side.humans()) for side in sides])
    judges = total([side.parts(side.judges()) for side in sides])
    heaviest = {q: max(side.weights.get(q, 0.0) for side in sides) for q in labelled}
    left = {q: max(0.0, 1 - 1 / heaviest[q]) if finite else 1.0 for q in labelled}  # what the draw left open
    trust = _trust(humans, judges, left if any(left.values()) else dict.fromkeys(labelled, 1.0))
    residuals = [{q: row.human - trust * row.judge for q, row in side.labelled.items()} for side in sides]
    bias = _less_baseline([side.mean({q: row.judge - row.human for q, row in side.labelled.items()}) for side in sides])
    left_over = _less_baseline([side.mean(values) for side, values in zip(sides, residuals, strict=True)])
    mean = trust * (raw or 0.0) + left_over
    effective = math.fsum(heaviest.values()) ** 2 / math.fsum(weight**2 for weight in heaviest.values())
    pseudo = _size_of_errors(sides, labelled, ends) ** 2 / (effective + 1)  # as if one error each way had been seen
    errors = {q: (humans[q] - trust * judges[q]) ** 2 + heaviest[q] ** 2 * pseudo for q in labelled}
    spread = _spread(sides, trust, residuals)
    variance = spread / n_questions + math.fsum(left[q] * errors[q] for q in labelled) / n_questions**2
    freedom = min(len(side.labelled) - sum(len(questions) > 1 for questions in side.strata.values()) for side in sides)
    half = _t_quantile(max(1, freedom - (trust > 0))) * math.sqrt(variance)
    return Corrected(
        _inside(mean, ends), _inside(mean - half, ends), _inside(mean + half, ends), raw, bias, trust, len(labelled),
        n_questions, known, len(labelled) * math.fsum(errors.values()) / n_questions**2, spread,
        None if known else UNKNOWN_DRAW)


def _check_difference(difference: float) -> None:
    if not difference:
        raise DataError("expected a difference other than 0: no number of labels tells 0 from 0")


def _less_baseline(values: Sequence[float]) -> float:
    """The variant's value less the baseline's, where there are two; else the one there is."""
    first, *rest = values
    return first - rest[0] if rest else first


def _trust(humans: Mapping[str, float], judges: Mapping[str, float], left: Mapping[str, float]) -> float:
    """The weight of the judge's scores that leaves the least variance, kept in 0..1 as PPI++ does."""
    power = math.fsum(left[q] * judges[q] ** 2 for q in judges)
    if power <= 1e-18:
        return 0.0
    return min(1.0, max(0.0, math.fsum(left[q] * judges[q] * humans[q] for q in judges) / power))


def _size_of_errors(sides: Sequence[_Side], labelled: Sequence[str], ends: tuple[float | None, float | None]) -> float:
    """How large an error of the judge is, where there is one. Where hardly any was seen, the whole range: what is rare
    was not seen."""
    errors = [{q: row.human - row.judge for q, row in side.labelled.items()} for side in sides]
    found = [abs(_less_baseline([own.get(q, 0.0) for own in errors])) for q in labelled]
    low, high = ends
    seen = [size for size in found if size > 1e-9]
    if low is None or high is None or len(seen) >= _FEW:
        return math.sqrt(math.fsum(size**2 for size in seen) / len(seen)) if seen else 0.0
    return (high - low) / len(sides)


def _spread(sides: Sequence[_Side], trust: float, residuals: Sequence[Mapping[str, float]]) -> float:
    """The variance between questions of what people would say."""
    if len(sides) == 1:
        return sides[0].variance(sides[0].humans())
    variant, baseline = sides
    both = {q: variant.labelled[q].human - baseline.labelled[q].human for q in variant.labelled
            if q in baseline.labelled}
    if len(both) >= 2:
        paired = _Side(variant.judged, {q: variant.labelled[q] for q in both})
        return paired.variance(both)
    steps = [variant.judged[q] - baseline.judged[q] for q in variant.judged]
    middle = math.fsum(steps) / len(steps)
    judged = math.fsum((step - middle) ** 2 for step in steps) / max(1, len(steps) - 1)
    return trust**2 * judged + math.fsum(side.variance(values) for side, values in zip(sides, residuals, strict=True))


def _inside(value: float, ends: tuple[float | None, float | None]) -> float:
    low, high = ends
    value = value if low is None else max(low, value)
    return value if high is None else min(high, value)


def _t_quantile(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))
