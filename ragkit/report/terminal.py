"""The summary on a console: what fits 80 columns, on any encoding. The rest stands in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ragkit.records.unseen import spelt_out
from ragkit.report import corrected, judged, labels, numbers, parts, rows, texts, trajectory
from ragkit.report.data import ReportData

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table
    from rich.text import Text

WIDTH = 80


def print_summary(data: ReportData, console: Console) -> None:
    """Print the summary; what the console's encoding cannot carry is replaced, never an error."""
    console.print(render_terminal(data, console.encoding), width=min(console.width, WIDTH))


def render_terminal(data: ReportData, encoding: str = "utf-8") -> Group:
    """The summary as rich renderables: headline metrics, steps, evidence x answer, what to fix first."""
    from rich.console import Group
    from rich.text import Text

    write = Writer(encoding)
    asked = data.summary.get("questions") or {}
    states = ", ".join(f"{numbers.count(asked.get(state, 0))} {words}" for state, words in labels.STATES.items())
    shown: list[Text | Table] = [
        Text(""),
        write.line(str(data.summary.get("variant") or "report"), "bold"),
        write.line(f"{numbers.counted(asked.get('asked'), 'question')}: {states}", "dim"),
        write.metrics(data),
    ]
    for name, figures in (data.summary.get("metrics") or {}).items():
        if figures.get("above_threshold"):
            shown.append(write.line(f"{name}: {rows.above_threshold(figures['above_threshold'])}"))
    if len(rows.step_rows(data, [])[1]) > 1:
        shown.append(write.steps(data))
    shown += write.searches(data)
    others = parts.other_outcomes(data)
    if parts.crossed(data):
        shown.append(write.matrix(data))
        if others:
            besides = ", ".join(f"{count} × {outcome.title}" for count, outcome in others)
            shown.append(write.line(f"Besides: {besides}", "dim"))
    elif others:
        shown.append(write.outcomes(data))
    shown += write.corrected(data)
    shown += write.judged(data)
    if data.needs_judge:
        shown.append(write.line(f"RAGAS metrics: {data.needs_judge}", "dim"))
    if data.failures:
        shown.append(write.line(f"{numbers.count(len(data.failures))} failed; the report says what and why", "magenta"))
    return Group(*shown, Text(""), write.line(data.fix_first, "bold"), Text(""))


def print_side_by_side(summaries: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print the means of several variants beside each other: a row a metric, a column a variant. Decides nothing.

    Where not all of them rest on all questions, the number of scored ones stands behind each mean.
    """
    write = Writer(console.encoding)
    made = write.table("Metric", *(str(summary["variant"]) for summary in summaries))
    parts = any(entry["n_scored"] < entry["n_asked"] for summary in summaries for entry in summary["metrics"].values())
    for name in dict.fromkeys(name for summary in summaries for name in summary["metrics"]):
        cells = (_mean(summary["metrics"].get(name, {}), parts) for summary in summaries)
        made.add_row(*map(write.safe, (name, *cells)))
    console.print(made, width=min(console.width, WIDTH))
    if parts:
        console.print(write.line("(n): the mean of n scored questions; the others are undefined or failed, see the "
                                 "reports", "dim"), width=min(console.width, WIDTH))


def _mean(entry: Mapping[str, Any], counted: bool) -> str:
    mean = numbers.number(entry.get("mean"))
    return f"{mean} ({numbers.count(entry['n_scored'])})" if counted and mean != numbers.NONE else mean


class Writer:
    """Makes renderables whose every text the console can carry."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding

    def safe(self, text: str) -> str:
        return texts.encodable(spelt_out(text), self._encoding)

    def line(self, text: str, style: str = "") -> Text:
        from rich.text import Text

        return Text(self.safe(text), style=style, overflow="fold")

    def table(self, *heads: str) -> Table:
        """An empty table: the first column holds names, the others numbers."""
        from rich import box
        from rich.table import Table

        utf = self._encoding.lower().startswith("utf")
        made = Table(box=box.SIMPLE_HEAD if utf else box.ASCII2, pad_edge=False,
                     header_style="bold")
        for place, head in enumerate(heads):
            made.add_column(self.safe(head), justify="right" if place else "left", overflow="fold", no_wrap=False)
        return made

    def metrics(self, data: ReportData) -> Table:
        made = self.table("Metric", "Mean", "95% interval", "Scored", "Not scored")
        made.columns[-1].justify = "left"
        for group in rows.metric_groups(data):
            made.add_section()
            for row in rows.scored_first(group.rows):
                missing = [f"{row.undefined} undefined"] if row.undefined and not row.needs_judge else []
                missing += [f"{row.failed} failed"] if row.failed else []
                missing += [labels.NEEDS_JUDGE] if row.needs_judge else []
                cells = (row.name, row.mean, row.interval, row.scored, ", ".join(missing))
                made.add_row(*map(self.safe, cells), style=None if row.has_mean else "dim")
        return made

    def judged(self, data: ReportData) -> list[Text | Table]:
        """Whose labels a judge gave, and the metrics that have both beside each other."""
        facts = "; ".join(f"{name}: {text}" for name, text in judged.facts(data))
        if not facts:
            return []
        shown: list[Text | Table] = [self.line(f"Judged labels, not people's. {facts}", "dim")]
        found = judged.beside_gold(data)
        if found:
            made = self.table("Metric", "By gold", "Scored", "By the judge", "Scored")
            for gold, own in found:
                made.add_row(*map(self.safe, (own.name, gold.mean, gold.scored, own.mean, own.scored)))
            shown.append(made)
        return shown

    def corrected(self, data: ReportData) -> list[Text | Table]:
        """Means corrected by people's labels, and the bridge from an earlier judge."""
        from rich.text import Text

        shown: list[Text | Table] = []
        lines, bridge = corrected.corrected_rows(data), corrected.bridge_rows(data)
        if lines:
            made = self.table("Corrected by labels", "Mean", "95% interval", "Judge’s own", "Labels")
            for row in lines:
                made.add_row(*map(self.safe, (row.name, row.mean, row.interval, row.raw, row.labels)))
            shown.append(made)
            shown += [self.line(f"{row.name}: {fact}", "dim") for row in lines for fact in row.facts]
        if bridge:
            shown += [Text(""), self.line(corrected.bridge_title(data))]
            made = self.table("New minus old", "Offset", "95% interval", "Old", "New", "Kappa")
            for one in bridge:
                made.add_row(*map(self.safe, (one.name, one.offset, one.interval, one.old, one.new, one.kappa)))
            shown.append(made)
        return shown

    def steps(self, data: ReportData) -> Table:
        names = labels.chosen(rows.all_step_metrics(data), labels.STEP_CURVE)[:4]
        names += labels.chosen(rows.all_step_metrics(data), labels.STEP_JUDGED)
        made = self.table("Step", "Reached by", *names)
        for line in rows.step_rows(data, names)[1]:
            cells = (numbers.NONE if row is None else row.mean for row in line.cells)
            made.add_row(*map(self.safe, (line.step, line.reached, *cells)))
        return made

    def searches(self, data: ReportData) -> list[Text]:
        """Where the evidence ended; of several steps also when it was complete, and who answered without any.

        Where the app shows no context, what the funnel takes for it is said beneath.
        """
        evidence = trajectory.evidence(data) if trajectory.several_steps(data) else None
        silent = trajectory.without_retrieval(data)
        facts = [evidence, silent if silent and silent.value != "0" else None]
        lines = [f"{fact.title}: {fact.value} {fact.note}" for fact in facts if fact]
        ended = trajectory.funnel_line(data)
        unknown = trajectory.unknown_contexts(data) if ended else ""
        shown = [self.line(line) for line in (*lines, ended) if line]
        return [*shown, self.line(unknown, "dim")] if unknown else shown

    def matrix(self, data: ReportData) -> Table:
        heads, lines = parts.matrix(data)
        made = self.table("", *(title for _, title in heads))
        for title, cells in lines:
            made.add_row(self.safe(title), *(self.safe(f"{count}  {outcome.owner}") for count, outcome in cells))
        return made

    def outcomes(self, data: ReportData) -> Table:
        """The outcomes where no question has labels: all that can be said of the answers."""
        made = self.table("Outcome", "Questions", "Whose")
        made.columns[-1].justify = "left"
        for count, outcome in parts.other_outcomes(data):
            made.add_row(*map(self.safe, (outcome.title, count, outcome.owner)))
        return made
