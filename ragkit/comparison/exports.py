"""A comparison for other programs: CSV, Parquet, Markdown, a table for LaTeX. MLflow is in exports_mlflow.py."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError, shown
from ragkit.records.cells import neutral
from ragkit.records.files import write_text
from ragkit.report import comparison_rows as rows
from ragkit.report import numbers
from ragkit.report.comparison_markdown import render_comparison_markdown

if TYPE_CHECKING:
    from ragkit.comparison.compare import Comparison

Row = dict[str, Any]
_DIFFERENCE = ("difference", "low", "high", "p", "p_holm", "wins", "ties", "losses", "n", "decided",
               "questions_to_decide", "repeats_to_decide")
_WHOLE = ("n_scored", "n_asked", "n_undefined", "n_failed", "wins", "ties", "losses", "n", "questions_to_decide",
          "repeats_to_decide")
_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "–": "--", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
})
_MARKS = {"better": r"^{\uparrow}", "worse": r"^{\downarrow}", "higher": "^{+}", "lower": "^{-}"}


def export(comparison: Comparison, form: str, target: str) -> str:
    """Write a comparison in one of FORMATS; what was written, in a sentence. DataError for another form."""
    if form not in FORMATS:
        raise DataError(f"--export {shown(form)}: expected one of {', '.join(FORMATS)}")
    return FORMATS[form](comparison, target)


def table_rows(data: Mapping[str, Any]) -> list[Row]:
    """A row a metric and variant, the baseline among them: its mean with interval and counts, and its difference.

    What the baseline does not have (a difference to itself) is None.
    """
    made = []
    for metric, means in data["means"].items():
        for variant, mean in means.items():
            figures = data["metrics"].get(metric, {}).get(variant)
            found = dict.fromkeys(_DIFFERENCE) if figures is None else {
                name: figures[name] for name in _DIFFERENCE}
            verdict = None if figures is None else rows.verdict(figures, rows.direction_of(metric))
            made.append({
                "metric": metric, "variant": variant, "baseline": data["baseline"], "labels": data["labels"],
                "mean": mean["mean"], "mean_low": mean["low"], "mean_high": mean["high"],
                **{name: mean[name] for name in ("n_scored", "n_asked", "n_undefined", "n_failed")},
                **found, "verdict": verdict, "detectable": data["variants"][variant]["detectable"].get(metric)})
    return made


def csv_text(data: Mapping[str, Any]) -> str:
    """The table as CSV: a name that a spreadsheet would run as a formula gets an apostrophe; unknown is empty."""
    found = table_rows(data)
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\r\n")
    write.writerow(list(found[0]) if found else [])
    for row in found:
        write.writerow([_cell(value) for value in row.values()])
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return neutral(value) if isinstance(value, str) else value


def latex(text: object) -> str:
    """A text that LaTeX prints as it is, in one line.

    >>> print(latex("50% of a_b & c"))
    50\\% of a\\_b \\& c
    """
    line = re.sub(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+", " ", str(text))
    return " ".join(line.split()).translate(_LATEX)


def latex_text(data: Mapping[str, Any]) -> str:
    """A table of means with their intervals, for booktabs: bold with an arrow where a difference is decided."""
    variants = list(data["variants"])
    base = data["baseline"]
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}", r"\begin{table}", r"\centering",
        rf"\caption{{Means with 95\% intervals ({_questions(data)}, {data['labels']} labels). Marked: decided against "
        rf"{latex(base)} by a paired randomisation test, $p < 0.05$ by Holm's method over "
        rf"{len(data['metrics']) * (len(variants) - 1)} differences ($\uparrow$ better, $\downarrow$ worse).}}",
        rf"\begin{{tabular}}{{l{'r' * len(variants)}}}", r"\toprule",
        " & ".join(["Metric", *(latex(name) for name in variants)]) + r" \\", r"\midrule",
    ]
    for metric, means in data["means"].items():
        cells = [_latex_cell(means[name], data["metrics"].get(metric, {}).get(name), metric) for name in variants]
        lines.append(" & ".join([latex(metric), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def _questions(data: Mapping[str, Any]) -> str:
    asked = sorted({entry["n_asked"] for entry in data["variants"].values()})
    return numbers.counted(asked[0], "question") if len(asked) == 1 else f"{asked[0]} to {asked[-1]} questions"


def _latex_cell(mean: Mapping[str, Any], figures: Mapping[str, Any] | None, metric: str) -> str:
    if mean["mean"] is None:
        return "--"
    mark = "" if figures is None else _MARKS.get(rows.verdict(figures, rows.direction_of(metric)), "")
    value = numbers.number(mean["mean"])
    spread = numbers.interval(mean["low"], mean["high"])
    told = rf"\textbf{{{value}}}${mark}$" if mark else value
    return told if spread == numbers.NONE else rf"{told} {{\scriptsize [{latex(spread)}]}}"


def _csv(made: Comparison, target: str) -> str:
    write_text(target, csv_text(made.data))
    return _told(made, target)


def _parquet(made: Comparison, target: str) -> str:
    import pandas as pd

    frame = pd.DataFrame(table_rows(made.data))
    kinds = dict.fromkeys(_WHOLE, "Int64") | {"decided": "boolean"}
    texts = ("metric", "variant", "baseline", "labels", "verdict")
    frame = frame.astype({name: kinds.get(name, "object" if name in texts else "float64") for name in frame.columns})
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path, index=False)
    return _told(made, target)


def _told(made: Comparison, target: str) -> str:
    return f"Wrote {target}: {numbers.counted(len(table_rows(made.data)), 'row')}, one a metric and variant"


def _markdown(made: Comparison, target: str) -> str:
    write_text(target, render_comparison_markdown(made.data))
    return f"Wrote {target}"


def _latex_file(made: Comparison, target: str) -> str:
    write_text(target, latex_text(made.data))
    return f"Wrote {target}"


def _mlflow(made: Comparison, target: str) -> str:
    from ragkit.comparison.exports_mlflow import to_mlflow

    return to_mlflow(made, target)


FORMATS: Mapping[str, Callable[[Comparison, str], str]] = {
    "csv": _csv, "parquet": _parquet, "markdown": _markdown, "latex": _latex_file, "mlflow": _mlflow}
