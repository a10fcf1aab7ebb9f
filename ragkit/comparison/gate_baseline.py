"""A run held against a baseline run: not worse by more than a margin, paired by question. Reads no rule's threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ragkit.comparison.context import Context
from ragkit.comparison.fitting import fit
from ragkit.comparison.gate_tally import is_by_gold, rows_of, unanswerable_of
from ragkit.comparison.pooled import on_common_pool
from ragkit.comparison.rules import Rule
from ragkit.comparison.sides import JUDGED, Side
from ragkit.errors import DataError, shown
from ragkit.metrics.paired import RESAMPLES, Pair, PairedDifference, compare_pairs
from ragkit.metrics.registry import Metric, parse, parse_all
from ragkit.report.comparison_rows import leading
from ragkit.report.numbers import counted, number, percent, plain, signed

if TYPE_CHECKING:
    from ragkit.comparison.gate import Settings

USUAL_MARGIN: Final = 0.02


@dataclass(frozen=True)
class Margins:
    """How much worse than the baseline a run may be: one margin for all metrics, and others for some.

    >>> found = parse_margins(["0.05", "mrr=0.1"])
    >>> found.of(parse("recall")), found.of(parse("mrr")), Margins().of(parse("mrr"))
    (0.05, 0.1, 0.02)
    """

    usual: float = USUAL_MARGIN
    own: Mapping[str, float] = field(default_factory=dict)

    def of(self, metric: Metric) -> float:
        return self.own.get(metric.name, self.usual)


def parse_margins(texts: Sequence[str]) -> Margins:
    """The margins of "0.02" (all metrics) and "mrr=0.05" (that one); DataError for what is none."""
    usual, own = USUAL_MARGIN, dict[str, float]()
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            margin = float(value)
        except ValueError:
            margin = math.nan
        if not (math.isfinite(margin) and margin >= 0):
            raise DataError(f"--margin {shown(text)}: expected a number from 0 on, or METRIC=NUMBER")
        if equals:
            own[parse(name).name] = margin
        else:
            usual = margin
    return Margins(usual, own)


def paired_metrics(side: Side, base: Side, rules: Sequence[Rule], named: str | Sequence[str] | None,
                   labels: str, most: int = 1) -> tuple[Metric, ...]:
    """What is held against the baseline: what was named, else the rules' metrics, else the `most` to read first."""
    if named:
        return parse_all(named)
    if rules:
        return tuple(dict.fromkeys(rule.metric for rule in rules))
    scored = [name for name in side.scores_by(labels) if side.repeats(name, labels) and base.repeats(name, labels)]
    first = leading(scored, most)
    if not first:
        raise DataError(f"--baseline: {side.name} and {base.name} share no scored metric")
    return parse_all(first)


def baseline_checks(side: Side, base: Side, metrics: Sequence[Metric], margins: Margins,
                    settings: Settings) -> tuple[list[dict[str, Any]], list[str]]:
    """A check for each metric, and what narrows the comparison; DataError where the two cannot be compared."""
    fits = fit([base, side], [metric.name for metric in metrics], settings.labels)
    warnings, sides = list(fits.warnings), [base, side]
    if fits.labels == JUDGED:
        sides, told = on_common_pool(sides)
        warnings += told
    context = Context(base.name, fits.metrics, fits.labels, fits.questions, settings.seed)
    before, now = sides[0].named("baseline"), sides[1].named("run")  # two runs may have one name
    found = differences_of([Pair(context.values(before, metric.name), context.values(now, metric.name),
                                 metric.definition.direction) for metric in metrics], settings.seed)
    checks = []
    for metric, one in zip(metrics, found, strict=True):
        coverage = _coverage(before, now, metric, context, one.n)
        if not one.n:
            raise DataError(f"--baseline: no question was scored on {metric.name} in both {base.name} and {side.name}")
        margin = margins.of(metric)
        outcome, reason = judged_against(metric, one, margin)
        if coverage < settings.min_scored:
            outcome, reason = "undecided", (f"scored in both runs on {percent(coverage)} of the questions that have "
                                            f"something to be found, under the {percent(settings.min_scored)} that "
                                            "--min-scored asks for")
        checks.append({"kind": "baseline", "metric": metric.name, "outcome": outcome, "reason": reason,
                       "margin": margin, "direction": metric.definition.direction, "difference": one.difference,
                       "low": one.low, "high": one.high, "n": one.n, "coverage": coverage, "wins": one.wins,
                       "ties": one.ties, "losses": one.losses})
    return checks, warnings


def differences_of(pairs: Sequence[Pair], seed: int = 0) -> list[PairedDifference]:
    """Run minus baseline of each pair, with the interval that the margin is held against."""
    return compare_pairs(pairs, seed, RESAMPLES)


def judged_against(metric: Metric, found: PairedDifference, margin: float) -> tuple[str, str]:
    """(pass, fail or undecided; why): non-inferior where the whole 95 % interval is above minus the margin.

    Where lower is better the signs turn round. Where neither direction is better, no margin means anything.

    >>> one = PairedDifference(-0.01, -0.03, 0.01, 0.4, 3, 90, 7, 100, 0.1, None)
    >>> [judged_against(parse("mrr"), one, margin)[0] for margin in (0.05, 0.02)]
    ['pass', 'undecided']
    """
    direction = metric.definition.direction
    if direction == "none":
        raise DataError(f"--baseline: {metric.name} has no better direction; expected a metric that has one")
    if found.low is None or found.high is None:
        return "undecided", f"{counted(found.n, 'question')} scored in both: no interval"
    low, high = (found.low, found.high) if direction == "higher" else (-found.high, -found.low)
    told = (f"{metric.name} {signed(found.difference)} against the baseline, 95 % from {number(found.low)} to "
            f"{number(found.high)}")
    if low > -margin:
        return "pass", ""
    if high < -margin:
        return "fail", f"{told}: worse by more than {plain(margin)}"
    return "undecided", (f"{told}: holds the margin of {plain(margin)}; `ragkit gate --plan` names the smallest margin "
                         "that this question set can enforce")


def _coverage(before: Side, now: Side, metric: Metric, context: Context, n: int) -> float:
    """The share of the common questions that have something to be found which both runs scored."""
    none = set(context.questions)
    for side in (before, now):
        rows, unanswerable = rows_of(side, metric, context.labels, "--baseline"), unanswerable_of(side)
        none &= {question for question in context.questions
                 if is_by_gold(question, rows.get(question, {}), unanswerable)}
    able = len(context.questions) - len(none)
    return n / able if able else 0.0
