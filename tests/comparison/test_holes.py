"""Label holes of a comparison: what could flip, which pairs settle it, and the file to label there and back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

import ragkit
from ragkit.comparison.holes_sheet import grades_into_qrels
from ragkit.errors import DataError
from ragkit.evaluation.result import Evaluation
from ragkit.records.questions import Dataset
from ragkit.records.readers.trec import read_qrels
from tests.support.command import command
from tests.support.variants import dataset, variant

QUESTIONS = 12


def graded(holes: str = "") -> Dataset:
    """Gold g (grade 2) and h (grade 1), n judged as not relevant; of the rest nobody knows."""
    made = dataset(QUESTIONS)
    return Dataset(made.questions, {question.id: {"g": 2.0, "h": 1.0, "n": 0.0, **dict.fromkeys(holes, 0.0)}
                                    for question in made.questions})


def lists(ids: str, data: Dataset, metrics: str = "mrr,precision@2,ndcg@2") -> Evaluation:
    return variant({question.id: [tuple(ids)] for question in data.questions}, data, metrics=metrics)


def holes(first: str, second: str, data: Dataset | None = None, **more: Any) -> Any:
    data = data or graded()
    return ragkit.compare({"a": lists(first, data), "b": lists(second, data)}, **more).data["holes"]


def test_judged_lists_have_bounds_that_meet_and_nothing_to_label() -> None:
    found = holes("gn", "ng")
    assert found["labels"] == "grades" and found["note"] is None and found["grade"] == 2
    assert found["variants"]["a"]["judged"]["judged@2"] == {"mean": 1, "n": QUESTIONS, "holes": 0}
    entry = found["differences"]["mrr"]["b"]
    assert (entry["difference"], entry["low"], entry["high"], entry["could_flip"]) == (-0.5, -0.5, -0.5, False)
    assert found["pairs"] == {"total": 0, "first": []}


def test_a_decision_that_the_holes_could_turn_names_the_pairs_that_settle_it() -> None:
    found = holes("gn", "xg", metrics="mrr")
    entry = found["differences"]["mrr"]["b"]
    assert (entry["verdict"], entry["worst"], entry["best"]) == ("worse", "worse", "the same")
    assert (entry["low"], entry["high"], entry["could_flip"]) == (-0.5, 0, True)
    assert found["variants"]["b"]["bounds"]["mrr"] == {"mean": 0.5, "low": 0.5, "high": 1, "n": QUESTIONS}
    assert found["pairs"]["total"] == QUESTIONS
    assert found["pairs"]["first"][0] == {"question_id": "q0", "passage_id": "x", "ranks": {"a": None, "b": 1},
                                          "effect": pytest.approx(0.5 / QUESTIONS)}
    assert {one["passage_id"] for one in found["pairs"]["first"]} == {"x"}


def test_what_moves_a_difference_most_is_labelled_first() -> None:
    found = holes("gn", "xy", metrics="ndcg@2")["pairs"]
    assert found["total"] == 2 * QUESTIONS and found["first"][0]["effect"] > found["first"][QUESTIONS]["effect"] > 0
    assert [one["passage_id"] for one in found["first"]] == ["x"] * QUESTIONS + ["y"] * (20 - QUESTIONS)


def test_holes_in_the_same_place_of_both_move_nothing() -> None:
    found = holes("gnx", "ngx", metrics="mrr,precision@2")
    assert not found["differences"]["mrr"]["b"]["could_flip"] and found["pairs"]["total"] == 0
    assert found["variants"]["a"]["judged"]["judged@2"]["mean"] == 1, "the hole stands behind the cut"


def test_a_decision_that_holes_only_narrow_does_not_flip() -> None:
    """b has the gold first and a hole where a has one that is judged: whatever it is, b stays better."""
    entry = holes("ng", "gx", metrics="mrr")["differences"]["mrr"]["b"]
    assert (entry["verdict"], entry["could_flip"], entry["low"], entry["high"]) == ("better", False, 0.5, 0.5)


@pytest.mark.parametrize(("grades", "kind", "said"), [
    ({"g": 1.0}, "positives", "every other passage is a hole by definition"),
    ({"g": 2.0, "h": 1.0}, "grades", "no passage is labelled as not relevant"),
    ({"g": 1.0, "n": 0.0}, "grades", None),
])
def test_what_the_labels_hold_is_said(grades: dict[str, float], kind: str, said: str | None) -> None:
    made = dataset(QUESTIONS)
    found = holes("gx", "yg", Dataset(made.questions, {question.id: grades for question in made.questions}))
    assert found["labels"] == kind
    assert found["note"] is None if said is None else said in found["note"]
    assert found["differences"]["ndcg@2"]["b"]["low"] < found["differences"]["ndcg@2"]["b"]["high"]


def test_where_nobody_knows_the_lists_there_are_no_holes(tmp_path: Path) -> None:
    for name, ids in (("a", "gx"), ("b", "xg")):
        variant({f"q{n}": [tuple(ids)] for n in range(3)}, dataset(3), tmp_path / name, include_text=False)
    assert ragkit.compare([tmp_path / "a", tmp_path / "b"]).data["holes"] is None
    assert holes("gn", "ng", metrics="mrr") is not None


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two runs on two questions, of which the second finds at rank 1 what nobody judged; and what they are about."""
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    (data / "queries.jsonl").write_text(
        '{"_id": "=q 1", "text": "=SUM(A1) of what?", "answers": ["Seven"]}\n{"_id": "007", "text": "Who?"}\n', "utf-8")
    (data / "corpus.jsonl").write_text('{"_id": "x y", "text": "@Seven, \\"they\\" said.\\nAll."}\n', "utf-8")
    (data / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n=q 1\tg\t2\n007\tg\t2\n007\tn\t0\n", "utf-8")
    for name, ids in (("a", ["g", "n"]), ("b", ["x y", "g"])):
        (tmp_path / f"{name}.json").write_text(json.dumps(dict.fromkeys(("=q 1", "007"), ids)), "utf-8")
    return ["compare", "--qrels", "data/qrels.tsv", "a.json", "b.json", "-m", "precision@1", "--dataset", "data"]


def filled(path: Path, *grades: str) -> None:
    """The sheet as a spreadsheet gives it back: with semicolons, grades filled in."""
    text = path.read_text(encoding="utf-8-sig")
    rows = [{**row, "label": grade} for row, grade in zip(csv.DictReader(io.StringIO(text, newline="")), grades,
                                                          strict=True)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)


def test_the_pairs_go_out_as_a_sheet_and_come_back_as_qrels(runs: list[str], tmp_path: Path) -> None:
    done = command(*runs, "--holes", "holes.csv")
    assert done.code == 0 and "holes.csv: 2 pairs to label" in done.out, done
    sheet = tmp_path / "holes.csv"
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))
    assert [(row["question_id"], row["passage_id"], row["ranks"], row["label"]) for row in rows] == [
        ("'=q 1", "x y", "b 1", ""), ("007", "x y", "b 1", "")]
    assert rows[0]["question"] == "'=SUM(A1) of what?", "no cell runs as a formula"
    assert rows[0]["passage"] == "'@Seven, \"they\" said.\nAll." and rows[0]["reference"] == "Seven"
    filled(sheet, "1,5", "?")
    done = command("labels", "import", "holes.csv", "--qrels", "data/qrels.tsv", "--out", "new.tsv")
    assert done.out == "new.tsv: 1 grade beside those of data/qrels.tsv, 1 row left empty\n", done
    assert read_qrels("new.tsv") == {"=q 1": {"g": 2, "x y": 1.5}, "007": {"g": 2, "n": 0}}
    again = command(*runs, "--holes", "holes.csv")
    assert again.code == 2 and "holes.csv: exists, and may hold labels" in again.err
    settled = command(*[part.replace("data/qrels.tsv", "new.tsv") for part in runs], "--json")
    assert json.loads(settled.out)["holes"]["pairs"]["total"] == 1


def test_json_lines_go_out_and_come_back(runs: list[str], tmp_path: Path) -> None:
    assert command(*runs, "--holes", "holes.jsonl").code == 0
    path = tmp_path / "holes.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows[0]["question_id"] == "=q 1" and rows[0]["question"] == "=SUM(A1) of what?" and rows[0]["label"] is None
    path.write_text("".join(json.dumps({**row, "label": 0}) + "\n" for row in rows), encoding="utf-8")
    assert grades_into_qrels(path, "data/qrels.tsv", "new.tsv") == (2, 0, 0)
    assert read_qrels("new.tsv")["007"] == {"g": 2, "n": 0, "x y": 0}


@pytest.mark.parametrize(("changed", "said"), [
    ({"question_id": "7"}, "holes.csv:4: the ids or texts of this row are not what was written"),
    ({"passage": "Eight."}, "holes.csv:4: the ids or texts of this row are not what was written"),
    ({"label": "good"}, "holes.csv:4: label: expected a grade"),
    ({"label": ""}, "holes.csv: no grade in its column label (2 rows left empty)"),
])
def test_a_sheet_that_was_changed_is_refused_with_its_line(runs: list[str], tmp_path: Path, changed: dict[str, str],
                                                          said: str) -> None:
    assert command(*runs, "--holes", "holes.csv").code == 0
    sheet = tmp_path / "holes.csv"
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"), newline="")))
    rows[1] |= {"label": "1", **changed}
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(DataError) as caught:
        grades_into_qrels("holes.csv", "data/qrels.tsv", "new.tsv")
    assert said in str(caught.value) and not (tmp_path / "new.tsv").exists()


def test_where_nothing_could_change_no_file_is_written(runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps({"=q 1": ["g"], "007": ["n", "g"]}), "utf-8")
    done = command(*runs, "--holes", "holes.csv")
    assert "no passage that nobody judged could change a decision" in done.out, done
    assert not (tmp_path / "holes.csv").exists()
