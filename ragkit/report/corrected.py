"""Means corrected by people's labels, and the bridge from an earlier judge, as finished texts. Computes no figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragkit.report import numbers
from ragkit.report.data import ReportData

ABOUT = ("People labelled a part of the answers; what they said corrects the judge’s mean over all of them "
         "(prediction-powered inference, 95% interval).")
BRIDGE_ABOUT = "Both judges were asked about the same answers; the offset is new minus old, over all questions."


@dataclass(frozen=True)
class CorrectedRow:
    """One metric: the corrected mean beside the judge's own, and what stands behind it."""

    name: str
    mean: str
    interval: str
    raw: str
    labels: str
    facts: tuple[str, ...]  # what a reader must know of it: how it was drawn, how far judge and people agree


@dataclass(frozen=True)
class BridgeRow:
    """One metric by both judges, on the answers that both judged."""

    name: str
    offset: str
    interval: str
    old: str
    new: str
    n: str
    kappa: str
    kappa_of: str


def corrected_rows(data: ReportData) -> list[CorrectedRow]:
    """The metrics that people labelled."""
    found: Mapping[str, Mapping[str, Any]] = data.summary.get("corrected") or {}
    return [_corrected(name, entry) for name, entry in found.items()]


def _corrected(name: str, entry: Mapping[str, Any]) -> CorrectedRow:
    drawn = "weighted" if entry.get("weighted") else "not known how drawn"
    labels = f"{numbers.of(entry.get('n_labels'), entry.get('n_questions'))}, {drawn}" if entry.get("n_labels") else "0"
    facts = [str(entry["warning"])] if entry.get("warning") else []
    facts += map(str, entry.get("notes") or ())
    for head, text in (("judge against people", _agreement(entry.get("agreement") or {})),
                       ("to tell its mean from one so far away", _needed(entry.get("labels_to_decide") or {}))):
        facts += [f"{head}: {text}"] if text else []
    return CorrectedRow(
        name, numbers.number(entry.get("mean")), numbers.interval(entry.get("low"), entry.get("high")),
        numbers.number(entry.get("raw")), labels, tuple(facts))


def _agreement(found: Mapping[str, Any]) -> str:
    """How far judge and people agree.

    >>> _agreement({"kappa": {"value": 0.5, "low": 0.2, "high": 0.8}, "auroc": {"value": None, "reason": "one class"}})
    'kappa 0.500 (0.200–0.800), AUROC undefined (one class)'
    """
    parts = []
    for key, words in (("kappa", "kappa"), ("auroc", "AUROC"), ("balanced_accuracy", "balanced accuracy"),
                       ("base_rate", "people say yes to")):
        figure = found.get(key)
        if figure is None:
            continue
        if figure.get("value") is None:
            parts.append(f"{words} undefined ({figure.get('reason')})")
        else:
            ends = numbers.interval(figure.get("low"), figure.get("high"))
            parts.append(f"{words} {numbers.number(figure['value'])}" + (f" ({ends})" if ends != numbers.NONE else ""))
    return ", ".join(parts)


def _needed(found: Mapping[str, Mapping[str, Any]]) -> str:
    """How many more labels tell a difference of some size.

    >>> _needed({"0.1": {"labels": 80, "more": 20}, "0.02": {"labels": None, "questions": 4100}})
    '0.1: 20 more labels; 0.02: at least 4,100 questions'
    """
    parts = []
    for size, entry in found.items():
        if entry.get("labels") is None:
            parts.append(f"{size}: at least {numbers.counted(entry.get('questions'), 'question')}")
        else:
            more = entry.get("more")
            parts.append(f"{size}: " + (numbers.counted(more, 'more label') if more else "enough labels"))
    return "; ".join(parts)


def bridge_title(data: ReportData) -> str:
    """Which judge came after which, with their addresses where the name is one; empty where there is no bridge."""
    found = data.summary.get("bridge")
    if not found:
        return ""
    before, now = ({"name": one["judge"], "at": f"{one['judge']} at {one['endpoint']}"} for one in
                   (found["from"], found["to"]))
    form = "name" if before["name"] != now["name"] else "at"
    parameters = " with other parameters" if before["at"] == now["at"] else ""
    return (f"{before[form]} judged before, {now[form]}{parameters} now: "
            f"{numbers.of(found['n_drawn'], found['n_judged'])} questions were asked of both")


def bridge_rows(data: ReportData) -> list[BridgeRow]:
    """The metrics that both judges judged."""
    found: Mapping[str, Any] = data.summary.get("bridge") or {}
    made = []
    for name, entry in (found.get("metrics") or {}).items():
        what = f"on {numbers.count(entry.get('n_kappa'))} {entry.get('kappa_of')}" if entry.get("n_kappa") else ""
        ends = numbers.interval(entry.get("low"), entry.get("high"))
        old, new = numbers.number(entry.get("old")), numbers.number(entry.get("new"))
        offset, kappa = numbers.signed(entry.get("offset")), numbers.number(entry.get("kappa"))
        made.append(BridgeRow(name, offset, ends, old, new, numbers.count(entry.get("n")), kappa, what))
    return made
