"""Labelled rows of any table: which column is what, what a label may be, and what is counted as none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.judge.labelled import Labelled, read_labelled


def table(**columns: list[Any]) -> Labelled:
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return Labelled([(f"t:{number}", row) for number, row in enumerate(rows, start=1)])


def test_labels_in_all_their_spellings_and_what_is_none() -> None:
    found = table(label=[1, 0.0, "1", " 0 ", True, "false", "Yes", None, "", "null", float("nan")]).humans()[0]
    assert found.values == (1, 0, 1, 0, 1, 0, 1, None, None, None, None)
    assert found.reasons == dict.fromkeys((7, 8, 9, 10), "no label")
    assert not found.categories


@pytest.mark.parametrize(("cells", "said"), [
    ([1, "0,5"], r"t:2: column 'label': expected a number \(a decimal point, not a comma\)"),
    (["0,5", "0,7"], "decimal point"),
    ([1, "often"], "t:2: column 'label': expected a number, true or false, or nothing, got 'often'"),
    ([1, {"a": 1}], "t:2: column 'label'"),
    ([1, 10**400], "t:2: column 'label'"),
    ([None, ""], "every cell is empty"),
])
def test_a_cell_that_is_no_label_is_refused_with_its_place(cells: list[Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        table(label=cells).humans()


def test_names_are_categories_unless_some_are_said_to_be_a_yes() -> None:
    rows = table(label=["good", "bad", None, "so-so"])
    assert rows.humans()[0].values == ("good", "bad", None, "so-so")
    assert rows.humans(positive=["good", "so-so"])[0].values == (1, 0, None, 1)
    with pytest.raises(DataError, match="never says 'fine'; it says bad, good, so-so"):
        rows.humans(positive=["fine"])


def test_the_label_is_found_by_its_usual_name_numbers_before_names() -> None:
    rows = table(label=["a", "b"], faithful=[1, None], answer=["x", "y"])
    assert rows.humans()[0].name == "faithful"
    assert rows.humans(["label"])[0].name == "label"
    assert rows.humans(positive=["a"])[0].name == "label"
    with pytest.raises(DataError, match="which column is the label"):
        table(question=["?"], score_of_ann=[1]).humans()
    with pytest.raises(DataError, match="no column 'lable'; columns found: label, faithful, answer"):
        rows.humans(["lable"])


def test_a_list_of_labels_is_as_many_annotators_and_points_lead_inside() -> None:
    rows = table(human=[{"overall": [1, 2], "by": "x"}, {"overall": [0, None]}], metadata=['{"model": "m"}', None])
    assert [(one.name, one.values) for one in rows.humans(["human.overall"])] == [
        ("human.overall.0", (1, 0)), ("human.overall.1", (2, None))]
    assert rows.slices("metadata.model") == {"(none)": [1], "m": [0]}
    with pytest.raises(DataError, match="as many labels in each row"):
        table(label=[[1, 2], [1]]).humans()
    with pytest.raises(DataError, match=r"no column 'human\.cost'"):
        rows.cells("human.cost")
    assert table(note=["[" * 100_000, '{"a": 1}']).cells("note.a") == [None, 1]


def test_rows_of_one_question_belong_together_by_id_else_by_text() -> None:
    assert table(query_id=[7, 7, 8], question=["a", "b", "c"]).groups == ("7", "7", "8")
    assert table(question=["a", "a", ""]).groups == ("a", "a", "row 2")
    assert table(label=[1, 0]).groups == ("row 0", "row 1")


def test_what_a_judge_is_asked() -> None:
    rows = table(user_input=["Q?", "R?", " "], retrieved_contexts=[["a", None, "b"], '["c", "d"]', "e"],
                 response=["A", None, "B"], reference=["", "G", "G"])
    first, second, third = rows.samples()
    assert first is not None and second is not None
    assert (first.question, first.contexts, first.answer, first.reference) == ("Q?", ("a", "b"), "A", None)
    assert (second.contexts, second.answer, second.reference) == (("c", "d"), None, "G")
    assert third is None
    for text in ("[not JSON", "[" * 100_000):
        passages = table(question=["Q?"], text=[text]).samples()[0]
        assert passages is not None and passages.contexts == (text,)
    with pytest.raises(DataError, match="--column question=NAME"):
        table(frage=["Q?"]).samples()
    named = Labelled([("t:1", {"frage": "Q?"})], {"question": "frage"}).samples()[0]
    assert named is not None and named.question == "Q?"
    with pytest.raises(DataError, match="unknown field 'queston'"):
        Labelled([("t:1", {"frage": "Q?"})], {"queston": "frage"})


def test_columns_of_scores_by_pattern() -> None:
    rows = table(query_id=["1", "2"], id=[1, 2], human=[0, 1], m_a=[0.1, 0.2], m_b=["1", ""], note=["x", "y"])
    assert rows.matching(["*"], ["human"]) == ["m_a", "m_b"]
    assert rows.matching(["m_b", "m_*"], ["human"]) == ["m_b", "m_a"]
    with pytest.raises(DataError, match="no column of scores is named as 'x\\*'"):
        rows.matching(["x*"], [])


def test_rows_about_several_metrics_are_kept_apart() -> None:
    rows = table(metric=["faithfulness", "context_recall", "faithfulness"], label=[1, 0, 0])
    assert len(rows.of_metric("faithfulness").rows) == 2
    with pytest.raises(DataError, match="choose one with --metric"):
        assert rows.metric
    with pytest.raises(DataError, match="no row is about answer_relevancy; its column metric says context_recall"):
        rows.of_metric("answer_relevancy")
    one = rows.of_metric("context_recall")
    assert one.metric == "context_recall"
    assert one.of_metric("lexical_support") is one


def test_weights_only_where_each_row_has_one() -> None:
    assert table(label=[1, 0], weight=["2", 1.5]).weights == (2, 1.5)
    assert table(label=[1, 0], weight=[2, None]).weights is None
    assert table(label=[1, 0]).weights is None


@pytest.mark.parametrize("name", ["l.jsonl", "l.csv", "l.tsv"])
def test_files_of_each_kind(tmp_path: Path, name: str) -> None:
    rows = [{"question": "Q, or R?", "label": "1"}, {"question": "S?", "label": ""}]
    sign = "\t" if name.endswith("tsv") else ";"
    text = "\n".join(map(json.dumps, rows)) if name.endswith("jsonl") else "\n".join(
        ["question" + sign + "label", *(f"{row['question']}{sign}{row['label']}" for row in rows)])
    path = tmp_path / name
    path.write_text(text, encoding="utf-8-sig")
    found = read_labelled(path)
    assert found.humans()[0].values == (1, None)
    assert found.groups == ("Q, or R?", "S?")
    assert (found.name, len(found.sha256)) == (name, 64)
    with pytest.raises(DataError, match="no row"):
        Labelled([])
