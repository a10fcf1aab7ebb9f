"""What the steps of a run show together: funnel, turns, spread of recall, and how the app searched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragkit import score
from ragkit.evaluation.privacy import without_texts
from ragkit.evaluation.score import evidence_path
from ragkit.evaluation.trajectory_summary import (
    Watched,
    add_ratios,
    funnel_entry,
    per_turn,
    recall_spread,
    repeats,
    retrieval_entry,
)
from ragkit.metrics.registry import parse_all
from ragkit.recording.formats.imported import UNKNOWN
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory


def step(index: int, ids: str, turn: int | None = None, query: str = "", error: str | None = None) -> Step:
    found = tuple(Passage(name) for name in ids)
    return Step(index, (Retrieval("retrieve", query or f"search {index}", found, error=error),),
                index if turn is None else turn)


def asked(question_id: str, *steps: Step, context: str | None = None, **more: object) -> Trajectory:
    kept = None if context is None else Retrieval("context", passages=tuple(map(Passage, context)), ranked=False)
    return Trajectory(question_id, f"question {question_id}", steps, kept, **more)  # type: ignore[arg-type]


def watched(*trajectories: Trajectory, gold: dict[str, str], right: dict[str, bool] | None = None,
            categories: dict[str, str] | None = None) -> Watched:
    paths = {t.key: evidence_path(t, lambda passages: tuple(p.id for p in passages),
                                  dict.fromkeys(gold.get(t.question_id, ""), 1.0),
                                  answer_right=(right or {}).get(t.question_id)) for t in trajectories}
    return Watched(trajectories, paths, categories or {})


def test_the_funnel_adds_up_in_all_and_in_every_category() -> None:
    run = watched(asked("q1", step(0, "ax"), step(1, "b"), context="a"), asked("q2", step(0, "c"), context="c"),
                  asked("q3", step(0, "x"), context="x"), asked("q4", error="down"),
                  gold={"q1": "abz", "q2": "c", "q3": "y", "q4": "w"}, right={"q1": False, "q2": True},
                  categories={"q1": "how-to", "q2": "fact"})
    found = funnel_entry(run)
    assert found["all"] == {"total": 5, "stages": {
        "never_retrieved": {"count": 2, "share": 0.4}, "lost_at_cut": {"count": 1, "share": 0.2},
        "in_context_wrong": {"count": 1, "share": 0.2}, "in_context_right": {"count": 1, "share": 0.2}}}
    assert set(found["categories"]) == {"how-to", "fact", "(no category)"}, "without a category: a slice of its own"
    assert sum(one["total"] for one in found["categories"].values()) == 5
    for entry in (found["all"], *found["categories"].values()):
        assert sum(stage["share"] for stage in entry["stages"].values()) == pytest.approx(1)
    assert (found["labels"], found["noun"]) == ("gold", "gold passages")
    assert funnel_entry(replace(run, judged=True))["noun"] == "statements"
    assert funnel_entry(watched(gold={}))["all"] == {"total": 0, "stages": {}}


def test_evidence_whose_answer_nobody_checked_is_said_to_be_unchecked() -> None:
    found = funnel_entry(watched(asked("q", step(0, "a")), gold={"q": "a"}))
    assert found["all"]["stages"] == {"in_context_unchecked": {"count": 1, "share": 1.0}}


def test_how_the_app_searched() -> None:
    cut = Retrieval("context", passages=(Passage("a", metadata={"truncated": True}),))
    run = watched(
        asked("q1", step(0, "a", query="Rome"), step(1, "a", query=' "rome" '), step(2, "", error="timed out")),
        asked("q2", step(0, "x", 0), step(1, "b", 0), context="b"),
        replace(asked("q3"), context=cut), asked("q4", error="down"), gold={"q1": "a", "q2": "b", "q3": "a"})
    found = retrieval_entry(run)
    assert found["answered_without"] == {"count": 1, "of": 3, "share": pytest.approx(1 / 3)}
    assert found["failing_steps"] == {"count": 1, "of": 5, "share": 0.2}
    assert found["repeated_queries"] == {"count": 1, "of": 5, "share": 0.2}
    assert found["wasted_steps"] == {"count": 3, "of": 5, "share": 0.6}, "found nothing new, failed, or found no gold"
    assert found["steps"] == {"mean": 1.25, "median": 1.0, "max": 3}
    assert found["turns"] == {"mean": 1.0, "median": 0.5, "max": 3}
    assert found["context"] == {"known": 2, "of": 4, "truncated": 1, "sets": 1}
    unknown = watched(asked("q", answer="yes", meta={"warnings": [UNKNOWN]}), gold={})
    assert retrieval_entry(unknown)["answered_without"]["of"] == 0, "a file of answers alone tells nothing"
    assert retrieval_entry(watched(gold={}))["wasted_steps"] == {"count": 0, "of": 0, "share": None}


def test_a_query_is_the_same_whatever_its_case_blanks_and_quotes() -> None:
    steps = [step(0, "", query="Who  built it?"), step(1, "", query="'who built it?'"), step(2, "", query="who built")]
    assert repeats(steps) == [False, True, False]
    silent = [Step(i, (Retrieval("retrieve", " "),), i) for i in range(2)]
    assert repeats(silent) == [False, False], "nobody knows what was asked"


def test_parallel_searches_are_one_turn() -> None:
    run = watched(asked("q1", step(0, "ax", 0), step(1, "bx", 0), step(2, "c", 4)), asked("q2", step(0, "d", 0)),
                  gold={"q1": "abc", "q2": "de"})
    found = per_turn(run)
    assert list(found) == ["0", "1"], "turns count in their order"
    assert found["0"]["recall"]["mean"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert found["0"]["precision_set"]["mean"] == pytest.approx((2 / 3 + 1) / 2), "a passage found twice counts once"
    assert found["1"]["recall"]["mean"] == pytest.approx(1 / 3)
    assert found["1"]["recall"]["n_scored"] == 1
    assert found["1"]["cumulative_recall"]["mean"] == (1 + 1 / 2) / 2, "what ended earlier keeps what it had"
    assert found["1"]["cumulative_recall"]["n_scored"] == 2
    assert found["0"]["recall"]["labels"] == "gold"


def test_without_parallel_searches_turns_are_steps_and_said_once() -> None:
    assert per_turn(watched(asked("q1", step(0, "a"), step(1, "b")), gold={"q1": "ab"})) == {}


def test_a_turn_of_failed_searches_has_no_value() -> None:
    down = [step(0, "", 0, error="down"), step(1, "", 0, error="down"), step(2, "a", 1), step(3, "", 1, error="down")]
    found = per_turn(watched(asked("q", *down), gold={"q": "a"}))
    assert (found["0"]["recall"]["mean"], found["0"]["recall"]["n_failed"]) == (None, 1)
    assert found["1"]["recall"]["mean"] == 1.0, "one of its searches came back"


def test_recall_spreads_over_trajectories_and_carries_its_last_value() -> None:
    run = watched(asked("q1", step(0, "a")), asked("q2", step(0, "x"), step(1, "b")), asked("q3"),
                  asked("q4", error="down"), gold={"q1": "a", "q2": "b", "q3": "c", "q4": "d"})
    found = recall_spread(run)
    assert found["0"] == {"q10": 0.0, "q25": 0.0, "median": 0.0, "q75": 0.5, "q90": pytest.approx(0.8), "n": 3}
    assert found["1"]["median"] == 1.0
    assert recall_spread(watched(asked("q"), gold={"q": "a"})) == {}


def test_the_mean_cost_of_evidence_is_a_sum_over_a_sum() -> None:
    run = watched(asked("q1", step(0, "ab"), usage={"cost": 10.0}), asked("q2", step(0, "x"), usage={"cost": 30.0}),
                  asked("q3", step(0, "c")), gold={"q1": "ab", "q2": "d", "q3": "c"})
    entries = {"cost_per_evidence": {"mean": 5.0}}
    add_ratios(entries, run, parse_all("cost_per_evidence,overrun"))
    assert entries["cost_per_evidence"]["mean"] == 20.0, "what found nothing cost, too; the third told no cost"
    none = watched(asked("q", step(0, "x"), usage={"cost": 3.0}), gold={"q": "a"})
    add_ratios(entries, none, parse_all("cost_per_evidence"))
    assert entries["cost_per_evidence"]["mean"] is None


def test_a_scored_run_tells_all_of_it() -> None:
    first = asked("q1", step(0, "ax"), step(1, "b"), context="ab", answer="yes", usage={"cost": 4.0})
    never = asked("q2", step(0, "x"), context="x", answer="no", usage={"cost": 2.0})
    rows = [{"id": "q1", "question": "question q1", "gold_ids": "a;b", "reference": "yes", "category": "c"},
            {"id": "q2", "question": "question q2", "gold_ids": "z", "reference": "yes"}]
    result = score([first, never], rows, metrics="steps_to_evidence,cost_per_evidence,query_drift,recall")
    summary = result.summary
    reached = summary["metrics"]["steps_to_evidence"]
    assert (reached["share"], reached["median"]) == ({"mean": 0.5, "low": 0.0, "high": 1.0}, 2.0)
    assert summary["metrics"]["cost_per_evidence"]["mean"] == 3.0
    assert summary["categories"]["c"]["cost_per_evidence"]["mean"] == 2.0
    assert summary["funnel"]["all"]["total"] == 3
    assert summary["per_step"]["1"]["query_drift"]["n_scored"] == 1
    view = next(one for one in result.data.worst if one.id == "q1")
    assert [(s.new_gold, s.lost_gold, s.recall, s.repeated, s.error) for s in view.steps] == [
        (("a",), (), 0.5, False, None), (("b",), (), 1.0, False, None)]
    assert view.steps[0].drift == pytest.approx(1.0)


def test_a_step_tells_what_a_stage_of_it_lost_and_why_it_failed() -> None:
    lists = (Retrieval("rerank", "s", (Passage("x"),)), Retrieval("retrieve", "s", (Passage("x"), Passage("a"))))
    run = Trajectory("q1", "question q1", (Step(0, lists), step(1, "", error="timed out")), answer="no")
    result = score([run], [{"id": "q1", "question": "question q1", "gold_ids": "a"}], metrics="recall")
    shown = result.data.worst[0].steps
    assert (shown[0].lost_gold, shown[0].recall) == (("a",), 0.0)
    assert (shown[1].error, shown[1].recall) == ("timed out", 0.0)
    assert result.summary["retrieval"]["failing_steps"]["count"] == 1


def test_why_a_step_failed_is_no_text_to_share() -> None:
    run = asked("q1", step(0, "a"), step(1, "", error="ValueError: cannot parse the patient's name"), answer="no")
    data = score([run], [{"id": "q1", "question": "question q1", "gold_ids": "a"}], metrics="recall").data
    assert "patient" in str(data.worst[0].steps[1].error)
    assert "patient" not in str(without_texts(data).worst[0])
