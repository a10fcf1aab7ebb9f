"""In which unit a run is scored, and what gold texts become on any chunking."""

from ragkit.evaluation.units import project, projection_from_json, projection_to_json
from ragkit.records.questions import Dataset, GoldText, Question
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

TEXT = "Turn the valve to the left until it clicks, then wait ten minutes before you open the lid again."


def searched(question_id: str, *passages: Passage) -> Trajectory:
    return Trajectory(question_id, "q", (Step(0, (Retrieval("retrieve", passages=passages),)),))


def texts(*golds: GoldText) -> Dataset:
    return Dataset((Question("q", "q", gold_texts=golds),))


def test_gold_that_names_documents_is_met_by_their_chunks() -> None:
    data = Dataset((Question("q", "q"),), {"q": {"d1": 2.0, "d2": 1.0}})
    found = [Passage("d1#0", doc_id="d1"), Passage("d1#1", doc_id="d1"), Passage("d3#0", doc_id="d3")]
    projection = project(data, [searched("q", *found)])
    assert projection.unit == "document"
    assert projection.names("q", found) == ("d1", "d1", "d3")
    assert projection.grade("q", found[1]) == 2.0


def test_gold_that_names_chunks_stays_with_them() -> None:
    data = Dataset((Question("q", "q"),), {"q": {"d1#1": 1.0}})
    found = [Passage("d1#0", doc_id="d1"), Passage("d1#1", doc_id="d1")]
    projection = project(data, [searched("q", *found)])
    assert projection.unit == "chunk"
    assert [projection.grade("q", passage) for passage in found] == [None, 1.0]


def test_a_gold_text_counts_once_whatever_the_chunking() -> None:
    whole = [Passage("a", f"Before. {TEXT}"), Passage("b", f"{TEXT} After."), Passage("c", "Something else entirely.")]
    projection = project(texts(GoldText(TEXT)), [searched("q", *whole)])
    assert dict(projection.qrels["q"]) == {"gold-text:1": 1.0}
    assert projection.names("q", whole) == ("gold-text:1", "gold-text:1", "c")


def test_a_gold_text_in_small_pieces_needs_them_all() -> None:
    pieces = [Passage(str(i), TEXT[i * 25 : (i + 1) * 25]) for i in range(4)]
    projection = project(texts(GoldText(TEXT)), [searched("q", *pieces)])
    assert sorted(projection.qrels["q"]) == [f"gold-text:1.{part}" for part in (1, 2, 3, 4)]


def test_two_gold_texts_in_one_passage_are_one_thing_to_retrieve() -> None:
    first, second = TEXT[:43], TEXT[44:]
    passage = Passage("a", TEXT)
    projection = project(texts(GoldText(first, grade=1.0), GoldText(second, grade=2.0)), [searched("q", passage)])
    assert dict(projection.qrels["q"]) == {"gold-text:1": 2.0}
    assert projection.grade("q", passage) == 2.0


def test_a_gold_text_that_is_gone_is_missed_and_not_forgotten() -> None:
    projection = project(texts(GoldText(TEXT)), [searched("q", Passage("a", "Nothing of the kind stands here."))])
    assert len(projection.qrels["q"]) == 1
    assert projection.report is not None and projection.report.count("gone") == 1


def test_gold_by_id_and_by_text_for_the_same_passage_is_one() -> None:
    data = Dataset((Question("q", "q", gold_texts=(GoldText(TEXT),)),), {"q": {"a": 3.0, "z": 1.0}})
    projection = project(data, [searched("q", Passage("a", TEXT))])
    assert dict(projection.qrels["q"]) == {"gold-text:1": 3.0, "z": 1.0}


def test_the_index_says_what_it_does_not_hold() -> None:
    data = Dataset((Question("q", "q"),), {"q": {"d1": 1.0, "d9": 1.0}})
    unknown = project(data, [searched("q", Passage("d1"))])
    assert unknown.index_ids("q") is None
    known = project(data, [searched("q", Passage("d1"))], [Passage("d1"), Passage("d2")])
    assert known.index_ids("q") == frozenset({"d1"})


def test_a_kept_projection_comes_back_the_same() -> None:
    data = Dataset(
        (
            Question("q", "q", gold_texts=(GoldText(TEXT), GoldText("Not there at all, this sentence."))),
            Question("r", "r"),
        ),
        {"q": {"a": 3.0, "z": 1.0}, "r": {"z": 1.0}},
    )
    passages = [Passage("a", TEXT), Passage("b", "Other words.")]
    before = project(data, [searched("q", *passages)], passages)
    after = projection_from_json(projection_to_json(before), data)
    assert {q: dict(g) for q, g in after.qrels.items()} == {q: dict(g) for q, g in before.qrels.items()}
    for question_id in ("q", "r"):
        assert after.names(question_id, passages) == before.names(question_id, passages)
        assert after.index_ids(question_id) == before.index_ids(question_id)


def test_alternatives_of_a_gold_are_one_thing_to_retrieve() -> None:
    question = Question("q", "q", metadata={"gold_alternatives": {"a": ["b", "c"], "d": ["e", "a"]}})
    data = Dataset((question, Question("r", "r")), {"q": {"a": 1.0, "d": 1.0}, "r": {"b": 1.0}})
    found = [Passage("b"), Passage("x"), Passage("a"), Passage("e")]
    projection = project(data, [searched("q", *found)], indexed=[Passage(name) for name in "bxa"])
    assert projection.names("q", found) == ("a", "x", "a", "d")
    assert projection.names("r", found) == ("b", "x", "a", "e")
    assert dict(projection.qrels["q"]) == {"a": 1.0, "d": 1.0}
    again = projection_from_json(projection_to_json(projection), data)
    assert again.names("q", found) == ("a", "x", "a", "d") and dict(again.qrels["q"]) == {"a": 1.0, "d": 1.0}
    unseen = project(data, [searched("q", Passage("x"))], indexed=[Passage("b"), Passage("x")])
    assert unseen.index_ids("q") == frozenset("a")
