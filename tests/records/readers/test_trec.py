"""TREC's files: whitespace of every kind, ids as written, and lines that are refused."""

from __future__ import annotations

import gzip
import math
from itertools import pairwise
from pathlib import Path

import pytest

from ragkit.errors import DataError
from ragkit.records.readers.trec import read_qrels, read_run, read_topics

Qrels = dict[str, dict[str, float]]


def write(tmp_path: Path, name: str, data: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


def reciprocal_ranks(qrels: Qrels, run: dict[str, list[tuple[str, float]]]) -> dict[str, float]:
    return {question: next((1 / rank for rank, (document, _) in enumerate(run.get(question, []), start=1)
                            if row.get(document, 0) > 0), 0.0) for question, row in qrels.items()}


def test_c17_leading_zeros_make_another_id(tmp_path: Path) -> None:
    qrels = read_qrels(write(tmp_path, "qrels.tsv", "query-id\tcorpus-id\tscore\n0001\t007\t1\n1\t7\t1\n"))
    lines = "0001 Q0 7 1 2.0 r\n0001 Q0 007 2 1.0 r\n1 Q0 7 1 2.0 r\n1 Q0 007 2 1.0 r\n"
    run = read_run(write(tmp_path, "run.txt", lines))
    assert qrels == {"0001": {"007": 1.0}, "1": {"7": 1.0}}
    assert reciprocal_ranks(qrels, run) == {"0001": 0.5, "1": 1.0}


def test_c19_mixed_blanks_crlf_blank_lines_and_no_last_line_end(tmp_path: Path) -> None:
    data = "q1\t0\td1\t1\r\nq1 0  d2   0\r\n\r\n  q2 0 d3 2\r\nq2\t0 d4\t1  \r\nq3 0 d5 1\r\n   \r\nq3 0 d6 1"
    expected = {"q1": {"d1": 1.0, "d2": 0.0}, "q2": {"d3": 2.0, "d4": 1.0}, "q3": {"d5": 1.0, "d6": 1.0}}
    assert read_qrels(write(tmp_path, "qrels.txt", data)) == expected
    assert read_qrels(write(tmp_path, "bom.txt", "\ufeff" + data)) == expected
    assert read_qrels(write(tmp_path, "qrels.gz", gzip.compress(data.encode()))) == expected
    lines = "q1 Q0 d2 1 3 r\nq1 Q0 d1 2 2 r\nq2 Q0 d4 1 3 r\nq2 Q0 d3 2 2 r\nq3 Q0 d6 1 3 r"
    run = read_run(write(tmp_path, "run.txt", lines))
    ranks = reciprocal_ranks(expected, run)
    assert sum(ranks.values()) / 3 == pytest.approx(0.833333, abs=1e-6)


@pytest.mark.parametrize(("line", "number", "told"), [
    ("q1 Q0 d1 1 2.0 r\nq1 Q0 d3 2 1.0 r\nq2 Q0 d2 1.5 r\n", 3, "expected 6 columns"),
    ("q1 Q0 d1 1 2.0 r\nq2 Q0 Annual Report.pdf 1 1.5 r\n", 2, "expected 6 columns"),
    ("q1 Q0 d1 1 0,95 r\n", 1, "'0,95'"),
    ("q1 Q0 d1 1 nan r\n", 1, "'nan'"),
    ("q1 Q0 d1 1 1_0 r\n", 1, "'1_0'"),
    ("q1 Q0 d1 1 2 r\n\nq1 Q0 d1 2 1 r\n", 3, "stands already in line 1"),
    ("q1 Q0 caf\udce9 1 1 r\n", 1, "byte 0xe9"),
])
def test_c21_c23_c27_a_bad_line_of_a_run_is_refused(tmp_path: Path, line: str, number: int, told: str) -> None:
    path = write(tmp_path, "run.txt", line.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        read_run(path)
    assert f"run.txt:{number}:" in str(caught.value) and told in str(caught.value)


@pytest.mark.parametrize(("text", "number"), [
    ("q1 0 d1 1\nq2 0 d2\n", 2), ("q1 0 d1 1\nq2 0 d 2 1\n", 2), ("q1 0 d1 high\n", 1), ("q1 0 d1 inf\n", 1),
    ("q1 0 d1 1\nq1 0 d1 2\n", 2), ("query-id\tcorpus-id\tscore\nq1\t\t1\n", 2), ("# note\nq1 0 d1 1\n", 1),
])
def test_a_bad_line_of_qrels_is_refused(tmp_path: Path, text: str, number: int) -> None:
    with pytest.raises(DataError, match=rf"qrels\.txt:{number}: expected|qrels\.txt:{number}: question 'q1'"):
        read_qrels(write(tmp_path, "qrels.txt", text))


def test_empty_files_are_told(tmp_path: Path) -> None:
    for reader in (read_qrels, read_run, read_topics):
        with pytest.raises(DataError, match="no "):
            reader(write(tmp_path, "empty.txt", "\n"))
        with pytest.raises(DataError, match="no such file"):
            reader(tmp_path / "none.txt")


def test_grades_keep_their_fractions_and_ids_their_bytes(tmp_path: Path) -> None:
    qrels = read_qrels(write(tmp_path, "q.txt", "q1 0 d\u00a0x 0.5\nq1 0 doc\u200b7 -1\nq1 0 d\u2028 1.9e0\n"))
    assert qrels == {"q1": {"d\u00a0x": 0.5, "doc\u200b7": -1.0, "d\u2028": 1.9}}
    tabs = read_qrels(write(tmp_path, "q.tsv", "query-id\tcorpus-id\tscore\nq 1\tAnnual Report.pdf\t1\r\n"))
    assert tabs == {"q 1": {"Annual Report.pdf": 1.0}}
    assert read_qrels(write(tmp_path, "bare.tsv", "q1\td1\t1\nq1\td 2\t1\n")) == {"q1": {"d1": 1.0, "d 2": 1.0}}


def test_a_run_is_ordered_as_trec_eval_orders_it(tmp_path: Path) -> None:
    text = ("q Q0 d1 1 1.0 r\nq Q0 d3 2 1.0 r\nq Q0 d2 3 1.0 r\nq Q0 \u00e9 4 1.0 r\n"
            "q Q0 top 9 inf r\nq Q0 low 1 -inf r\n")
    run = read_run(write(tmp_path, "run.txt", text))
    assert run["q"] == [("top", math.inf), ("\u00e9", 1.0), ("d3", 1.0), ("d2", 1.0), ("d1", 1.0), ("low", -math.inf)]
    close = read_run(write(tmp_path, "close.txt", "q Q0 z 1 .92226214537525 r\nq Q0 a 2 .92226214537526 r\n"))
    assert [document for document, _ in close["q"]] == ["a", "z"]


def test_c23_duplicates_first_closes_the_ranks_up(tmp_path: Path) -> None:
    text = "q1 Q0 a 1 12.8930 r\nq1 Q0 a 2 12.8929 r\nq1 Q0 x 3 12.7 r\nq1 Q0 b 4 12.6 r\nq1 Q0 b 5 12.5 r\n"
    run = read_run(write(tmp_path, "run.txt", text), duplicates="first")
    assert [document for document, _ in run["q1"]] == ["a", "x", "b"]


def test_topics_in_both_forms(tmp_path: Path) -> None:
    path = write(tmp_path, "t.tsv", "001\tWho?\r\n1\tWhere, then?\n")
    assert read_topics(path) == {"001": "Who?", "1": "Where, then?"}
    xml = ("<top>\n<num> Number: 301\n<title> International\n crime\n<desc> d\n</top>\n"
           "<TOP><num>2</num><title>b</title></TOP>")
    assert read_topics(write(tmp_path, "t.txt", xml)) == {"301": "International crime", "2": "b"}
    with pytest.raises(DataError, match=r"t\.tsv:1: expected id, tab"):
        read_topics(write(tmp_path, "t.tsv", "001 Who?\n"))


def test_real_trec_files_agree_with_their_beir_copy() -> None:
    from tests.support.data import data_folder

    folder = data_folder("hotpotqa_val500_runs")
    assert read_qrels(folder / "qrels.trec") == read_qrels(folder / "qrels.tsv")
    run = read_run(folder / "run.bm25.trec.gz")
    assert len(run) == 500 and all(a[1] >= b[1] for rows in run.values() for a, b in pairwise(rows))
