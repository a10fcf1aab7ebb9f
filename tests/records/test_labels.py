"""The check of labels before anything is scored."""

from __future__ import annotations

import pytest

from ragkit.errors import DataError
from ragkit.records.labels import check_labels, require_known_labels
from ragkit.records.questions import Dataset, Document, GoldText, Question
from ragkit.records.trajectory import Passage


def dataset(**row: dict[str, float]) -> Dataset:
    return Dataset((Question("a", "A"), Question("b", "B"), Question("c", "C", unanswerable=True), Question("d", "D")),
                   row, name="golden")


def test_three_label_states_are_counted_and_listed() -> None:
    report = check_labels(dataset(a={"d1": 1.0}, b={"d1": 0.0}, c={}, x={"d1": 1.0}))
    assert (report.labelled, report.unanswerable, report.unlabelled) == (("a",), ("b", "c"), ("d",))
    assert (report.n_questions, report.n_gold_ids, report.unknown) == (4, 1, None)
    assert report.stray_questions == ("x",)
    assert "1 labelled, 2 unanswerable, 1 unlabelled" in str(report) and "'x'" in str(report)
    require_known_labels(report)  # without a corpus nothing is known to be unknown


def test_a_declared_unanswerable_question_with_gold_is_pointed_out() -> None:
    report = check_labels(dataset(c={"d1": 1.0}))
    assert report.contradictions == ("c",) and report.unanswerable == ("c",)
    assert any("declared unanswerable" in line for line in report.warnings())


def test_unknown_ids_are_listed_and_more_than_half_is_an_error() -> None:
    labels = dataset(a={"d1": 1.0, "d2": 1.0}, b={"x1": 1.0, "x2": 1.0})
    report = check_labels(labels, ["d1", "d2", "d3"])
    assert report.unknown == ("x1", "x2")
    require_known_labels(report)  # exactly half
    assert "2 of 4 gold ids are unknown: 'x1', 'x2'" in str(report)
    with pytest.raises(DataError) as caught:
        require_known_labels(check_labels(labels, ["d1"]))
    assert "golden: 3 of 4 gold ids are not in the corpus" in str(caught.value)
    assert "ragkit labels check" in str(caught.value) and "\n" not in str(caught.value)


def test_the_corpus_of_the_dataset_is_the_default_and_passages_name_their_documents() -> None:
    labels = Dataset((Question("a", "A"),), {"a": {"d1": 1.0, "d2": 1.0}}, {"d1": Document("d1", "x")})
    assert check_labels(labels).unknown == ("d2",)
    assert check_labels(labels, passages=[Passage("d1#0", "x", "d1"), Passage("d2", "y")]).unknown == ()


@pytest.mark.parametrize(("unknown", "known"), [
    ("caf\u00e9", "cafe\u0301"), ("doc\u200b-7", "doc-7"), ("7", "007"), ("D1 ", "d1"), ("d1\r", "d1"),
])
def test_ids_that_differ_in_looks_alone_are_paired_and_stay_unknown(unknown: str, known: str) -> None:
    report = check_labels(dataset(a={unknown: 1.0}), [known, "other"])
    assert report.unknown == (unknown,) and report.near == ((unknown, known),)
    assert ascii(unknown) in str(report)
    with pytest.raises(DataError) as caught:
        require_known_labels(report)
    assert ascii(known) in str(caught.value)


def test_a_cell_with_several_ids_is_recognised() -> None:
    with pytest.raises(DataError, match="separates them by ';'"):
        require_known_labels(check_labels(dataset(a={"d1,d2": 1.0}), ["d1", "d2"]))


def test_gold_texts_are_matched_with_the_corpus_and_none_at_all_is_an_error() -> None:
    questions = (Question("a", "A", gold_texts=(GoldText("the keeper of the light"), GoldText("not in any passage"))),)
    report = check_labels(Dataset(questions, {}, {"d": Document("d", "He was the keeper of the light.")}))
    assert report.matches is not None and (report.matches.count("exact"), report.matches.count("gone")) == (1, 1)
    assert any("'not in any passage'" in line for line in report.warnings())
    require_known_labels(report)
    with pytest.raises(DataError, match="none of 2 gold texts is in the 1 passages"):
        require_known_labels(check_labels(Dataset(questions), passages=[Passage("p", "Something else.")]))
