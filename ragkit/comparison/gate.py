"""A run held against rules and against a baseline: pass, fail, or undecided, with the reason. Renders nothing.

A rule compares a mean with its threshold; the interval is shown and does not decide. What is too thinly scored, or
could have come out otherwise had a judge judged all of it, is undecided, and never passes by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ragkit.comparison.ceilings import attainable, out_of_reach
from ragkit.comparison.gate_baseline import Margins, baseline_checks, paired_metrics
from ragkit.comparison.gate_holes import FrozenJudge, Holes
from ragkit.comparison.gate_tally import BY_GOLD, Tally, labels_of, not_scored, rows_of, tally, unanswerable_of
from ragkit.comparison.rules import Rule, parse_rules, questions_of
from ragkit.comparison.sides import GOLD, QuestionFacts, Side, side_of_folder
from ragkit.errors import DataError, shown
from ragkit.report.numbers import counted, number, percent, plain

SCHEMA: Final = "ragkit.gate/1"
PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"
FAILED, WRONG, CANNOT_DECIDE = 1, 2, 4
MIN_SCORED: Final = 0.9
_EXIT_UNDECIDED: Final[Mapping[str | None, int]] = {None: CANNOT_DECIDE, "fail": FAILED, "pass": 0, "warn": 0}


@dataclass(frozen=True)
class Settings:
    """How a gate decides.

    `min_scored`: the least coverage, n_scored / (n_asked - undefined by gold). `frozen`: what nobody judged is no
    missing score but a hole with bounds, and only bounds that cross a rule leave it undecided. `undecided` is what an
    undecided gate leaves: exit code 4 (None), 1 ("fail"), or 0 ("pass", "warn"). `labels`: gold or judged, where a run
    has both.
    """

    min_scored: float = MIN_SCORED
    undecided: str | None = None
    frozen: bool = False
    labels: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.min_scored <= 1:
            raise DataError(f"--min-scored: expected a share from 0 to 1, got {self.min_scored:g}")
        if self.undecided not in _EXIT_UNDECIDED:
            raise DataError(f"--undecided {shown(self.undecided)}: expected fail, pass or warn")


@dataclass(frozen=True)
class Gate:
    """What a gate found. `data` is what `ragkit gate --json` prints."""

    data: dict[str, Any] = field(repr=False)

    @property
    def outcome(self) -> str:
        """pass, fail or undecided: the worst of the checks."""
        return str(self.data["outcome"])

    @property
    def exit_code(self) -> int:
        """0, 1 or 4, as `--undecided` says."""
        return int(self.data["exit_code"])

    @property
    def checks(self) -> list[dict[str, Any]]:
        """One entry a rule, then one a metric that is held against the baseline."""
        found: list[dict[str, Any]] = self.data["checks"]
        return found


def gate(run: str | Path | Side, rules: Sequence[str] = (), *, targets: Sequence[str] = (),
         baseline: str | Path | Side | None = None, margins: Margins | None = None,
         metrics: str | Sequence[str] | None = None, settings: Settings | None = None) -> Gate:
    """Hold a run folder against rules, and against a baseline where one is named.

    `margins` are of the baseline, `metrics` the ones that are held against it: those of the rules unless named.
    Raises DataError, whatever `settings.undecided` says, for what can never be decided: no rule at all, a rule that no
    app could keep, an unknown metric, one that nothing was scored of, a baseline that the run cannot be held against.

    >>> import ragkit, tempfile
    >>> rows = [{"id": "q1", "question": "Capital of France?", "reference": "Paris"}]
    >>> folder = Path(tempfile.mkdtemp()) / "run"
    >>> made = ragkit.evaluate(lambda question: "Paris", rows, metrics="exact_match", out=folder)
    >>> gate(folder, ["exact_match>=0.9"]).outcome
    'pass'
    """
    settings = settings or Settings()
    asked = parse_rules(rules, targets)
    if not asked and baseline is None:
        raise DataError('gate: nothing to hold the run against; expected --rule "mrr>=0.7", --targets usual, or '
                        "--baseline RUN_DIR")
    side = as_side(run)
    checks = rule_checks(side, asked, settings)
    warnings: list[str] = []
    if baseline is not None:
        base = as_side(baseline)
        labels = labels_of(side, settings.labels)
        named = paired_metrics(side, base, asked, metrics, labels)
        more, warnings = baseline_checks(side, base, named, margins or Margins(), settings)
        checks += more
    elif margins is not None or metrics:
        raise DataError("gate: --margin and --metrics are of a comparison; expected --baseline RUN_DIR with them")
    outcome = worst([check["outcome"] for check in checks])
    data = {"schema": SCHEMA, "run": _where(side), "variant": side.name,
            "baseline": None if baseline is None else _where(base), "labels": labels_of(side, settings.labels),
            "outcome": outcome, "undecided": settings.undecided, "exit_code": exit_code(outcome, settings.undecided),
            "frozen": settings.frozen, "min_scored": settings.min_scored, "checks": checks, "warnings": warnings}
    return Gate(json.loads(json.dumps(data, allow_nan=False)))


def as_side(run: str | Path | Side) -> Side:
    return run if isinstance(run, Side) else side_of_folder(run)


def worst(outcomes: Sequence[str]) -> str:
    """fail before undecided before pass.

    >>> worst(["pass", "undecided", "pass"]), worst(["undecided", "fail"])
    ('undecided', 'fail')
    """
    return next(outcome for outcome in (FAIL, UNDECIDED, PASS) if outcome in outcomes)


def exit_code(outcome: str, undecided: str | None = None) -> int:
    """0 for pass, 1 for fail; for undecided what the flag says, 4 without it.

    >>> exit_code("pass"), exit_code("fail", "warn"), exit_code("undecided"), exit_code("undecided", "fail")
    (0, 1, 4, 1)
    """
    return {PASS: 0, FAIL: FAILED}.get(outcome, _EXIT_UNDECIDED[undecided])


def rule_checks(side: Side, rules: Sequence[Rule], settings: Settings) -> list[dict[str, Any]]:
    """A check for each rule; DataError where one cannot be held against this run at all."""
    labels = labels_of(side, settings.labels)
    unanswerable, judge = unanswerable_of(side), FrozenJudge(side, labels)
    checks = []
    for rule in rules:
        facts = facts_of(side, rule)
        rows, questions = rows_of(side, rule.metric, labels, f"rule {rule}"), [one.id for one in facts]
        ceiling = attainable(rule.metric, facts if labels == GOLD else (), level_of(side))
        reach = out_of_reach(rule, ceiling)
        if reach is not None:
            raise DataError(f"rule {rule}: {reach}, whatever the app returns; expected a threshold that these "
                            "questions allow")
        holes = judge.holes(rule.metric, rows, questions) if settings.frozen else Holes()
        found = tally(rule.metric, rows, questions, unanswerable, settings.seed, holes.ends)
        if not found.interval.n_scored:
            raise not_scored(found, f"rule {rule}", side.name)
        outcome, reason = _decided(rule, found, settings)
        checks.append(_entry(rule, found) | {
            "outcome": outcome, "reason": reason, "ceiling": ceiling.high, "floor": ceiling.low,
            "pairs": list(holes.pairs) if outcome == UNDECIDED else []})
    return checks


def facts_of(side: Side, rule: Rule) -> list[QuestionFacts]:
    """What is known of the questions that a rule is about."""
    known = [side.questions.get(question) or QuestionFacts(question) for question in side.asked]
    inside = set(questions_of(rule, known))
    return [one for one in known if one.id in inside]


def level_of(side: Side) -> float:
    """The grade from which a document is relevant in this run."""
    return float((side.run.get("config") or {}).get("level", 1.0))


def _decided(rule: Rule, found: Tally, settings: Settings) -> tuple[str, str]:
    """(outcome, why). Coverage goes before the mean: a few scores decide nothing, whichever way they point."""
    mean = found.interval.mean
    assert mean is not None
    if found.coverage < settings.min_scored:
        return UNDECIDED, (f"scored on {coverage_words(found)}, under the {percent(settings.min_scored)} that "
                           "--min-scored asks for" + _why(found))
    if found.bounds is not None:
        low, high = found.bounds
        if rule.holds(low) != rule.holds(high):
            return UNDECIDED, (f"{counted(found.holes, 'question')} not judged in full: the mean lies between "
                               f"{number(low)} and {number(high)}, which {plain(rule.threshold)} parts")
        mean = low
    return (PASS, "") if rule.holds(mean) else (FAIL, f"{rule.subject} is {number(found.interval.mean)}")


def coverage_words(found: Tally) -> str:
    able = found.interval.n_asked - found.by_gold
    return f"{round(found.coverage * able)} of {counted(able, 'question')} that have something to be found"


def _why(found: Tally) -> str:
    missing = [f"{count} x {reason}" for reason, count in found.reasons.items() if reason not in BY_GOLD]
    return f": {', '.join(missing[:4])}" if missing else ""


def _entry(rule: Rule, found: Tally) -> dict[str, Any]:
    interval = found.interval
    return {"kind": "rule", "rule": rule.text, "metric": rule.metric.name, "slice": dict(rule.where),
            "compare": rule.compare, "threshold": rule.threshold, "mean": interval.mean, "low": interval.low,
            "high": interval.high, "worst": found.bounds[0] if found.bounds else interval.worst,
            "best": found.bounds[1] if found.bounds else interval.best, "coverage": found.coverage,
            "n_scored": interval.n_scored, "n_asked": interval.n_asked, "n_undefined": interval.n_undefined,
            "n_undefined_by_gold": found.by_gold, "n_failed": interval.n_failed, "n_holes": found.holes,
            "reasons": dict(found.reasons)}


def _where(side: Side) -> str:
    return side.name if side.folder is None else str(side.folder)
