"""The rules of a gate: "mrr>=0.7", "recall[category=how-to]>=0.8". What they say is parsed here; nothing is scored."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragkit.comparison.sides import QuestionFacts
from ragkit.comparison.slices import METADATA, all_slicings, slicing_name
from ragkit.errors import DataError, shown
from ragkit.metrics.registry import Metric, parse
from ragkit.report.numbers import plain

_FORM: Final = re.compile(r"\s*(?P<metric>[^\[\]<>=!]+?)\s*(?P<where>\[.*\])?\s*(?P<compare>>=|<=|==|>|<)"
                          r"\s*(?P<threshold>\S+)\s*", re.DOTALL)
_COMPARES: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq}
_ROUNDING: Final = 1e-9  # a mean of 0.7 may be 0.7 less a rounding error: nearer than that is equal
_EXPECTED: Final = 'expected METRIC[SLICING=SLICE] COMPARE NUMBER, such as "mrr>=0.7" or "recall[category=how-to]>=0.8"'
USUAL: Final = ("mrr>0.7", "precision@5>0.6")
TARGETS: Final[Mapping[str, Sequence[str]]] = {"usual": USUAL}
"""Sets of rules by name: usual are the ones that teams start from."""


@dataclass(frozen=True)
class Rule:
    """A metric's mean, over all questions or those of a slice, held against a threshold."""

    metric: Metric
    compare: str
    threshold: float
    where: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The rule as it is written; it parses back."""
        return f"{self.subject}{self.compare}{plain(self.threshold)}"

    @property
    def subject(self) -> str:
        """The metric and the slice."""
        return self.metric.name + "".join(f"[{slicing}={part}]" for slicing, part in self.where)

    def __str__(self) -> str:
        return self.text

    def holds(self, value: float) -> bool:
        """Whether a mean keeps the rule; what differs by rounding alone is equal.

        >>> parse_rule("mrr>=0.7").holds(0.7 - 1e-15), parse_rule("mrr>0.7").holds(0.7 + 1e-15)
        (True, False)
        """
        near = math.isclose(value, self.threshold, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
        return _COMPARES[self.compare](self.threshold if near else value, self.threshold)


def parse_rule(text: str) -> Rule:
    """The rule that a text says. DataError for another form, an unknown metric, a threshold that is no number.

    Several slicings in a row are all to be kept: "recall[category=how-to][gold=multi-hop]>=0.8".

    >>> parse_rule("Recall [category=how-to] >= .8").text
    'recall[category=how-to]>=0.8'
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise DataError(f"rule {shown(text)}: {_EXPECTED}")
    try:
        threshold = float(match["threshold"])
    except ValueError:
        threshold = math.nan
    if not math.isfinite(threshold):
        raise DataError(f"rule {shown(text)}: expected a number after {match['compare']}, got "
                        f"{shown(match['threshold'])}")
    try:
        metric = parse(match["metric"])
    except DataError as error:
        raise DataError(f"rule {shown(text)}: {error}") from None
    if metric.definition.series:
        raise DataError(f"rule {shown(text)}: {metric.name} has a value a step and none at the end; expected a metric "
                        "with one, such as recall or aucr")
    parts = (match["where"] or "[]")[1:-1]
    where = tuple(_condition(text, part) for part in parts.split("][")) if parts else ()
    return Rule(metric, match["compare"], threshold, where)


def parse_rules(texts: Sequence[str], targets: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The rules of texts and of named sets of targets, each once.

    >>> [rule.text for rule in parse_rules(["mrr>0.7"], ["usual"])]
    ['mrr>0.7', 'precision@5>0.6']
    """
    for name in targets:
        if name not in TARGETS:
            raise DataError(f"--targets {shown(name)}: expected {', '.join(TARGETS)}")
    return tuple(dict.fromkeys(parse_rule(text) for text in [*texts, *(t for name in targets for t in TARGETS[name])]))


def _condition(text: str, part: str) -> tuple[str, str]:
    slicing, equals, value = (piece.strip() for piece in part.partition("="))
    if not equals or not slicing or not value:
        raise DataError(f"rule {shown(text)}: expected [SLICING=SLICE], such as [category=how-to], got [{part}]")
    return slicing, value


def questions_of(rule: Rule, facts: Sequence[QuestionFacts]) -> tuple[str, ...]:
    """The ids of the questions that a rule is about; DataError for a slice that none is in, with those there are."""
    found = list(facts)
    for slicing, part in rule.where:
        inside = _slice(rule, slicing, part, facts)
        found = [one for one in found if one.id in inside]
    if not found:
        raise DataError(f"rule {rule}: no question is in all of its slices")
    return tuple(one.id for one in found)


def _slice(rule: Rule, slicing: str, part: str, facts: Sequence[QuestionFacts]) -> frozenset[str]:
    name = slicing_name(slicing)
    if name.startswith(METADATA):  # also a key with more values than a table of slices shows
        key = name.removeprefix(METADATA)
        inside = {one.id for one in facts if key in one.metadata and str(one.metadata[key]) == part}
        known = sorted({str(one.metadata[key]) for one in facts if key in one.metadata})
    elif name == slicing_name("gold") and part.isdecimal():
        inside = {one.id for one in facts if one.n_gold == int(part)}
        known = sorted({str(one.n_gold) for one in facts if one.n_gold is not None})
    else:
        parts = all_slicings(facts).get(name)
        if parts is None:
            raise DataError(f"rule {rule}: no slicing {shown(slicing)}; expected category, gold, labels, length, tag "
                            "or metadata.KEY")
        inside, known = set(parts.get(part, ())), list(parts)
    if not inside:
        told = ", ".join(known[:20]) or "none known"
        raise DataError(f"rule {rule}: no question in {slicing} {shown(part)}; expected one of: {told}")
    return frozenset(inside)
