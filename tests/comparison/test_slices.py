"""Parts of the questions: counts add up, what nobody filled in is a part of its own, and only real kinds are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

import ragkit
from ragkit.comparison.sides import QuestionFacts
from ragkit.comparison.slices import slicings
from ragkit.errors import DataError
from ragkit.records.questions import Dataset
from tests.support.variants import at_rank, dataset, variant

C61 = (("a", 1), (None, 0), ("a", 1), ("b", 0), (None, 1))  # category, score


def test_questions_without_a_category_are_a_slice_and_the_counts_add_up() -> None:
    plain = dataset(5)
    data = replace(plain, questions=tuple(replace(question, category=category) for question, (category, _) in
                                          zip(plain.questions, C61, strict=True)))
    made = ragkit.compare({
        "none": variant({f"q{n}": [at_rank(None)] for n in range(5)}, data),
        "some": variant({f"q{n}": [at_rank(1 if score else None)] for n, (_, score) in enumerate(C61)}, data)})
    parts = made.data["slices"]["category"]
    found = {name: (part["mrr"]["some"]["difference"], part["n"], part["mrr"]["some"]["n"])
             for name, part in parts.items()}
    assert found == {"a": (1.0, 2, 2), "b": (0.0, 1, 1), "(no category)": (0.5, 2, 2)}
    assert sum(part["n"] for part in parts.values()) == 5
    assert made.data["metrics"]["mrr"]["some"]["difference"] == pytest.approx(0.6)
    assert parts["b"]["mrr"]["some"]["low"] is None, "one question has no interval"


def test_slicings_by_gold_labels_length_tag_and_metadata() -> None:
    facts = [
        QuestionFacts("q1", n_gold=1, label_state="labelled", n_words=4, tags=("x",), metadata={"level": "easy"}),
        QuestionFacts("q2", n_gold=2, label_state="labelled", n_words=5, tags=("x", "y")),
        QuestionFacts("q3", n_gold=0, label_state="unanswerable", n_words=6, metadata={"level": "hard"}),
        QuestionFacts("q4", label_state="unlabelled", n_words=7, metadata={"level": "hard"}),
        QuestionFacts("q5"),
    ]
    found = slicings(facts)
    assert found["gold passages"] == {"(no gold)": ("q3",), "multi-hop": ("q2",), "one-hop": ("q1",),
                                      "(unknown)": ("q4", "q5")}
    assert found["label state"] == {"labelled": ("q1", "q2"), "unanswerable": ("q3",), "unlabelled": ("q4",),
                                    "(unknown)": ("q5",)}
    assert found["question length"] == {"up to 5 words": ("q1", "q2"), "6 to 6 words": ("q3",),
                                        "7 words or more": ("q4",), "(unknown)": ("q5",)}
    assert found["tag"] == {"x": ("q1", "q2"), "y": ("q2",), "(no tag)": ("q3", "q4", "q5")}
    assert found["metadata.level"] == {"easy": ("q1",), "hard": ("q3", "q4"), "(no value)": ("q2", "q5")}
    assert "category" not in found, "all have none"


def test_metadata_that_tells_questions_apart_is_no_slicing() -> None:
    facts = [QuestionFacts(f"q{n}", metadata={"source": f"page {n}", "made": {"by": n}, "even": n % 2 == 0})
             for n in range(30)]
    assert list(slicings(facts)) == ["metadata.even"]
    assert set(slicings(facts)["metadata.even"]) == {"True", "False"}


@pytest.mark.parametrize("count", range(1, 20))
def test_thirds_by_length_lose_no_question(count: int) -> None:
    facts = [QuestionFacts(f"q{n}", n_words=n // 2) for n in range(count)]
    found = slicings(facts).get("question length", {"all": [one.id for one in facts]})
    assert sorted(question for part in found.values() for question in part) == sorted(one.id for one in facts)
    assert max(map(len, found.values())) <= count // 3 + 3


def test_by_names_what_is_wanted() -> None:
    data = Dataset(tuple(replace(question, category="a" if place else None, tags=("t",) if place else ())
                         for place, question in enumerate(dataset(4).questions)), dataset(4).qrels)
    both = {name: variant({f"q{n}": [at_rank(rank)] for n in range(4)}, data) for name, rank in (("a", 1), ("b", 2))}
    assert list(ragkit.compare(both, by="category").data["slices"]) == ["category"]
    assert list(ragkit.compare(both, by=["tag,category"]).data["slices"]) == ["tag", "category"]
    assert list(ragkit.compare(both).data["slices"]) == ["category", "tag"]
    with pytest.raises(DataError, match="--by 'gold': these questions do not differ in it; they do in: category, tag"):
        ragkit.compare(both, by="gold")
