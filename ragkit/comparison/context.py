"""What all parts of a comparison are told besides the sides: the baseline, the metrics, the questions, the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragkit.comparison.sides import Side
from ragkit.metrics.registry import Metric


@dataclass(frozen=True)
class Context:
    """What is compared: `metrics` by `labels` ("gold" or "judged") on the `questions` that all sides were asked."""

    baseline: str
    metrics: tuple[Metric, ...]
    labels: str
    questions: tuple[str, ...]
    seed: int = 0
    _repeats: dict[tuple[str, str], dict[str, list[float]]] = field(default_factory=dict, repr=False)
    _values: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict, repr=False)

    def repeats(self, side: Side, metric: str) -> dict[str, list[float]]:
        """The values of all scored repeats of a metric, by compared question."""
        key = (side.name, metric)
        if key not in self._repeats:
            found = side.repeats(metric, self.labels)
            self._repeats[key] = {question: found[question] for question in self.questions if question in found}
        return self._repeats[key]

    def values(self, side: Side, metric: str) -> dict[str, float]:
        """The values of a metric by compared question, repeats averaged; what was not scored is left out."""
        key = (side.name, metric)
        if key not in self._values:
            self._values[key] = {question: found[0] if len(found) == 1 else sum(found) / len(found)
                                 for question, found in self.repeats(side, metric).items()}
        return self._values[key]


def of_name(sides: Sequence[Side], name: str) -> Side:
    """The side of this name, which is known to be there."""
    return next(side for side in sides if side.name == name)


def others(sides: Sequence[Side], baseline: str) -> list[Side]:
    """All sides but the baseline, in their order."""
    return [side for side in sides if side.name != baseline]


Table = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""metric -> variant -> figures."""
