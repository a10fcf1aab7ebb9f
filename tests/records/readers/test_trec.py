"""TREC's files: whitespace of every kind, ids as written, and lines that are refused."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from ragkit.errors import DataError
from ragkit.records.readers.runfiles import read_judged_run, read_question
from ragkit.records.readers.trec import read_qrels, read_topics
from ragkit.records.runs import PLAIN_RULES, RunRules
from tests.support.runs import judge_results

Qrels = dict[str, dict[str, float]]


def write(tmp_path: Path, name: str, data: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


def reciprocal_ranks(qrels: Qrels, path: Path) -> dict[str, float]:
    run = read_judged_run(path, qrels)
    places = zip(run.rows.tolist(), run.ranks.tolist(), run.grades.tolist(), strict=True)
    first = {run.questions[row]: rank for row, rank, grade in sorted(places, reverse=True) if grade > 0}
    return {question: 1 / first[question] if question in first else 0.0 for question in qrels}


def documents(path: Path, question: str, rules: RunRules = PLAIN_RULES) -> list[str]:
    return [document for document, _ in read_question(path, question, rules)]


def test_c17_leading_zeros_make_another_id(tmp_path: Path) -> None:
    qrels = read_qrels(write(tmp_path, "qrels.tsv", "query-id\tcorpus-id\tscore\n0001\t007\t1\n1\t7\t1\n"))
    lines = "0001 Q0 7 1 2.0 r\n0001 Q0 007 2 1.0 r\n1 Q0 7 1 2.0 r\n1 Q0 007 2 1.0 r\n"
    run = write(tmp_path, "run.txt", lines)
    assert qrels == {"0001": {"007": 1.0}, "1": {"7": 1.0}}
    assert reciprocal_ranks(qrels, run) == {"0001": 0.5, "1": 1.0}


def test_c19_mixed_blanks_crlf_blank_lines_and_no_last_line_end(tmp_path: Path) -> None:
    data = "q1\t0\td1\t1\r\nq1 0  d2   0\r\n\r\n  q2 0 d3 2\r\nq2\t0 d4\t1  \r\nq3 0 d5 1\r\n   \r\nq3 0 d6 1"
    expected = {"q1": {"d1": 1.0, "d2": 0.0}, "q2": {"d3": 2.0, "d4": 1.0}, "q3": {"d5": 1.0, "d6": 1.0}}
    assert read_qrels(write(tmp_path, "qrels.txt", data)) == expected
    assert read_qrels(write(tmp_path, "bom.txt", "\ufeff" + data)) == expected
    assert read_qrels(write(tmp_path, "qrels.gz", gzip.compress(data.encode()))) == expected
    lines = "q1 Q0 d2 1 3 r\nq1 Q0 d1 2 2 r\nq2 Q0 d4 1 3 r\nq2 Q0 d3 2 2 r\nq3 Q0 d6 1 3 r"
    run = write(tmp_path, "run.txt", lines)
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
        read_judged_run(path, {"q1": {"d1": 1}})
    assert f"run.txt:{number}:" in str(caught.value) and told in str(caught.value)


@pytest.mark.parametrize(("text", "number"), [
    ("q1 0 d1 1\nq2 0 d2\n", 2), ("q1 0 d1 1\nq2 0 d 2 1\n", 2), ("q1 0 d1 high\n", 1), ("q1 0 d1 inf\n", 1),
    ("q1 0 d1 1\nq1 0 d1 2\n", 2), ("query-id\tcorpus-id\tscore\nq1\t\t1\n", 2), ("# note\nq1 0 d1\n", 2),
])
def test_a_bad_line_of_qrels_is_refused(tmp_path: Path, text: str, number: int) -> None:
    with pytest.raises(DataError, match=rf"qrels\.txt:{number}: expected|qrels\.txt:{number}: question 'q1'"):
        read_qrels(write(tmp_path, "qrels.txt", text))


@pytest.mark.parametrize("grade", ["1e999", "true", '"1"', "null", "1" + "0" * 400])
def test_a_grade_of_json_qrels_must_be_a_finite_number(tmp_path: Path, grade: str) -> None:
    with pytest.raises(DataError, match="question 'q1', document 'd1': expected a grade"):
        read_qrels(write(tmp_path, "qrels.json", f'{{"q1": {{"d1": {grade}}}}}'))


def test_empty_files_are_told(tmp_path: Path) -> None:
    def read_run(path: Path) -> object:
        return read_judged_run(path, {"q1": {"d1": 1}})

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
    run = read_question(write(tmp_path, "run.txt", text), "q")
    assert run == [("top", math.inf), ("\u00e9", 1.0), ("d3", 1.0), ("d2", 1.0), ("d1", 1.0), ("low", -math.inf)]
    close = write(tmp_path, "close.txt", "q Q0 z 1 .92226214537525 r\nq Q0 a 2 .92226214537526 r\n")
    assert documents(close, "q") == ["a", "z"]
    assert documents(close, "q", RunRules(float32=True)) == ["z", "a"]
    assert documents(close, "q", RunRules(float32=True, ties="rank")) == ["z", "a"]
    turned = write(tmp_path, "turned.txt", "q Q0 z 2 1 r\nq Q0 a 1 1 r\n")
    assert documents(turned, "q") == ["z", "a"] and documents(turned, "q", RunRules(ties="rank")) == ["a", "z"]
    with pytest.raises(DataError, match=r"turned\.txt: question 'qq' is not in the run; it holds 1, such as q"):
        read_question(turned, "qq")


def test_c23_duplicates_first_closes_the_ranks_up(tmp_path: Path) -> None:
    text = "q1 Q0 a 1 12.8930 r\nq1 Q0 a 2 12.8929 r\nq1 Q0 x 3 12.7 r\nq1 Q0 b 4 12.6 r\nq1 Q0 b 5 12.5 r\n"
    path = write(tmp_path, "run.txt", text)
    rules = RunRules(duplicates="first")
    assert documents(path, "q1", rules) == ["a", "x", "b"]
    (note,) = read_judged_run(path, {"q1": {"a": 1, "b": 1}}, rules).notes
    assert (note.kind, note.count) == ("duplicates", 2)


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
    run = read_judged_run(folder / "run.bm25.trec.gz", read_qrels(folder / "qrels.tsv"))
    assert len(run.questions) == 500 and run.answered.all() and run.lengths.tolist() == [50] * 500 and not run.notes
    (ties,) = read_judged_run(folder / "run.dense.trec.gz", read_qrels(folder / "qrels.tsv")).notes
    assert (ties.kind, ties.count) == ("ties", 45)


def test_comments_are_passed_over_and_a_number_sign_in_an_id_is_data(tmp_path: Path) -> None:
    text = "# comment here\nq1 0 CR#93 1\n#and here\n# q1 0 d1 high\n#2 0 d#1#2 1\n"
    assert read_qrels(write(tmp_path, "q.txt", text)) == {"q1": {"CR#93": 1.0}, "#2": {"d#1#2": 1.0}}
    run = write(tmp_path, "r.txt", "# by hand\nq1 Q0 CR#93 1 1 r\n# q1 Q0 x 1\n# q1 Q0 d 1 high\n")
    assert documents(run, "q1") == ["CR#93"]


def test_json_qrels_and_runs(tmp_path: Path) -> None:
    qrels = read_qrels(write(tmp_path, "q.json", '{"q1": {"a": 1, "b": 0.5}, "q2": {"a": 1}}'))
    assert qrels == {"q1": {"a": 1.0, "b": 0.5}, "q2": {"a": 1.0}}
    scored = write(tmp_path, "r.json", ' {"q1": {"x": 1, "a": 2.5, "b": 1}, "q2": {}}')
    assert documents(scored, "q1") == ["a", "x", "b"]
    assert documents(scored, "q1", RunRules(ties="rank")) == ["a", "x", "b"]
    assert documents(write(tmp_path, "p.json", '{"q1": [["b", 1], ["x", 1], ["a", 2]]}'), "q1") == ["a", "x", "b"]
    listed = write(tmp_path, "l.json.gz", gzip.compress(b'{"q1": ["z", "a", "b"]}'))
    assert documents(listed, "q1") == ["z", "a", "b"]
    run = read_judged_run(listed, qrels)
    assert run.ranks.tolist() == [2, 3] and [(n.kind, n.examples) for n in run.notes] == [("missing", ("q2",))]
    assert [(n.kind, n.examples) for n in read_judged_run(scored, qrels).notes] == [
        ("ties", ("question q1: 2 results at 1",)), ("missing", ("q2",))]


@pytest.mark.parametrize(("text", "told"), [
    ('{"q1": {"a": NaN}}', "document 'a': expected a score"), ('{"q1": {"a": "1"}}', "expected a score"),
    ('{"q1": {"a": 1, "a": 2}}', "'a' stands twice"),
    ('{"q1": ["a", "a"]}', r"r\.json: question 'q1': document 'a' stands twice"),
    ('{"q1": [["a"]]}', "expected ids, or pairs"), ('{"q1": [7]}', "expected ids"), ('{"q1": 7}', "question 'q1'"),
    ('{"q1": {"a": true}}', "expected a score"), ("{}", "no result"), ('{"q1": {"a": 1}', "expected JSON"),
])
def test_a_bad_json_run_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(DataError, match=told) as caught:
        read_judged_run(write(tmp_path, "r.json", text), {"q1": {"a": 1}})
    assert "\n" not in str(caught.value)


def test_chunks_are_credited_to_their_document_once() -> None:
    run = judge_results({"q": ["d1#0", "x#1", "x#2", "d1#5", "d2#0"]}, {"q": {"d1": 1, "d2": 2}},
                        RunRules(document_of=lambda chunk: chunk.rpartition("#")[0]))
    assert run.lengths.tolist() == [5] and run.ranks.tolist() == [1, 3, 4, 5]
    assert run.grades.tolist() == [1, 0, 0, 2] and run.copies.tolist() == [False, True, True, False]


def test_ids_are_normalized_on_request(tmp_path: Path) -> None:
    qrels = "q1 0 caf\u00e9 1\nq2 0 doc\u200b-7 1\n"
    path = write(tmp_path, "r.txt", "q1 Q0 cafe\u0301 1 2 r\nq1 Q0 x 2 1 r\nq2 Q0 doc-7 1 2 r\n")
    plain = read_judged_run(path, read_qrels(write(tmp_path, "q.txt", qrels)))
    (note,) = plain.notes
    assert not len(plain.rows) and (note.kind, note.count) == ("similar_ids", 2)
    assert note.examples == (r"question q1: gold caf\xe9, run cafe\u0301", r"question q2: gold doc\u200b-7, run doc-7")
    rules = RunRules(normalize_ids=True)
    run = read_judged_run(path, read_qrels(write(tmp_path, "q.txt", qrels), normalize_ids=True), rules)
    assert run.ranks.tolist() == [1, 1] and not run.notes
    strange = write(tmp_path, "s.txt", "q\u200b1 Q0 a 1 2 r\n")
    assert documents(strange, "q1", rules) == ["a"] == documents(strange, "q\u200b1", rules)


def test_questions_that_look_alike_are_told() -> None:
    run = judge_results({"caf\u00e9": ["a"]}, {"cafe\u0301": {"a": 1}})
    assert [(note.kind, note.count) for note in run.notes] == [
        ("missing", 1), ("unknown_questions", 1), ("similar_ids", 1)]


def test_a_pipe_is_refused_and_a_brace_may_begin_an_id(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for reader in (read_qrels, lambda path: read_judged_run(path, {"q1": {"d1": 1}})):
        with pytest.raises(DataError, match="is a pipe or a device"):
            reader(tmp_path / "pipe")
    assert read_qrels(write(tmp_path, "q.txt", "{g1} 0 d1 1\n")) == {"{g1}": {"d1": 1.0}}


def test_ids_that_look_alike_are_told_where_only_judged_documents_count(tmp_path: Path) -> None:
    path = write(tmp_path, "r.txt", "q1 Q0 cafe\u0301 1 2 r\nq1 Q0 b 2 1 r\n")
    run = read_judged_run(path, {"q1": {"caf\u00e9": 1.0, "b": 1.0}}, RunRules(judged_only=True))
    assert run.ranks.tolist() == [1] and [note.kind for note in run.notes] == ["similar_ids"]
