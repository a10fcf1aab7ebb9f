"""Sheets for labellers: no cell runs as a formula, nothing is lost on the way through a spreadsheet."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.evaluation.label_sheets import LONGEST_CELL, checked_sheet, label_value, read_sheet, write_sheet
from ragkit.records.cells import neutral, plain
from ragkit.records.human_labels import HumanLabel, content_code

CELLS = [  # of a public report; the first seven ran as formulas
    '=HYPERLINK("http://evil.example","x")', "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "\u200b=1+1",
    "plain, with comma", 'quote " inside', "two\nlines",
]


def label(question: str = "Who?", *contexts: str, answer: str = "Ann.", place: int = 0, **more: object) -> HumanLabel:
    fields = {"question": question, "answer": answer, "contexts": contexts, "weight": 2.5, "stratum": "s1"} | more
    return HumanLabel("faithfulness", f"q{place}", 0, None, content_code(f"q{place}", 0, [question]), **fields)  # type: ignore[arg-type]


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def filled(path: Path, values: list[str], delimiter: str = ",", order: int = 1) -> Path:
    """The sheet as a person gives it back: labels filled in, columns in another order, another delimiter."""
    rows = rows_of(path)
    out = path.with_name("filled.csv")
    with out.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0])[::order], delimiter=delimiter)
        writer.writeheader()
        writer.writerows({**row, "label": value} for row, value in zip(rows, values, strict=True))
    return out


def test_cells_cannot_run_as_a_formula_and_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [label(cell, cell, answer=cell, place=i) for i, cell in enumerate(CELLS)], "1 or 0")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    rows = rows_of(path)
    assert len(rows) == 10
    for row, cell in zip(rows, CELLS, strict=True):
        for column in ("question", "answer", "passage_1"):
            assert row[column].lstrip("\u200b \t\r\n")[:1] not in tuple("=+-@")
            assert row[column][:1] not in ("\t", "\r")
            assert plain(row[column]) == cell
    sheet = read_sheet(path)
    assert sheet.changed == ()
    assert [one.question for one in sheet.labels] == CELLS
    assert [one.contexts for one in sheet.labels] == [(cell,) for cell in CELLS]


def test_numbers_stay_numbers() -> None:
    assert [neutral(text) for text in ("-0.2", "+3", "-1,5", "0.5")] == ["-0.2", "+3", "-1,5", "0.5"]


@given(st.text())
def test_a_marked_cell_gives_its_text_back(text: str) -> None:
    assert plain(neutral(text)) == text
    assert neutral(text)[:1] not in ("=", "@", "\t", "\r")


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20), st.lists(st.text(max_size=10), max_size=3)),
                min_size=1, max_size=4))
def test_any_text_survives_the_way_through_a_sheet(texts: list[tuple[str, str, list[str]]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sheet.csv"
        labels = [label(question or "?", *[c for c in contexts if c], answer=answer, place=i)
                  for i, (question, answer, contexts) in enumerate(texts)]
        write_sheet(path, labels, "1 or 0")
        assert read_sheet(path).changed == ()


def test_semicolons_and_other_columns_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [label("Who?", "Ann; Bob", place=i) for i in range(4)], "1 or 0")
    labels, left_out = checked_sheet(filled(path, ["1", "0,5", "", "no"], ";", -1))
    assert ([one.value for one in labels], left_out) == ([1.0, 0.5, None, 0.0], 0)
    assert [(one.weight, one.stratum, one.contexts) for one in labels] == [(2.5, "s1", ("Ann; Bob",))] * 4


def test_changed_texts_are_refused_by_line_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [label("Who?", "Ann.", place=i) for i in range(3)], "1 or 0")
    given_back = filled(path, ["1", "1", "0"])
    text = given_back.read_text(encoding="utf-8-sig").split("\n")
    text[2] = text[2].replace("Ann.", "Bob.", 1)
    given_back.write_text("\n".join(text), encoding="utf-8")
    with pytest.raises(DataError, match=r"filled.csv: the texts of 1 row are not what was written \(line 3: .* of "
                                        r"question q1\)"):
        checked_sheet(given_back)
    labels, left_out = checked_sheet(given_back, skip_changed=True)
    assert ([one.question_id for one in labels], left_out) == (["q0", "q2"], 1)


def test_what_spreadsheets_do_to_line_ends_and_blanks_is_no_change(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [label("Who?\r\nWhere? ", "'=1+1", answer="  Ann.")], "1 or 0")
    rows = rows_of(path)
    rows[0] |= {"label": "1", "question": "Who?\nWhere?", "answer": "Ann.", "passage_1": "=1+1"}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert read_sheet(path).changed == ()


def test_cells_are_cut_to_what_a_spreadsheet_holds(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [label("Who?", "x" * 50_000)], "1 or 0")
    cell = rows_of(path)[0]["passage_1"]
    assert len(cell) < 32_767 and cell.endswith(f"[cut here: {50_000 - LONGEST_CELL:,} more characters]")
    assert read_sheet(path).changed == ()


@pytest.mark.parametrize(("text", "value"), [
    ("1", 1.0), ("0,5", 0.5), (" 0.25 ", 0.25), ("YES", 1.0), ("Nein", 0.0), ("50%", 0.5), ("", None), ("?", None),
    ("n/a", None), ("true", 1.0)])
def test_labels_are_read_as_people_write_them(text: str, value: float | None) -> None:
    assert label_value(text, "faithfulness", "x:2") == value


@pytest.mark.parametrize("text", ["2", "-1", "maybe", "1.5", "nan", "inf"])
def test_other_labels_are_refused_with_file_and_line(text: str) -> None:
    with pytest.raises(DataError, match=r"^x.csv:7: label: expected "):
        label_value(text, "faithfulness", "x.csv:7")


def test_further_columns_are_kept_and_another_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    write_sheet(path, [label("Who?", "Ann.")], "1 or 0")
    rows = [{**rows_of(path)[0], "anna": "0"}]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert read_sheet(path).labels[0].more == {"anna": "0"}
    other = tmp_path / "other.csv"
    other.write_text("question,label\nWho?,1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"other.csv:2: the column 'row' is missing"):
        read_sheet(other)
