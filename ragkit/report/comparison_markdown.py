"""A comparison as Markdown: the conclusion in words, then the figures of every variant and slice. Computes nothing."""

from __future__ import annotations

from ragkit.report import comparison_rows as rows
from ragkit.report import texts
from ragkit.report.comparison_findings import conflicts, hole_parts
from ragkit.report.comparison_searches import Part, search_parts
from ragkit.report.markdown import table

SLICED = 3  # metrics that slices are shown in


def render_comparison_markdown(data: rows.Data) -> str:
    """The whole comparison as text, to be written as utf-8. `data` is that of comparison.json."""
    made = [["# Comparison", texts.markdown(rows.header(data)) + "."],
            ["## Conclusion", _listed(data["conclusion"])] if data["conclusion"] else [],
            ["## Mind", _listed(data["warnings"])] if data["warnings"] else []]
    made += [_variant(data, name) for name in rows.compared(data)]
    made += [_slices(data), _conflicts(data), *_tables([*hole_parts(data), *search_parts(data)]), _app(data), _how()]
    return "\n\n".join(line for part in made for line in part if line) + "\n"


def _listed(sentences: list[str]) -> str:
    return "\n".join(f"- {texts.markdown(sentence)}" for sentence in sentences)


def _variant(data: rows.Data, variant: str) -> list[str]:
    body = [[texts.code(row.metric), row.baseline, row.variant,
             f"**{row.difference}**" if row.verdict in rows.DECIDED else row.difference,
             row.interval, row.p, row.wins, row.n, row.detects, row.verdict]
            for row in rows.difference_rows(data, variant)]
    base = texts.markdown(data["baseline"])
    corrected = [f"{metric}: {told}" for metric, told in rows.corrected_facts(data, variant)]
    return [f"## {texts.markdown(variant)} against {base}",
            table(["Metric", base, texts.markdown(variant), "Difference", "95% interval", "p (Holm)",
                   "Wins / ties / losses", "Questions", "Detects", "Verdict"], body), _listed(corrected)]


def _conflicts(data: rows.Data) -> list[str]:
    made = []
    for one in conflicts(data):
        likely = f"Likely cause: {one.likely}" if one.likely else "No cause that was looked for is commoner here"
        means = "The means show it" if one.in_means else "The means do not show it"
        lines = [f"{one.says}. {means}: {one.counts}; this way minus the other, as a share of questions: {one.net}. "
                 f"{likely}.",
                 *(f"{listed.title} ({listed.total}): {', '.join(listed.ids)} {listed.more}" for listed in one.lists)]
        made += [f"### {texts.markdown(one.title)}: {texts.markdown(one.variant)}", _listed(lines)]
    return ["## Conflicts", "Where two signals disagree between a variant and the baseline.", *made] if made else []


def _tables(parts: list[Part]) -> list[list[str]]:
    """Label holes, re-rankers, figures over k, agents by step."""
    return [[f"## {texts.markdown(part.title)}", texts.markdown(" ".join(part.notes)),
             table([texts.markdown(cell) for cell in part.rows[0]],
                   [[texts.markdown(cell) for cell in row] for row in part.rows[1:]])] for part in parts]


def _slices(data: rows.Data) -> list[str]:
    made, metrics = list[str](), rows.leading(data["metrics"], SLICED)
    for slicing in data["slices"]:
        for variant in rows.compared(data):
            body = [[texts.markdown(row.name), row.n, *row.cells]
                    for row in rows.slice_rows(data, slicing, variant, metrics)]
            made += [f"### By {texts.markdown(slicing)}: {texts.markdown(variant)}",
                     table(["Slice", "Questions", *map(texts.code, metrics)], body)]
    return ["## Slices", "Differences with their 95% intervals; slices are many, and none of them is tested.",
            *made] if made else []


def _app(data: rows.Data) -> list[str]:
    body = [[texts.markdown(cell) for cell in row] for row in rows.app_rows(data)]
    return ["## Time, tokens, cost", table(["Variant", "Median a question", "Tokens in + out", "Cost"], body)] \
        if body else []


def _how() -> list[str]:
    return ["## How to read it", *rows.HOW]
