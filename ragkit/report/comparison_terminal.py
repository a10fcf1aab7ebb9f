"""A comparison on a console of 80 columns: figures first, the conclusion last, where it is read. Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragkit.report import comparison_rows as rows
from ragkit.report.comparison_findings import finding_sentences
from ragkit.report.comparison_searches import search_sentences
from ragkit.report.terminal import WIDTH, Writer

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table
    from rich.text import Text

_TONES = {"better": "green", "worse": "red", "higher": "cyan", "lower": "cyan"}
_METRICS_OF_SLICES = 2  # with their intervals, as many as fit


def print_comparison(data: rows.Data, console: Console, slicings: Sequence[str] = ()) -> None:
    """Print the comparison, with the slices of these slicings; what the encoding cannot carry is replaced."""
    console.print(render_comparison_terminal(data, console.encoding, slicings), width=min(console.width, WIDTH))


def render_comparison_terminal(data: rows.Data, encoding: str = "utf-8", slicings: Sequence[str] = ()) -> Group:
    """The comparison as rich renderables."""
    from rich.console import Group
    from rich.text import Text

    write = Writer(encoding)
    shown: list[Text | Table] = [Text(""), write.line(rows.header(data))]
    for variant in rows.compared(data):
        shown += [Text(""), write.line(f"{variant} against {data['baseline']}", "bold"), _table(write, data, variant)]
        shown += [write.line(f"{metric}: {told}", "dim") for metric, told in rows.corrected_facts(data, variant)]
        for slicing in slicings:
            shown += [write.line(f"{variant} by {slicing}", "bold"), _slices(write, data, slicing, variant)]
    shown += [Text(""), *(write.line(sentence, "dim") for sentence in
                              (*finding_sentences(data), *search_sentences(data)))]
    shown += [write.line(f"- {warning}", "yellow") for warning in data["warnings"]]
    return Group(*shown, Text(""), *(write.line(sentence, "bold") for sentence in data["conclusion"]), Text(""))


def _table(write: Writer, data: rows.Data, variant: str) -> Table:
    made = write.table("Metric", "Base", "Variant", "Diff", "95% interval", "p", "Verdict")
    made.columns[-1].justify = "left"
    for column in made.columns[1:]:  # a long name of a metric is folded, never a number
        column.no_wrap = True
    for row in rows.difference_rows(data, variant):
        cells = (row.metric, row.baseline, row.variant, row.difference, row.interval, row.p, row.verdict)
        made.add_row(*map(write.safe, cells), style=_TONES.get(row.verdict, "dim"))
    return made


def _slices(write: Writer, data: rows.Data, slicing: str, variant: str) -> Table:
    metrics = rows.leading(data["metrics"], _METRICS_OF_SLICES)
    made = write.table("Slice", "Questions", *metrics)
    for row in rows.slice_rows(data, slicing, variant, metrics):
        made.add_row(*map(write.safe, (row.name, row.n, *row.cells)))
    return made
