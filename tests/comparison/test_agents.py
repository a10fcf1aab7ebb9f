"""Agents step by step: one B for all, last values carried forward, shares that reached, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import ragkit
from ragkit.evaluation.result import Evaluation
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory
from tests.support.variants import dataset, ranked

DATA = dataset(2, gold=("a", "b", "c"))


def agent(walks: Mapping[str, Sequence[Sequence[str]]], context: str = "", **more: Any) -> Evaluation:
    """question -> repeats -> the lists of its steps, letters; "!" is a step that failed."""
    rows = []
    for name, repeats in walks.items():
        for repeat, lists in enumerate(repeats):
            steps = tuple(Step(n, (Retrieval("retrieve", f"query {n}", tuple(map(Passage, ids if ids != "!" else "")),
                                             error="down" if ids == "!" else None),), turn=n)
                          for n, ids in enumerate(lists))
            end = Retrieval("context", "", tuple(map(Passage, context)), ranked=False) if context else None
            rows.append(Trajectory(name, DATA.by_id[name].text, steps, end, "This.", repeat=repeat, ms=100.0 * (1 + len(
                lists)), usage={"cost": 0.01 * len(lists), "input_tokens": 10.0}))
    return ragkit.score(rows, DATA, metrics="recall,aucr@3", **more)


def agents(**sides: Any) -> Any:
    return ragkit.compare(sides).data["agents"]


WORKED = ("axb", "xay", "yca")  # the worked example of the definitions: c_t 2/3, 2/3, 1


def test_the_worked_example_with_one_b_for_all() -> None:
    found = agents(long=agent({"q0": [WORKED], "q1": [WORKED]}, "ac"),
                   short=agent({"q0": [("abc",)], "q1": [("xyz",)]}))
    assert found["aucr_at"] == 3
    long, short = found["variants"]["long"], found["variants"]["short"]
    assert long["over_steps"]["aucr@3"]["mean"] == pytest.approx(0.7778, abs=1e-4)
    assert short["over_steps"]["aucr@3"]["mean"] == 0.5, "the last value stands for the steps not taken"
    assert long["over_steps"]["survival"]["mean"] == pytest.approx(2 / 3)
    assert long["steps_to_evidence"] == {"reached": 2, "of": 2, "median": 3.0}
    assert short["steps_to_evidence"] == {"reached": 1, "of": 2, "median": 1.0}
    assert long["over_steps"]["wasted_steps"]["mean"] == 1 and short["over_steps"]["wasted_steps"]["mean"] == 0.5
    assert long["retrieval"]["wasted_steps"]["count"] == 2


def test_steps_are_aligned_and_carried_forward() -> None:
    found = agents(long=agent({"q0": [WORKED], "q1": [WORKED]}), short=agent({"q0": [("abc",)], "q1": [()]}))
    gathered = {name: [step["metrics"]["cumulative_recall"]["mean"] for step in one["per_step"]]
                for name, one in found["variants"].items()}
    assert gathered == {"long": pytest.approx([2 / 3, 2 / 3, 1]), "short": [0.5, 0.5, 0.5]}
    reached = [step["reached"] for step in found["variants"]["short"]["per_step"]]
    assert reached == [{"count": 1, "of": 2, "share": 0.5}, *[{"count": 0, "of": 2, "share": 0.0}] * 2]
    own = [step["metrics"]["ndcg@10"]["mean"] for step in found["variants"]["long"]["per_step"]]
    assert own == pytest.approx([0.7039, 0.2961, 0.5307], abs=1e-4)
    assert found["variants"]["short"]["per_step"][1]["metrics"]["recall"] == {"mean": None, "low": None, "high": None,
                                                                              "n": 0}
    last = found["steps"][2]["cumulative_recall"]["short"]
    assert (last["difference"], last["n"], last["losses"]) == (-0.5, 2, 1)


def test_differences_are_paired_repeats_averaged_and_follow_their_direction() -> None:
    twice = agent({"q0": [WORKED, ("abc",)], "q1": [WORKED, WORKED]})
    once = agent({"q0": [WORKED], "q1": [WORKED]})
    found = agents(once=once, twice=twice)["differences"]
    assert found["steps"]["twice"] | {"low": 0, "high": 0} == {
        "difference": -0.5, "low": 0, "high": 0, "n": 2, "wins": 1, "losses": 0}, "fewer steps are a win"
    assert found["aucr@3"]["twice"]["difference"] == pytest.approx((1 - 0.7778) / 4, abs=1e-4)
    assert found["cost"]["twice"]["difference"] == pytest.approx(-0.005) and found["cost"]["twice"]["wins"] == 1
    assert found["ms"]["twice"]["difference"] == -50 and found["reached"]["twice"]["difference"] == 0
    assert "survival" not in found, "nobody knows the context"


def test_failed_steps_are_wasted_and_stay_out_of_the_means_of_their_lists() -> None:
    found = agents(fine=agent({"q0": [("abc", "x")], "q1": [("abc", "x")]}),
                   down=agent({"q0": [("!", "abc")], "q1": [("abc", "!")]}))["variants"]["down"]
    assert [step["metrics"]["recall"] for step in found["per_step"]] == [
        {"mean": 1.0, "low": None, "high": None, "n": 1}] * 2
    assert found["over_steps"]["wasted_steps"]["mean"] == 1 and found["retrieval"]["failing_steps"]["count"] == 2


def test_a_step_that_hardly_any_reached_does_not_set_b() -> None:
    data = dataset(40, gold=("a",))

    def rows(longest: int) -> list[Trajectory]:
        return [Trajectory(f"q{n}", data.by_id[f"q{n}"].text, tuple(
            Step(step, (Retrieval("retrieve", "", (Passage("x"),)),), turn=step) for step in range(longest if not n else
                                                                                                   2)),
            answer="") for n in range(40)]

    made = {name: ragkit.score(rows(30), data, metrics="recall", variant=name) for name in ("one", "two")}
    assert agents(**made)["aucr_at"] == 2


def test_who_searches_once_is_no_agent() -> None:
    assert agents(one=ranked(1, 2), two=ranked(2, 1)) is None
