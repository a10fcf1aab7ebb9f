"""Runs over time: means with intervals, where the numbers before and after are not the same thing, and what is better.

A run is compared with earlier ones as variants are: paired by question, and only where that means something.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ragkit.comparison.context import Context
from ragkit.comparison.differences import differences, means
from ragkit.comparison.fitting import fit
from ragkit.comparison.gate_tally import labels_of
from ragkit.comparison.history_breaks import breaks_between
from ragkit.comparison.pooled import on_common_pool
from ragkit.comparison.sides import JUDGED, Side, side_of_folder
from ragkit.comparison.words import Finding, sentence
from ragkit.errors import DataError, RagkitError
from ragkit.evaluation.runfolder import COMPLETE, read_run
from ragkit.metrics.noise import detectable_of_run
from ragkit.metrics.registry import Metric, parse_all
from ragkit.report.comparison_rows import leading

SCHEMA: Final = "ragkit.history/1"
TWO_MONTHS: Final = 61  # days
_MOST: Final = 5  # so many metrics are shown where none is named
_DEEPEST: Final = 3  # folders below the one that is named
_FIGURES: Final = ("mean", "low", "high", "n_scored", "n_asked", "n_undefined", "n_failed")


@dataclass(frozen=True, eq=False)
class _Run:
    """A finished run: its side, and when it was started."""

    side: Side
    path: Path
    started: datetime.datetime | None

    @property
    def variant(self) -> str:
        return str(self.side.run.get("variant") or self.path.name)

    @property
    def when(self) -> str:
        return "unknown" if self.started is None else self.started.date().isoformat()

    @property
    def commit(self) -> str | None:
        git = self.side.run.get("git") or {}
        return git.get("commit")

    @property
    def label(self) -> str:
        """How a sentence names it."""
        named = f"{self.when}, {self.commit[:7]}" if self.commit else self.when
        return f"{self.path.name} ({named})"


def history(folder: str | Path, metrics: str | Sequence[str] | None = None, *, ago: int = TWO_MONTHS,
            labels: str | None = None, seed: int = 0) -> dict[str, Any]:
    """What all finished runs in a folder say over time, as plain data: {"schema", "metrics", "series", "left_out"}.

    Runs of one variant are one series, oldest first; run folders side by side, each under a name of its own, are one,
    too. Each run has its means with intervals, the smallest difference that it can detect, and the breaks since the
    one before: changed questions, labels, documents, judge, embedder. The last run is compared with the first that it
    can be held against, and with the latest that is at least `ago` days older. DataError where there is no run.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"{root}: no such folder; expected one that holds run folders")
    runs, left = _finished(root)
    if not runs:
        why = f" ({left[0]['folder']}: {left[0]['why']})" if left else ""
        raise DataError(f"{root}: no finished run in it{why}; expected folders that `ragkit run` or `ragkit score` "
                        "wrote")
    runs.sort(key=lambda one: (one.started is not None, one.started or 0, one.path.name))
    chosen = [metric.name for metric in parse_all(metrics)] if metrics else []
    made = [_one_series(name, own, chosen, (ago, labels, seed)) for name, own in _grouped(root, runs).items()]
    if chosen and not any(run["metrics"] for one in made for run in one["runs"]):
        raise DataError(f"{root}: {', '.join(chosen)}: in none of the runs; `ragkit score` adds a metric to a folder")
    data = {"schema": SCHEMA, "folder": str(root), "ago_days": ago, "series": made, "left_out": left}
    result: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    return result


def _finished(root: Path) -> tuple[list[_Run], list[dict[str, str]]]:
    """The finished runs at most three folders down, and those that are left out, with the reason."""
    found, left = [], []
    for path in _run_folders(root, _DEEPEST):
        try:
            if read_run(path).get("state") != COMPLETE:
                left.append({"folder": str(path), "why": "not finished"})
                continue
            side = side_of_folder(path)
            found.append(_Run(side, path, _time(side.run.get("started"))))
        except (RagkitError, OSError, KeyError) as error:
            left.append({"folder": str(path), "why": str(error)})
    return found, left


def _run_folders(folder: Path, deep: int) -> list[Path]:
    if (folder / "run.json").exists():
        return [folder]
    if deep == 0:
        return []
    return [path for own in sorted(folder.iterdir()) if own.is_dir() and not own.name.startswith(".")
            for path in _run_folders(own, deep - 1)]


def _time(text: Any) -> datetime.datetime | None:
    try:
        found = datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)


def _grouped(root: Path, runs: Sequence[_Run]) -> dict[str, list[_Run]]:
    """The runs by variant. Run folders that lie side by side under variant names of their own are one series."""
    beside = [run for run in runs if run.path.resolve().parent == root.resolve()]
    apart = (root / "comparison.json").exists() or len({run.variant for run in beside}) < len(beside)
    found: dict[str, list[_Run]] = {}
    for run in runs:
        found.setdefault(run.variant if apart or run not in beside else root.resolve().name, []).append(run)
    return found


def _one_series(name: str, runs: Sequence[_Run], chosen: Sequence[str],
                how: tuple[int, str | None, int]) -> dict[str, Any]:
    ago, labels, seed = how
    last = runs[-1]
    by = labels_of(last.side, labels)
    names = list(chosen) or leading([metric for metric in last.side.scores_by(by) if last.side.repeats(metric, by)],
                                    _MOST)
    entries = [_entry(run, names, runs[place - 1] if place else None, labels, seed) for place, run in enumerate(runs)]
    return {"name": name, "metrics": names, "labels": by, "runs": entries,
            "comparisons": _comparisons(runs, chosen, names, ago, labels, seed)}


def _entry(run: _Run, names: Sequence[str], before: _Run | None, labels: str | None, seed: int) -> dict[str, Any]:
    side = run.side
    by = labels_of(side, None if labels == JUDGED and not side.judged else labels)
    held = tuple(metric for metric in parse_all(names) if metric.name in side.scores_by(by)) if names else ()
    found = means([side], Context(side.name, held, by, side.asked, seed))
    git = side.run.get("git") or {}
    return {
        "folder": str(run.path), "variant": side.run.get("variant"), "started": side.run.get("started"),
        "commit": git.get("commit"), "changed": git.get("changed"), "n_asked": len(side.asked), "labels": by,
        "judge": (side.run.get("judge") or {}).get("name"),
        "metrics": {metric.name: {figure: found[metric.name][side.name][figure] for figure in _FIGURES}
                    | {"detectable": detectable_of_run(side.repeats(metric.name, by))} for metric in held},
        "breaks": [] if before is None else breaks_between(before.side, side)}


def _comparisons(runs: Sequence[_Run], chosen: Sequence[str], names: Sequence[str], ago: int, labels: str | None,
                 seed: int) -> list[dict[str, Any]]:
    """The last run against the first one and the one of so many days ago, each the nearest that is comparable."""
    last, made = runs[-1], dict[int, dict[str, Any]]()
    old = [] if last.started is None else [
        place for place, run in enumerate(runs[:-1])
        if run.started is not None and last.started - run.started >= datetime.timedelta(days=ago)]
    missing = list[dict[str, Any]]()
    for what, places in (("first", list(range(len(runs) - 1))), (f"{ago} days ago", old[::-1])):
        refused: list[str] = []
        for place in places:
            try:
                found = made.get(place) or _compared(runs[place], last, chosen, names, labels, seed)
            except DataError as error:
                refused.append(f"{runs[place].label}: {error}")
                continue
            told = [*found.get("not_comparable", ()), *refused]
            made[place] = found | {"against": [*found.get("against", ()), what],
                                   "not_comparable": list(dict.fromkeys(told))}
            break
        else:
            why = "no earlier run can be compared with the last" if places else \
                "there is no earlier run" if what == "first" else "there is no run so old"
            missing.append({"against": [what], "baseline": None, "started": None, "differences": {}, "warnings": [],
                            "conclusion": [why], "not_comparable": refused})
    return [*made.values(), *missing]


def _compared(then: _Run, last: _Run, chosen: Sequence[str], names: Sequence[str], labels: str | None,
              seed: int) -> dict[str, Any]:
    sides = [then.side.named(then.label), last.side.named(f"the last run, {last.label}")]
    fits = fit(sides, chosen or None, labels)
    held: tuple[Metric, ...] = tuple(metric for metric in fits.metrics if metric.name in names)
    if not held:
        raise DataError(f"none of {', '.join(names)} can be compared")
    warnings = [warning for warning in fits.warnings if not warning.startswith("not in all variants")]
    if fits.labels == JUDGED:
        sides, told = on_common_pool(sides)
        warnings += told
    context = Context(sides[0].name, held, fits.labels, fits.questions, seed)
    table = differences(sides, context)
    figures: Mapping[str, Any] = {metric.name: table[metric.name][sides[1].name] for metric in held}
    together = sum(one["p"] is not None for one in figures.values())
    said = [sentence(Finding(sides[1].name, metric, figures[metric.name]), sides[0].name, together) for metric in held]
    return {"baseline": str(then.path), "started": then.side.run.get("started"), "differences": dict(figures),
            "warnings": warnings, "conclusion": said}
