"""`ragkit explain`: what a metric is, the terms behind one value of it, and why another tool's number differs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.cli.arguments import Parser, add_rules, rules_of
from ragkit.cli.console import import_modules, say
from ragkit.errors import DataError

if TYPE_CHECKING:
    from ragkit.metrics.explain import Explanation
    from ragkit.metrics.registry import Definition, Metric
    from ragkit.records.runs import RunRules


def parser() -> Parser:
    """The verb's arguments."""
    made = Parser("explain", "Print what metrics mean, or with a run, labels and a question, the terms of a value.")
    made.add_argument("metrics", metavar="METRIC", nargs="+", help="metrics, such as ndcg@10")
    made.add_argument("--run", metavar="FILE", help="a run file: explain the value of one question")
    made.add_argument("--qrels", metavar="FILE", help="the labels of that run")
    made.add_argument("--question", metavar="ID", help="the question's id")
    made.add_argument("--compare", action="store_true",
                      help="the terms side by side (of an example, without files), and why they differ")
    add_rules(made)
    made.add_argument("--json", action="store_true", help="print JSON to stdout, and nothing else")
    return made


def run(arguments: list[str]) -> None:
    """Print what metrics mean, or the terms behind their values."""
    given = parser().parse_intermixed_args(arguments)
    import_modules(given.imports)
    files = {"--run": given.run, "--qrels": given.qrels, "--question": given.question}
    missing = [name for name, value in files.items() if value is None]
    if missing and len(missing) < len(files):
        named = ", ".join(name for name in files if name not in missing)
        raise DataError(f"explain: {named} needs {' and '.join(missing)} with it")
    if missing and not given.compare:
        _print_definitions(given.metrics, given.json)
        return
    asked = _asked(given.metrics, given.compare)
    from ragkit.metrics.explain import EXAMPLE
    from ragkit.metrics.explain import explain as terms_of

    if missing:
        ids, gold = list(EXAMPLE[0]), dict(EXAMPLE[1])
        head = f"an example: gold {_gold(gold)}; returned {', '.join(ids)}"
    else:
        ids, gold = _of_files(Path(given.run), Path(given.qrels), given.question, rules_of(given))
        head = f"question {given.question}, {Path(given.run).name}"
    found = [terms_of(metric, ids, gold, level=given.level) for metric in asked]
    if given.json:
        _print_json({"question": given.question, "metrics": {one.metric: asdict(one) for one in found}})
    else:
        _print_terms(found, [metric.definition for metric in asked], head, given.compare)


def _print_definitions(names: list[str], as_json: bool) -> None:
    from ragkit.report.explain_text import definition_lines, dialects

    known = [_definition(name) for name in _split(names)]
    if as_json:
        _print_json({"metrics": {one.name: {
            "kind": one.kind, "summary": one.summary, "formula": one.formula, "range": list(one.range),
            "direction": one.direction, "cut": one.cut, "undefined": one.undefined, "ties": one.ties,
            "needs_order": one.needs_order, "source": one.source, "aliases": list(one.aliases),
            "laws": sorted(one.laws), "dialect_of": one.dialect_of or None, "differs": one.differs or None,
            "dialects": [other.name for other in dialects(one)]} for one in known}})
        return
    say("\n\n".join("\n".join(definition_lines(one)) for one in known))


def _print_terms(found: list[Explanation], known: list[Definition], head: str, compare: bool) -> None:
    from ragkit.report.explain_text import comparison_lines, explanation_lines

    if compare:
        say("\n".join([head, "", *comparison_lines(found, known)]))
    else:
        say("\n\n".join("\n".join(explanation_lines(one, head)) for one in found))


def _definition(name: str) -> Definition:
    """The definition that a name means, also without the cut that it needs for a value."""
    from ragkit.metrics.registry import parse

    try:
        return parse(name).definition
    except DataError:
        if "@" in name:
            raise
        try:
            return parse(f"{name}@10").definition
        except DataError:
            pass
        raise


def _asked(names: list[str], compare: bool) -> list[Metric]:
    """The rank metrics to explain; one dialect alone is compared with what it is a dialect of."""
    from ragkit.evaluation.rank_files import require_ranking
    from ragkit.metrics.registry import parse, parse_all

    asked = list(parse_all(names))
    for metric in asked:
        require_ranking(metric)
    if compare and len(asked) == 1:
        own = asked[0]
        if not own.definition.dialect_of:
            raise DataError(f"--compare: expected two metrics or more, got {own.name} alone")
        cut = f"@{own.k}" if own.k is not None else ""
        asked.insert(0, parse(own.definition.dialect_of + cut))
    return asked


def _of_files(run: Path, qrels: Path, question: str, rules: RunRules) -> tuple[list[str], dict[str, float]]:
    """One question's list, best first, and its gold, under the rules that `ragkit rank` has."""
    from ragkit.records.lookalikes import visible_form
    from ragkit.records.readers.runfiles import read_question
    from ragkit.records.readers.trec import read_qrels

    labels = read_qrels(qrels, normalize_ids=rules.normalize_ids)
    name = visible_form(question) if rules.normalize_ids else question
    if name not in labels:
        raise DataError(f"{qrels}: question {question!r} has no label{_near(name, list(labels))}")
    gold = labels[name]
    ids = [identifier for identifier, _ in read_question(run, question, rules, may_lack=True)]
    if rules.document_of is not None:
        ids = list(map(rules.document_of, ids))
    if rules.judged_only:
        ids = [identifier for identifier in ids if identifier in gold]
    return ids, gold


def _near(name: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"; did you mean {', '.join(near)}?" if near else f"; known: {', '.join(known[:3])}, …"


def _gold(gold: dict[str, float]) -> str:
    return ", ".join(f"{name}={grade:g}" for name, grade in gold.items())


def _split(names: list[str]) -> list[str]:
    found = [part.strip() for name in names for part in name.split(",") if part.strip()]
    if not found:
        raise DataError("explain: expected a metric, such as ndcg@10")
    return found


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, allow_nan=False, indent=2) + "\n")
