"""The rank metrics against trec_eval itself, through pytrec_eval, on random runs: as lists, in memory, and in files."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from ragkit.evaluation.rank_files import rank_files
from ragkit.metrics.batch import batch_of_run
from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays
from ragkit.records.readers import bigruns, runfiles
from ragkit.records.readers.runfiles import read_judged_run
from ragkit.records.readers.trec import read_qrels
from ragkit.records.runs import JudgedRun, RunRules
from tests.support.random_runs import (
    METRICS,
    Case,
    assert_equal,
    in_trec_order,
    oracle_values,
    random_case,
    undefined,
)
from tests.support.runs import judge_results

pytest.importorskip("pytrec_eval", reason="the oracle pytrec_eval-terrier is not installed")

AS_TREC_EVAL = RunRules(float32=True)
LEVELS = (1, 2, 3)


def values(run: JudgedRun, case: Case, level: int) -> np.ndarray:
    assert list(run.questions) == list(case.qrels)
    return score_arrays(batch_of_run(run, case.qrels, level=level), METRICS)


def values_of_lists(lists: dict[str, list[str]], case: Case, level: int) -> np.ndarray:
    rankings = [RankedIds(question, lists.get(question, [])) for question in case.qrels]
    return score_arrays(build_batch(rankings, case.qrels, level=level), METRICS)


@pytest.mark.parametrize("level", LEVELS)
def test_lists_of_ids(level: int) -> None:
    compared = 0
    for seed in range(level, 600, 3):
        case = random_case(seed)
        lists = {question: in_trec_order(scores) for question, scores in case.run.items()}
        compared += assert_equal(values_of_lists(lists, case, level), case, level, seed)
    assert compared > 30_000


@pytest.mark.parametrize("level", LEVELS)
def test_scored_runs_in_memory(level: int) -> None:
    for seed in range(5000 + level, 5600, 3):
        case = random_case(seed)
        run = case.run if seed % 2 else {question: list(scores.items()) for question, scores in case.run.items()}
        judged = judge_results(run, case.qrels, AS_TREC_EVAL, "r")
        assert_equal(values(judged, case, level), case, level, seed)


@pytest.mark.parametrize(("form", "big"), [("spaces", False), ("tabs", False), ("messy", False), ("json", False),
                                           ("spaces", True), ("tabs", True), ("messy", True)])
def test_files(form: str, big: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form by the reader of lines, and by the one for big files, which may not hand a file back."""
    if big:
        for name in ("_BIG", "_BIG_PACKED"):
            monkeypatch.setattr(runfiles, name, 0)
        monkeypatch.delattr(bigruns, "judge_lines")
    for seed in range(20_000, 20_080):
        case, level = random_case(seed, questions=8), LEVELS[seed % 3]
        qrels = read_qrels(write_qrels(case, tmp_path / "qrels.txt"))
        assert qrels == case.qrels
        run = read_judged_run(write_run(case, form, tmp_path), qrels, AS_TREC_EVAL)
        assert_equal(values(run, case, level), case, level, (form, seed))


def test_means_by_the_convention_of_trec_eval_and_without_it(tmp_path: Path) -> None:
    """With it a question that is missing or has nothing relevant is a 0; without it the second kind is left out."""
    for seed in range(40_000, 40_060):
        case, level = random_case(seed), LEVELS[seed % 3]
        paths = write_qrels(case, tmp_path / "qrels.txt"), write_run(case, "spaces", tmp_path)
        expected = oracle_values(case, level)
        for trec in (True, False):
            result = rank_files(paths[0], [paths[1]], METRICS, level=level, rules=AS_TREC_EVAL, trec=trec)
            left_out = undefined(case, level) & (not trec)
            for found, column, out in zip(result.runs[0].metrics, expected.T, left_out.T, strict=True):
                assert (found.n_asked, found.n_undefined) == (len(column), int(out.sum())), (seed, trec, found.name)
                mean = column[~out].mean() if not out.all() else None
                assert found.mean == (mean if mean is None else pytest.approx(mean, abs=1e-9)), (seed, trec, found.name)


def test_judged_documents_only() -> None:
    """Without grades below 0: those are trec_eval's own marks for what is unjudged, and with -J it drops them."""
    for seed in range(30_000, 30_200):
        case, level = random_case(seed), LEVELS[seed % 3]
        case = Case({q: {i: max(grade, 0) for i, grade in row.items()} for q, row in case.qrels.items()}, case.rows)
        judged = judge_results(case.run, case.qrels, RunRules(float32=True, judged_only=True), "r")
        assert_equal(values(judged, case, level), case, level, seed, judged_only=True)


def test_a_wrong_rule_would_be_seen() -> None:
    """Each rule that the tests above are to hold decides some of their values."""
    off = dict.fromkeys(("float64", "ids ascending", "utf-16 order", "rank of the rows", "the file's order"), 0)
    for seed in range(5001, 5301, 3):
        case = random_case(seed)
        expected = oracle_values(case, 1)
        with np.errstate(over="ignore"):
            narrow = {q: {i: float(np.float32(s)) for i, s in scores.items()} for q, scores in case.run.items()}
        wrong = {
            "float64": values(judge_results(case.run, case.qrels, RunRules(), "r"), case, 1),
            "rank of the rows": values(judge_results(case.run, case.qrels, RunRules(ties="rank", float32=True), "r"),
                                       case, 1),
            "ids ascending": values_of_lists({q: sorted(s, key=lambda i: (-s[i], i.encode())) for q, s in
                                              narrow.items()}, case, 1),
            "utf-16 order": values_of_lists({q: sorted(s, key=lambda i: (s[i], i.encode("utf-16-be")), reverse=True)
                                             for q, s in narrow.items()}, case, 1),
            "the file's order": values_of_lists({q: list(s) for q, s in narrow.items()}, case, 1)}
        for rule, ours in wrong.items():
            off[rule] += bool((np.abs(np.nan_to_num(ours) - expected) > 1e-9).any())
    assert min(off.values()) >= 5, off


def write_qrels(case: Case, path: Path) -> Path:
    path.write_text("".join(f"{question} 0 {document} {grade}\n" for question, row in case.qrels.items()
                            for document, grade in row.items()), encoding="utf-8")
    return path


def write_run(case: Case, form: str, folder: Path) -> Path:
    if form == "json":
        path = folder / "run.json"
        path.write_text(json.dumps({q: {i: _json_number(s) for i, s in row.items()} for q, row in case.run.items()},
                                   ensure_ascii=False), encoding="utf-8")
        return path
    blanks, ends = {"spaces": ((" ",), ("\n",)), "tabs": (("\t",), ("\n",)),
                    "messy": ((" ", "\t", "  ", " \t "), ("\n", "\r\n", " \n", "\n\n"))}[form]
    blank, end = itertools.cycle(blanks), itertools.cycle(ends)
    text = "".join(next(blank).join((question, "Q0", document, str(1 + number % 7), repr(score), "name"))
                   + next(end) for number, (question, document, score) in enumerate(case.rows))
    if form == "messy":
        path = folder / "run.txt.gz"
        path.write_bytes(gzip.compress(("\ufeff" + text.rstrip("\r\n ")).encode(), compresslevel=1))
    else:
        path = folder / "run.txt"
        path.write_text(text, encoding="utf-8", newline="")
    return path


def _json_number(score: float) -> float:
    return max(-1e308, min(1e308, score))  # strict JSON has no infinity; as float32 these are infinite all the same
