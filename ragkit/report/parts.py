"""The other pieces of a report as finished texts: evidence x answer, bars, app, judge, one question's scores.

The same for the page, Markdown and the console; metrics' rows are in rows.py. Computes no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragkit.report import labels, numbers
from ragkit.report.data import QuestionView, ReportData, ScoreView
from ragkit.report.rows import step_order

Cell = tuple[str, labels.Outcome]  # how many questions, and what they have in common
_LEDGER_LISTS = ("metrics", "failures", "warnings", "stopped", "not_judged")  # of the ledger: shown as tables and lines


@dataclass(frozen=True)
class QuestionScores:
    """One metric of one question: a score for each of the steps (None where it has none), and those to be explained."""

    metric: str
    cells: tuple[ScoreView | None, ...]
    explained: tuple[ScoreView, ...]  # with verdicts, or with the raw reply of a failed one


@dataclass(frozen=True)
class Part:
    """One part of a stacked bar."""

    name: str
    count: str
    weight: int
    tone: str


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """A nested mapping as (words, value) pairs, for a ledger or a configuration.

    >>> list(flat({"calls": 3, "tokens": {"input": 5}}))
    [('calls', 3), ('tokens, input', 5)]
    """
    for key, value in values.items():
        name = f"{prefix}, {labels.words(str(key))}" if prefix else labels.words(str(key))
        if isinstance(value, Mapping) and value:
            yield from flat(value, name)
        else:
            yield name, value


def ledger(data: ReportData) -> list[tuple[str, str]]:
    """The judge's ledger in words; an unknown price is "unknown", an unknown count "not recorded"."""
    judge: Mapping[str, Any] = data.summary.get("judge") or {}
    listed = {key: value for key, value in judge.items() if key not in _LEDGER_LISTS and value not in ([], (), {})}
    return [(name, _ledger_value(name, value)) for name, value in flat(listed)]


def ledger_metrics(data: ReportData) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """What each judged metric cost: the counts that occur, and a row a metric."""
    found: Mapping[str, Mapping[str, Any]] = (data.summary.get("judge") or {}).get("metrics") or {}
    heads = list(dict.fromkeys(name for counts in found.values() for name in counts))
    return heads, [(metric, [numbers.count(counts.get(name, 0)) for name in heads]) for metric, counts in found.items()]


def ledger_lines(data: ReportData) -> list[tuple[str, str]]:
    """What went wrong while judging, as (head, text): why it stopped, failures and warnings with how often."""
    judge: Mapping[str, Any] = data.summary.get("judge") or {}
    lines = [("Judging stopped", str(judge["stopped"]))] if judge.get("stopped") else []
    lost = [f"{name} {entry['missing']} of {entry['of']}" for name, entry in (judge.get("not_judged") or {}).items()]
    lines += [("Not judged", ", ".join(lost))] if lost else []
    for head, key in (("Failures", "failures"), ("Warnings", "warnings")):
        if judge.get(key):
            lines.append((head, numbers.reasons(judge[key])))
    return lines


def _ledger_value(name: str, value: Any) -> str:
    if name.endswith("cost") or name.startswith("price"):  # in the currency of the prices, whichever that is
        known = value is None or numbers.known(value) is not None
        return numbers.money(value, "") if known else numbers.anything(value)
    return numbers.NOT_RECORDED if value is None else numbers.anything(value)


def app_facts(data: ReportData) -> list[tuple[str, list[tuple[str, str]]]]:
    """Latency, tokens and cost of the app, each "not recorded" where nobody recorded it."""
    app: Mapping[str, Any] = data.summary.get("app") or {}
    formats: tuple[tuple[str, str, Callable[[object], str]], ...] = (
        ("Latency", "ms", numbers.milliseconds), ("Tokens", "tokens", numbers.tokens), ("Cost", "cost", numbers.money))
    facts = []
    for title, key, write in formats:
        value = app.get(key)
        parts = list(flat(value)) if isinstance(value, Mapping) else [("", value)]
        if all(part is None for _, part in parts):
            facts.append((title, [("", numbers.NOT_RECORDED)]))
        else:
            facts.append((title, [(name, numbers.count(part) if name == "n" else write(part)) for name, part in parts]))
    return facts


def fate_parts(fates: Mapping[str, int]) -> list[Part]:
    """Where gold passages ended, as the parts of a bar."""
    return [Part(labels.fate(key), numbers.count(times), times, labels.fate_fill(key))
            for key, times in fates.items() if times]


def rerank_parts(data: ReportData) -> list[Part]:
    """Questions that the re-ranker helped, left alone and hurt, as the parts of a bar."""
    tones = {"helped": "good", "unchanged": "plain", "hurt": "lost"}
    return [Part(name, numbers.count(data.rerank[name]), data.rerank[name], tone)
            for name, tone in tones.items() if data.rerank.get(name)]


def matrix(data: ReportData) -> tuple[list[tuple[str, str]], list[tuple[str, list[Cell]]]]:
    """Evidence x answer: the answers' heads that occur, and a row an evidence state of (count, words) cells."""
    outcomes: Mapping[str, Any] = data.summary.get("outcomes") or {}
    heads = [(key, title) for key, title in labels.ANSWERS
             if key != "unchecked" or any(outcomes.get(f"{row}_{key}") for row, _ in labels.MATRIX)]
    return heads, [
        (title, [(numbers.count(outcomes.get(f"{row}_{key}") or 0), labels.OUTCOMES[f"{row}_{key}"])
                 for key, _ in heads])
        for row, title in labels.MATRIX
    ]


def other_outcomes(data: ReportData) -> list[tuple[str, labels.Outcome]]:
    """The outcomes that stand beside the evidence x answer table: without labels, unanswerable, failed."""
    outcomes: Mapping[str, Any] = data.summary.get("outcomes") or {}
    inside = {f"{row}_{key}" for row, _ in labels.MATRIX for key, _ in labels.ANSWERS}
    return [(numbers.count(times), labels.outcome(key))
            for key, times in outcomes.items() if key not in inside and times]


def labelled(data: ReportData) -> bool:
    """Whether some question has labels: else there is no gold to say anything about."""
    return bool((data.summary.get("questions") or {}).get("labelled"))


def crossed(data: ReportData) -> bool:
    """Whether evidence x answer has something in it; where not, the other outcomes are all that is known."""
    return any(count != "0" for _, cells in matrix(data)[1] for count, _ in cells)


def question_scores(question: QuestionView) -> tuple[list[str], list[QuestionScores]]:
    """A question's scores as a table: its steps ("final" first, then from 0) as columns, its metrics as rows."""
    steps = sorted({score.step for score in question.scores}, key=lambda step: (step != "final", step_order(step)))
    found: dict[str, dict[str, ScoreView]] = {}
    for score in question.scores:
        found.setdefault(score.metric, {})[score.step] = score
    return steps, [
        QuestionScores(metric, tuple(by_step.get(step) for step in steps),
                       tuple(score for score in by_step.values() if score.verdicts or score.raw))
        for metric, by_step in found.items()
    ]
