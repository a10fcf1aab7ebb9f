"""A bridge between two judges: both on one sample, so that what the earlier one said can be compared with the new one.

The earlier judge is read from its store and never asked; the new one is asked about the sample first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError, JudgeError
from ragkit.evaluation.judged_rows import judge_samples_of
from ragkit.evaluation.label_draw import Drawn, Unit, draw
from ragkit.evaluation.scoring import Scoring
from ragkit.judge.judging import judge_samples
from ragkit.judge.open import reopen_judge
from ragkit.judge.samples import JudgeSample
from ragkit.judge.settings import JudgeSettings
from ragkit.judge.verdicts import JudgementBook
from ragkit.metrics.agreement import cohen_kappa
from ragkit.metrics.prediction_powered import Labelled, corrected_mean
from ragkit.metrics.registry import Metric
from ragkit.records.judgements import Judgement

if TYPE_CHECKING:
    from ragkit.judge.gateway import Gateway

Found = Mapping[tuple[tuple[Any, ...], str], Judgement]


@dataclass(frozen=True)
class EarlierJudge:
    """Who judged a folder before (its record in run.json), where its verdicts are kept, and how many to ask of both."""

    judge: Mapping[str, str]
    store: Path
    count: int

    def read(self, scoring: Scoring) -> dict[tuple[tuple[Any, ...], str], Judgement]:
        """What it said of these answers, by (trajectory key, metric name), as far as it is in its store."""
        if not self.store.exists():
            raise DataError(f"{self.store}: the judgements of {self.judge['name']} are gone, so it cannot be compared "
                            "with another judge; choose another --out")
        settings = JudgeSettings(store=self.store, embeddings=self.judge["embeddings"])
        found = {}
        with reopen_judge(self.judge, settings) as gateway:
            book = JudgementBook(gateway)
            for sample in judge_samples_of(scoring):
                for metric in scoring.of_kind("judged"):
                    ready = book.ready(metric, sample)
                    if ready is not None and ready.score.value is not None:
                        found[sample.key, metric.name] = ready
        return found


@dataclass(frozen=True)
class BridgeSample:
    """Which answers both judges are asked about: drawn from the `judged` questions that the earlier one judged."""

    before: Found
    drawn: Sequence[Drawn]
    judged: int
    samples: Sequence[JudgeSample]


def bridge_sample(scoring: Scoring, earlier: EarlierJudge, seed: int = 0) -> BridgeSample:
    """Draws the sample. Nobody is asked."""
    before = earlier.read(scoring)
    lowest: dict[tuple[Any, ...], float] = {}
    for (key, name), judgement in before.items():
        place = _place(scoring, name, judgement.score.value)
        lowest[key] = min(place, lowest.get(key, 1.0))
    units = _one_each([Unit(str(key[0]), int(key[1]), "", place) for key, place in lowest.items()])
    drawn = draw(units, earlier.count, seed, (0.0, 1.0)) if units else []
    keys = {(one.unit.question_id, one.unit.repeat) for one in drawn}
    return BridgeSample(before, drawn, len(units), [s for s in judge_samples_of(scoring) if s.key in keys])


async def ask_bridge(scoring: Scoring, gateway: Gateway, earlier: EarlierJudge, seed: int = 0) -> dict[str, Any]:
    """Ask the new judge about a stratified sample of what the earlier one judged; how far they are apart, by metric.

    As many answers that the earlier judge scored low are drawn as others, and the offset (mean of new - earlier over
    all answers) is weighted accordingly. Where the new judge stops (a budget), the bridge holds what it delivered.
    """
    chosen = bridge_sample(scoring, earlier, seed)
    before, drawn, judged = chosen.before, chosen.drawn, chosen.judged
    now: dict[tuple[tuple[Any, ...], str], Judgement] = {}
    with suppress(JudgeError):  # said by the judging of the whole run, which comes next
        await judge_samples(gateway, chosen.samples, scoring.of_kind("judged"), None, now)
    return {
        "from": {"judge": earlier.judge["name"], "endpoint": earlier.judge["endpoint"]},
        "to": {"judge": gateway.name, "endpoint": gateway.backend.where},
        "n_drawn": len(drawn),
        "n_judged": judged,
        "metrics": {metric.name: _compared(metric, drawn, before, now)
                    for metric in scoring.of_kind("judged")},
    }


def _compared(metric: Metric, drawn: Sequence[Drawn], before: Found, now: Found) -> dict[str, Any]:
    """How far the two are apart on one metric, for the questions of which the earlier judge scored it."""
    questions = len({key[0] for key, name in before if name == metric.name})
    both = []
    for one in drawn:
        key = ((one.unit.question_id, one.unit.repeat), metric.name)
        old, new = before.get(key), now.get(key)
        if old is not None and new is not None and old.score.value is not None and new.score.value is not None:
            both.append((one, old, new))
    rows = {one.unit.question_id: Labelled(0.0, float(new.score.value or 0) - float(old.score.value or 0), one.weight,
                                           one.stratum) for one, old, new in both}
    low, high = metric.definition.range
    ends = (None, None) if low is None or high is None else (low - high, high - low)
    zeros = dict.fromkeys(rows, 0.0) | {f"\x00{place}": 0.0 for place in range(questions - len(rows))}
    made = corrected_mean(zeros, rows, ends)
    verdicts = _verdicts(both)
    binary = [(old, new) for old, new in verdicts if {old, new} <= {0.0, 1.0}]
    middle = 0.5 if low is None or high is None else (low + high) / 2
    halves = [(float((old.score.value or 0) >= middle), float((new.score.value or 0) >= middle))
              for _, old, new in both]
    pairs = binary if len(binary) == len(verdicts) and verdicts else halves
    return {
        "offset": made.mean, "low": made.low, "high": made.high, "n": len(both),
        "old": _weighted([(one.weight, old) for one, old, _ in both]),
        "new": _weighted([(one.weight, new) for one, _, new in both]),
        "kappa": cohen_kappa([old for old, _ in pairs], [new for _, new in pairs]) if pairs else None,
        "kappa_of": "verdicts" if pairs is binary else "scores", "n_kappa": len(pairs), "reason": made.reason,
    }


def _weighted(found: Sequence[tuple[float, Judgement]]) -> float | None:
    total = math.fsum(weight for weight, _ in found)
    return math.fsum(weight * (one.score.value or 0) for weight, one in found) / total if found else None


def _verdicts(both: Sequence[tuple[Drawn, Judgement, Judgement]]) -> list[tuple[float, float]]:
    """The verdicts of both judges on the same thing; a judge that made statements of its own has none in common."""
    return [(one.value, other.value) for _, old, new in both if len(old.verdicts) == len(new.verdicts)
            for one, other in zip(old.verdicts, new.verdicts, strict=True) if one.subject == other.subject]


def _place(scoring: Scoring, name: str, value: float | None) -> float:
    """Where a score stands on its metric's range, 0 to 1."""
    low, high = next(metric for metric in scoring.metrics if metric.name == name).definition.range
    if value is None or low is None or high is None:
        return 1.0
    return (value - low) / (high - low)


def _one_each(units: Sequence[Unit]) -> list[Unit]:
    """One answer a question: the first of its repeats."""
    first: dict[str, Unit] = {}
    for unit in sorted(units, key=lambda unit: (unit.question_id, unit.repeat)):
        first.setdefault(unit.question_id, unit)
    return list(first.values())
