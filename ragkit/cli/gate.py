"""`ragkit gate`: a run held against rules and a baseline; the exit code says what came of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ragkit.cli import common

_SUMMARY = "GITHUB_STEP_SUMMARY"


def gate(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A folder that ragkit run or score wrote.")],
    rule: Annotated[list[str] | None, typer.Option("--rule", help="\"mrr>=0.7\", \"recall[category=how-to]>=0.8\" "
                                                   "(repeatable; >=, >, <=, <, ==).")] = None,
    targets: Annotated[list[str] | None, typer.Option("--targets", metavar="usual", help="usual: mrr>0.7 and "
                                                      "precision@5>0.6.")] = None,
    min_scored: Annotated[float, typer.Option("--min-scored", help="Least share of the questions that have something "
                                              "to be found which must be scored; under it nothing is decided.")] = 0.9,
    baseline: Annotated[Path | None, typer.Option("--baseline", metavar="RUN_DIR", help="An earlier run: the new one "
                                                  "must not be worse by more than the margin.")] = None,
    margin: Annotated[list[str] | None, typer.Option("--margin", help="How much worse is still the same: 0.02, or "
                                                     "METRIC=0.05 for one metric (repeatable; 0.02).")] = None,
    metrics: Annotated[list[str] | None, typer.Option("-m", "--metrics", help="What is held against the baseline; by "
                                                      "default the metrics of the rules.")] = None,
    undecided: Annotated[str | None, typer.Option("--undecided", metavar="fail|pass|warn", help="What an undecided "
                                                  "gate leaves: exit code 1, or 0 with the reason; without it 4.")] =
    None,
    frozen: Annotated[bool, typer.Option("--frozen", help="What nobody judged is a hole with bounds; only where these "
                                         "cross a rule it is undecided. No model is called, with or without it.")] =
    False,
    plan: Annotated[bool, typer.Option("--plan", help="Only print the smallest margin that these questions can "
                                       "enforce, and each rule's ceiling.")] = False,
    labels: Annotated[str | None, typer.Option("--labels", help="gold or judged, where a run has both (gold).")] = None,
    github_summary: Annotated[bool, typer.Option("--github-summary", help=f"Append a table to ${_SUMMARY}.")] = False,
    seed: common.Seed = None,
    imports: common.Imports = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON to stdout, and nothing else.")] =
    False,
) -> None:
    """Hold a run against rules: exit code 0 pass, 1 fail, 4 undecided, 2 where a rule can never be decided."""
    common.import_modules(imports)
    from ragkit.comparison.gate import Settings
    from ragkit.comparison.gate import gate as hold
    from ragkit.comparison.gate_baseline import parse_margins
    from ragkit.comparison.gate_plan import plan_gate
    from ragkit.errors import DataError

    settings = Settings(min_scored, undecided, frozen, labels, seed or 0)
    if plan:
        if margin:
            raise DataError("--plan names the margin; expected no --margin with it")
        _show_plan(plan_gate(run_folder, rule or (), targets=targets or (), baseline=baseline, metrics=metrics,
                             settings=settings), as_json)
        return
    made = hold(run_folder, rule or (), targets=targets or (), baseline=baseline,
                margins=parse_margins(margin) if margin else None, metrics=metrics, settings=settings)
    _show(made.data, as_json)
    if github_summary:
        _append(made.data)
    raise typer.Exit(made.exit_code)


def _show(data: Mapping[str, Any], as_json: bool) -> None:
    from ragkit.comparison.gate_words import conclusion, gate_lines, reasons

    if as_json:
        common.say(json.dumps(data, ensure_ascii=True, allow_nan=False, indent=2))
    else:
        for line in gate_lines(data):
            common.say(line)
    if data["outcome"] != "pass":
        common.complain(f"{conclusion(data)}: {'; '.join(reasons(data))}")


def _show_plan(data: Mapping[str, Any], as_json: bool) -> None:
    from ragkit.comparison.gate_plan import plan_lines

    if as_json:
        common.say(json.dumps(data, ensure_ascii=True, allow_nan=False, indent=2))
    else:
        for line in [*plan_lines(data), *(f"note: {warning}" for warning in data["warnings"])]:
            common.say(line)
    beyond = [one for one in data["rules"] if one["out_of_reach"]]
    if beyond:
        common.complain("; ".join(f"rule {one['rule']}: {one['out_of_reach']}" for one in beyond))
        raise typer.Exit(data["exit_code"])


def _append(data: Mapping[str, Any]) -> None:
    from ragkit.comparison.gate_words import gate_markdown

    path = os.environ.get(_SUMMARY)
    if not path:
        common.complain(f"--github-summary: {_SUMMARY} is not set, as it is in a workflow of GitHub; no table written")
        return
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(gate_markdown(data))
