"""Metrics as rows of finished texts, the same for the page, Markdown and the console. Computes no figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ragkit.report import labels, numbers, texts
from ragkit.report.data import MetricInfo, ReportData


@dataclass(frozen=True)
class MetricRow:
    """One metric's summary in words. `bar` places low, mean, high on the metric's range in percent, for drawing."""

    name: str
    group: str
    title: str  # the definition, for hovering
    mean: str
    interval: str
    scored: str
    undefined: str
    failed: str
    reasons: tuple[tuple[str, str], ...]  # times, reason
    ends: str  # worst to best, when some failed
    labels: str
    note: str
    needs_judge: bool
    bar: tuple[float, float, float] | None

    @property
    def anchor(self) -> str:
        """The id on the page of the metric's definition."""
        return texts.anchor("m", self.name)

    @property
    def has_mean(self) -> bool:
        """Whether something was scored; where not, `state` says why."""
        return self.mean != numbers.NONE

    @property
    def state(self) -> str:
        """What stands where there is no mean."""
        return (labels.NEEDS_JUDGE if self.needs_judge else
                "failed" if self.failed and not self.undefined else "undefined")


@dataclass(frozen=True)
class MetricGroup:
    """Metrics of one kind; `shared` are the reasons that most of its rows have in common, to be said once."""

    title: str
    about: str
    rows: tuple[MetricRow, ...]
    shared: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class StepRow:
    """The metrics of one step, over the trajectories that reached it; None where the step has no such metric."""

    step: str
    reached: str
    cells: tuple[MetricRow | None, ...]


@dataclass(frozen=True)
class CategoryRow:
    """The metrics of one category of questions."""

    name: str
    cells: tuple[MetricRow | None, ...]


def metric_row(data: ReportData, name: str, figures: Mapping[str, Any]) -> MetricRow:
    """The row of one metric from its figures in summary.json."""
    info = data.metrics.get(name)
    reasons = figures.get("reasons") or {}
    pairs = reasons.items() if isinstance(reasons, Mapping) else [(str(reasons), None)]
    failed, undefined = figures.get("n_failed"), figures.get("n_undefined")
    return MetricRow(
        name=name,
        group=info.group if info is not None and info.group in labels.GROUPS else "other",
        title=definition(info),
        mean=numbers.number(figures.get("mean")),
        interval=numbers.interval(figures.get("low"), figures.get("high")),
        scored=numbers.of(figures.get("n_scored"), figures.get("n_asked")),
        undefined=numbers.count(undefined) if undefined else "",
        failed=numbers.count(failed) if failed else "",
        reasons=tuple((numbers.count(times) if times is not None else "", str(reason)) for reason, times in pairs),
        ends=numbers.interval(figures.get("worst"), figures.get("best")) if failed else "",
        labels=str(figures.get("labels") or ""),
        note=_note(info, figures),
        needs_judge=not figures.get("n_scored") and any(str(reason) == labels.NEEDS_JUDGE for reason, _ in pairs),
        bar=_bar(info, figures),
    )


def _note(info: MetricInfo | None, figures: Mapping[str, Any]) -> str:
    """What must stand beside the number: direction, range, how many reached the goal."""
    notes = []
    share = figures.get("share") or {}
    if numbers.known(share.get("mean")) is not None:
        between = numbers.percents(share.get("low"), share.get("high"))
        notes.append(f"reached by {numbers.share(share['mean'])}{f' ({between})' if between else ''}, "
                     f"median {numbers.plain(figures.get('median'))}")
    if figures.get("above_threshold"):
        notes.append(above_threshold(figures["above_threshold"]))
    if info is not None and info.direction == "lower":
        notes.append(labels.DIRECTIONS["lower"])
    if info is not None and info.range not in ((0.0, 1.0), (0, 1)):
        notes.append(f"range {numbers.limits(info.range)}")
    return "; ".join(notes)


def above_threshold(found: Mapping[str, Any]) -> str:
    """The share of questions that reach a calibrated threshold, and what the threshold is worth, in words.

    >>> held_out = {"rows": 60, "figures": {"balanced_accuracy": {"value": 0.8, "low": 0.7, "high": 0.9}}}
    >>> above_threshold({"threshold": 0.62, "share": 0.75, "low": 0.6, "high": 0.9, "held_out": held_out})
    '75% (60%–90%) reach 0.62; on 60 held-out labels its balanced accuracy is 0.800 (0.700–0.900)'
    """
    worth = found["held_out"]["figures"]["balanced_accuracy"]
    ends = f" ({numbers.percent(found['low'])}–{numbers.percent(found['high'])})" if found["low"] is not None else ""
    return (f"{numbers.percent(found['share'])}{ends} reach {numbers.plain(found['threshold'])}; on "
            f"{numbers.count(found['held_out']['rows'])} held-out labels its balanced accuracy is "
            f"{numbers.number(worth['value'])} ({numbers.interval(worth['low'], worth['high'])})")


def _bar(info: MetricInfo | None, figures: Mapping[str, Any]) -> tuple[float, float, float] | None:
    low, high = info.range if info is not None else (0.0, 1.0)
    mean = numbers.known(figures.get("mean"))
    if mean is None or low is None or high is None or high <= low:
        return None
    ends = [numbers.known(figures.get("low")), mean, numbers.known(figures.get("high"))]
    placed = [min(100.0, max(0.0, ((mean if end is None else end) - low) / (high - low) * 100)) for end in ends]
    return placed[0], placed[1], placed[2]


def definition(info: MetricInfo | None) -> str:
    """A metric's definition in one text: summary, formula, range, direction, when undefined, source."""
    if info is None:
        return "No definition was given."
    parts = [info.summary, f"Formula: {info.formula}." if info.formula else "",
             f"Range: {numbers.limits(info.range)}.", f"{labels.DIRECTIONS[info.direction].capitalize()}."]
    for head, text in (("Undefined", info.undefined), ("Source", info.source)):
        parts.append(f"{head}: {text}." if text else "")
    return " ".join(part.strip() for part in parts if part).replace("..", ".")


def metric_groups(data: ReportData) -> list[MetricGroup]:
    """All metrics of the headline table, by group."""
    rows = [metric_row(data, name, figures) for name, figures in (data.summary.get("metrics") or {}).items()]
    groups = []
    for group, (title, about) in labels.GROUPS.items():
        own = tuple(row for row in rows if row.group == group)
        common = Counter(row.reasons for row in own if row.reasons).most_common(1)
        shared = common[0][0] if common and common[0][1] > 2 else ()
        if own:
            by_judge = any(row.labels == "judged" for row in own)
            told = labels.JUDGED_GROUPS.get(group, about) if by_judge else about
            groups.append(MetricGroup(title, told, own, shared))
    return groups


def sides(data: ReportData) -> list[tuple[str, str, list[MetricRow]]]:
    """Rank metrics and judge metrics side by side: the ones that a reader looks for first."""
    found = {row.name: row for group in metric_groups(data) for row in group.rows}
    panels = []
    for title, about, groups, preferred in labels.SIDES:
        own = [name for name, row in found.items() if row.group in groups]
        names = labels.chosen(own, preferred) or own[:8]
        panels.append((title, about, scored_first([found[name] for name in names])))
    return panels


def scored_first(shown: Iterable[MetricRow]) -> list[MetricRow]:
    """The rows with a mean before those that nothing was scored for (ranks of runs whose contexts are sets)."""
    return sorted(shown, key=lambda row: not row.has_mean)


def step_rows(data: ReportData, names: list[str] | None = None) -> tuple[list[str], list[StepRow]]:
    """The metrics shown (the preferred ones unless named), and a row a step; steps count from 0."""
    per_step: Mapping[str, Mapping[str, Any]] = data.summary.get("per_step") or {}
    shown = labels.chosen(all_step_metrics(data), labels.STEP_METRICS) if names is None else names
    return shown, [
        StepRow(step, numbers.count(data.step_reach.get(step)), _cells(data, figures, shown))
        for step, figures in sorted(per_step.items(), key=lambda item: step_order(item[0]))
    ]


def all_step_metrics(data: ReportData) -> list[str]:
    """Every metric that some step has, in the order of its first appearance."""
    per_step = data.summary.get("per_step") or {}
    return list(dict.fromkeys(name for figures in per_step.values() for name in figures))


def category_rows(data: ReportData) -> tuple[list[str], list[CategoryRow]]:
    """The metrics scored in some category, and a row a category; questions without one have a row of their own."""
    categories: Mapping[str, Mapping[str, Any]] = data.summary.get("categories") or {}
    present = {name for figures in categories.values() for name, own in figures.items() if own.get("n_scored")}
    shown = labels.chosen(present, labels.CATEGORY_METRICS)
    return shown, [CategoryRow(name or "(no category)", _cells(data, figures, shown))
                   for name, figures in categories.items()]


def unscored_in_categories(data: ReportData) -> list[str]:
    """The metrics that the category table leaves out because no category has a score."""
    categories: Mapping[str, Mapping[str, Any]] = data.summary.get("categories") or {}
    present = {name for figures in categories.values() for name in figures}
    scored = category_rows(data)[0]
    return [name for name in labels.chosen(present, labels.CATEGORY_METRICS) if name not in scored]


def _cells(data: ReportData, figures: Mapping[str, Any], names: list[str]) -> tuple[MetricRow | None, ...]:
    return tuple(metric_row(data, name, figures[name]) if name in figures else None for name in names)


def step_order(step: str) -> tuple[int, str]:
    """By what steps are sorted: numbers by their size, anything else after them."""
    return (int(step) if step.isdigit() else 1_000_000, step)
