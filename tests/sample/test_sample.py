"""The built-in sample keeps its promises: whole labels, hard second hops, nothing twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from ragkit.metrics.text import tokens
from ragkit.records.labels import check_labels
from ragkit.records.readers import load_dataset
from ragkit.sample import sample_folder

CATEGORIES = {"factual": 8, "comparison": 5, "how-to": 5, "multi-hop": 8, "out of scope": 4}
# Words that carry no content: a second hop may share these with its question.
FUNCTION_WORDS = frozenset(re.findall(r"\w+", """
a above an and are as at by did do does for from has have he her his how i in is it its my of off on or she that the
their them they this to was what when where which who whose will with"""))


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (sample_folder() / name).read_text(encoding="utf-8").splitlines()]


def qrels() -> list[tuple[str, str, float]]:
    head, *lines = (sample_folder() / "qrels.tsv").read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == ["query-id", "corpus-id", "score"]
    return [(q, d, float(grade)) for q, d, grade in (line.split("\t") for line in lines)]


def stems(text: str) -> set[str]:
    words = (word for word in tokens(text) if word not in FUNCTION_WORDS)
    return {re.sub(r"(?:ing|ies|es|ed|s|e|y)$", "", word) if len(word) > 4 else word for word in words}


def hops() -> list[Any]:
    return [pytest.param(row, id=row["_id"]) for row in rows("queries.jsonl") if "hops" in row.get("metadata", {})]


def test_counts_and_categories() -> None:
    assert Counter(row["category"] for row in rows("queries.jsonl")) == CATEGORIES
    assert 55 <= len(rows("corpus.jsonl")) <= 70


def test_ids_and_titles_are_unique() -> None:
    for values in ([r["_id"] for r in rows("corpus.jsonl")], [r["_id"] for r in rows("queries.jsonl")],
                   [r["title"] for r in rows("corpus.jsonl")], [r["text"] for r in rows("queries.jsonl")],
                   [pair[:2] for pair in qrels()]):
        assert len(values) == len(set(values))


def test_labels_resolve_and_grades_are_one_to_three() -> None:
    documents = {row["_id"] for row in rows("corpus.jsonl")}
    questions = {row["_id"] for row in rows("queries.jsonl")}
    assert {d for _, d, _ in qrels()} <= documents
    assert {q for q, _, _ in qrels()} <= questions
    assert {grade for _, _, grade in qrels()} == {1.0, 2.0, 3.0}


def test_every_question_is_labelled_with_answers_or_declared_unanswerable() -> None:
    labelled = {q for q, _, grade in qrels() if grade >= 2}
    for row in rows("queries.jsonl"):
        if row.get("unanswerable"):
            assert row["category"] == "out of scope"
            assert "answers" not in row
            assert row["_id"] not in {q for q, _, _ in qrels()}
        else:
            assert row["_id"] in labelled
            assert row["answers"] and all(answer.strip() for answer in row["answers"])


def test_passages_have_the_length_of_passages() -> None:
    for row in rows("corpus.jsonl"):
        assert 55 <= len(row["text"].split()) <= 120, row["_id"]


def test_no_two_passages_say_the_same() -> None:
    words = {row["_id"]: set(tokens(row["text"])) for row in rows("corpus.jsonl")}
    for a, b in combinations(words, 2):
        assert len(words[a] & words[b]) / len(words[a] | words[b]) < 0.5, (a, b)


def test_no_answer_gives_a_number_that_its_gold_does_not_hold() -> None:
    text = {row["_id"]: f"{row['title']} {row['text']}" for row in rows("corpus.jsonl")}
    gold: dict[str, set[str]] = {}
    for question, document, _ in qrels():
        gold.setdefault(question, set()).update(tokens(text[document]))
    for row in rows("queries.jsonl"):
        for answer in row.get("answers", []):
            numbers = {token for token in tokens(answer) if token[0].isdigit()}
            assert numbers <= gold[row["_id"]], row["_id"]


def test_there_is_one_hop_pair_for_every_multi_hop_question() -> None:
    assert len(hops()) == CATEGORIES["multi-hop"]


@pytest.mark.parametrize("row", hops())
def test_second_hop_is_reached_through_the_first_alone(row: dict[str, Any]) -> None:
    documents = {r["_id"]: f"{r['title']} {r['text']}" for r in rows("corpus.jsonl")}
    grades = {d: grade for q, d, grade in qrels() if q == row["_id"]}
    first, second = row["metadata"]["hops"]
    assert (grades[first], grades[second]) == (2, 3)
    assert not stems(row["text"]) & stems(documents[second])
    title = next(r["title"] for r in rows("corpus.jsonl") if r["_id"] == second)
    assert stems(title) <= stems(documents[first]), "the first passage names the second"


def test_it_loads_as_a_dataset() -> None:
    dataset = load_dataset(sample_folder())
    states = Counter(dataset.label_states().values())
    assert states == {"labelled": 26, "unanswerable": 4}
    assert dataset.corpus is not None
    assert dataset.corpus["ostby"].title == "Østby"
    report = check_labels(dataset, set(dataset.corpus))
    assert not report.unknown
