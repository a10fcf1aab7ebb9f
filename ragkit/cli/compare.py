"""`ragkit compare`: variants against a baseline, from run folders or run files; and the comparison `run` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragkit.cli import common
from ragkit.errors import DataError
from ragkit.report.numbers import counted

if TYPE_CHECKING:
    from ragkit.cli.experiment import ExperimentRun
    from ragkit.comparison.compare import Comparison
    from ragkit.comparison.sides import Side
    from ragkit.evaluation.result import Evaluation

_TIES = ("id", "rank")


def compare(
    variants: Annotated[list[Path], typer.Argument(
        metavar="RUN_DIR...", help="Run folders; or the folder of an experiment; with --qrels: run files.")],
    qrels: Annotated[Path | None, typer.Option("--qrels", help="Labels of run files (TREC, BEIR or JSON).")] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", help="The variant that the others are held against; by "
                                                 "default the first.")] = None,
    metrics: common.Metrics = None,
    by: Annotated[list[str] | None, typer.Option(
        "--by", help="Show slices: category, gold, labels, length, tag, metadata.KEY (repeatable).")] = None,
    labels: Annotated[str | None, typer.Option("--labels", help="gold or judged, where runs have both (gold).")] = None,
    level: Annotated[float, typer.Option("--level", help="Of run files: from which grade a document counts.")] = 1.0,
    ties: Annotated[str, typer.Option("--ties", help="Of run files: equal scores by document id, descending (id), or "
                                      "in the run's own order (rank).")] = "id",
    dataset: Annotated[Path | None, typer.Option("--dataset", help="Of run files: where the questions' texts and "
                                                 "categories are, for slices.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write comparison.html, comparison.json and comparison.md "
                                           "there.")] = None,
    holes: Annotated[Path | None, typer.Option("--holes", metavar="FILE", help="Write the pairs of question and "
                                               "passage that nobody judged and that could change a decision, to be "
                                               "labelled (CSV, or JSON Lines where it ends in .jsonl).")] = None,
    export: Annotated[tuple[str, str] | None, typer.Option(
        "--export", metavar="FORMAT FILE", help="Also write it as csv, parquet, markdown or latex; or as mlflow, into "
        "a local store (a file, mlflow.db) or a server (its URI).")] = None,
    seed: common.Seed = None,
    imports: common.Imports = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print comparison.json to stdout, and nothing else.")] = False,
) -> None:
    """Compare variants: paired differences, decided or not, and what would decide them."""
    common.import_modules(imports)
    from ragkit.comparison.compare import compare_sides
    from ragkit.comparison.exports import export as write_export
    from ragkit.comparison.variants import PAGE, open_sides

    sides = open_sides(variants) if qrels is None else _of_files(qrels, variants, metrics, (level, ties), dataset)
    made = compare_sides(sides, baseline, metrics, by, seed or 0, labels)
    if out is not None:
        made.save(out)
    told = [] if holes is None else [_to_label(holes, made)]
    told += [] if export is None else [write_export(made, *export)]
    if as_json:
        common.say(json.dumps(made.data, ensure_ascii=True, allow_nan=False, indent=2))
        return
    from rich.console import Console

    from ragkit.report.comparison_terminal import print_comparison

    print_comparison(made.data, Console(), list(made.data["slices"]) if by else ())
    if out is not None:
        common.say(f"Comparison: {out / PAGE}")
    for sentence in told:
        common.say(sentence)


def _to_label(path: Path, made: Comparison) -> str:
    """Write the pairs that would settle what the holes leave open, and say how many there are."""
    from ragkit.comparison.holes import pairs_to_label
    from ragkit.comparison.holes_sheet import write_holes

    found = made.data["holes"]
    if found is None:
        raise DataError("--holes: needs gold labels, the lists of all variants, and a rank metric that is compared")
    if path.exists():
        raise DataError(f"{path}: exists, and may hold labels; name another file for --holes")
    pairs = pairs_to_label(made.sides, made.data["baseline"], made.context, found)
    if not pairs:
        return "Holes: no passage that nobody judged could change a decision; no file was written"
    write_holes(path, pairs, made.sides, found["grade"])
    return (f"{path}: {counted(len(pairs), 'pair')} to label, those that move a difference most first; then: ragkit "
            f"labels import {path} --qrels QRELS --out NEW_QRELS")


def _of_files(qrels: Path, runs: Sequence[Path], metrics: list[str] | None, rules: tuple[float, str],
              dataset: Path | None) -> list[Side]:
    from ragkit.comparison.run_sides import sides_of_runs
    from ragkit.records.runs import RunRules

    level, ties = rules
    if ties not in _TIES:
        raise DataError(f"--ties {ties}: expected one of {', '.join(_TIES)}")
    if len(runs) < 2:
        raise DataError(f"expected at least two run files to compare, got {len(runs)}")
    return sides_of_runs(qrels, runs, metrics, level=level, rules=RunRules(ties=ties), dataset=dataset)  # type: ignore[arg-type]


def write_comparison(opened: ExperimentRun, done: Sequence[Evaluation]) -> list[str]:
    """Compare the finished variants of an experiment and write that beside their folders: what it concludes, and where
    it stands.

    Variants that were not run now count as their folders have them. Nothing where fewer than two are finished, or
    where they cannot be compared, which is told.
    """
    from ragkit.comparison.compare import compare_sides
    from ragkit.comparison.sides import side_of_evaluation, side_of_folder
    from ragkit.comparison.variants import PAGE

    now = {evaluation.plan.variant: evaluation for evaluation in done}
    finished = [variant for variant in opened.variants() if variant.name in now or _is_finished(variant.out)]
    if len(finished) < 2:
        return []
    try:
        made = compare_sides([side_of_evaluation(variant.name, now[variant.name], variant.out) if variant.name in now
                              else side_of_folder(variant.out) for variant in finished], seed=opened.experiment.seed)
    except DataError as error:
        common.complain(f"no comparison of the variants: {error}")
        return []
    made.save(opened.out)
    return [*made.data["conclusion"], f"Comparison: {opened.out / PAGE}"]


def _is_finished(folder: Path) -> bool:
    from ragkit.evaluation.runfolder import COMPLETE, read_run

    return (folder / "run.json").exists() and read_run(folder).get("state") == COMPLETE
