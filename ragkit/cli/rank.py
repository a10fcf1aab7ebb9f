"""`ragkit rank`: rank metrics of run files against qrels, as a table, as lines for a pipe, or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ragkit.cli.arguments import Parser, add_rules, rules_of
from ragkit.cli.console import complain, import_modules, say, visible

if TYPE_CHECKING:
    from ragkit.evaluation.rank_files import RankResult
    from ragkit.report.rank_table import Settings

DEFAULT = "ndcg@10,mrr@10,map,precision@5,recall@10,recall@100,judged@10"


def parser() -> Parser:
    """The verb's arguments."""
    made = Parser("rank", "Score run files against qrels: one table for all runs.")
    made.add_argument("qrels", metavar="QRELS", help="labels: TREC's four columns, BEIR's table, or JSON; .gz is fine")
    made.add_argument("runs", metavar="RUN", nargs="+", help="runs: TREC's six columns, or JSON; .gz is fine")
    made.add_argument("-m", "--metrics", action="append", metavar="NAMES",
                      help=f"metrics, repeatable or with commas, as precision@5,10 ({DEFAULT.replace(',', ', ')})")
    made.add_argument("--per-question", action="store_true",
                      help="a line a run, metric and question, with tabs; notes on stderr")
    made.add_argument("--trec", action="store_true",
                      help="as trec_eval -c: nothing relevant and missing are 0, and count")
    add_rules(made)
    made.add_argument("--json", action="store_true", help="print JSON to stdout, and nothing else")
    return made


def run(arguments: list[str]) -> None:
    """Score run files against qrels."""
    given = parser().parse_intermixed_args(arguments)
    import_modules(given.imports)
    from ragkit.evaluation.rank_files import rank_files
    from ragkit.metrics.registry import parse_all

    asked = parse_all(given.metrics or DEFAULT)
    result = rank_files(given.qrels, given.runs, asked, level=given.level, rules=rules_of(given), trec=given.trec)
    if given.json:
        indent = None if given.per_question else 2  # without it the encoder in C writes, ten times faster
        sys.stdout.write(json.dumps(result.to_json(given.per_question), allow_nan=False, indent=indent) + "\n")
    elif given.per_question:
        _write(_lines(result))
    from ragkit.report.rank_table import rank_lines

    found = result.to_json(texts=True)
    settings = _settings(result, max((metric.k for metric in asked if metric.k), default=None))
    if given.json or given.per_question:
        _complain(found["notes"], settings, all_notes=not given.json)
    else:
        say("\n".join(rank_lines(found, settings, len(result.questions))))


def _settings(result: RankResult, cut: int | None) -> Settings:
    from ragkit.report.rank_table import Settings

    return Settings(result.rules, result.level, result.trec, cut)


def _complain(notes: list[dict[str, Any]], settings: Settings, all_notes: bool) -> None:
    """On stderr what a reader of the bare numbers must not miss; the other notes where nothing else holds them."""
    from ragkit.report.rank_table import note_words

    for note in notes:
        loud = note["kind"] == "no_overlap"
        if all_notes or loud:
            name = f"{note['run']}: " if "run" in note else ""
            complain(f"{'WARNING' if loud else 'note'}: {name}{note_words(note, settings)}")


def _lines(result: RankResult) -> Iterator[str]:
    from ragkit.evaluation.rank_files import plain

    for one in result.runs:
        for metric in one.metrics:
            for question, value in zip(result.questions, plain(metric.values), strict=True):
                yield f"{one.name}\t{question}\t{metric.name}\t{'undefined' if value is None else value}\n"


def _write(lines: Iterator[str]) -> None:
    """Lines as they are into a pipe; on a terminal what it would obey is written out."""
    if sys.stdout.isatty():
        lines = ("\t".join(map(visible, line.rstrip("\n").split("\t"))) + "\n" for line in lines)
    sys.stdout.writelines(lines)
