"""ragkit.score_rankings: the forms of rankings and labels, the conventions, the notes, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragkit
from ragkit.errors import DataError

GOLD = {"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"a": 1}}
LISTS = {"q1": ["b", "x", "a"], "q2": ["x", "a"]}
METRICS = "ndcg@3,mrr,recall@2"


def expected() -> pd.DataFrame:
    return ragkit.score_rankings(LISTS, GOLD, METRICS)


def test_the_frame_has_a_row_a_ranking_and_a_column_a_metric() -> None:
    frame = expected()
    assert frame.index.name == "question_id" and list(frame.index) == ["q1", "q2"]
    assert list(frame.columns) == ["ndcg@3", "mrr", "recall@2"]
    assert frame.loc["q1"].tolist() == pytest.approx([0.735007, 1.0, 1 / 3], abs=1e-6)
    assert frame.attrs["notes"] == []


def rows_of(lists: dict[str, list[str]], **columns: str) -> pd.DataFrame:
    names = {"question": "qid", "document": "docno", "score": "score", "rank": "rank"} | columns
    rows = [(question, name, 10.0 - rank, rank) for question, ids in lists.items() for rank, name in enumerate(ids)]
    return pd.DataFrame(rows, columns=[names[key] for key in ("question", "document", "score", "rank")])


@pytest.mark.parametrize(
    "rankings",
    [
        {q: tuple(ids) for q, ids in LISTS.items()},
        {q: np.array(ids) for q, ids in LISTS.items()},
        {q: pd.Series(ids) for q, ids in LISTS.items()},
        {q: dict.fromkeys(ids).keys() for q, ids in LISTS.items()},
        {q: {name: -float(rank) for rank, name in reversed(list(enumerate(ids)))} for q, ids in LISTS.items()},
        {q: [(name, 9 - rank) for rank, name in reversed(list(enumerate(ids)))] for q, ids in LISTS.items()},
        {q: [[name, np.float32(9 - rank)] for rank, name in enumerate(ids)] for q, ids in LISTS.items()},
        list(LISTS.items()),
        ((q, {name: 1 / (1 + rank) for rank, name in enumerate(ids)}) for q, ids in LISTS.items()),
        {"q1": LISTS["q1"], "q2": {"a": 1.0, "x": np.inf}},
        rows_of(LISTS),
        rows_of(LISTS).sample(frac=1, random_state=3).sort_values("qid", kind="stable"),
        rows_of(LISTS).drop(columns="score").sample(frac=1, random_state=3).sort_values("qid", kind="stable"),
        rows_of(LISTS).drop(columns=["score", "rank"]),
        rows_of(LISTS, question="query_id", document="doc_id").drop(columns="rank"),
        rows_of(LISTS, question="Question_ID", document="passage_id").assign(query="what was asked"),
    ],
)
def test_every_form_of_rankings_means_the_same(rankings: Any) -> None:
    pd.testing.assert_frame_equal(ragkit.score_rankings(rankings, GOLD, METRICS), expected())


def test_every_form_of_labels_means_the_same(tmp_path: Path) -> None:
    rows = [(q, name, grade) for q, grades in GOLD.items() for name, grade in grades.items()]
    path = tmp_path / "qrels.txt"
    path.write_text("".join(f"{q} 0 {name} {grade}\n" for q, name, grade in rows), encoding="utf-8")
    for labels in (path, str(path), pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"]),
                   pd.DataFrame(rows, columns=["qid", "docno", "label"])):
        pd.testing.assert_frame_equal(ragkit.score_rankings(LISTS, labels, METRICS), expected())
    binary = {"q1": dict.fromkeys("abc", 1), "q2": {"a": 1}}
    known = ragkit.score_rankings(LISTS, binary, METRICS)
    for labels in ({"q1": {"a", "b", "c"}, "q2": ["a"]}, {"q1": ("a", "b", "c"), "q2": {"a": 1}},
                   pd.DataFrame(rows, columns=["qid", "docno", "grade"])[["qid", "docno"]]):
        pd.testing.assert_frame_equal(ragkit.score_rankings(LISTS, labels, METRICS), known)


def test_a_question_may_have_several_rankings() -> None:
    steps = [("q1", ["b"]), ("q1", ["a", "b"]), ("q2", []), ("q1", ["x"])]
    frame = ragkit.score_rankings(steps, GOLD, "recall")
    assert list(frame.index) == ["q1", "q1", "q2", "q1"]
    assert frame["recall"].tolist() == pytest.approx([1 / 3, 2 / 3, 0, 0])


def test_a_set_has_no_order() -> None:
    frame = ragkit.score_rankings({"q1": {"a", "x"}}, GOLD, "recall,hit,precision_set,mrr,recall@2")
    assert frame.loc["q1"].tolist()[:3] == pytest.approx([1 / 3, 1, 0.5])
    assert frame.loc["q1"].isna().tolist() == [False, False, False, True, True]


def test_scores_are_sorted_as_trec_eval_does() -> None:
    gold = {"q": {"d1": 1}}
    tied: dict[str, float] = {"d1": 1.0, "d2": 1.0, "d3": 1.0}
    assert ragkit.score_rankings({"q": tied}, gold, "map,ndcg@5").loc["q"].tolist() == pytest.approx([1 / 3, 0.5])
    assert ragkit.score_rankings({"q": list(tied)}, gold, "map")["map"].tolist() == [1.0]
    assert ragkit.score_rankings({"q": tied}, gold, "map", ties="rank")["map"].tolist() == [1.0]
    frame = pd.DataFrame({"qid": "q", "docno": ["d3", "d1", "d2"], "score": 1.0, "rank": [2, 0, 1]})
    assert ragkit.score_rankings(frame, gold, "map", ties="rank")["map"].tolist() == [1.0]
    assert ragkit.score_rankings(frame.drop(columns="rank"), gold, "map", ties="rank")["map"].tolist() == [0.5]
    near = {"q": {"d1": 0.92226214537526, "d2": 0.92226214537525}}
    assert ragkit.score_rankings(near, gold, "map")["map"].tolist() == [1.0]
    assert ragkit.score_rankings(near, gold, "map", float32=True)["map"].tolist() == [0.5]
    # By the bytes of the id: "é" stands above "z", an id above its own beginning.
    for first, second in (("é", "z"), ("d10", "d1"), ("d9", "d10"), ("\U0001f600", "\ufffd")):
        frame = ragkit.score_rankings({"q": {second: 0.5, first: 0.5}}, {"q": {first: 1}}, "mrr")
        assert frame["mrr"].tolist() == [1.0], (first, second)


IDS = st.text(alphabet="abé\U0001f600", min_size=1, max_size=2)
SCORES = st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, float("inf"), float("-inf"), 1e-40, 2])


@given(st.lists(st.lists(st.tuples(IDS, SCORES), max_size=8, unique_by=lambda pair: pair[0]), min_size=1, max_size=4))
def test_one_sort_for_all_is_each_one_sorted(runs: list[list[tuple[str, float]]]) -> None:
    gold = {f"q{place}": {"a": 1.0, "é": 2.0} for place in range(len(runs))}
    pairs = {f"q{place}": run for place, run in enumerate(runs)}
    in_order = {question: [name for name, _ in sorted(run, key=lambda pair: (pair[1], pair[0].encode()), reverse=True)]
                for question, run in pairs.items()}
    found = ragkit.score_rankings(pairs, gold, "ndcg,map,mrr")
    pd.testing.assert_frame_equal(found, ragkit.score_rankings(in_order, gold, "ndcg,map,mrr"))
    ties = sum(len(run) - len({score for _, score in run}) for run in runs)
    assert sum(note["count"] for note in found.attrs["notes"] if note["kind"] == "ties") == ties


def test_what_was_met_stands_in_the_notes() -> None:
    gold = {"q1": {"a": 1}, "q2": {"b": 0}, "q3": {"a": 1}, "q4": {}}
    rankings = {"q1": ["a", "a"], "q2": {"x": 1.0, "y": 1.0}, "q4": ["x"], "q9": ["a"]}
    frame = ragkit.score_rankings(rankings, gold, "mrr")
    assert frame["mrr"].isna().tolist() == [False, True, True, True]
    assert frame.attrs["notes"] == [
        {"kind": "ties", "count": 1, "examples": ["q2"]},
        {"kind": "duplicates", "count": 1, "examples": ["q1"]},
        {"kind": "missing", "count": 1, "examples": ["q3"]},
        {"kind": "unknown_questions", "count": 1, "examples": ["q9"]},
        {"kind": "nothing_relevant", "count": 2, "examples": ["q2", "q4"]},
    ]
    trec = ragkit.score_rankings(rankings, gold, "mrr,first_relevant_rank", trec=True)
    assert trec["mrr"].to_dict() == {"q1": 1.0, "q2": 0.0, "q4": 0.0, "q3": 0.0}
    assert trec["first_relevant_rank"].isna().tolist() == [False, True, True, True]


def test_level_and_fractions() -> None:
    frame = ragkit.score_rankings(LISTS, GOLD, "map,ndcg@3", level=2)
    assert frame.loc["q1"].tolist() == pytest.approx([0.833333, 0.735007], abs=1e-6)
    assert np.isnan(frame.loc["q2", "map"]) and not np.isnan(frame.loc["q2", "ndcg@3"])
    frame = ragkit.score_rankings({"q": ["a", "b"]}, {"q": {"a": 0.5, "b": 1.9}}, "ndcg@2")
    assert frame.loc["q"].tolist() == pytest.approx([0.766777], abs=1e-6)


def test_metrics_may_be_given_in_any_form() -> None:
    known = ragkit.score_rankings(LISTS, GOLD, "ndcg@3,mrr")
    for metrics in (["nDCG@3", "RR"], ("ndcg@3,mrr",), [ragkit.parse("ndcg@3"), "mrr"]):
        pd.testing.assert_frame_equal(ragkit.score_rankings(LISTS, GOLD, metrics), known)


def test_no_ranking_is_an_empty_frame() -> None:
    frame = ragkit.score_rankings({}, GOLD, METRICS)
    assert frame.shape == (0, 3) and frame.attrs["notes"][0]["kind"] == "missing"


def test_nothing_that_was_given_is_changed() -> None:
    rankings, gold, frame = {"q1": ["b", "a"]}, {"q1": {"a": 1, "b": 2}}, rows_of(LISTS)
    copy = frame.copy()
    ragkit.score_rankings(rankings, gold, "map")
    ragkit.score_rankings(frame, gold, "map")
    assert rankings == {"q1": ["b", "a"]} and gold == {"q1": {"a": 1, "b": 2}}
    pd.testing.assert_frame_equal(frame, copy)


@pytest.mark.parametrize(
    ("rankings", "qrels", "expected_error"),
    [
        ({1: ["a"]}, GOLD, "a question's id must be a string, got 1"),
        ({"q1": [7]}, GOLD, "must be a string, got 7"),
        ({"q1": ["a", 7]}, GOLD, "must be a string, got 7"),
        ({"q1": {7: 0.5}}, GOLD, "a document's id must be a string, got 7"),
        ({"q1": ["a"]}, {"q1": {7: 1}}, "qrels of 'q1': an id must be a string, got 7 (int)"),
        ({"q1": ["a"]}, {1: {"a": 1}}, "a question's id in the qrels must be a string, got 1"),
        ({"q1": {"a": float("nan")}}, GOLD, "ranking of 'q1', 'a': expected a number, got nan"),
        ({"q1": {"a": 0.5, "b": "0.4"}}, GOLD, "'b': expected a number, got '0.4'"),
        ({"q1": {"a": True}}, GOLD, "'a': expected a number, got True"),
        ({"q1": [("a", 1), "b"]}, GOLD, "expected (id, score) pairs, got 'b'"),
        ({"q1": ["a", ("b", 1)]}, GOLD, "must be a string, got ('b', 1)"),
        ({"q1": [("a", 1, 2)]}, GOLD, "expected (id, score) pairs"),
        ({"q1": "abc"}, GOLD, "ranking of 'q1': expected a list of ids"),
        ({"q1": 5}, GOLD, "ranking of 'q1': expected a list of ids"),
        ("run.txt", GOLD, "rankings: expected a mapping"),
        ([["a", "b", "c"]], GOLD, "rankings[0]: expected a pair of question and list"),
        (["ab"], GOLD, "rankings[0]: expected a pair"),
        (pd.DataFrame({"qid": [1], "docno": ["a"]}), GOLD, "column 'qid': an id must be a string, got 1"),
        (pd.DataFrame({"qid": ["q1"], "docno": [None]}), GOLD, "column 'docno': an id must be a string"),
        (pd.DataFrame({"qid": ["q1"], "docno": ["a"], "score": [np.nan]}), GOLD, "column 'score', row 0: expected a"),
        (pd.DataFrame({"qid": ["q1"], "text": ["a"]}), GOLD, "expected a column named doc_id"),
        (LISTS, {"q1": "abc"}, "qrels of 'q1': expected a mapping"),
        (LISTS, ["a"], "qrels: expected a mapping"),
        (LISTS, {"q1": {"a": float("inf")}}, "expected finite grades"),
        (LISTS, pd.DataFrame({"qid": ["q1", "q1"], "docno": ["a", "a"], "rel": [1, 2]}), "has two grades, 1 and 2"),
        (LISTS, "absent.txt", "absent.txt: no such file"),
    ],
)
def test_wrong_input_says_what_and_where(rankings: Any, qrels: Any, expected_error: str) -> None:
    with pytest.raises(DataError) as caught:
        ragkit.score_rankings(rankings, qrels, "mrr")
    assert expected_error in str(caught.value)


@pytest.mark.parametrize(
    ("options", "expected_error"),
    [
        ({"metrics": "faithfulness"}, "expected a rank metric"),
        ({"metrics": "nope"}, "unknown metric"),
        ({"metrics": []}, "expected at least one name"),
        ({"level": 0}, "level: expected a grade above 0"),
        ({"ties": "random"}, "ties: expected 'id' or 'rank', got 'random'"),
    ],
)
def test_wrong_options_say_what_was_expected(options: dict[str, Any], expected_error: str) -> None:
    with pytest.raises(DataError) as caught:
        ragkit.score_rankings(LISTS, GOLD, **({"metrics": "mrr"} | options))
    assert expected_error in str(caught.value)
