"""The margin that `gate --plan` names: a release without any change stays green, and a worse one does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ragkit.comparison.gate import Settings
from ragkit.comparison.gate_baseline import differences_of, judged_against
from ragkit.comparison.gate_plan import margin_of_runs, plan_gate, plan_lines
from ragkit.errors import DataError
from ragkit.metrics.paired import Pair
from ragkit.metrics.registry import parse
from tests.comparison.test_gate import DOWN, side
from tests.support.variants import at_rank, variant

MRR, HIT = parse("mrr"), parse("hit@5")
RELEASES = 200


def runs(random: np.random.Generator, questions: int, repeats: int, binary: bool, drop: float = 0.0,
         chances: np.ndarray | None = None) -> dict[str, list[float]]:
    """One run of an app that answers a little differently each time: each question has a mean of its own."""
    true = random.beta(4, 2, questions) if chances is None else chances
    true = np.clip(true - drop, 0, 1)
    drawn = random.random((repeats, questions)) < true if binary else \
        np.clip(true + random.normal(0, 0.15, (repeats, questions)), 0, 1)
    return {f"q{n}": list(map(float, drawn[:, n])) for n in range(questions)}


def means(run: dict[str, list[float]]) -> dict[str, float]:
    return {question: math.fsum(values) / len(values) for question, values in run.items()}


@pytest.mark.parametrize("questions", [40, 300])
@pytest.mark.parametrize(("binary", "repeats", "plan"), [(True, 3, "repeats"), (False, 1, "two runs")])
def test_a_release_without_a_change_passes_with_the_margin_that_the_plan_names(questions: int, binary: bool,
                                                                               repeats: int, plan: str) -> None:
    """200 releases, each against a baseline of its own with the margin that its own plan names."""
    random, metric = np.random.default_rng(questions), HIT if binary else MRR
    pairs, margins = [], []
    for _ in range(RELEASES):
        true = random.beta(4, 2, questions)
        baseline, release, twin = (runs(random, questions, repeats, binary, chances=true) for _ in range(3))
        margin = margin_of_runs([baseline] if plan == "repeats" else [baseline, twin], metric)
        assert margin is not None and margin > 0
        pairs.append(Pair(means(baseline), means(release), metric.definition.direction))
        margins.append(margin)
    found = [judged_against(metric, one, margin)[0]
             for one, margin in zip(differences_of(pairs), margins, strict=True)]
    assert found.count("pass") >= 0.95 * RELEASES
    assert found.count("fail") == 0


def test_a_release_that_is_worse_by_twice_the_margin_does_not_pass() -> None:
    random = np.random.default_rng(7)
    pairs, margins = [], []
    for _ in range(50):
        true = random.beta(4, 2, 300)
        baseline = runs(random, 300, 3, True, chances=true)
        margin = margin_of_runs([baseline], HIT)
        assert margin is not None
        margins.append(margin)
        pairs.append(Pair(means(baseline), means(runs(random, 300, 3, True, drop=2 * margin, chances=true))))
    found = [judged_against(HIT, one, margin)[0] for one, margin in zip(differences_of(pairs), margins, strict=True)]
    assert found.count("pass") == 0 and found.count("fail") >= 5


def test_the_plan_of_one_run_without_repeats_says_how_to_get_a_margin() -> None:
    plan = plan_gate(side({"mrr": [1.0, 0.5, 0.2]}), ["mrr>=0.5"])
    one = plan["metrics"]["mrr"]
    assert one["margin"] is None and "Run the same commit twice" in one["how"] and "repeats: 3" in one["how"]
    assert plan["exit_code"] == 0


def test_the_plan_reads_repeats_or_two_runs_and_its_margin_is_that_of_the_gate() -> None:
    repeated = variant({f"q{n}": [at_rank(1), at_rank(2 + n % 2)] for n in range(30)}, metrics="mrr,recall@5")
    from ragkit.comparison.sides import side_of_evaluation

    made = side_of_evaluation("now", repeated)
    plan = plan_gate(made, metrics="mrr")
    one = plan["metrics"]["mrr"]
    assert (one["from"], one["repeats"], one["n"]) == ("repeats", 2, 30)
    assert one["margin"] == margin_of_runs([made.repeats("mrr")], MRR)
    twice = plan_gate(side({"mrr": [0.5] * 20}), metrics="mrr", baseline=side({"mrr": [0.5] * 10 + [0.4] * 10}))
    two = twice["metrics"]["mrr"]
    assert (two["from"], two["runs"]) == ("two runs", 2) and two["margin"] > 0
    assert any(line.endswith(f"--margin mrr={two['margin']:g}") for line in plan_lines(twice))


def test_the_plan_holds_each_rule_against_its_ceiling() -> None:
    two = side({"precision@5": [0.4, 0.2], "mrr": [1.0, 0.5]}, gold=["precision@5", "mrr"], n_gold=2)
    plan = plan_gate(two, targets=["usual"])
    found = {one["rule"]: (one["ceiling"], one["out_of_reach"]) for one in plan["rules"]}
    assert found["mrr>0.7"] == (1.0, None)
    assert found["precision@5>0.6"] == (
        pytest.approx(0.4), "above its ceiling: precision@5 cannot exceed 0.4 (2 gold passages each)")
    assert plan["exit_code"] == 2
    assert "precision@5>=0.4: ceiling 0.4 (2 gold passages each)" in plan_lines(plan_gate(two, ["precision@5>=0.4"]))


def test_a_metric_without_a_score_has_no_plan() -> None:
    with pytest.raises(DataError, match="nothing was scored in now"):
        plan_gate(side({"mrr": [DOWN, DOWN]}), ["mrr>0.5"], settings=Settings())
