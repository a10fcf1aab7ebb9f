"""Gold as text on any chunking: what counts as found, who is credited, and that re-chunking never voids labels."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.records.gold import GONE_PREFIX, MatchReport, place_in_document, project_gold
from ragkit.records.questions import Dataset, Document, GoldText, Qrels, Question
from ragkit.records.trajectory import Passage
from tests.support.data import data_folder

SOURCE = ("The harbour of Veld was dredged in 1931. Its lighthouse keeper kept a diary of every ship that passed. "
          "Storms closed the mole twice that winter, and the ferry to Oster Island stopped for nine days. "
          "The diary was found in 1987 in a sealed tin under the stairs.")


def project(gold: GoldText | list[GoldText], passages: list[Passage], qrels: Qrels | None = None,
            corpus: dict[str, Document] | None = None) -> tuple[Qrels, MatchReport]:
    texts = tuple(gold) if isinstance(gold, list) else (gold,)
    return project_gold(Dataset((Question("q", "Where?", gold_texts=texts),), qrels or {}, corpus), passages)


def chunks(text: str, size: int, overlap: int = 0, offsets: bool = False) -> list[Passage]:
    starts = range(0, max(1, len(text) - overlap), size - overlap)
    return [Passage(f"s#{n}", text[start:start + size], "s",
                    metadata={"start": start, "end": min(len(text), start + size)} if offsets else {})
            for n, start in enumerate(starts)]


@pytest.mark.parametrize("gold", [
    "a diary of every ship that passed",
    "A  Diary of\n every SHIP that passed",
    "a diary of every ship\u200b that passed",
    "ａ diary of every ship that passed",
    "iary of every ship that pas",  # cut inside words, as spans by length are
])
def test_case_blanks_and_unicode_form_do_not_matter(gold: str) -> None:
    qrels, report = project(GoldText(gold), [Passage("other", "Nothing of it."), Passage("hit", SOURCE)])
    assert qrels == {"q": {"hit": 1.0}}
    assert [(m.kind, m.passage_ids, m.coverage) for m in report.matches] == [("exact", ("hit",), 1.0)]


def test_a_composed_and_a_decomposed_text_match() -> None:
    qrels, _ = project(GoldText("Das Café öffnet früh"), [Passage("p", "x Das Cafe\u0301 o\u0308ffnet fru\u0308h y")])
    assert qrels == {"q": {"p": 1.0}}


def test_a_short_gold_text_is_a_whole_word_and_cjk_needs_no_blanks() -> None:
    passages = [Passage("a", "Namibia is dry"), Passage("b", "the code is NA."), Passage("c", "如何重置密码的步骤")]
    assert project(GoldText("NA"), passages)[0] == {"q": {"b": 1.0}}
    assert project(GoldText("重置"), passages)[0] == {"q": {"c": 1.0}}
    assert project(GoldText("重置密码的步骤"), passages)[0] == {"q": {"c": 1.0}}


def test_a_text_cut_in_two_credits_the_half_that_carries_it() -> None:
    gold = GoldText("Storms closed the mole twice that winter, and the ferry to Oster Island", grade=2.0)
    place = SOURCE.index("Storms")
    for share, credited in ((0.8, ["a"]), (0.2, ["b"])):
        cut = place + int(share * len(gold.text))
        qrels, report = project(gold, [Passage("a", SOURCE[:cut]), Passage("b", SOURCE[cut:])])
        assert list(qrels["q"].items()) == [(name, 2.0) for name in credited]
        assert (report.matches[0].kind, report.matches[0].together) == ("exact", False)


def test_a_text_cut_in_many_pieces_credits_those_that_hold_it_together() -> None:
    gold = GoldText(SOURCE[10:190])
    pieces = [Passage(f"p{n}", SOURCE[start:start + 60]) for n, start in enumerate(range(10, 190, 60))]
    qrels, report = project(gold, [Passage("no", "Storms in another town."), *pieces])
    assert set(qrels["q"]) == {"p0", "p1", "p2"}
    assert (report.matches[0].kind, report.matches[0].together) == ("exact", True)


def test_whole_holders_alone_are_credited_where_chunks_overlap() -> None:
    gold = GoldText("kept a diary of every ship")
    place = SOURCE.index(gold.text)
    passages = [Passage("whole", SOURCE[place - 20:place + 60]), Passage("most", SOURCE[place + 6:place + 90]),
                Passage("also", SOURCE[place - 3:place + 40])]
    assert project(gold, passages)[0] == {"q": {"whole": 1.0, "also": 1.0}}


def test_a_slightly_different_text_is_fuzzy_and_another_text_is_gone() -> None:
    passages = [Passage("hit", SOURCE[:150]), Passage("miss", SOURCE[150:]), Passage("far", "of the and the a of the")]
    near = "Its light-house keeper has kept a diary of every ship that passed there"
    _, report = project([GoldText(near), GoldText("the recipe of the onion soup of the cook")], passages)
    fuzzy, gone = report.matches
    assert (fuzzy.kind, fuzzy.passage_ids) == ("fuzzy", ("hit",)) and 0.5 <= fuzzy.coverage < 1
    assert (gone.kind, gone.passage_ids) == ("gone", ())
    assert report.gone == (gone,) and report.count("fuzzy") == 1
    assert str(report) == "2 gold texts on 3 passages: 0 exact, 1 fuzzy, 1 gone"


def test_a_gone_text_keeps_its_place_in_the_denominator() -> None:
    qrels, _ = project([GoldText("a diary of every ship"), GoldText("no such sentence anywhere here")],
                       [Passage("hit", SOURCE)])
    gone = [passage for passage in qrels["q"] if passage.startswith(GONE_PREFIX)]
    assert len(gone) == 1 and qrels["q"] == {"hit": 1.0, gone[0]: 1.0}


def test_grades_merge_over_qrels_and_the_highest_counts() -> None:
    golds = [GoldText("dredged in 1931", grade=1.0), GoldText("a diary of every ship", grade=3.0)]
    qrels, _ = project(golds, [Passage("p", SOURCE)], {"q": {"p": 2.0, "x": 1.0}, "other": {"y": 1.0}})
    assert qrels == {"q": {"p": 3.0, "x": 1.0}, "other": {"y": 1.0}}


def test_the_document_gives_way_to_the_passage_in_it_unless_it_is_a_passage() -> None:
    passages = chunks(SOURCE, 100)
    qrels, report = project(GoldText("dredged in 1931"), passages, {"q": {"s": 1.0, "t": 1.0}})
    assert qrels == {"q": {"t": 1.0, "s#0": 1.0}} and report.replaced == 1
    whole = [Passage("s", SOURCE)]
    assert project(GoldText("dredged in 1931"), whole, {"q": {"s": 2.0}})[0] == {"q": {"s": 2.0}}


def test_a_document_id_keeps_the_search_in_that_document() -> None:
    passages = [Passage("a#0", SOURCE, "a"), Passage("b#0", SOURCE, "b")]
    assert project(GoldText("dredged in 1931", "b"), passages)[0] == {"q": {"b#0": 1.0}}
    unknown = [Passage("sha1:1", SOURCE), Passage("sha1:2", "Nothing.")]  # an index that knows nothing of documents
    assert project(GoldText("dredged in 1931", "b"), unknown)[0] == {"q": {"sha1:1": 1.0}}


@pytest.mark.parametrize("offsets", [True, False])
@pytest.mark.parametrize("title", ["", "Veld"])
def test_a_span_hits_its_chunk_with_and_without_offsets(offsets: bool, title: str) -> None:
    document = Document("s", SOURCE, title)
    start = SOURCE.index("1931")
    gold = GoldText(document_id="s", start=start, end=start + 4)
    content = document.content
    passages = chunks(content, 50, 10, offsets=offsets)
    qrels, report = project(gold, passages, corpus={"s": document})
    assert set(qrels["q"]) == {p.id for p in passages if "1931" in (p.text or "")} and report.matches[0].kind == "exact"
    assert report.matches[0].preview == "1931"


def test_a_span_of_a_repeated_word_hits_only_its_own_place() -> None:
    document = Document("s", "one 308 two. " + "filler words here " * 5 + "three 308 four.")
    second = document.text.rindex("308")
    passages = chunks(document.text, 40, offsets=True)
    qrels, _ = project(GoldText("308", "s", second, second + 3), passages, corpus={"s": document})
    assert list(qrels["q"]) == [passages[-1].id]
    without_corpus, _ = project(GoldText("308", "s", second, second + 3), passages)
    assert without_corpus == qrels


def test_the_place_of_a_passage_without_text_or_offsets_is_unknown() -> None:
    document = Document("s", SOURCE)
    assert place_in_document(Passage("p"), document) is None
    assert place_in_document(Passage("p", "not in it"), document) is None
    assert place_in_document(Passage("s"), document) == (0, len(SOURCE))
    assert place_in_document(Passage("p", "harbour"), None) is None
    assert place_in_document(Passage("p", "harbour"), document) == (4, 11)


# Chunks of at least a fifth of the longest span: one that adds less than a tenth of it is not credited.
@settings(max_examples=60, deadline=None)
@given(st.integers(16, 300), st.integers(0, 7), st.integers(0, 200), st.integers(20, 80), st.booleans())
def test_rechunking_never_voids_a_span(size: int, overlap: int, start: int, length: int, offsets: bool) -> None:
    gold = GoldText(document_id="s", start=start, end=min(len(SOURCE), start + length))
    passages = chunks(SOURCE, size, overlap, offsets)
    qrels, report = project(gold, passages, corpus={"s": Document("s", SOURCE)})
    assert report.count("gone") == 0
    held = [set(range(place[0], place[1])) for p in passages if p.id in qrels["q"]
            and (place := place_in_document(p, Document("s", SOURCE)))]
    span = set(range(gold.start or 0, gold.end or 0))
    assert all(held) and len(span & set().union(*held)) >= len(span) / 2


def test_order_of_passages_and_copies_of_ids_change_nothing() -> None:
    passages = chunks(SOURCE, 40, 10)
    gold = [GoldText(SOURCE[30:110]), GoldText("keeper kept the diary of every ship passed")]
    first = project(gold, passages)
    assert project(gold, passages) == first
    assert project(gold, [*passages, *passages]) == first
    reordered, _ = project(gold, passages[::-1])
    assert reordered == first[0]


def test_the_answer_spans_of_a_real_collection_survive_every_chunking() -> None:
    from ragkit.records.readers import load_dataset

    base = load_dataset(data_folder("xquad") / "en")
    assert base.corpus is not None
    questions = []
    for question in base.questions:
        (document,) = base.qrels[question.id]
        start = question.metadata["answer_start"]
        gold = GoldText(document_id=document, start=start, end=start + len(question.answers[0]))
        questions.append(Question(question.id, question.text, gold_texts=(gold,)))
    dataset = Dataset(tuple(questions), {}, base.corpus)
    for size in (80, 300, 10_000):
        passages = [Passage(f"{d.id}#{n}", d.text[s:s + size], d.id)
                    for d in base.corpus.values() for n, s in enumerate(range(0, len(d.text), size))]
        qrels, report = project_gold(dataset, passages)
        assert (report.count("exact"), len(report.matches)) == (1190, 1190)
        if size == 10_000:
            for question in questions:
                assert list(qrels[question.id]) == [f"{next(iter(base.qrels[question.id]))}#0"]


def test_a_thousand_texts_on_ten_thousand_passages_are_quick() -> None:
    words = [f"w{n * 7919 % 3001}" for n in range(400_000)]
    passages = [Passage(f"p{n}", " ".join(words[n * 40:n * 40 + 40])) for n in range(10_000)]
    golds = []
    for n in range(1_000):
        text = words[n * 400 + 5:n * 400 + 30]
        text[10:11] = ["changed"] if n % 2 else text[10:11]
        golds.append(GoldText(" ".join(text)))
    started = time.perf_counter()
    _, report = project(golds, passages)
    assert report.count("gone") == 0 and report.count("fuzzy") == 500
    assert time.perf_counter() - started < 60  # about 2 s on a quiet core; a search of all in all takes minutes
