"""`gate --frozen` on judged labels: what the judge left out has bounds, the pairs are listed, and nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragkit.comparison.gate import Gate, Settings, gate
from ragkit.comparison.sides import Side, side_of_folder
from tests.support.labelled_runs import BARE, DOGS, HALF, MAKER, TWO_STEPS, judged, trajectory
from tests.support.openai_server import Request, ragas_input
from tests.support.relevance import relevance_judge

METRICS = "precision@2,hit@2,mrr,ndcg@2,recall"


def refuses_half(request: Request) -> str:
    """One passage of the four is not judged: "Ines. [2]"."""
    data = ragas_input(request.first_prompt)
    return "I cannot say." if data.get("passage") == HALF.text else relevance_judge(request)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """q1 is judged whole: grades 1 and 3 at the end. Of q2 the second of two passages is not judged, the first is 0."""
    folder = tmp_path_factory.mktemp("frozen") / "run"
    items = [TWO_STEPS, trajectory(BARE, ("What barks?", (DOGS, HALF)), context=(DOGS, HALF))]
    judged(items, (MAKER, BARE), reply=refuses_half, metrics=METRICS, out=folder)
    yield side_of_folder(folder)


def held(run: Side, rule: str, *, frozen: bool = True) -> Gate:
    return gate(run, [rule], settings=Settings(frozen=frozen))


def test_a_score_that_an_unjudged_pair_could_move_lies_between_bounds_of_its_list(run: Side) -> None:
    check = held(run, "precision@2>=0.4").checks[0]
    # q1: 1 of 2; q2: 0 of 2 or 1 of 2, never 2 of 2
    assert (check["worst"], check["best"], check["n_scored"], check["n_holes"]) == (0.25, 0.5, 1, 1)
    assert (check["mean"], check["coverage"], check["outcome"]) == (0.5, 1.0, "undecided")
    pairs = check["pairs"]
    assert [(pair["question"], pair["passage"]) for pair in pairs] == [("q2", "half")]
    assert pairs[0]["reason"]


@pytest.mark.parametrize(("rule", "outcome"), [
    ("precision@2>=0.25", "pass"), ("precision@2>=0.26", "undecided"), ("precision@2>0.5", "fail"),
    ("precision@2<=0.5", "pass"), ("mrr>=0.5", "undecided"), ("mrr>=0.25", "pass"), ("mrr>0.5", "fail"),
    ("hit@2>=0.5", "pass"),
])
def test_only_bounds_that_cross_the_rule_leave_it_undecided(run: Side, rule: str, outcome: str) -> None:
    assert held(run, rule).outcome == outcome


def test_a_metric_that_a_grade_in_between_may_lower_is_bounded_by_its_range(run: Side) -> None:
    check = held(run, "ndcg@2>=0.99").checks[0]
    assert check["best"] - check["worst"] == pytest.approx(0.5), "one of two questions from 0 to 1"


def test_without_the_flag_an_unjudged_pair_is_a_missing_score(run: Side) -> None:
    check = held(run, "precision@2>=0.25", frozen=False).checks[0]
    assert (check["outcome"], check["coverage"], check["n_holes"], check["pairs"]) == ("undecided", 0.5, 0, [])


def test_a_run_whose_store_is_gone_is_bounded_by_the_range(run: Side, tmp_path: Path) -> None:
    import shutil

    assert run.folder is not None
    moved = tmp_path / "moved"
    shutil.copytree(run.folder, moved)
    text = (moved / "run.json").read_text(encoding="utf-8")
    (moved / "run.json").write_text(text.replace(run.run["store"], str(tmp_path / "gone.sqlite")), encoding="utf-8")
    check = held(side_of_folder(moved), "precision@2>=0.4").checks[0]
    assert (check["worst"], check["best"]) == (0.25, 0.75)
    assert [(pair["question"], pair["passage"]) for pair in check["pairs"]] == [("q2", None)]
    assert not (tmp_path / "gone.sqlite").exists(), "no empty store is made"
