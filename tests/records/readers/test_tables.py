"""Questions from tables of every kind: the usual column names, texts that stay texts, and errors that name the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pandas
import polars
import pytest

from ragkit.errors import DataError
from ragkit.records.gold import project_gold
from ragkit.records.questions import Dataset, GoldText, Question, text_id
from ragkit.records.readers import load_dataset
from ragkit.records.readers.beir import write_folder
from ragkit.records.trajectory import Passage

C25 = "id,question,reference,category\nNA,Country code of Namibia?,NA,null\nq2,Which option applies?,None,billing\n" \
      "007,Which agent?,n/a,nan\n"


def write(tmp_path: Path, name: str, text: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        load_dataset(source, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("form", ["lf", "crlf", "bom", "semicolon", "tabs", "excel hint"])
def test_c25_na_none_and_null_are_texts(tmp_path: Path, form: str) -> None:
    text = {"lf": C25, "crlf": C25.replace("\n", "\r\n"), "bom": "\ufeff" + C25, "semicolon": C25.replace(",", ";"),
            "tabs": C25.replace(",", "\t"), "excel hint": "sep=;\r\n" + C25.replace(",", ";")}[form]
    dataset = load_dataset(write(tmp_path, "questions.tsv" if form == "tabs" else "questions.csv", text))
    assert [q.id for q in dataset.questions] == ["NA", "q2", "007"]
    assert [q.answers for q in dataset.questions] == [("NA",), ("None",), ("n/a",)]
    assert [q.category for q in dataset.questions] == ["null", "billing", "nan"]
    assert dataset.name == "questions"


def test_c25_in_a_frame_of_texts_json_lines_and_parquet(tmp_path: Path) -> None:
    rows = [dict(zip(("id", "question", "reference", "category"), line.split(","), strict=True))
            for line in C25.splitlines()[1:]]
    frame = pandas.DataFrame(rows)
    frame.to_parquet(tmp_path / "q.parquet")
    lines = write(tmp_path, "q.jsonl", "\n".join(map(json.dumps, rows)))
    expected = load_dataset(rows).questions
    assert [q.id for q in expected] == ["NA", "q2", "007"] and expected[0].answers == ("NA",)
    for source in (frame, polars.DataFrame(rows), tmp_path / "q.parquet", str(lines),
                   write(tmp_path, "q.json", json.dumps(rows)), frame.to_dict("list")):
        assert load_dataset(source).questions == expected


def test_ragas_names_are_understood_and_what_the_app_gave_back_is_left_out(tmp_path: Path) -> None:
    frame = pandas.DataFrame({
        "user_input": ["Who keeps it?", "Unknown?"], "retrieved_contexts": [["x"], ["y"]], "response": ["r", "s"],
        "reference_contexts": [["the keeper", "of the light"], None], "reference": ["The keeper", None],
        "synthesizer_name": ["single", "multi"],
    })
    path = tmp_path / "testset.csv"
    frame.to_csv(path, index=False)  # lists are then written as Python shows them
    for source in (frame, path):
        first, second = load_dataset(source).questions
        assert first.id == text_id("Who keeps it?")
        assert first.answers == ("The keeper",) and second.answers == ()
        assert first.gold_texts == (GoldText("the keeper"), GoldText("of the light")) and second.gold_texts == ()
        assert (first.category, dict(first.metadata)) == ("single", {})
        assert load_dataset(source).label_states() == {first.id: "labelled", second.id: "unlabelled"}


def test_answer_is_the_reference_only_where_no_app_answered() -> None:
    assert load_dataset([{"question": "q", "answer": "a"}]).questions[0].answers == ("a",)
    old_ragas = {"question": "q", "answer": "generated", "contexts": ["c"], "ground_truth": "truth"}
    assert load_dataset([old_ragas]).questions[0].answers == ("truth",)
    assert load_dataset([{"question": "q", "answer": "generated", "contexts": ["c"]}]).questions[0].answers == ()


@pytest.mark.parametrize(("cell", "expected"), [
    ("d1;d2", {"d1": 1.0, "d2": 1.0}), (" d1 ; d2;", {"d1": 1.0, "d2": 1.0}),
    ('["d1", "d;2"]', {"d1": 1.0, "d;2": 1.0}),
    ("['007', '7']", {"007": 1.0, "7": 1.0}), ('{"d1": 2, "d2": 0.5}', {"d1": 2.0, "d2": 0.5}), ("d1", {"d1": 1.0}),
    ("[not a list", {"[not a list": 1.0}), ("", None),
])
def test_gold_ids_in_a_cell(tmp_path: Path, cell: str, expected: dict[str, float] | None) -> None:
    quoted = '"' + cell.replace('"', '""') + '"'
    dataset = load_dataset(write(tmp_path, "q.csv", f"id,question,gold_ids\nq,Who?,{quoted}\n"))
    assert dict(dataset.qrels) == ({} if expected is None else {"q": expected})


def test_gold_ids_that_came_as_lists() -> None:
    for value in (["d1", "d2"], [["d1"], ["d2"]], numpy.array(["d1", "d2"]), ("d1", "d2"),
                  {"d1": 1, "d2": 1, "x": None}):
        assert load_dataset([{"id": "q", "question": "w", "relevant_ids": value}]).qrels == {"q": {"d1": 1, "d2": 1}}


def test_a_reference_stays_as_written_and_answers_may_be_many() -> None:
    question = load_dataset([{"question": "q", "reference": "[1]", "answers": '["one", "uno"]'}]).questions[0]
    assert question.answers == ("[1]", "one", "uno")
    squad = load_dataset([{"question": "q", "answers": {"text": ["308"], "answer_start": [34]}}]).questions[0]
    assert squad.answers == ("308",)


def test_all_fields_of_a_question() -> None:
    row = {"_id": "q", "text": "Who?", "answers": ["a", "b"], "category": "c", "unanswerable": False, "tags": "x; y",
           "history": [{"role": "user", "content": "Hi"}], "metadata": {"level": 3}, "source": "web",
           "gold_texts": [{"text": "t", "grade": 2}, {"doc_id": 7, "start": 1, "end": 4}, "plain"]}
    question = load_dataset([row]).questions[0]
    assert question == Question(
        "q", "Who?", ("a", "b"), "c", False,
        (GoldText("t", grade=2.0), GoldText(document_id="7", start=1, end=4), GoldText("plain")),
        ("x", "y"), ({"role": "user", "content": "Hi"},), {"level": 3, "source": "web"})


@pytest.mark.parametrize(("cell", "expected"), [("true", True), ("1", True), ("Yes", True), ("no", False), ("", False),
                                                ("0", False), (True, True), (1.0, True), (None, False)])
def test_unanswerable(cell: Any, expected: bool) -> None:
    assert load_dataset([{"question": "q", "unanswerable": cell}]).questions[0].unanswerable is expected


def test_a_column_map_goes_before_the_usual_names(tmp_path: Path) -> None:
    path = write(tmp_path, "fragen.csv", "Nr;Frage;question;Antwort\n1;Wer?;ignored;Ich\n")
    question = load_dataset(path, {"id": "Nr", "question": "Frage", "ground_truth": "Antwort"}).questions[0]
    assert (question.id, question.text, question.answers) == ("1", "Wer?", ("Ich",))


def test_a_wrong_column_map_names_the_columns_found(tmp_path: Path) -> None:
    path = write(tmp_path, "fragen.csv", "Nr;Frage\n1;Wer?\n")
    told = refusal(path, columns={"question": "Frge"})
    assert "fragen.csv" in told and "no column 'Frge' for question" in told and "columns found: Nr, Frage" in told
    columns: Any = ["Frage"]
    assert "columns as a map of field to column name, got ['Frage']" in refusal(path, columns=columns)
    assert "'Frage' is no field" in refusal(path, columns={"Frage": "question"})
    assert "no column with the question" in refusal(path) and "columns found: Nr, Frage" in refusal(path)


def test_a_quoted_cell_may_hold_everything(tmp_path: Path) -> None:
    path = write(tmp_path, "q.csv",
                 'id,question,answer\nq1,"a, ""b""\nc; d\u2028e","x\ty"\n'
                 '\n,,\n'
                 "q2,😀 知识?,\n")
    first, second = load_dataset(path).questions
    assert (first.text, first.answers) == ('a, "b"\nc; d\u2028e', ("x\ty",))
    assert (second.text, second.answers) == ("😀 知识?", ())


def test_ids_are_never_changed_and_ints_become_texts() -> None:
    assert [q.id for q in load_dataset([{"id": 7, "question": "a"}, {"id": "007", "question": "b"}]).questions] == [
        "7", "007"]
    frame = pandas.DataFrame({"id": [1, None], "question": ["a", "b"]})
    assert "got float 1.0: read the column as text" in refusal(frame)
    assert "expected an id" in refusal([{"id": True, "question": "a"}])


def test_rows_without_an_id_get_that_of_their_text(tmp_path: Path) -> None:
    path = write(tmp_path, "q.csv", "id,question\n,Who?\nq2,Where?\n")
    assert [q.id for q in load_dataset(path).questions] == [text_id("Who?"), "q2"]
    assert load_dataset(["Who?"]).questions == (Question(text_id("Who?"), "Who?"),)


@pytest.mark.parametrize(("name", "data", "told"), [
    ("q.csv", b"id,question\nq1,ok\nq2,caf\xe9\n", "q.csv:3: byte 0xe9 (byte 7 of the line) is not UTF-8"),
    ("q.csv", "id,question\n".encode("utf-16"), "q.csv:1: the text is UTF-16"),
    ("q.csv", b"", "q.csv: the file is empty"),
    ("q.csv", b"id,question\n", "q.csv: no question"),
    ("q.csv", b"id,question\nq1,a\nq1,b\n", "q.csv:3: question id 'q1' stands already at"),
    ("q.csv", b"question\na\na\n", "q.csv:3: the question 'a' (without an id) stands already at"),
    ("q.csv", b"id,question\nq1,a\nq2,  \n", "q.csv:3: column 'question': the question is empty"),
    ("q.csv", b"id,question\nq1,a\nq2,b,c\n", "q.csv:3: expected 2 cells (',' between them), got 3"),
    ("q.csv", b'id,question\nq1,"a\nb"\nq2,"open\n', "q.csv:4: cannot be read as CSV"),
    ("q.csv", b"id,question,id\nq1,a,b\n", "q.csv:1: the column 'id' stands twice"),
    ("q.csv", b"id,question,unanswerable\nq1,a,perhaps\n", "q.csv:2: column 'unanswerable': expected true or false"),
    ("q.csv", b'id,question,gold_ids\nq1,a,"{""d"": ""1,5""}"\n', "q.csv:2: column 'gold_ids': expected a grade"),
    ("q.jsonl", b'{"question": "a"}\n[1]\n', "q.jsonl:2: expected a JSON object"),
    ("q.jsonl", b'{"question": {"a": 1}}\n', "q.jsonl:1: column 'question': expected a text, got dict"),
    ("q.jsonl", b'{"question": "a", "gold_texts": [{"doc_id": "d", "start": 4, "end": 2}]}', "0 <= start < end"),
    ("q.json", b'{"a": 1}', "expected a JSON list of questions"),
    ("q.jsonl", b'{"question": "a", "gold_texts": [{"text": 5}]}',
     "q.jsonl:1: gold text: expected a text (a string), got 5"),
    ("q.jsonl", b'{"question": "a", "gold_texts": [{"text": ["x"]}]}', "q.jsonl:1: gold text: expected a text"),
    ("q.jsonl", b'{"question": "a", "gold_texts": [{"text": 0}]}', "q.jsonl:1: gold text: expected a text"),
    ("q.jsonl", b'{"question": "a", "gold_texts": [{"text": {"a": 1}}]}', "q.jsonl:1: gold text: expected a text"),
    ("q.jsonl", b'{"question": "a", "gold_texts": {"text": "t", "grade": 1%s}}' % (b"0" * 400),
     "q.jsonl:1: column 'gold_texts': expected a grade"),
    ("q.jsonl", b'{"question": "a", "gold_ids": {"d": 1%s}}' % (b"0" * 400),
     "q.jsonl:1: column 'gold_ids': expected a grade"),
    ("q.csv", b'question,gold_ids\na,"{""d"": 1%s}"\n' % (b"0" * 400), "q.csv:2: column 'gold_ids': expected a grade"),
    ("q.jsonl", b'{"question": "a", "gold_ids": %s}' % (b"[" * 500 + b"]" * 500), "q.jsonl:1: column 'gold_ids'"),
    ("q.jsonl", b'{"question": "a", "category": %s}' % (b"[" * 500 + b"]" * 500), "q.jsonl:1: column 'category'"),
    ("q.jsonl", b'{"question": "a", "unanswerable": %s}' % (b"[" * 500 + b"]" * 500), "q.jsonl:1: column 'unansw"),
    ("q.parquet", b"garbage", "q.parquet: cannot be read as Parquet"),
    ("q.parquet", b"", "q.parquet: cannot be read as Parquet"),
    ("q.parquet", b"PAR1" + b"\0" * 64 + b"PAR1", "q.parquet: cannot be read as Parquet"),
    ("q.xlsx", b"PK", "unknown kind of file '.xlsx'"),
])
def test_what_is_refused_names_file_line_and_what_was_expected(
    tmp_path: Path, name: str, data: bytes, told: str
) -> None:
    message = refusal(write(tmp_path, name, data))
    assert told in message and len(message) < len(str(tmp_path)) + 300


def test_what_is_no_data_set_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "golden.csv: no such file or folder (looked in" in refusal("golden.csv")
    for source in (7, None, b"x"):
        assert "expected a path, a DataFrame" in refusal(source)
    assert "no question" in refusal([]) and "no question" in refusal(Dataset(()))
    assert "[1]: expected a dict, a Question or a string, got int" in refusal(["a", 3])


def test_columns_of_different_length_are_told() -> None:
    told = refusal({"question": ["a", "b"], "id": ["1"]})
    assert "expected columns of one length, got question 2, id 1" in told
    assert "question 1, id 2" in refusal({"question": numpy.array(["a"]), "id": ("1", "2")})
    columns = {"question": numpy.array(["a", "b"]), "id": numpy.array([1, 2])}
    assert [q.id for q in load_dataset(columns).questions] == ["1", "2"]
    assert "no question" in refusal({})
    assert "no split 'test'" in refusal({"question": "a"})


def test_broken_objects_are_data_errors() -> None:
    def rows() -> Any:
        yield {"question": "a"}
        raise OSError("the disk is gone")

    assert "the generator cannot be read (OSError: the disk is gone)" in refusal(rows())
    assert "no such file" in refusal("Who wrote it? " * 500) and "no such file" in refusal("a\0b")
    many = pandas.MultiIndex.from_tuples([("question", "x"), ("id", "x")])
    assert "no column with the question" in refusal(pandas.DataFrame([["a", "1"]], columns=many))
    assert "stands twice" in refusal(pandas.DataFrame([["a", "b"]], columns=["question", "question"]))
    assert "no column with the question" in refusal(polars.DataFrame({"q": [1]}))
    assert "no question" in refusal(pandas.DataFrame()) and "no question" in refusal(polars.DataFrame())
    for cell in (numpy.array(["a", "b"]), {"a"}, object(), b"x", ["a"]):
        assert "column 'category': expected a text" in refusal([{"question": "q", "category": cell}])
    assert "expected a grade" in refusal([{"question": "q", "gold_ids": {"d": numpy.array([1, 2])}}])
    assert "expected an id" in refusal([{"question": "q", "id": numpy.array([1, 2])}])
    assert "true or false" in refusal([{"question": "q", "unanswerable": numpy.array([True, False])}])


@pytest.mark.parametrize(("fields", "told"), [
    ({"text": 5}, "expected a text"), ({"text": None}, "expected a text"),
    ({"text": "t", "grade": "1"}, "expected a grade"), ({"text": "t", "grade": 10**400}, "expected a grade"),
    ({"text": "t", "grade": numpy.nan}, "expected a grade"), ({"text": "t", "document_id": 7}, "must be a string"),
    ({"document_id": "d", "start": "1", "end": 2}, "whole number for start"),
    ({"document_id": "d", "start": 1, "end": 2.5}, "whole number for end"), ({}, "expected a text, or document_id"),
])
def test_a_gold_text_is_checked_at_birth(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=f"gold text: .*{told}"):
        GoldText(**fields)


def test_lone_surrogates_load_and_are_written_escaped(tmp_path: Path) -> None:
    path = write(tmp_path, "q.jsonl", '{"_id": "q\\ud800", "text": "Q \\ud800", "category": "\\udc00 c", '
                 '"tags": ["\\ud800"], "answers": ["\\ud83d"], "gold_texts": ["g \\ud800"], "gold_ids": ["d\\udfff"]}\n'
                 '{"text": "only \\ud800"}\n')
    dataset = load_dataset(path)
    first, second = dataset.questions
    assert (first.id, first.text, first.category, first.tags) == ("q\ud800", "Q \ud800", "\udc00 c", ("\ud800",))
    assert dataset.qrels == {"q\ud800": {"d\udfff": 1.0}} and second.id == text_id("only \ud800")
    assert dataset.fingerprints()["questions"]
    write_folder(tmp_path / "folder", dataset)
    again = load_dataset(tmp_path / "folder")
    assert again.questions == dataset.questions and again.qrels == dataset.qrels
    assert "\\ud800" in (tmp_path / "folder" / "queries.jsonl").read_text(encoding="utf-8")
    qrels, report = project_gold(dataset, [Passage("p", "a g \ud800 b")])
    assert qrels["q\ud800"] == {"d\udfff": 1.0, "p": 1.0} and report.count("exact") == 1
    twice = write(tmp_path, "twice.jsonl", '{"text": "Q \\ud800"}\n{"text": "Q \\ud800"}\n')
    refusal(twice).encode("utf-8")  # what is told can be printed


def test_questions_and_datasets_pass_through() -> None:
    questions = [Question("a", "A"), Question("b", "B")]
    dataset = load_dataset(questions)
    assert dataset.questions == tuple(questions) and load_dataset(dataset) is dataset


def test_huggingface_datasets_with_splits() -> None:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_list([
        {"id": 1, "question": "Who?", "answers": {"text": ["me"], "answer_start": [0]}, "gold_ids": ["d1", "d2"]},
        {"id": 2, "question": "Why?", "answers": {"text": [], "answer_start": []}, "gold_ids": []},
    ])
    dataset = load_dataset(table)
    assert [(q.id, q.text, q.answers) for q in dataset.questions] == [("1", "Who?", ("me",)), ("2", "Why?", ())]
    assert dataset.label_states() == {"1": "labelled", "2": "unlabelled"}
    splits = datasets.DatasetDict({"validation": table})
    assert load_dataset(splits, split="validation").questions == dataset.questions
    assert "no split 'test'" in refusal(splits) and "validation" in refusal(splits)


def test_a_real_table_of_ragas_loads() -> None:
    from tests.support.data import data_folder

    dataset = load_dataset(data_folder("tool_formats") / "ragas" / "hf_doc_qa_eval.csv")
    assert len(dataset.questions) == 66
    assert dataset.questions[0].answers == ("x86_64-unknown-linux-musl",)
