"""Where signals disagree: what counts as a conflict, which way, on which questions, and which cause the data show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import fisher_exact

import ragkit
from ragkit.comparison.causes_weighing import NEEDS, fisher
from ragkit.comparison.compare import compare_sides
from ragkit.comparison.run_sides import sides_of_runs
from ragkit.comparison.sides import Side, side_of_evaluation
from ragkit.evaluation.result import Evaluation
from ragkit.records.judgements import Score
from ragkit.records.questions import Dataset, Question
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory
from tests.support.variants import at_rank, ranked, variant

COUNT = 12
ASKED = [f"q{n}" for n in range(COUNT)]
METRICS = "ndcg@5,hit@1,recall,precision@5,precision_set,answer_f1,lexical_support"
Context = Sequence[tuple[str, str]]


def data(answer: str = "Mount Elbert", gold: Mapping[str, float] | None = None) -> Dataset:
    return Dataset(tuple(Question(name, f"Which is number {name}?", (answer,)) for name in ASKED),
                   {name: dict(gold or {"g": 1.0}) for name in ASKED})


def run(contexts: Mapping[str, Context], answers: Mapping[str, str] | None = None, dataset: Dataset | None = None,
        found: Context = ()) -> Evaluation:
    """A variant: of each question what its context holds, what it answered, and what one search found besides."""
    made = []
    for name in ASKED:
        kept = [Passage(key, text) for key, text in contexts.get(name, [("x", "Nothing of it.")])]
        searched = [*kept, *(Passage(key, text) for key, text in found)]
        step = Step(0, (Retrieval("retrieve", "?", tuple(searched)),))
        made.append(Trajectory(name, f"Which is number {name}?", (step,), Retrieval("context", "", tuple(kept)),
                               (answers or {}).get(name, "Pikes Peak")))
    return ragkit.score(made, dataset or data(), metrics=METRICS)


def conflicts(base: Evaluation, own: Evaluation, **more: Any) -> dict[str, Any]:
    """The conflicts of two variants by kind."""
    return by_kind([side_of_evaluation("base", base), side_of_evaluation("own", own)], **more)


def by_kind(sides: Sequence[Side], **more: Any) -> dict[str, Any]:
    found = compare_sides(sides, **more).data["conflicts"]
    return {entry["kind"]: entry for entry in found}


def causes(entry: Mapping[str, Any]) -> dict[str, tuple[int, int, int]]:
    return {one["cause"]: (one["count"], one["of"], one["elsewhere"]) for one in entry["causes"]}


def test_identical_variants_disagree_nowhere() -> None:
    same = ranked(1, 3, None, metrics="ndcg@5,hit@5,recall@5,precision_set,exact_match")
    entries = conflicts(same, same)
    assert set(entries) <= {"right_without_gold"}
    assert all(entry["net"] == {"difference": 0, "low": 0, "high": 0} and not entry["in_means"]
               for entry in entries.values())


def test_a_better_order_that_leaves_the_failing_questions_failing() -> None:
    metrics = "ndcg@10,hit@5"
    base = variant({f"q{n}": [at_rank(3 if n < 8 else 9)] for n in range(12)}, metrics=metrics)
    own = variant({f"q{n}": [at_rank(1 if n else 2) if n < 8 else at_rank(9)] for n in range(12)}, metrics=metrics)
    entry = conflicts(base, own)["order_up_hit_unchanged"]
    assert (entry["up"], entry["metrics"], entry["count"], entry["other_way"], entry["n"]) == (
        "own", ["ndcg@10", "hit@5"], 8, 0, 12)
    assert entry["says"] == ("ndcg@10 is better in own on 8 questions whose hit@5 is unchanged; 8 of them worked in "
                             "base already, and of the 4 that failed there 4 still do")
    assert entry["questions"]["ids"] == ["q1", "q2", "q3", "q4", "q5", "q6", "q7", "q0"], "the largest gain first"
    assert entry["still_failing"] == {"total": 4, "ids": ["q8", "q9", "q10", "q11"]}
    assert entry["in_means"] and entry["likely"] == "below_the_cut" and entry["net"]["low"] > 0.3
    assert causes(entry)["below_the_cut"] == (4, 4, 0)
    turned = conflicts(own, base)["order_up_hit_unchanged"]
    assert (turned["up"], turned["variant"], turned["count"]) == ("base", "own", 8), "the side that is up is named"


def test_a_conflict_lists_twenty_questions_and_says_how_many_there_are() -> None:
    names = [f"q{n}" for n in range(30)]
    base = variant({name: [at_rank(2)] for name in names}, metrics="ndcg@5,hit@5")
    own = variant({name: [at_rank(1)] for name in names}, metrics="ndcg@5,hit@5")
    questions = conflicts(base, own)["order_up_hit_unchanged"]["questions"]
    assert questions["total"] == 30 and questions["ids"] == names[:20]


def test_more_evidence_in_more_passages_and_the_copies_among_them() -> None:
    fact = ("g", "The highest of all is a mountain in the west of the country.")
    copy = ("c", "The highest of all is a mountain in the west of this country.")
    gold = {"g": 1.0, "h": 1.0}
    base = run({name: [fact] for name in ASKED}, dataset=data(gold=gold))
    own = run({name: [fact, ("h", "A second part of it."), copy, ("y", "Weather there.")] if n < 6 else [fact]
               for n, name in enumerate(ASKED)}, dataset=data(gold=gold))
    entry = conflicts(base, own)["recall_up_precision_down"]
    assert (entry["up"], entry["count"], entry["metrics"]) == ("own", 6, ["recall", "precision_set"])
    assert entry["in_means"] and causes(entry) == {
        "label_hole": (0, 6, 0), "redundant_passages": (6, 6, 0), "more_passages": (6, 6, 0)}
    assert entry["likely"] in ("redundant_passages", "more_passages")


def test_a_better_list_and_a_worse_answer_because_it_was_refused() -> None:
    base = run({}, dict.fromkeys(ASKED, "Mount Elbert"))
    own = run({name: [("g", "Mount Elbert is the highest.")] for name in ASKED[:9]},
              {name: "I do not know." if n < 7 else "Mount Elbert" for n, name in enumerate(ASKED)})
    entry = conflicts(base, own)["rank_up_answer_down"]
    assert (entry["up"], entry["count"], entry["likely"], entry["in_means"]) == ("own", 7, "answer_refused", True)
    assert causes(entry)["answer_refused"] == (7, 7, 0)
    assert causes(entry)["lost_after_retrieval"] == (0, 7, 0)


def test_a_right_answer_without_gold_by_a_hole_in_the_labels_from_a_step_or_from_memory() -> None:
    right = dict.fromkeys(ASKED[:6], "Mount Elbert")
    gold = [("g", "It is Mount Elbert, as is known.")]
    rest = dict.fromkeys(ASKED[6:], gold)
    other = run(dict.fromkeys(ASKED, gold))
    hole = run({**rest, **{name: [("u", "That is Mount Elbert, surely.")] for name in ASKED[:6]}}, right)
    entry = conflicts(other, hole)["right_without_gold"]
    assert (entry["count"], entry["up"], entry["likely"]) == (6, "own", "label_hole")
    assert entry["questions"]["ids"] == ASKED[:6]
    assert entry["in_means"] and entry["net"]["difference"] == 0.5 and entry["other_way"] == 0
    memory = conflicts(other, run({**rest, **{name: [("u", "Of something else.")] for name in ASKED[:6]}}, right,
                                  found=()))["right_without_gold"]
    assert causes(memory)["label_hole"] == (0, 6, 0) and causes(memory)["from_memory"] == (6, 6, 0)
    assert memory["likely"] == "from_memory"
    lost = conflicts(other, run({**rest, **{name: [("u", "Of something else.")] for name in ASKED[:6]}}, right,
                                found=gold))["right_without_gold"]
    assert lost["likely"] == "lost_after_retrieval" and causes(lost)["lost_after_retrieval"] == (6, 6, 0)


def test_an_answer_of_yes_or_no_is_no_sign_of_a_hole() -> None:
    base = run({name: [("g", "It is so.")] for name in ASKED}, dataset=data("yes"))
    own = run({name: [("u", "Yes, yes.")] for name in ASKED}, dict.fromkeys(ASKED, "yes"), dataset=data("yes"))
    entry = conflicts(base, own)["right_without_gold"]
    assert causes(entry) == {"lost_after_retrieval": (0, 12, 0), "guessable": (12, 12, 0)}
    assert entry["untested"]["label_hole"] == NEEDS["label_hole"]


def test_a_cause_that_holds_everywhere_is_not_the_likely_one() -> None:
    hole, gold = ("u", "It is Mount Elbert."), ("g", "The gold.")
    base = run({name: [hole, gold] for name in ASKED})
    own = run({name: [hole] if n < 6 else [hole, gold] for n, name in enumerate(ASKED)},
              dict.fromkeys(ASKED, "Mount Elbert"))
    entry = conflicts(base, own)["right_without_gold"]
    assert entry["count"] == 6 and causes(entry)["label_hole"] == (6, 6, 6) and entry["likely"] is None


def test_what_no_text_tells_is_named_as_untested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/queries.jsonl").write_text('{"_id": "q1", "text": "Which?", "answers": ["Mount Elbert"]}\n', "utf-8")
    Path("qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tg\t1\nq1\th\t1\n", "utf-8")
    for name, ids in (("base", ["g", "x"]), ("own", ["x", "y", "g", "h"])):
        Path(f"{name}.json").write_text(json.dumps({"q1": ids}), "utf-8")
    entry = by_kind(sides_of_runs("qrels.tsv", ["base.json", "own.json"], "recall,precision@2,precision@1",
                                  dataset="data"))["recall_up_precision_down"]
    assert causes(entry) == {"more_passages": (1, 1, 0)}
    assert entry["untested"] == {cause: NEEDS[cause] for cause in ("label_hole", "redundant_passages")}


def judged(evaluation: Evaluation, name: str, values: Mapping[str, float | None]) -> Side:
    """A side with a judge's faithfulness by question; None: the judge failed."""
    rows = {q: {0: Score.failed("timed out") if value is None else Score.scored(value)} for q, value in values.items()}
    side = side_of_evaluation(name, evaluation)
    return replace(side, scores={**side.scores, "faithfulness": rows})


def test_a_judgement_that_failed_is_no_lower_one_and_is_told_as_a_cause() -> None:
    base = judged(run({}), "base", dict.fromkeys(ASKED, 0.9))
    better = run({name: [("g", "It.")] for name in ASKED[:7]})
    failing: dict[str, float | None] = {name: None if n < 5 else 0.4 if n < 7 else 0.9 for n, name in enumerate(ASKED)}
    entry = by_kind([base, judged(better, "own", failing)])["rank_up_judged_down"]
    assert entry["metrics"] == ["ndcg@5", "faithfulness"]
    assert (entry["count"], entry["questions"]["ids"], entry["n"]) == (2, ["q5", "q6"], 7), "2 fell, 5 nobody knows"
    assert entry["judge_failed"] == {"total": 5, "ids": ASKED[:5]} and entry["likely"] == "judge_failed"
    assert entry["says"].endswith("on 5 more where ndcg@5 is better, faithfulness failed in one of the two")


def test_a_judge_that_sees_more_evidence_than_the_labels() -> None:
    made = run({name: [("u", "Mount Elbert it is.")] if n < 5 else [("g", "It.")] for n, name in enumerate(ASKED)})
    sides = []
    for name, high in (("base", 0), ("own", 5)):
        side = side_of_evaluation(name, made)
        rows = {q: {0: Score.scored(1.0 if n < high or n >= 5 else 0.0)} for n, q in enumerate(ASKED)}
        sides.append(replace(side, judged={"recall": rows}))
    entry = by_kind(sides, labels="gold")["judged_recall_high_labelled_low"]
    assert (entry["up"], entry["count"], entry["other_way"], entry["likely"]) == ("own", 5, 0, "label_hole")


def test_conflicts_stand_in_the_order_of_what_the_means_show() -> None:
    base, own = run({}, dict.fromkeys(ASKED, "Mount Elbert")), run(
        {name: [("g", "It.")] for name in ASKED[:7]}, dict.fromkeys(ASKED[8:], "Mount Elbert"))
    found = ragkit.compare({"base": base, "own": own}).data["conflicts"]
    assert [entry["in_means"] for entry in found] == sorted((entry["in_means"] for entry in found), reverse=True)
    assert len(found) > 1


@pytest.mark.parametrize("cells", [(3, 5, 2, 9), (0, 4, 3, 8), (7, 7, 0, 40), (20, 50, 30, 120)])
def test_the_test_of_a_cause_is_fishers(cells: tuple[int, int, int, int]) -> None:
    count, of, elsewhere, rest = cells
    expected = fisher_exact([[count, of - count], [elsewhere, rest - elsewhere]], "greater").pvalue
    assert fisher(*cells) == pytest.approx(expected, rel=1e-9)
