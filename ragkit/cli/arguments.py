"""Arguments of the light verbs, parsed by the standard library; options that `rank` and `explain` share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn

from ragkit.errors import DataError
from ragkit.records.runs import RunRules


class Parser(argparse.ArgumentParser):
    """Parses a verb's arguments; a wrong call is a DataError, which is told in one line."""

    def __init__(self, verb: str, description: str) -> None:
        super().__init__(prog=f"ragkit {verb}", description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise DataError(f"{message} (see {self.prog} --help)")


def add_rules(parser: argparse.ArgumentParser) -> None:
    """How a run becomes lists, and from which grade a document counts."""
    add = parser.add_argument
    add("--level", type=float, default=1.0, metavar="GRADE",
        help="grade from which a document is relevant (1); ndcg uses all grades")
    add("--ties", choices=("id", "rank"), default="id",
        help="equal scores: by document id, descending, as trec_eval (id), or in the run's own order (rank)")
    add("--float32", action="store_true", help="compare scores in single precision, as trec_eval 9 and pytrec_eval do")
    add("--duplicates", choices=("error", "first"), default="error",
        help="a document that stands twice for a question: an error, or keep the copy that ranks first")
    add("--judged-only", action="store_true", help="drop documents without a label; ranks close up")
    add("--normalize-ids", action="store_true", help="compare ids in Unicode form NFC, without invisible characters")
    add("--unit", choices=("chunk", "document"), help="what the gold names; document needs one of the next two options")
    add("--doc-map", metavar="FILE", help="lines of chunk, tab, document; or a JSON object")
    add("--chunk-separator", metavar="TEXT", help="the document's id stands before the last of these, such as '#'")
    add("--drop-self", action="store_true", help="drop documents whose id is the question's")
    add("--import", dest="imports", action="append", metavar="MODULE", help="a module of yours that declares metrics")


def rules_of(given: argparse.Namespace) -> RunRules:
    """The rules that the options say; options that contradict each other are refused."""
    return RunRules(ties=given.ties, float32=given.float32, duplicates=given.duplicates, judged_only=given.judged_only,
                    normalize_ids=given.normalize_ids, drop_self=given.drop_self, document_of=_projection(given))


def _projection(given: argparse.Namespace) -> Callable[[str], str] | None:
    """From chunk to document."""
    options = {"--doc-map": given.doc_map, "--chunk-separator": given.chunk_separator}
    named = [name for name, value in options.items() if value is not None]
    if len(named) > 1:
        raise DataError("--doc-map and --chunk-separator: expected one of them, got both")
    if given.unit == "chunk" and named:
        raise DataError(f"{named[0]}: contradicts --unit chunk; expected --unit document, or no {named[0]}")
    if given.unit == "document" and not named:
        raise DataError("--unit document: expected --doc-map FILE or --chunk-separator TEXT with it, to know the "
                        "document of each chunk")
    if not named:
        return None
    from ragkit.records.projection import before_separator, read_document_map

    if given.chunk_separator is not None:
        return before_separator(given.chunk_separator)
    return read_document_map(given.doc_map, given.normalize_ids)
