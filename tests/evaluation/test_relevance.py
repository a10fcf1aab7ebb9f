"""Runs without gold, scored by judged labels: hand-worked values, nothing mixed with gold, nothing lost made a 0."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ragkit.errors import DataError
from ragkit.evaluation.evaluate import areport, run_async, score
from ragkit.evaluation.pooling import on_one_pool, pool_fingerprint
from ragkit.evaluation.table import FINAL, read_scores
from ragkit.records.questions import Dataset, Document
from ragkit.records.trajectory import Passage, Retrieval
from tests.support.labelled_runs import BARE, DOGS, FILM, HALF, INES, MAKER, TWO_STEPS, judged, trajectory, values
from tests.support.openai_server import OpenAIServer, Request, ragas_input
from tests.support.relevance import relevance_judge


def test_values_worked_by_hand() -> None:
    made, calls = judged([TWO_STEPS, trajectory(BARE, ("What barks?", (DOGS, HALF)), context=(DOGS,))])
    assert len(calls) == 6, "the statements, and five pairs: what stands in several lists is asked once"
    no_full_r = "undefined: judged labels give no full R"
    # grades 1, 3 at the end; the pool holds 3, 1, 0: ideal 3 + 1 / log2(3)
    assert values(made, "q1") == {
        "hit@1": 0, "recall": 1, "recall@1": 0.5, "allhit": 1, "mrr": 0.5, "map": 0.5,
        "ndcg@5": pytest.approx((1 + 3 / 1.584963) / (3 + 1 / 1.584963), abs=1e-5), "precision@2": 0.5, "judged@5": 1,
        "id_context_recall": no_full_r, "aucr@3": 0.833333, "steps_to_evidence": 2, "survival": 1}
    assert values(made, "q1", "0") | {"map": 0} == values(made, "q1", "0"), "a bridge passage has no full answer"
    first, second = values(made, "q1", "0"), values(made, "q1", "1")
    assert (first["recall"], first["mrr"], first["cumulative_recall"], first["novelty"]) == (0.5, 0, 0.5, 1)
    assert (second["recall"], second["recall@1"], second["mrr"]) == (0.5, 0, 0.5)
    assert (second["cumulative_recall"], second["novelty"]) == (1, 0.5)
    bare = values(made, "q2")
    assert [bare[name] for name in ("recall", "recall@1", "allhit", "aucr@3", "survival")] == [no_full_r] * 5
    assert (bare["hit@1"], bare["mrr"], bare["ndcg@5"]) == (0, 0, 0), "the pool holds a passage that answers"
    assert made.summary["metrics"]["mrr"]["mean"] == 0.25
    assert made.summary["metrics"]["mrr"]["labels"] == "judged"
    assert made.summary["judged_labels"]["metrics"] == {
        name: made.summary["metrics"][name] for name in made.summary["judged_labels"]["metrics"]}
    assert made.summary["outcomes"] == {"complete_wrong": 1, "unlabelled_unchecked": 1}
    assert made.data.worst[0].statements == ("The film was made by Ines.", "Ines was born in 1951.")
    funnel = made.summary["funnel"]["all"]["stages"]
    assert {fate: part["count"] for fate, part in funnel.items()} == {"in_context_wrong": 2}
    assert made.data.fix_first.startswith("Fix the generator first: on 1 of 1 judged questions")
    assert not made.partial


def test_each_step_is_held_against_its_own_query() -> None:
    made, calls = judged([TWO_STEPS], per_step_query=True)
    first, second = values(made, "q1", "0"), values(made, "q1", "1")
    assert (first["query_precision@5"], first["query_ndcg@5"]) == (0.2, 1), "it found what it asked for, at rank 1"
    assert (second["query_precision@5"], second["query_ndcg@5"]) == (0.2, 0.63093)
    assert made.summary["per_step"]["0"]["query_ndcg@5"]["mean"] == 1
    assert len(calls) == 4 + 4
    assert "query_ndcg@5" not in made.summary["metrics"], "it has no value at the end"


def test_a_query_that_is_the_question_costs_nothing_more() -> None:
    item = trajectory(MAKER, (MAKER.text, (FILM, INES)), context=(INES,))
    assert len(judged([item], per_step_query=True)[1]) == len(judged([item])[1]) == 3


def test_own_queries_are_judged_beside_gold_alone() -> None:
    data = Dataset((MAKER,), {"q1": {"ines": 1}})
    made, calls = judged([TWO_STEPS], data, relevance=None, per_step_query=True)
    assert len(calls) == 4
    assert made.summary["per_step"]["0"]["query_precision@5"]["mean"] == 0.2
    assert made.summary["per_step"]["0"]["recall"]["labels"] == "gold"
    assert "judged_labels" not in made.summary


def test_gold_and_judged_labels_stand_apart() -> None:
    data = Dataset((MAKER, BARE), {"q1": {"ines": 1, "dogs": 1}})
    made, _ = judged([TWO_STEPS, trajectory(BARE, ("?", (HALF,)), context=(HALF,))], data)
    assert values(made, "q1", labels="gold")["recall"] == 0.5
    assert values(made, "q1")["recall"] == 1
    assert values(made, "q2", labels="none")["mrr"] == "undefined: unlabelled"
    assert values(made, "q2")["mrr"] == 1, "judged labels are given for all questions"
    assert (made.summary["metrics"]["recall"]["mean"], made.summary["metrics"]["recall"]["labels"]) == (0.5, "gold")
    assert made.summary["metrics"]["mrr"]["n_scored"] == 1
    beside = made.summary["judged_labels"]
    assert (beside["metrics"]["mrr"]["n_scored"], beside["metrics"]["mrr"]["labels"]) == (2, "judged")
    agreement = beside["agreement_with_gold"]
    assert (agreement["n"], agreement["agreed"], agreement["both_relevant"]) == (3, 2, 1)
    assert agreement["kappa"] == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))
    assert made.summary["outcomes"] == {"incomplete_wrong": 1, "unlabelled_unchecked": 1}, "outcomes are by gold"


def test_steps_that_share_passages_cost_what_differs() -> None:
    """Three steps of four passages and the final context, half of each seen before: the exact count of pairs."""
    def found(*numbers: int) -> tuple[Passage, ...]:
        return tuple(Passage(f"p{n}", f"Passage {n}. [1]") for n in numbers)

    item = trajectory(MAKER, ("a", found(1, 2, 3, 4)), ("b", found(3, 4, 5, 6)), ("c", found(5, 6, 7, 8)),
                      context=found(1, 3, 5, 7))
    made, calls = judged([item])
    assert len(calls) == 1 + 8, "of 16 places in lists"
    assert made.summary["judged_labels"]["pool"]["pairs"] == 8


def test_a_pair_that_failed_is_no_zero() -> None:
    def reply(request: Request) -> str:
        lost = "Dogs" in ragas_input(request.first_prompt).get("passage", "")
        return "no JSON today" if lost else relevance_judge(request)

    made, _ = judged([TWO_STEPS], reply=reply)
    first, second, end = values(made, "q1", "0"), values(made, "q1", "1"), values(made, "q1")
    rank = ("hit@1", "recall", "recall@1", "allhit", "mrr", "precision@2")
    assert not any("failed" in str(end[name]) for name in rank), "what failed does not stand in the final list"
    assert all(str(end[name]).startswith("failed") for name in ("map", "ndcg@5", "survival")), (
        "an ideal, and what was found and dropped, may hold it")
    assert str(end["steps_to_evidence"]).startswith("failed"), "it might have carried everything at step 0"
    assert str(first["mrr"]).startswith("failed: 1 of 2 passages not judged: unusable reply")
    assert (first["hit@1"], first["recall@1"]) == (0, 0.5), "these do not depend on it"
    assert first["judged@5"] == 0.5
    assert second["novelty"] == 0.5
    assert str(second["recall"]).startswith("failed")
    assert (first["cumulative_recall"], second["cumulative_recall"]) == (
        "failed: 1 of 3 passages not judged: " + str(first["mrr"]).partition("judged: ")[2], 1)
    assert made.summary["per_step"]["0"]["mrr"]["n_failed"] == 1
    assert made.partial
    assert made.data.failures[0][:2] == ("q1", "relevance of 1 passage")


def test_a_passage_without_a_text_cannot_be_judged() -> None:
    made, calls = judged([trajectory(MAKER, ("?", (Passage("nameless"), INES)), context=(INES,))])
    step = values(made, "q1", "0")
    assert step["hit@1"] == "undefined: 1 of 2 passages have no text to judge"
    assert step["judged@5"] == 0.5
    assert values(made, "q1")["hit@1"] == 1
    assert len(calls) == 2
    assert not made.partial


def test_texts_come_from_the_corpus_where_the_list_has_ids_only() -> None:
    data = Dataset((MAKER,), corpus={"ines": Document("ines", "Ines was born in 1951. [3]")})
    made, _ = judged([trajectory(MAKER, ("?", (Passage("ines"),)), context=(Passage("ines"),))], data)
    assert values(made, "q1")["mrr"] == 1


def test_nothing_is_asked_about_a_question_that_is_declared_unanswerable() -> None:
    made, calls = judged([trajectory(replace(MAKER, unanswerable=True), ("?", (INES,)), context=(INES,))],
                         (replace(MAKER, unanswerable=True),))
    assert not calls
    assert set(values(made, "q1", labels="none").values()) == {"undefined: declared unanswerable"}
    beside, calls = judged([trajectory(replace(MAKER, unanswerable=True), ("?", (INES,)), context=(INES,)),
                            trajectory(BARE, context=(HALF,))], (replace(MAKER, unanswerable=True), BARE))
    assert len(calls) == 1
    assert set(values(beside, "q1").values()) == {"undefined: declared unanswerable"}


def test_a_question_whose_answer_was_not_found_counts_with_zero() -> None:
    made, _ = judged([trajectory(MAKER, ("?", (DOGS,)), context=(DOGS,)), trajectory(BARE, context=())])
    assert [values(made, "q1")[name] for name in ("hit@1", "mrr", "map", "ndcg@5", "recall", "aucr@3")] == [0] * 6
    assert [values(made, "q2")[name] for name in ("hit@1", "mrr", "ndcg@5")] == [0] * 3
    assert any("without a passage of grade 2" in note and "q1" in note for note in made.data.notes)


def test_one_text_under_two_ids_is_one_thing_and_one_id_with_two_texts_is_two() -> None:
    copy = Passage("copy", INES.text)
    extract = Passage("ines", "Born then. [0]")
    made, calls = judged([trajectory(MAKER, ("?", (INES, copy, extract)), context=(copy,))])
    assert len(calls) == 3
    assert values(made, "q1", "0")["precision@2"] == 0.5, "the later copy gains nothing"
    assert values(made, "q1")["mrr"] == 1
    shown = made.data.worst[0].steps[0].lists[0].passages
    assert [(view.id, view.grade, view.copy) for view in shown] == [
        ("ines", 3, False), ("copy", 3, True), ("ines", 0, False)]


def test_an_app_that_failed_is_failed_and_a_set_has_no_order() -> None:
    broken = trajectory(MAKER, ("?", (INES,)), error="Boom: x")
    unordered = replace(trajectory(BARE, ("?", (HALF,))), context=Retrieval("context", "", (HALF, DOGS), ranked=False))
    made, _ = judged([broken, unordered])
    assert values(made, "q1")["mrr"] == "failed: app failed: Boom: x"
    assert (values(made, "q2")["mrr"], values(made, "q2")["recall@1"]) == (
        "undefined: no order", "undefined: judged labels give no full R")


@pytest.mark.parametrize("seed", range(4))
def test_rank_metrics_are_those_of_the_same_grades_as_gold(seed: int) -> None:
    """The judged labels, written down as gold, give the same numbers where something in the pool is relevant."""
    dice, names = random.Random(seed), (
        "hit@2,precision@3,precision_set,mrr,map,map@2,ndcg,ndcg@2,ndcg_exp@3,dcg,sdcg@2,nsdcg@2")
    passages = [Passage(f"p{n}", f"Passage {n}. [{dice.choice([0, 1, 2, 3])}]") for n in range(8)]
    passages.append(Passage("best", "The best. [3]"))
    items = [trajectory(q, *[("?", tuple(dice.sample(passages, 4))) for _ in range(2)],
                        ("?", (passages[-1],)), context=tuple(dice.sample(passages, 3))) for q in (MAKER, BARE)]
    made, _ = judged(items, metrics=names)
    seen = {q: {p.id: float(str(p.text)[-2]) for t in items if t.question_id == q
                for r in [*(s.outermost for s in t.steps), t.context] if r for p in r.passages} for q in ("q1", "q2")}
    gold = score(items, Dataset((MAKER, BARE), seen), metrics=names, level=2)
    for question in ("q1", "q2"):
        for step in ("0", "1", "2", FINAL):
            assert values(made, question, step) == values(gold, question, step, "gold")


def test_variants_share_pairs_and_are_scored_on_one_pool(tmp_path: Path) -> None:
    settings = {"store": tmp_path / "judgements.sqlite"}
    weak = trajectory(MAKER, ("?", (FILM, DOGS)), context=(FILM, DOGS))
    strong = trajectory(MAKER, ("?", (INES, FILM)), context=(INES, FILM))
    with OpenAIServer(relevance_judge) as server:
        a, _ = judged([weak], url=server.url, settings=settings, out=tmp_path / "a")
        b, _ = judged([strong], url=server.url, settings=settings, out=tmp_path / "b")
        assert len(server.calls) == 3 + 1, "of the second variant only the passage that is new"
    assert values(a, "q1")["ndcg@5"] == 1, "the pool of the first run holds nothing better"
    assert pool_fingerprint(a) != pool_fingerprint(b)
    pooled = run_async(on_one_pool([a, b]))
    assert pool_fingerprint(pooled[0]) == pool_fingerprint(pooled[1]) == pool_fingerprint(b)
    assert values(pooled[0], "q1")["ndcg@5"] < 1
    assert values(pooled[1], "q1") == values(b, "q1")
    assert pooled[0].summary["judge"] == a.summary["judge"], "what it cost stays"
    again = asyncio.run(areport(tmp_path / "a"))
    assert values(again, "q1") == values(pooled[0], "q1"), "a report is made on what the store holds by now"
    assert run_async(on_one_pool(pooled)) == pooled


def test_stores_of_their_own_are_pooled_without_being_written_to(tmp_path: Path) -> None:
    weak = trajectory(MAKER, ("?", (FILM,)), context=(FILM,))
    strong = trajectory(MAKER, ("?", (INES,)), context=(INES,))
    with OpenAIServer(relevance_judge) as server:
        a, _ = judged([weak], url=server.url, out=tmp_path / "a")
        b, _ = judged([strong], url=server.url, out=tmp_path / "b")
    a2, b2 = run_async(on_one_pool([a, b]))
    assert pool_fingerprint(a2) == pool_fingerprint(b2)
    assert a2.summary["judged_labels"]["pool"]["judged"] == 2
    assert values(a2, "q1")["ndcg@5"] == pytest.approx(1 / (3 + 1 / 1.584963), abs=1e-5)
    assert asyncio.run(areport(tmp_path / "a")).summary["judged_labels"]["pool"]["judged"] == 1


def test_the_run_folder_keeps_both_and_the_same_command_asks_nothing(tmp_path: Path) -> None:
    data = Dataset((MAKER, BARE), {"q1": {"ines": 1}})
    with OpenAIServer(relevance_judge) as server:
        made, _ = judged([TWO_STEPS], data, url=server.url, out=tmp_path / "run")
        asked = len(server.calls)
        again, _ = judged([TWO_STEPS], data, url=server.url, out=tmp_path / "run", relevance=None)
        assert len(server.calls) == asked
    assert again.summary["judged_labels"]["metrics"] == made.summary["judged_labels"]["metrics"], "kept, as metrics are"
    assert set(read_scores(tmp_path / "run" / "scores.parquet")["labels"]) == {"gold", "judged"}
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["relevance"]["fingerprint"] == pool_fingerprint(made)
    for name in ("report.md", "report.html"):
        page = (tmp_path / "run" / name).read_text()
        assert "Judged labels" in page


def test_a_shareable_folder_holds_no_statement(tmp_path: Path) -> None:
    judged([TWO_STEPS], out=tmp_path / "run", include_text=False)
    for name in ("report.md", "report.html", "summary.json", "run.json"):
        assert "was born" not in (tmp_path / "run" / name).read_text()


def test_a_limit_on_calls_ends_the_run_with_what_is_missing() -> None:
    made, calls = judged([TWO_STEPS], settings={"max_calls": 2, "concurrency": 1})
    assert len(calls) == 2
    assert made.summary["judge"]["not_judged"]["relevance"] == {"missing": 2, "of": 3}
    assert made.partial


def test_labels_by_a_judge_need_a_judge() -> None:
    for wanted in ({"relevance": "judge"}, {"per_step_query": True}):
        with pytest.raises(DataError, match="needs a judge"):
            score([TWO_STEPS], Dataset((MAKER,)), metrics="recall", **wanted)
    with pytest.raises(DataError, match="expected 'judge'"):
        score([TWO_STEPS], Dataset((MAKER,)), metrics="recall", relevance="people")
    made = score([TWO_STEPS], Dataset((MAKER,)), metrics="query_ndcg@3")
    assert made.summary["per_step"]["0"]["query_ndcg@3"]["reasons"] == {"needs a judge": 1}


def test_what_is_divided_by_an_ideal_is_failed_beside_unjudged_passages() -> None:
    """Neither the worst nor the best grades bound them: relevant at ranks 1 and 3 gives less than both."""
    from ragkit.evaluation.judged_bounds import Unjudged
    from ragkit.records.judgements import Score

    one, none = Score.scored(1), Score.scored(0)
    own, elsewhere = Unjudged({"u1": "refused", "u2": "refused"}, 3, {}), Unjudged({}, 2, {"sha1:u": "refused"})
    assert [own.sure(name, one, one).status for name in ("map", "ndcg@3", "mrr", "hit@1")] == [
        "failed", "failed", "scored", "scored"]
    assert [elsewhere.sure(name, one, one).status for name in ("map", "ndcg@3", "precision@2")] == [
        "failed", "failed", "scored"]
    assert own.sure("rerank_lift", none, none).status == "failed"
