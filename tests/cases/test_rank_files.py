"""Public reports about the files: ids (C17, C29), blanks and ends of lines (C19), broken lines (C21), rows twice (C23),
decimal commas (C27)."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragkit
from ragkit.evaluation.rank_files import rank_files
from ragkit.metrics.registry import parse_all
from tests.support.command import command, files, process, ranked

TOLERANCE = 1e-6


def means(folder: Path, qrels: bytes, run: bytes, metrics: str) -> dict[str, float | None]:
    """The means through Python."""
    labels, path = files(folder, qrels, run)
    result = rank_files(labels, [path], parse_all(metrics))
    return {metric.name: metric.mean for metric in result.runs[0].metrics}


def test_c17_leading_zeros_stay(tmp_path: Path) -> None:
    qrels = b"query-id\tcorpus-id\tscore\n0001\t007\t1\n1\t7\t1\n"
    run = b"0001 Q0 7 1 2.0 r\n0001 Q0 007 2 1.0 r\n1 Q0 7 1 2.0 r\n1 Q0 007 2 1.0 r\n"
    found = ranked(tmp_path, qrels, run, "mrr").metrics["mrr"]
    assert found["per_question"] == {"0001": 0.5, "1": 1.0}
    assert found["mean"] == 0.75
    assert means(tmp_path, qrels, run, "mrr") == {"mrr": 0.75}
    with pytest.raises(ragkit.DataError, match="string"):
        ragkit.score_rankings({"1": [7]}, {"1": {"7": 1}}, "mrr")
    with pytest.raises(ragkit.DataError, match="dtype=str"):
        ragkit.score_rankings({"1": ["7"]}, {"1": {7: 1}}, "mrr")


def test_c19_blanks_and_ends_of_lines_are_no_part_of_an_id(tmp_path: Path) -> None:
    qrels = (b"q1\t0\td1\t1\r\nq1 0  d2   0\r\n\r\n  q2 0 d3 2\r\nq2\t0 d4\t1  \r\nq3 0 d5 1\r\n   \r\nq3 0 d6 1")
    run = b"q1 Q0 d2 1 3 r\nq1 Q0 d1 2 2 r\nq2 Q0 d4 1 3 r\nq2 Q0 d3 2 2 r\nq3 Q0 d6 1 3 r\n"
    expected = {"mrr": 0.833333, "recall@2": 0.833333, "ndcg@2": 0.701265}
    for given in (qrels, b"\xef\xbb\xbf" + qrels):
        found = ranked(tmp_path, given, run, ",".join(expected))
        assert found.means == pytest.approx(expected, abs=TOLERANCE)
        assert list(found.metrics["mrr"]["per_question"]) == ["q1", "q2", "q3"]
        assert means(tmp_path, given, run, ",".join(expected)) == pytest.approx(expected, abs=TOLERANCE)
    assert "similar_ids" not in found.notes and "unjudged" not in found.notes


@pytest.mark.parametrize(
    ("run", "line", "columns"),
    [
        (b"q1 Q0 d1 1 2.0 r\nq1 Q0 d3 2 1.0 r\nq2 Q0 d2 1.5 r\n", 3, 5),
        (b"q1 Q0 d1 1 2.0 r\nq2 Q0 Annual Report.pdf 1 1.5 r\n", 2, 7),
    ],
)
def test_c21_a_line_of_another_form_is_refused(tmp_path: Path, run: bytes, line: int, columns: int) -> None:
    qrels = b"q1 0 d1 1\nq2 0 d2 1\n"
    error = command("rank", *files(tmp_path, qrels, run), "-m", "mrr").error
    assert f"run.txt:{line}: expected 6 columns" in error and f"got {columns}" in error
    with pytest.raises(ragkit.DataError, match=rf"run\.txt:{line}: "):
        means(tmp_path, qrels, run, "mrr")


def test_c23_a_pair_twice_is_refused_or_the_first_one_counts(tmp_path: Path) -> None:
    qrels = b"q1 0 a 1\nq1 0 b 1\n"
    run = (b"q1 Q0 a 1 12.8930 r\nq1 Q0 a 2 12.8929 r\nq1 Q0 x 3 12.7 r\nq1 Q0 b 4 12.6 r\nq1 Q0 b 5 12.5 r\n")
    error = command("rank", *files(tmp_path, qrels, run), "-m", "map").error
    assert "run.txt:2: question 'q1', document 'a'" in error
    found = ranked(tmp_path, qrels, run, "map,recall@3,precision@3", "--duplicates", "first")
    assert found.means == pytest.approx({"map": 0.833333, "recall@3": 1, "precision@3": 0.666667}, abs=TOLERANCE)
    assert found.notes["duplicates"]["count"] == 2
    shown = command("rank", *files(tmp_path, qrels, run), "-m", "map", "--duplicates", "first").out
    assert "2 later copies" in shown


def test_c27_a_decimal_comma_is_refused_in_every_locale(tmp_path: Path) -> None:
    run = b"q1 Q0 d1 1 0,95 r\nq1 Q0 d2 2 0,9 r\nq1 Q0 d3 3 0,100 r\n"
    paths = files(tmp_path, b"q1 0 d1 1\n", run)
    error = command("rank", *paths, "-m", "mrr").error
    assert "run.txt:1: expected a score" in error and "'0,95'" in error
    done = process("rank", *paths, "-m", "mrr", LC_ALL="de_DE.UTF-8")
    assert done.code == 2 and "run.txt:1" in done.err and done.out == ""
    paths = files(tmp_path, b"q1 0 d1 1\n", b"q1 Q0 d2 1 2 r\nq1 Q0 d1 1 1 r\n")
    done = process("rank", *paths, "-m", "mrr", "--json", LC_ALL="de_DE.UTF-8")
    assert done.code == 0 and '"mean": 0.5' in done.out


def test_c29_ids_that_look_the_same_are_named(tmp_path: Path) -> None:
    qrels = b"q1 0 caf\xc3\xa9 1\nq2 0 doc\xe2\x80\x8b-7 1\n"
    run = b"q1 Q0 cafe\xcc\x81 1 2 r\nq1 Q0 x 2 1 r\nq2 Q0 doc-7 1 2 r\n"
    found = ranked(tmp_path, qrels, run, "mrr")
    assert found.means == {"mrr": 0.0}
    assert found.notes["similar_ids"]["count"] == 2
    composed, hidden = found.notes["similar_ids"]["examples"]
    assert "caf\\xe9" in composed and "cafe\\u0301" in composed
    assert "doc\\u200b-7" in hidden and "run doc-7" in hidden
    assert found.notes["no_overlap"]["count"] == 2
    shown = command("rank", *files(tmp_path, qrels, run), "-m", "mrr").out
    assert "caf\\xe9" in shown and "cafe\\u0301" in shown and "--normalize-ids" in shown and "WARNING" in shown
    same = ranked(tmp_path, qrels, run, "mrr", "--normalize-ids")
    assert same.means == {"mrr": 1.0} and "similar_ids" not in same.notes
