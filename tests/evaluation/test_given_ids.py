"""Which id a passage goes by over a whole run, and what is said where gold is named by ids that nobody gave."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragkit
from ragkit.evaluation.result import Evaluation
from ragkit.records.aliases import alias_run
from ragkit.records.questions import text_id
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

TEXTS = {"d1": "Ada Lund built the lighthouse.", "d2": "Ada Lund was born in Vik.", "d3": "Vik is known for cheese."}


def given(*ids: str) -> tuple[Passage, ...]:
    return tuple(Passage(one, TEXTS[one]) for one in ids)


def bare(*ids: str) -> tuple[Passage, ...]:
    """As BM25 over texts gives them: the id is made from the text."""
    return tuple(Passage(text_id(TEXTS[one]), TEXTS[one]) for one in ids)


def step(*lists: Retrieval) -> Step:
    return Step(0, lists)


def scored(tmp_path: Path, *trajectories: Trajectory) -> Evaluation:
    labels = tmp_path / "golden.csv"
    labels.write_text("id,question,reference,gold_ids\nq1,who?,Ada,d1\nq2,where?,Vik,d2\n", encoding="utf-8")
    return ragkit.score(list(trajectories), labels)


def test_a_chunk_without_an_id_is_the_one_that_the_store_named_for_another_question(tmp_path: Path) -> None:
    first = Trajectory("q1", "who?", (step(Retrieval("retrieve", "who?", given("d1", "d2"))),), answer="Ada")
    second = Trajectory("q2", "where?", (step(Retrieval("retrieve", "where?", bare("d3", "d2"))),), answer="Vik")
    found = scored(tmp_path, first, second)
    assert found.summary["metrics"]["recall"]["mean"] == 1.0
    assert found.trajectories[1].steps[0].outermost.ids == (text_id(TEXTS["d3"]), "d2")
    assert alias_run([second]) == [second], "alone nobody gave it an id"
    assert alias_run([second], given("d3"))[0].steps[0].outermost.ids[0] == "d3", "a corpus names it, too"
    both = alias_run([first, second], [Passage("other", TEXTS["d2"])])
    assert both[1].steps[0].outermost.ids[1] == "d2", "what was retrieved goes before what was only known"


def test_passages_that_nobody_gave_an_id_are_counted_where_gold_is_named_by_ids(tmp_path: Path) -> None:
    alone = Trajectory("q2", "where?", (step(Retrieval("retrieve", "where?", bare("d2") + given("d3"))),), answer="Vik")
    assert any(note.startswith("1 of 2 passages came without an id") for note in scored(tmp_path, alone).data.notes)
    named = Trajectory("q2", "where?", (step(Retrieval("retrieve", "where?", given("d2", "d3"))),), answer="Vik")
    assert not any("without an id" in note for note in scored(tmp_path, named).data.notes)


def test_gold_that_a_filter_dropped_did_occur(tmp_path: Path) -> None:
    """All gold was retrieved and then filtered out: the ids are right, and the filter is named."""
    lists = (Retrieval("filter", "who?", given("d3")), Retrieval("retrieve", "who?", given("d1", "d3")))
    found = scored(tmp_path, Trajectory("q1", "who?", (step(*lists),), answer="nobody"))
    assert found.data.fix_first.startswith("Fix retrieval first")
    assert "1 of 1 missing passages were lost at a filter" in found.data.fix_first


@pytest.mark.parametrize("above", ["fuse", "filter"])
def test_siblings_beneath_a_list_lose_none_of_each_others_gold(tmp_path: Path, above: str) -> None:
    lists = (Retrieval(above, "who?", given("d3")), Retrieval("retrieve", "who?", given("d3", "d2"), "dense"),
             Retrieval("retrieve", "who?", given("d1"), "bm25"))
    (question,) = scored(tmp_path, Trajectory("q1", "who?", (step(*lists),), answer="nobody")).data.worst
    assert [one.lost for one in question.steps[0].lists] == [("d1",), (), ()]
