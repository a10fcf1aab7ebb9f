"""Run files of many megabytes, judged in arrays. The result is that of runfiles.judge_lines, which reads line by line.

Only the ranks of judged documents are needed, so a file that is sorted within its questions is never sorted again. What
arrow cannot read whole (a malformed line, a NaN, a pair that stands twice) is left to the reader that names the line.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragkit.records.lookalikes import visible_form
from ragkit.records.questions import Qrels
from ragkit.records.readers.bigblocks import IrregularFile
from ragkit.records.readers.bigcolumns import Met, read_columns
from ragkit.records.readers.bigranks import Gold, arrange, later_copies, ranks_of, tied_groups
from ragkit.records.readers.bigrows import Rows
from ragkit.records.readers.judging import Notes
from ragkit.records.readers.runfiles import judge_lines
from ragkit.records.runs import JudgedRun, RunRules


def judge_big_run(path: Path, qrels: Qrels, rules: RunRules, name: str) -> JudgedRun:
    """As runfiles.judge_lines, for the same files, several times faster and in a fraction of the memory."""
    strange = [(code, form) for code, row in enumerate(qrels.values()) for document in row
               if not (document.isascii() and document.isprintable())  # the usual ids are seen at a glance
               and (form := visible_form(document)) != document and form not in row]
    gold = Gold(qrels, strange)
    try:
        if gold.ambiguous:
            return judge_lines(path, qrels, rules, name)
        try:
            rows, met = read_columns(path, qrels, gold, rules, tidy=False)
        except IrregularFile:  # not one blank between columns: every line is written anew
            rows, met = read_columns(path, qrels, gold, rules, tidy=True)
        return _judged(rows, met, qrels, gold, rules, name)
    except IrregularFile:
        return judge_lines(path, qrels, rules, name)


def _judged(rows: Rows, met: Met, qrels: Qrels, gold: Gold, rules: RunRules, name: str) -> JudgedRun:
    questions, notes = tuple(qrels), Notes()
    for question, count in met.self_hits.items():
        notes.add("self", question, count)
    arrange(rows, stable=rules.ties == "rank")
    _drop_copies(rows, questions, rules, notes)
    first, last = tied_groups(rows, questions, notes)
    found, which = rows.now(met.found)
    places = met.gold[which]
    ranks, codes, grades = ranks_of(rows, found, first, last), gold.codes[places], gold.grades[places]
    _note_similar(codes, places, met.odd, qrels, gold, notes)
    known = ~np.isnan(grades)
    order = np.lexsort((ranks[known], codes[known]))
    codes, ranks, grades = codes[known][order], ranks[known][order], grades[known][order]
    lengths = np.zeros(len(questions), dtype=np.int64)
    lengths[rows.groups] = np.diff(rows.bounds)
    if rules.judged_only:
        lengths = np.bincount(codes, minlength=len(questions))
        ranks = np.arange(1, len(codes) + 1) - (np.cumsum(lengths) - lengths)[codes]
    answered = np.zeros(len(questions), dtype=np.bool_)
    answered[met.answered] = True
    notes.coverage(questions, lengths.tolist(), met.unknown)
    return JudgedRun(name, questions, answered, lengths, codes.astype(np.int64), ranks, grades,
                     np.zeros(len(codes), dtype=np.bool_), notes.finished())


def _drop_copies(rows: Rows, questions: tuple[str, ...], rules: RunRules, notes: Notes) -> None:
    later = later_copies(rows)
    if not len(later):
        return
    if rules.duplicates == "error" or rules.ties == "rank":
        raise IrregularFile  # the reader line by line names the line, or asks the rank column which copy is the first
    names, codes = rows.names(later), rows.codes[later]
    _, at, counts = np.unique(codes, return_index=True, return_counts=True)
    for place, count in sorted(zip(at.tolist(), counts.tolist(), strict=True)):
        notes.add("duplicates", f"question {questions[codes[place]]}: document {names[place]}", count)
    keep = np.ones(len(rows), dtype=np.bool_)
    keep[later] = False
    rows.keep(np.flatnonzero(keep))


def _note_similar(codes: NDArray[np.int32], places: NDArray[np.int64], odd: dict[int, set[str]], qrels: Qrels,
                  gold: Gold, notes: Notes) -> None:
    """Tell of gold ids that were not found where an id that looks the same was."""
    forms = np.isnan(gold.grades[places])
    for code, place in zip(codes[forms].tolist(), places[forms].tolist(), strict=True):
        odd.setdefault(code, set()).add(gold.documents[place])
    if not odd:
        return
    returned: dict[int, set[str]] = {}
    for code, place in zip(codes.tolist(), places.tolist(), strict=True):
        returned.setdefault(code, set()).add(gold.documents[place])
    questions = tuple(qrels)
    for code in sorted(odd):
        lost = [one for one in qrels[questions[code]] if one not in returned.get(code, ())]
        notes.similar_ids(questions[code], lost, odd[code])
