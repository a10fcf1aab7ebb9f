"""What is counted over steps on a judge's labels: statements of the reference answer, and nothing that is unsure."""

from __future__ import annotations

import pytest

from ragkit.records.trajectory import Passage
from tests.support.labelled_runs import BARE, DOGS, FILM, INES, MAKER, TWO_STEPS, judged, trajectory, values
from tests.support.openai_server import Request, ragas_input
from tests.support.relevance import relevance_judge

OVER_STEPS = "overrun,sdcg@2,nsdcg@2,cost_per_evidence,query_drift,steps_to_evidence"


def test_the_funnel_counts_statements_where_no_gold_is() -> None:
    half = trajectory(MAKER, ("who made @film", (FILM, DOGS)), ("born", (INES,)), context=(FILM,), repeat=1)
    made, _ = judged([TWO_STEPS, half, trajectory(BARE, ("What barks?", (DOGS,)), context=(DOGS,))])
    found = made.summary["funnel"]
    assert (found["labels"], found["noun"]) == ("judged", "statements")
    assert found["all"]["stages"] == {"lost_at_cut": {"count": 1, "share": 0.25},
                                      "in_context_wrong": {"count": 3, "share": 0.75}}
    assert made.summary["recall_spread"]["0"]["median"] == 0.5
    assert made.summary["retrieval"]["wasted_steps"] == {"count": 0, "of": 4, "share": 0.0}, "of what has statements"
    view = next(one for one in made.data.worst if one.repeat == 1)
    assert [(step.new_gold, step.recall) for step in view.steps] == [(("statement 1",), 0.5), (("statement 2",), 1.0)]


def test_an_agents_session_gains_by_grade_and_counts_statements() -> None:
    run = trajectory(MAKER, ("maker @film", (FILM, DOGS)), ("born @1951", (DOGS, INES)), ("again", (DOGS,)),
                     context=(FILM, INES), usage={"cost": 3.0})
    made, _ = judged([run, trajectory(BARE, ("What barks?", (DOGS,)), context=(DOGS,))], metrics=OVER_STEPS)
    end = values(made, "q1")
    # grades: film 1, ines 3, dogs 0; step 2 is discounted by 1 + log4(2) = 1.5
    gained = 1 + 3 / 1.584963 / 1.5
    assert (end["overrun"], end["cost_per_evidence"], end["sdcg@2"]) == (1, 1.5, pytest.approx(gained, abs=1e-5))
    assert end["nsdcg@2"] == pytest.approx(gained / (3 + 1 / 1.5), abs=1e-5)
    assert made.summary["metrics"]["cost_per_evidence"]["mean"] == 1.5
    assert values(made, "q2")["overrun"] == "undefined: judged labels give no full R"
    assert values(made, "q2", "0")["query_drift"] == 0, "needs no labels"


def test_a_trajectory_whose_passages_were_not_judged_is_in_no_count_over_steps() -> None:
    def reply(request: Request) -> str:
        lost = "Dogs" in ragas_input(request.first_prompt).get("passage", "")
        return "no JSON today" if lost else relevance_judge(request)

    sure = trajectory(MAKER, ("who made @film", (FILM,)), context=(FILM,), repeat=1)
    made, _ = judged([TWO_STEPS, sure], reply=reply, metrics=OVER_STEPS)
    assert made.summary["outcomes"] == {"complete_wrong": 1, "incomplete_wrong": 1}, "its context was judged"
    assert made.summary["funnel"]["all"]["total"] == 2
    assert made.summary["recall_spread"]["0"]["n"] == 1
    assert any(note.startswith("1 trajectory left out of the funnel") and note.endswith("q1") for note in
               made.data.notes)
    assert [step.recall for view in made.data.worst if view.repeat == 0 for step in view.steps] == [None, None]
    assert values(made, "q1", "0")["query_drift"] == pytest.approx(1), "needs no labels"


def test_a_passage_without_text_leaves_the_counts_over_steps() -> None:
    made, _ = judged([trajectory(MAKER, ("?", (Passage("nameless"), INES)), context=(INES,))])
    assert made.summary["funnel"]["all"] == {"total": 0, "stages": {}}


def test_what_an_unjudged_passage_cannot_move_is_scored() -> None:
    def reply(request: Request) -> str:
        lost = "Dogs" in ragas_input(request.first_prompt).get("passage", "")
        return "no JSON today" if lost else relevance_judge(request)

    run = trajectory(MAKER, ("maker", (FILM, INES)), ("born", (INES, DOGS)), context=(INES,), usage={"cost": 3.0})
    end = values(judged([run], reply=reply, metrics="overrun,cost_per_evidence,sdcg@1,sdcg@2")[0], "q1")
    assert (end["overrun"], end["cost_per_evidence"], end["sdcg@1"]) == (1, 1.5, 1 + 3 / 1.5)
    assert str(end["sdcg@2"]).startswith("failed: 1 of 3 passages not judged")
