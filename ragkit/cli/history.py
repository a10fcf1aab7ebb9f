"""`ragkit history`: runs by time and commit, where they stop being comparable, and whether the last one is better."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ragkit.cli import common


def history(
    folder: Annotated[Path, typer.Argument(metavar="RUNS_DIR", help="A folder that holds run folders.")],
    metrics: common.Metrics = None,
    ago: Annotated[int, typer.Option("--ago", metavar="DAYS", min=1, help="Compare the last run with the one of so "
                                     "many days before, too (61).")] = 61,
    labels: Annotated[str | None, typer.Option("--labels", help="gold or judged, where runs have both (gold).")] = None,
    seed: common.Seed = None,
    imports: common.Imports = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON to stdout, and nothing else.")] =
    False,
) -> None:
    """Show runs over time: means, intervals, breaks, and whether the last run is better than earlier ones."""
    common.import_modules(imports)
    from ragkit.comparison.history import history as over_time

    data = over_time(folder, metrics, ago=ago, labels=labels, seed=seed or 0)
    if as_json:
        common.say(json.dumps(data, ensure_ascii=True, allow_nan=False, indent=2))
        return
    for line in _lines(data):
        common.say(line)


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    from ragkit.report.numbers import counted

    for series in data["series"]:
        yield f"{series['name']}: {counted(len(series['runs']), 'run')}"
        for metric in series["metrics"]:
            yield f"\n{metric}"
            yield from _of_metric(series["runs"], metric)
        yield ""
        for comparison in series["comparisons"]:
            yield f"Against {' and '.join(comparison['against'])}:"
            yield from (f"- {told}" for told in comparison["conclusion"])
            yield from (f"  note: {told}" for told in comparison["warnings"])
            yield from (f"  not comparable: {told}" for told in comparison["not_comparable"])
        yield ""
    for one in data["left_out"]:
        yield f"left out: {one['folder']}: {one['why']}"


def _of_metric(runs: list[dict[str, Any]], metric: str) -> Iterator[str]:
    from ragkit.report.numbers import interval, number, of

    rows = []
    for run in runs:
        found = run["metrics"].get(metric)
        commit = f"{(run['commit'] or 'no commit')[:9]}{'*' if run['changed'] else ''}"
        when = (run["started"] or "unknown")[:16].replace("T", " ")
        rows.append((when, commit, Path(run["folder"]).name) + (("not measured",) * 4 if found is None else (
            number(found["mean"]), interval(found["low"], found["high"]), of(found["n_scored"], found["n_asked"]),
            number(found["detectable"]))))
    lines = common.columns_of([("Started", "Commit", "Run", "Mean", "95% interval", "Scored", "Detects"), *rows], 3)
    yield lines[0]
    for run, line in zip(runs, lines[1:], strict=True):
        yield from (f"---- {found['told']}" for found in run["breaks"])
        yield line
