"""Variants held against each other in one call: paired, tested together, and said in words. Renders nothing itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.comparison.agents import find_agents
from ragkit.comparison.conflicts import find_conflicts
from ragkit.comparison.context import Context, Table
from ragkit.comparison.corrected import corrections
from ragkit.comparison.coverage import coverage_warnings
from ragkit.comparison.differences import differences, means, spreads
from ragkit.comparison.fitting import fit
from ragkit.comparison.holes import find_holes
from ragkit.comparison.pooled import on_common_pool
from ragkit.comparison.report_links import single_reports
from ragkit.comparison.reranking import find_rerankers
from ragkit.comparison.run_sides import sides_of_runs
from ragkit.comparison.sides import JUDGED, Side
from ragkit.comparison.slices import slice_differences
from ragkit.comparison.sweep import find_sweep
from ragkit.comparison.variants import FILE, PAGE, baseline_of, open_sides
from ragkit.comparison.words import conclusion
from ragkit.errors import DataError
from ragkit.records.files import write_json, write_text
from ragkit.report.comparison_markdown import render_comparison_markdown

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "ragkit.comparison/1"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Variants against a baseline. `data` is comparison.json; `sides` are the variants themselves."""

    data: dict[str, Any]
    sides: tuple[Side, ...]
    context: Context

    def __repr__(self) -> str:
        return "<Comparison>\n" + "\n".join(self.data["conclusion"])

    def frame(self) -> pd.DataFrame:
        """A row a metric and variant: its mean, the baseline's, and the figures of the difference."""
        import pandas as pd

        baseline, rows = self.data["baseline"], []
        for metric, found in self.data["metrics"].items():
            average = self.data["means"][metric]
            for variant, figures in found.items():
                plain = {name: value for name, value in figures.items() if name != "corrected"}
                rows.append({"metric": metric, "variant": variant, "mean": average[variant]["mean"],
                             "baseline": baseline, "baseline_mean": average[baseline]["mean"], **plain})
        return pd.DataFrame(rows)

    def wide(self) -> pd.DataFrame:
        """A row a (variant, question), a column a metric: the values that are compared; NaN where there is none."""
        import pandas as pd

        rows = pd.MultiIndex.from_product([[side.name for side in self.sides], self.context.questions],
                                          names=["variant", "question_id"])
        columns = {metric.name: [value.get(question, float("nan")) for value in
                                 (self.context.values(side, metric.name) for side in self.sides)
                                 for question in self.context.questions] for metric in self.context.metrics}
        return pd.DataFrame(columns, index=rows, dtype="float64")

    def report(self, path: str | Path = "comparison.html") -> Path:
        """Write the comparison: a self-contained page (.html), Markdown (.md), or its data (.json).

        The page links questions to the variants' own reports where it finds these. DataError for another ending.
        """
        path = Path(path)
        if path.suffix == ".json":
            write_json(path, self.data)
        elif path.suffix == ".md":
            write_text(path, render_comparison_markdown(self.data))
        elif path.suffix in (".html", ".htm"):
            from ragkit.report.comparison_html import render_comparison_html

            write_text(path, render_comparison_html(self.data, single_reports(self.data, path.parent)))
        else:
            raise DataError(f"{path}: expected a name that ends in .html, .md or .json")
        return path

    def save(self, folder: str | Path) -> Path:
        """Write comparison.json, comparison.html and comparison.md into a folder, which is made where it is missing."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in (FILE, PAGE, "comparison.md"):
            self.report(folder / name)
        return folder


def compare(
    variants: Mapping[str, Any] | Iterable[Any],
    baseline: str | None = None,
    metrics: str | Sequence[str] | None = None,
    by: str | Sequence[str] | None = None,
    seed: int = 0,
    *,
    labels: str | None = None,
    qrels: str | Path | None = None,
) -> Comparison:
    """Hold variants against a baseline: the first of them, unless another is named.

    variants: run folders, results of `evaluate`, or a mapping that names them; the folder of an experiment stands for
    all its variants. With `qrels` they are run files, in TREC's form or JSON. `metrics` are those of all variants,
    `by` the slices ("category", "gold", "labels", "length", "tag", "metadata.KEY"), unless named. `labels` is "gold"
    where all have gold, else "judged".

    Every difference is variant minus baseline on the questions that both scored, repeats averaged, with a 95 % paired
    bootstrap interval and a paired randomisation test, Holm's over all of them. Raises DataError for variants that
    cannot be held against each other; what only narrows the comparison is in `data["warnings"]`.

    >>> import ragkit
    >>> rows = [{"id": "q1", "question": "Capital of France?", "reference": "Paris"}]
    >>> right = ragkit.evaluate(lambda question: "Paris", rows, metrics="exact_match")
    >>> wrong = ragkit.evaluate(lambda question: "Rome", rows, metrics="exact_match")
    >>> compare({"right": right, "wrong": wrong}).data["metrics"]["exact_match"]["wrong"]["difference"]
    -1.0
    """
    sides = open_sides(variants) if qrels is None else sides_of_runs(qrels, _paths(variants), metrics)
    return compare_sides(sides, baseline, metrics, by, seed, labels)


def compare_sides(sides: Sequence[Side], baseline: str | None = None, metrics: str | Sequence[str] | None = None,
                  by: str | Sequence[str] | None = None, seed: int = 0, labels: str | None = None) -> Comparison:
    """As `compare`, of sides that are open already and have names of their own."""
    sides = open_sides(sides)
    first = baseline_of(sides, baseline)
    sides = sorted(sides, key=lambda side: side.name != first)
    found = fit(sides, metrics, labels)
    warnings = list(found.warnings)
    if found.labels == JUDGED:
        sides, told = on_common_pool(sides)
        warnings += told
    context = Context(first, found.metrics, found.labels, found.questions, seed)
    table = differences(sides, context)
    for (metric, variant), figures in corrections(sides, context).items():
        table[metric][variant]["corrected"] = figures
    averages, known = means(sides, context), spreads(sides, context)
    data = {
        "schema": SCHEMA,
        "baseline": first,
        "labels": found.labels,
        "variants": {side.name: {"folder": None if side.folder is None else str(side.folder),
                                 "n_asked": len(side.asked), "app": side.summary.get("app") or {},
                                 **known[side.name]} for side in sides},
        "metrics": table,
        "means": averages,
        "slices": slice_differences(sides, context, by),
        **_parts(sides, first, context, table),
        "warnings": [*warnings, *coverage_warnings(sides, context)],
        "conclusion": conclusion(table, found.metrics, first),
    }
    return Comparison(json.loads(json.dumps(data, allow_nan=False)), tuple(sides), context)


def _parts(sides: Sequence[Side], baseline: str, context: Context, table: Table) -> dict[str, Any]:
    """What is said beyond differences, each part by a function of its own; None where the sides lack what it needs."""
    return {"conflicts": find_conflicts(sides, baseline, context, table),
            "holes": find_holes(sides, baseline, context, table),
            "rerankers": find_rerankers(sides, baseline, context), "sweep": find_sweep(sides, baseline, context),
            "agents": find_agents(sides, baseline, context)}


def _paths(variants: Mapping[str, Any] | Iterable[Any]) -> Mapping[str, str | Path] | list[str | Path]:
    if isinstance(variants, Mapping):
        return variants
    if isinstance(variants, (str, Path)):
        raise DataError("variants: expected at least two run files to compare, got one")
    return list(variants)
