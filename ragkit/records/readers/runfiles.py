"""Run files (TREC's six columns, or JSON) and runs in memory, cut down to the places of the judged documents.

Files of many megabytes take the way of bigruns.py, with the same result. What the places are worth is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, shown
from ragkit.records.files import decode, read_object
from ragkit.records.lookalikes import visible_form
from ragkit.records.questions import Qrels
from ragkit.records.readers.judging import Judging, Result
from ragkit.records.readers.trec import is_comment, is_json, number_of, told, trec_lines
from ragkit.records.runs import PLAIN_RULES, JudgedRun, RunRules

Run = dict[str, list[tuple[str, float]]]

_BIG = 8 << 20  # bytes; below this, arrow takes longer to load than to gain
_BIG_PACKED = 2 << 20
COLUMNS = 6
_FORM = f"{COLUMNS} columns (question, Q0, document, rank, score, name; no blank inside an id)"


def read_judged_run(path: str | Path, qrels: Qrels, rules: RunRules = PLAIN_RULES, name: str = "") -> JudgedRun:
    """The places of the judged documents in a run file: TREC's six columns, or a JSON object; gzip is understood.

    A JSON run is {question: {document: score}}, {question: [[document, score], …]}, or {question: [document, …]} in its
    own order. Results stand by score descending as float64, ties as the rules say. Questions that the qrels lack are
    passed over and noted. DataErrors with file and line: a line without exactly six columns, a score that is no
    number (infinite ones are allowed), and a pair that stands twice unless the rules say "first".
    """
    path = Path(path)
    if is_json(path, "a run file"):
        return _judged(_json_results(path), qrels, rules, name, str(path))
    if rules.document_of is None and _is_big(path):
        from ragkit.records.readers.bigruns import judge_big_run

        return judge_big_run(path, qrels, rules, name)
    return judge_lines(path, qrels, rules, name)


def judge_lines(path: Path, qrels: Qrels, rules: RunRules, name: str) -> JudgedRun:
    """As read_judged_run, of a TREC file, line by line."""
    return _judged(_trec_results(path, rules, qrels), qrels, rules, name, str(path))


def read_question(
    path: str | Path, question: str, rules: RunRules = PLAIN_RULES, *, may_lack: bool = False
) -> list[tuple[str, float]]:
    """The results of one question in a run file, best first, with their scores (NaN where the file holds none).

    Raises DataError where the file does not hold the question, unless it `may_lack` it: then the list is empty.
    """
    path = Path(path)
    wanted = (question, visible_form(question))
    rows = _json_results(path) if is_json(path, "a run file") else _trec_results(path, rules, wanted)
    known: list[str] = []
    for found, results in rows:
        known.append(found)
        if found == question or (rules.normalize_ids and visible_form(found) == visible_form(question)):
            return Judging({}, rules, str(path)).ordered(question, results)
    if may_lack:
        return []
    import difflib

    near = difflib.get_close_matches(question, known, n=3) or known[:3]
    raise DataError(f"{path}: question {question!r} is not in the run"
                    + (f"; it holds {len(known)}, such as {', '.join(near)}" if known else ""))


def read_lists(path: str | Path, qrels: Qrels, rules: RunRules = PLAIN_RULES) -> dict[str, tuple[str, ...]]:
    """The ids of a run file by question of the qrels, best first, after the same rules as read_judged_run.

    A question without results is left out; a document stands once, at its best place.
    """
    path = Path(path)
    rows = _json_results(path) if is_json(path, "a run file") else _trec_results(path, rules, qrels)
    judging, lists = Judging({}, rules, str(path)), dict[str, tuple[str, ...]]()
    for found, results in rows:
        question = visible_form(found) if rules.normalize_ids else found
        if question in qrels and results:
            ids = [document for document, _ in judging.ordered(question, results)]
            ids = ids if rules.document_of is None else list(map(rules.document_of, ids))
            lists[question] = tuple(dict.fromkeys(
                document for document in ids if not rules.judged_only or document in qrels[question]))
    return lists


def _judged(results: Iterable[tuple[str, list[Result]]], qrels: Qrels, rules: RunRules, name: str,
            where: str = "") -> JudgedRun:
    judging = Judging(qrels, rules, where)
    for question, row in results:
        judging.add(question, row)
    return judging.finish(name)


def _is_big(path: Path) -> bool:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return path.stat().st_size >= (_BIG_PACKED if packed else _BIG)


def run_cells(line: bytes) -> list[bytes] | None:
    """The six columns of a line; None where it has others.

    Words behind the run's name are passed over, as by trec_eval; a blank inside an id is not taken for that, since it
    moves the score to where the name should be.
    """
    cells = line.split()
    if len(cells) == COLUMNS:
        return cells
    if len(cells) > COLUMNS and _is_number(cells[4]) and not _is_number(cells[5]):
        return cells[:COLUMNS]
    return None


def _is_number(cell: bytes) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def run_lines(path: Path, ranks: bool = False) -> Iterator[tuple[int, str, str, float, float]]:
    """(line number, question, document, score, rank) of each row; the rank is 0 unless it is asked for."""
    empty = True
    for number, line in trec_lines(path, "a run file"):
        cells = run_cells(line)
        if cells is None:
            if is_comment(line):
                continue
            raise DataError(f"{path}:{number}: expected {_FORM}, got {len(line.split())} in {told(line, path, number)}")
        try:
            score = float(cells[4])
            if math.isnan(score) or b"_" in cells[4]:
                raise ValueError
        except ValueError:
            if is_comment(line):
                continue
            score = number_of(cells[4], f"{path}:{number}", "a score", infinite=True)
        rank = number_of(cells[3], f"{path}:{number}", "a rank") if ranks else 0.0
        empty = False
        try:
            yield number, cells[0].decode(), cells[2].decode(), score, rank
        except UnicodeDecodeError:
            decode(line, path, number)  # says which byte of the line
    if empty:
        raise DataError(f"{path}: no result; expected lines of question, Q0, document, rank, score, name")


def _trec_results(path: Path, rules: RunRules, wanted: Container[str]) -> Iterator[tuple[str, list[Result]]]:
    """The results of every question of the file; those of a question that is not wanted are empty."""
    by_rank, keep_all = rules.ties == "rank", rules.duplicates == "first"
    found: dict[str, dict[str, tuple[int, float, float]] | None] = {}
    copies: dict[str, list[Result]] = {}
    for number, question, document, score, rank in run_lines(path, by_rank):
        if question not in found:
            known = question in wanted or (rules.normalize_ids and visible_form(question) in wanted)
            found[question] = {} if known else None
        row = found[question]
        if row is None:
            continue
        if document not in row:
            row[document] = (number, score, rank)
        elif keep_all:
            copies.setdefault(question, []).append((document, score, rank if by_rank else number))
        else:
            raise DataError(f"{path}:{number}: question {question!r}, document {document!r} stands already in line "
                            f"{row[document][0]}; expected each pair once (or duplicates: first)")
    for question, row in found.items():
        results = [(document, score, rank if by_rank else number)
                   for document, (number, score, rank) in (row or {}).items()]
        yield question, results + copies.get(question, [])


def _json_results(path: Path) -> Iterator[tuple[str, list[Result]]]:
    found = read_object(path)
    if not found:
        raise DataError(f"{path}: no result; expected {{question: {{document: score}}}}")
    for question, row in found.items():
        yield question, results_of(row, f"{path}: question {question!r}")


def results_of(row: object, where: str) -> list[Result]:
    """The results of one question as (document, score, place): of an object of scores, of pairs, or of bare ids.

    Bare ids have the score NaN: their order is the rank.
    """
    if isinstance(row, Mapping):
        return [(_id(document, where), _score(score, f"{where}, document {document!r}"), place)
                for place, (document, score) in enumerate(row.items())]
    if not isinstance(row, Sequence) or isinstance(row, str | bytes):
        raise DataError(f"{where}: expected an object of document ids and scores, or a list, got {shown(row)}")
    if all(isinstance(one, str) for one in row):
        return [(document, math.nan, place) for place, document in enumerate(row)]
    results: list[Result] = []
    for place, pair in enumerate(row):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise DataError(f"{where}: expected ids, or pairs of id and score, got {shown(pair)} at place {place + 1}")
        results.append((_id(pair[0], where), _score(pair[1], f"{where}, document {pair[0]!r}"), place))
    return results


def _id(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{where}: expected a document id (a string), got {shown(value)}")
    return value


def _score(value: Any, where: str) -> float:
    try:
        score = math.nan if isinstance(value, str | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if math.isnan(score):
        raise DataError(f"{where}: expected a score (a number), got {shown(value)}")
    return score
