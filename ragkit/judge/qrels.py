"""Relevance grades of a judgement file, written as qrels for any other tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ragkit.errors import DataError
from ragkit.judge.archive import records
from ragkit.records.files import write_text


class Written(NamedTuple):
    """How much was written, and whose grades."""

    grades: int
    questions: int
    judge: str


def write_qrels(store: Path, out: Path, judge: str | None = None) -> Written:
    """Writes the grades of one judge; a step's own query stands under the hash of its text.

    A name that ends in .tsv is BEIR's form, any other one TREC's. The store is only read.

    Raises DataError where there is no grade, where several judges graded and none is named, where an id cannot stand
    in the form, and where a pair was graded twice with different outcomes (another reference answer, other prompts).
    """
    grades = [row for row in records(store) if row["kind"] == "relevance"]
    judges = sorted({grade["judge"] for grade in grades})
    if judge is None and len(judges) > 1:
        raise DataError(f"{store}: holds grades of {', '.join(judges)}; expected --judge with one of them")
    chosen = judge or (judges[0] if judges else "any judge")
    found: dict[tuple[str, str], int] = {}
    for grade in grades:
        if grade["judge"] != chosen:
            continue
        pair = (grade["question"], grade["passage"])
        if found.setdefault(pair, grade["grade"]) != grade["grade"]:
            raise DataError(f"{store}: {pair[0]}, {pair[1]}: graded {found[pair]} and {grade['grade']}: with other "
                            "prompts, statements or texts; expected the store of one data set")
    if not found:
        raise DataError(f"{store}: no relevance grade of {chosen} in it; a run with --relevance judge makes them")
    write_text(out, "".join(qrels_lines(found, out)))
    return Written(len(found), len({question for question, _ in found}), chosen)


def qrels_lines(grades: Mapping[tuple[str, str], float], out: Path) -> Iterator[str]:
    """The lines of (question, passage) -> grade, BEIR's where the name of `out` ends in .tsv, else TREC's.

    Raises DataError for an id that cannot stand in the form.
    """
    beir = out.suffix == ".tsv"
    if beir:
        yield "query-id\tcorpus-id\tscore\n"
    for (question, passage), grade in sorted(grades.items()):
        for name in (question, passage):
            if set(name) & set("\t\r\n") or (not beir and name.split() != [name]):
                raise DataError(f"{out}: the id {name!r} cannot stand in qrels: it holds a blank; expected other ids, "
                                "or a file whose name ends in .tsv, where a space may stand")
        yield f"{question}\t{passage}\t{grade:g}\n" if beir else f"{question} 0 {passage} {grade:g}\n"
