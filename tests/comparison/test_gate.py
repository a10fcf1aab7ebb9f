"""A run held against rules and a baseline: what passes, what fails, and what nobody may call decided."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ragkit.comparison.gate import Gate, Settings, gate
from ragkit.comparison.gate_baseline import Margins, parse_margins
from ragkit.comparison.gate_words import gate_lines, gate_markdown
from ragkit.comparison.rules import parse_rule
from ragkit.comparison.sides import QuestionFacts, Side, side_of_evaluation
from ragkit.errors import DataError
from ragkit.records.judgements import Score
from tests.support.variants import at_rank, dataset, ranked, variant

NOT_REACHED, NO_GOLD = Score.undefined("not reached"), Score.undefined("declared unanswerable")
REFUSED, LATE = Score.failed("the judge's reply cannot be read"), Score.failed("no answer within 60 s")
DOWN = Score.failed("app failed: no answer")


def side(scores: Mapping[str, Sequence[Score | float]], *, gold: Sequence[str] = (), n_gold: int = 1,
         categories: Sequence[str | None] = (), name: str = "now") -> Side:
    """A run with these scores of q0, q1, … by metric."""
    asked = range(max(map(len, scores.values())))
    rows = {metric: {f"q{n}": {0: one if isinstance(one, Score) else Score.scored(one)} for n, one in enumerate(own)}
            for metric, own in scores.items()}
    facts = {f"q{n}": QuestionFacts(f"q{n}", f"What is {n}?", n_gold=n_gold, label_state="labelled",
                                    category=categories[n] if categories else None,
                                    grades={f"d{d}": 1.0 for d in range(n_gold)}) for n in asked}
    return Side(name, rows, {}, frozenset(gold), {"data": {}}, known_questions=facts)


def outcome(scores: Sequence[Score | float], rule: str, **settings: Any) -> str:
    return gate(side({parse_rule(rule).metric.name: scores}), [rule], settings=Settings(**settings)).outcome


def test_the_mean_decides_and_not_its_interval() -> None:
    wide = [1.0, 1.0, 1.0, 0.0]
    made = gate(side({"mrr": wide}), ["mrr>=0.75", "mrr>0.75", "mrr<=0.75"])
    assert [check["outcome"] for check in made.checks] == ["pass", "fail", "pass"]
    first = made.checks[0]
    assert first["low"] < 0.75 < first["high"] and (first["mean"], first["threshold"]) == (0.75, 0.75)
    assert (made.outcome, made.exit_code) == ("fail", 1)


def test_where_lower_is_better_the_rule_still_says_what_it_says() -> None:
    assert outcome([1.0, 2.0], "steps_to_evidence<=1.5") == "pass"
    assert outcome([1.0, 2.0], "steps_to_evidence<1.5") == "fail"


@pytest.mark.parametrize(("scores", "coverage", "expected"), [
    ([1.0] * 9 + [DOWN], 0.9, "pass"), ([1.0] * 8 + [DOWN] * 2, 0.8, "undecided"),
    ([1.0] * 8 + [DOWN, NO_GOLD], 8 / 9, "undecided"), ([1.0] * 2 + [NO_GOLD] * 8, 1.0, "pass"),
    ([1.0] * 9 + [NO_GOLD] * 5 + [NOT_REACHED], 0.9, "pass"), ([0.0] + [DOWN] * 9, 0.1, "undecided"),
])
def test_coverage_is_scored_of_asked_less_undefined_by_gold(scores: list[Score | float], coverage: float,
                                                            expected: str) -> None:
    made = gate(side({"mrr": scores}), ["mrr>=0.5"])
    assert made.checks[0]["coverage"] == pytest.approx(coverage)
    assert made.outcome == expected
    assert made.exit_code == {"pass": 0, "undecided": 4}[expected]


def test_a_question_that_is_declared_unanswerable_takes_no_coverage_whatever_it_is_undefined_for() -> None:
    refused = Score.undefined("answer refused")
    made = gate(side({"mrr": [1.0, NO_GOLD], "faithfulness": [1.0, refused]}), ["faithfulness>=0.9"])
    assert (made.outcome, made.checks[0]["n_undefined_by_gold"]) == ("pass", 1)
    held = gate(side({"mrr": [1.0, 1.0], "faithfulness": [1.0, refused]}), ["faithfulness>=0.9"])
    assert (held.outcome, held.checks[0]["coverage"]) == ("undecided", 0.5)


def test_repeats_are_averaged_and_one_scored_repeat_covers_a_question() -> None:
    rows = {"q0": {0: Score.scored(1.0), 1: Score.scored(0.0)}, "q1": {0: Score.scored(1.0), 1: DOWN}}
    made = gate(replace(side({"mrr": [1.0, 1.0]}), scores={"mrr": rows}), ["mrr==0.75"])
    assert (made.outcome, made.checks[0]["n_scored"]) == ("pass", 2)


def test_c37_half_of_the_judgements_failed_and_the_gate_does_not_pass() -> None:
    c37 = [0.9] * 5 + [REFUSED] * 3 + [LATE] * 2
    made = gate(side({"faithfulness": c37}), ["faithfulness>=0.8"])
    check = made.checks[0]
    assert (made.outcome, made.exit_code) == ("undecided", 4)
    assert (check["mean"], check["n_scored"], check["n_asked"], check["coverage"]) == (pytest.approx(0.9), 5, 10, 0.5)
    assert (check["worst"], check["best"]) == (pytest.approx(0.45), pytest.approx(0.95))
    assert "3 x the judge's reply cannot be read, 2 x no answer within 60 s" in check["reason"]
    assert outcome(c37, "faithfulness>=0.8", min_scored=0.5) == "pass", "asked for in so many words"


@pytest.mark.parametrize(("rule", "expected"), [
    ("faithfulness>=0.4", "pass"), ("faithfulness>=0.8", "undecided"), ("faithfulness>=0.96", "fail"),
    ("faithfulness<=0.96", "pass"), ("faithfulness<0.4", "fail"),
])
def test_frozen_what_nobody_judged_is_a_hole_and_only_bounds_that_cross_are_undecided(rule: str, expected: str) -> None:
    c37 = side({"faithfulness": [0.9] * 5 + [REFUSED] * 3 + [LATE] * 2})
    made = gate(c37, [rule], settings=Settings(frozen=True))
    check = made.checks[0]
    assert (made.outcome, check["n_holes"], check["coverage"]) == (expected, 5, 1.0)
    listed = [pair["question"] for pair in check["pairs"]]
    assert listed == (["q5", "q6", "q7", "q8", "q9"] if expected == "undecided" else [])


def test_frozen_an_app_that_failed_is_no_hole() -> None:
    made = gate(side({"faithfulness": [0.9, 0.9, DOWN]}), ["faithfulness>=0.1"], settings=Settings(frozen=True))
    assert (made.outcome, made.checks[0]["n_holes"]) == ("undecided", 0)


@pytest.mark.parametrize(("flag", "code"), [(None, 4), ("fail", 1), ("pass", 0), ("warn", 0)])
def test_the_flag_says_what_an_undecided_gate_leaves_and_never_what_a_failed_one_does(flag: str | None,
                                                                                      code: int) -> None:
    thin = side({"mrr": [1.0, DOWN], "map": [0.1, 0.1]})
    assert gate(thin, ["mrr>=0.5"], settings=Settings(undecided=flag)).exit_code == code
    assert gate(thin, ["mrr>=0.5", "map>=0.5"], settings=Settings(undecided=flag)).exit_code == 1


@pytest.mark.parametrize(("rules", "said"), [
    (["map>=0.5"], "rule map>=0.5: map was not measured in now; it has mrr, recall"),
    (["recall>=0.5"], "nothing was scored in now (0 of 2 questions: 2 x needs a judge); judge it first"),
    (["mrr[category=b]>=0.1"], "rule mrr[category=b]>=0.1: nothing was scored in now (0 of 1 questions"),
    (["precision@5>0.6"], "was not measured"), (["mrr>1.1"], "above its ceiling: mrr cannot exceed 1"), ([], "--rule"),
])
@pytest.mark.parametrize("flag", [None, "pass", "warn"])
def test_what_can_never_be_decided_is_an_error_whatever_undecided_says(rules: list[str], said: str,
                                                                       flag: str | None) -> None:
    bare = side({"mrr": [1.0, DOWN], "recall": [Score.undefined("needs a judge")] * 2}, categories=["a", "b"])
    with pytest.raises(DataError) as error:
        gate(bare, rules, settings=Settings(undecided=flag))
    assert said in str(error.value)


def test_a_rule_above_the_ceiling_of_its_own_slice_is_an_error_and_under_it_is_none() -> None:
    two = side({"precision@5": [0.4, 0.4]}, gold=["precision@5"], n_gold=2)
    assert gate(two, ["precision@5>=0.4"]).checks[0]["ceiling"] == 0.4
    with pytest.raises(DataError, match=r"precision@5 cannot exceed 0\.4 \(2 gold passages each\)"):
        gate(two, targets=["usual"], rules=["precision@5>0.6"])
    mixed = side({"precision@5": [0.4, 0.2]}, gold=["precision@5"])
    assert gate(mixed, ["precision@5[gold=1]>=0.2"]).outcome == "pass"


@pytest.mark.parametrize(("settings", "said"), [
    ({"min_scored": 1.1}, "--min-scored: expected a share"), ({"undecided": "maybe"}, "--undecided 'maybe'"),
])
def test_settings_out_of_range_are_told(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Settings(**settings)


def versus(now: Sequence[Score | float], before: Sequence[Score | float], margin: str = "0.1", metric: str = "mrr",
           **settings: Any) -> Gate:
    return gate(side({metric: now}), baseline=side({metric: before}, name="before"), metrics=metric,
                margins=parse_margins([margin]), settings=Settings(**settings))


def test_a_run_passes_where_the_whole_interval_is_above_minus_the_margin() -> None:
    before = [n / 40 for n in range(40)]
    assert versus(before, before).outcome == "pass"
    slightly = versus([value - 0.05 for value in before], before)
    assert (slightly.outcome, slightly.checks[0]["difference"]) == ("pass", pytest.approx(-0.05))
    assert versus([value - 0.05 for value in before], before, "0.04").outcome == "fail"
    noisy = [value + (0.5 if n % 2 else -0.5) for n, value in enumerate(before)]
    unsure = versus(noisy, before)
    assert unsure.outcome == "undecided" and "holds the margin of 0.1" in unsure.checks[0]["reason"]
    assert versus(noisy, before, "0.3").outcome == "pass"


def test_the_direction_is_followed() -> None:
    before = [2.0] * 20
    more, fewer = [2.5] * 20, [1.5] * 20
    assert versus(more, before, metric="steps_to_evidence").outcome == "fail"
    assert versus(fewer, before, metric="steps_to_evidence").outcome == "pass"
    with pytest.raises(DataError, match="judged@5 has no better direction"):
        versus([0.5] * 5, [0.5] * 5, metric="judged@5")


def test_what_only_one_run_scored_takes_coverage_so_that_a_run_does_not_win_by_failing() -> None:
    before = [1.0] * 6 + [0.0] * 4
    lucky = versus([1.0] * 6 + [DOWN] * 4, before)
    assert (lucky.outcome, lucky.checks[0]["coverage"], lucky.checks[0]["n"]) == ("undecided", 0.6, 6)
    assert versus([1.0] * 6 + [NO_GOLD] * 4, [1.0] * 6 + [NO_GOLD] * 4).outcome == "pass"
    with pytest.raises(DataError, match="no question was scored on mrr in both"):
        versus([1.0, DOWN], [DOWN, 1.0])


def test_one_question_is_no_interval() -> None:
    assert versus([1.0], [1.0]).outcome == "undecided"


def test_margins_are_of_all_metrics_or_of_one() -> None:
    assert parse_margins([]) == Margins(0.02, {})
    assert parse_margins(["nDCG@10=0.05", "0.1"]) == Margins(0.1, {"ndcg@10": 0.05})
    for text in ("much", "-0.1", "nan", "mrr=", "mmr=0.1"):
        with pytest.raises(DataError):
            parse_margins([text])
    with pytest.raises(DataError, match="expected --baseline RUN_DIR"):
        gate(side({"mrr": [1.0]}), ["mrr>0"], margins=Margins())


def test_the_metrics_of_the_rules_are_held_against_the_baseline_unless_others_are_named() -> None:
    both = {"mrr": [1.0] * 5, "map": [1.0] * 5, "ndcg@10": [1.0] * 5}
    made = gate(side(both), ["mrr>0", "mrr<=1", "map>0"], baseline=side(both))
    assert [(check["kind"], check["metric"]) for check in made.checks] == [
        ("rule", "mrr"), ("rule", "mrr"), ("rule", "map"), ("baseline", "mrr"), ("baseline", "map")]
    assert [check["metric"] for check in gate(side(both), baseline=side(both)).checks] == ["ndcg@10"]
    assert [check["metric"] for check in gate(side(both), ["mrr>0"], baseline=side(both), metrics="map").checks] == [
        "mrr", "map"]


def test_runs_that_cannot_be_compared_are_refused() -> None:
    data = dataset(3)
    base, other = ranked(1, 2, 3, data=data), ranked(1, 2, 3, data=dataset(3, ("g", "other")))
    with pytest.raises(DataError, match="labels: not the same"):
        gate(side_of_evaluation("now", other), baseline=side_of_evaluation("before", base), metrics="mrr")
    fewer = variant({"q0": [at_rank(1)], "q1": [at_rank(2)]}, data)
    made = gate(side_of_evaluation("now", fewer), baseline=side_of_evaluation("before", base), metrics="mrr",
                margins=Margins(0.1))
    assert made.outcome == "pass" and "compared on the 2 that all have" in made.data["warnings"][0]


def test_the_words_say_each_check_and_markdown_lets_nothing_through() -> None:
    hostile = side({"mrr": [1.0, DOWN]}, categories=["<b>|x", "<b>|x"])
    made = gate(hostile, ["mrr[category=<b>|x]>=0.5"])
    assert gate_lines(made.data)[-1] == "The gate cannot decide (1 undecided)"
    assert gate_lines(made.data)[0].startswith("UNDECIDED  mrr[category=<b>|x]>=0.5  1.000 (–), scored 1 / 2: ")
    page = gate_markdown(made.data)
    row = next(line for line in page.splitlines() if "undecided**" in line)
    assert row.replace("\\|", "").count("|") == 7, "a slice's name makes no column"
    assert json.loads(json.dumps(made.data)) == made.data
