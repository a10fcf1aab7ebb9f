"""What a question set can enforce: the smallest margin to a baseline, and each rule's ceiling. Gates nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ragkit.comparison.ceilings import attainable, out_of_reach
from ragkit.comparison.fitting import fit
from ragkit.comparison.gate import WRONG, Settings, as_side, facts_of, level_of
from ragkit.comparison.gate_baseline import paired_metrics
from ragkit.comparison.gate_tally import labels_of, not_scored, rows_of, tally, unanswerable_of
from ragkit.comparison.rules import Rule, parse_rules
from ragkit.comparison.sides import GOLD, Side
from ragkit.metrics.noise import smallest_margin, variance_split
from ragkit.metrics.registry import Metric
from ragkit.report.numbers import count

SCHEMA: Final = "ragkit.gate-plan/1"
_MOST: Final = 5  # so many metrics are planned for where none is named
_HOW: Final = ("unknown: one run without repeats does not tell how much the metric moves by itself. Run the same "
               "commit twice and give the other as --baseline, or ask each question several times (repeats: 3)")
_NONE: Final = "unknown: fewer than two questions are scored in all runs"


def plan_gate(run: str | Path | Side, rules: Sequence[str] = (), *, targets: Sequence[str] = (),
              baseline: str | Path | Side | None = None, metrics: str | Sequence[str] | None = None,
              settings: Settings | None = None) -> dict[str, Any]:
    """The plan as plain data: "metrics" with the smallest margin each, "rules" with their ceilings, "exit_code".

    `baseline` is a second run of the same app, without a change between the two: their differences are noise. Without
    it the run's own repeats tell. A release without any change keeps the margin in at least 95 of 100 cases. The exit
    code is 2 where some rule is out of reach.
    """
    settings = settings or Settings()
    side, asked = as_side(run), parse_rules(rules, targets)
    base = None if baseline is None else as_side(baseline)
    labels = labels_of(side, settings.labels)
    named = paired_metrics(side, base or side, asked, metrics, labels, _MOST)
    warnings: tuple[str, ...] = ()
    if base is not None:
        warnings = fit([side.named("run"), base.named("baseline")], [metric.name for metric in named],
                       settings.labels).warnings
    planned = [_ceiling(side, rule, labels, settings) for rule in asked]
    data = {"schema": SCHEMA, "run": side.name if side.folder is None else str(side.folder),
            "baseline": None if base is None else base.name if base.folder is None else str(base.folder),
            "labels": labels, "n_asked": len(side.asked),
            "metrics": {metric.name: _margin(side, base, metric, labels) for metric in named}, "rules": planned,
            "exit_code": WRONG if any(one["out_of_reach"] for one in planned) else 0, "warnings": list(warnings)}
    made: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    return made


def margin_of_runs(runs: Sequence[Mapping[str, Sequence[float]]], metric: Metric) -> float | None:
    """The smallest margin by the values of runs without a change between them, rounded up so that it can be written.

    >>> from ragkit.metrics.registry import parse
    >>> margin_of_runs([{f"q{n}": [1.0, 1.0] for n in range(300)}], parse("mrr"))
    0.0132
    """
    exact = smallest_margin(runs, metric.definition.range)
    return None if exact is None else math.ceil(exact * 10_000) / 10_000


def _margin(side: Side, base: Side | None, metric: Metric, labels: str) -> dict[str, Any]:
    rows_of(side, metric, labels, "gate --plan")  # says so where the metric was not measured
    runs = [one.repeats(metric.name, labels) for one in (side, base) if one is not None]
    if not runs[0]:
        raise not_scored(tally(metric, side.scores_by(labels)[metric.name], side.asked, unanswerable_of(side), 0),
                         f"gate --plan: {metric.name}", side.name)
    shared = [question for question in runs[0] if all(question in run for run in runs)]
    margin = margin_of_runs(runs, metric)
    split = variance_split(runs[0])
    how = None if margin is not None else _NONE if len(shared) < 2 else _HOW
    return {"margin": margin, "n": len(shared), "repeats": round(split.repeats, 2), "runs": len(runs),
            "from": None if margin is None else "two runs" if base is not None else "repeats", "how": how}


def _ceiling(side: Side, rule: Rule, labels: str, settings: Settings) -> dict[str, Any]:
    facts = facts_of(side, rule)
    ends = attainable(rule.metric, facts if labels == GOLD else (), level_of(side))
    found = tally(rule.metric, rows_of(side, rule.metric, labels, f"rule {rule}"), [one.id for one in facts],
                  unanswerable_of(side), settings.seed)
    known = ends.gold is not None or rule.metric.definition.kind != "ranking" or any(one.grades for one in facts)
    return {"rule": rule.text, "metric": rule.metric.name, "ceiling": ends.high, "floor": ends.low, "why": ends.gold,
            "known": known, "out_of_reach": out_of_reach(rule, ends), "mean": found.interval.mean,
            "n": len(facts)}


def plan_lines(data: Mapping[str, Any]) -> list[str]:
    """The plan in sentences."""
    from ragkit.report.numbers import plain

    lines = [f"{data['run']}: {count(data['n_asked'])} questions"]
    for name, one in data["metrics"].items():
        lines.append(f"{name}: smallest margin {plain(one['margin'])} ({count(one['n'])} questions, by {one['from']})"
                     if one["margin"] is not None else f"{name}: smallest margin {one['how']}")
    for one in data["rules"]:
        if one["out_of_reach"]:
            lines.append(f"{one['rule']}: {one['out_of_reach']}")
        else:
            known = f"ceiling {plain(one['ceiling'])}" if one["ceiling"] is not None else "no ceiling"
            lines.append(f"{one['rule']}: {known}{' (' + one['why'] + ')' if one['why'] else ''}"
                         + ("" if one["known"] else ", as far as its range tells; the gold is not at hand"))
    margins = [f"--margin {name}={plain(one['margin'])}" for name, one in data["metrics"].items()
               if one["margin"] is not None]
    if margins:
        lines.append("ragkit gate RUN_DIR --baseline RUN_DIR " + " ".join(margins))
    return lines
