"""The reader of big run files gives what the reader line by line gives, on files of every form."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from ragkit.errors import DataError
from ragkit.records.readers import bigblocks, runfiles
from ragkit.records.readers.bigruns import judge_big_run
from ragkit.records.readers.runfiles import judge_lines, read_judged_run
from ragkit.records.runs import JudgedRun, RunRules

Qrels = dict[str, dict[str, float]]
ALPHABET = "abz09é知😀ß-_#"
RULES = [RunRules(), RunRules(ties="rank"), RunRules(float32=True), RunRules(judged_only=True),
         RunRules(normalize_ids=True), RunRules(drop_self=True), RunRules(ties="rank", judged_only=True, float32=True)]


def case(seed: int, alphabet: str = ALPHABET) -> tuple[Qrels, list[tuple[str, str, int, float]]]:
    """Qrels and the rows of a run: ties, near-ties, unknown and missing questions, ids that look alike."""
    rng = random.Random(seed)
    ids = sorted({"".join(rng.choices(alphabet, k=rng.randint(1, 12))) for _ in range(80)})
    qrels: Qrels = {}
    for number in range(rng.randint(1, 12)):
        qrels[f"q{number}"] = {i: rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0]) for i in rng.sample(ids, rng.randint(1, 20))}
    rows = []
    for question in [*rng.sample(sorted(qrels), max(1, len(qrels) - 2)), "unknown", ids[0]]:
        known = sorted(qrels.get(question, {}))
        found = list(dict.fromkeys(rng.sample(ids, rng.randint(1, 40)) + rng.sample(known, len(known) // 2)))
        if rng.random() < 0.3 and question not in found:
            found.append(question)
        scores = [rng.choice([0.5, 1.0, 1.0 + 1e-12, 2.0, rng.random()]) for _ in found]
        rows += [(question, document, rank, score)
                 for rank, (document, score) in enumerate(zip(found, scores, strict=True), start=1)]
    order = rng.choice(["sorted", "as made", "shuffled"])
    if order == "sorted":
        rows.sort(key=lambda row: (row[0], -row[3]))
    elif order == "shuffled":
        rng.shuffle(rows)
    return qrels, rows


def text_of(rows: list[tuple[str, str, int, float]], blank: str = " ", end: str = "\n") -> str:
    return "".join(f"{q}{blank}Q0{blank}{d}{blank}{rank}{blank}{score!r}{blank}r{end}" for q, d, rank, score in rows)


def assert_same(one: JudgedRun, other: JudgedRun, examples: bool = True) -> None:
    assert one.questions == other.questions
    for name in ("answered", "lengths", "rows", "ranks", "grades", "copies"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert [(note.kind, note.count) for note in one.notes] == [(note.kind, note.count) for note in other.notes]
    if examples:
        assert {note.kind: set(note.examples) for note in one.notes if note.count <= 5 and note.kind != "ties"} == {
            note.kind: set(note.examples) for note in other.notes if note.count <= 5 and note.kind != "ties"}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that questions, lines and even columns are torn between them."""
    monkeypatch.setattr(bigblocks, "_BLOCK", 300)
    monkeypatch.setattr(bigblocks, "_LINE", 5)
    monkeypatch.setattr(bigblocks, "_SLICE", 40)


@pytest.fixture
def no_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader line by line does not help the one that is tested."""
    def refuse(*_: object) -> JudgedRun:
        raise AssertionError("left to the reader line by line")

    monkeypatch.setattr("ragkit.records.readers.bigruns.judge_lines", refuse)


@pytest.mark.usefixtures("small_blocks", "no_way_out")
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_the_same_as_line_by_line(tmp_path: Path, rules: RunRules) -> None:
    path = tmp_path / "run.txt"
    for seed in range(40):
        qrels, rows = case(seed)
        path.write_text(text_of(rows, *random.Random(seed).choice([(" ", "\n"), ("\t", "\n"), (" ", "\r\n")])),
                        encoding="utf-8", newline="")
        assert_same(judge_big_run(path, qrels, rules, "r"), judge_lines(path, qrels, rules, "r"))


@pytest.mark.usefixtures("small_blocks", "no_way_out")
def test_copies_are_dropped_as_line_by_line(tmp_path: Path) -> None:
    path, rules = tmp_path / "run.txt", RunRules(duplicates="first")
    for seed in range(40):
        qrels, rows = case(seed)
        rng = random.Random(seed)
        rows += [(q, d, rank, rng.choice([score, score / 2])) for q, d, rank, score in rng.sample(rows, len(rows) // 4)]
        rng.shuffle(rows)
        path.write_text(text_of(rows), encoding="utf-8")
        assert_same(judge_big_run(path, qrels, rules, "r"), judge_lines(path, qrels, rules, "r"), examples=False)


@pytest.mark.usefixtures("small_blocks", "no_way_out")
@pytest.mark.parametrize("change", [
    lambda text: "\ufeff" + text, lambda text: text.rstrip("\n"), lambda text: text.replace(" r\n", " r \n"),
    lambda text: text.replace(" Q0 ", "  Q0\t"), lambda text: "\n" + text.replace("\n", "\n\n") + "  \n",
    lambda text: "# a comment\n" + text, lambda text: text.replace("\n", "\r\n").replace(" r", "\tr"),
    lambda text: " " + text.replace("\n", "\n "), lambda text: text.replace(" Q0 ", "\x0bQ0 "),
    lambda text: text.replace(" r\n", "   r\n"), lambda text: text.replace(" r\n", " r of 2 words\n")])
def test_every_form_of_blanks(tmp_path: Path, change: object) -> None:
    qrels, rows = case(3)
    path = tmp_path / "run.txt"
    path.write_text(change(text_of(rows)), encoding="utf-8", newline="")  # type: ignore[operator]
    plain = tmp_path / "plain.txt"
    plain.write_text(text_of(rows), encoding="utf-8")
    assert_same(judge_big_run(path, qrels, RunRules(), "r"), judge_lines(plain, qrels, RunRules(), "r"))
    (tmp_path / "run.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert_same(judge_big_run(tmp_path / "run.gz", qrels, RunRules(), "r"), judge_lines(path, qrels, RunRules(), "r"))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("line", "told"), [
    ("q1 Q0 d9 1.5 r", "expected 6 columns"), ("q1 Q0  1 1.5 r", "expected 6 columns"), ("q1  d9 1 1.5 r", "6 columns"),
    (" Q0 d9 1 1.5 r", "expected 6 columns"), ("q1 Q0 d9 1 1.5 ", "expected 6 columns"), ("q1 Q0 d9 1 0,9 r", "'0,9'"),
    ("q1 Q0 d9 1 nan r", "'nan'"), ("q1 Q0 d9 1 1_0 r", "'1_0'"), ("q1 Q0 caf\udce9 1 1 r", "byte 0xe9"),
    ("q1 Q0 d7 1 1 r", "stands already in line 8"), ("q1 Q0 a b 1 1 r", "expected 6 columns")])
def test_a_bad_line_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "run.txt"
    lines = [f"q1 Q0 d{number} {number} {1 / number} r" for number in range(1, 60)]
    text = "\n".join(["q1 Q0 d0 1 5 r", *lines[:40], line, *lines[40:], ""])
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        judge_big_run(path, {"q1": {"d1": 1.0}}, RunRules(), "r")
    assert "run.txt:42:" in str(caught.value) and told in str(caught.value)


@pytest.mark.usefixtures("no_way_out")
def test_ties_that_hold_no_judged_document(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("q Q0 a 1 3 r\nq Q0 x 2 2 r\nq Q0 y 3 2 r\n", encoding="utf-8")
    run = judge_big_run(path, {"q": {"a": 1.0}}, RunRules(), "r")
    assert run.ranks.tolist() == [1] and [(note.kind, note.count) for note in run.notes] == [("ties", 1)]


def test_every_score_equal_and_a_great_group(tmp_path: Path) -> None:
    rng = random.Random(0)
    ids = [f"doc-{number:05d}-{'x' * (number % 9)}" for number in range(3000)]
    qrels = {f"q{q}": dict.fromkeys(rng.sample(ids, count), 1.0) for q, count in enumerate((1, 5, 200))}
    rows = [(q, i, rank, 1.0) for q in qrels for rank, i in enumerate(rng.sample(ids, 2000), start=1)]
    path = tmp_path / "run.txt"
    path.write_text(text_of(rows), encoding="utf-8")
    for rules in (RunRules(), RunRules(ties="rank")):
        assert_same(judge_big_run(path, qrels, rules, "r"), judge_lines(path, qrels, rules, "r"))
        assert next(note.count for note in judge_big_run(path, qrels, rules, "r").notes if note.kind == "ties") == 5997


def test_big_files_take_this_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qrels, rows = case(5)
    path = tmp_path / "run.txt"
    path.write_text(text_of(rows), encoding="utf-8")
    expected = read_judged_run(path, qrels)
    monkeypatch.setattr(runfiles, "_BIG", 1)
    monkeypatch.setattr(runfiles, "judge_lines", None)
    assert_same(read_judged_run(path, qrels), expected)
