"""Public reports of wrong values: duplicates (C01), gains (C03), negative labels (C07), self-hits (C13), short lists
(C15).

Each goes through the frame of ragkit.score_rankings and through the command line, as a list and as a scored run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import ragkit
from tests.support.command import command, files, ranked

TOLERANCE = 1e-6


def check(
    folder: Path, ids: list[str], grades: dict[str, float], expected: dict[str, float], question: str = "q"
) -> None:
    """The same values for the list in Python, the list in a file, and a run whose scores fall with the rank."""
    metrics = ",".join(expected)
    qrels = {question: grades}
    frame = ragkit.score_rankings({question: ids}, qrels, metrics)
    assert frame.loc[question].to_dict() == pytest.approx(expected, abs=TOLERANCE)
    falling = {identifier: float(len(ids) - place) for place, identifier in enumerate(ids)}
    assert ragkit.score_rankings({question: falling}, qrels, metrics).loc[question].to_dict() == pytest.approx(
        expected, abs=TOLERANCE)
    lines = "".join(f"{question} Q0 {identifier} {place} {50 - place} r\n" for place, identifier in enumerate(ids, 1))
    for run in ({question: ids}, {question: falling}, lines.encode()):
        found = ranked(folder, qrels, run, metrics)
        assert found.means == pytest.approx(expected, abs=TOLERANCE)
        assert {name: one["per_question"][question] for name, one in found.metrics.items()} == pytest.approx(
            expected, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("ids", "grades", "expected"),
    [
        (["c4", "c4", "c8"], {"c4": 1}, {"recall@3": 1, "ndcg@3": 1, "mrr": 1, "map": 1, "precision@3": 1 / 3}),
        (["c4", "c4"], {"c4": 1, "c5": 1}, {"recall@2": 0.5, "map": 0.5, "ndcg@2": 0.613147, "precision@2": 0.5}),
    ],
)
def test_c01_a_repeated_chunk_is_credited_once(
    tmp_path: Path, ids: list[str], grades: dict[str, float], expected: dict[str, float]
) -> None:
    frame = ragkit.score_rankings({"q": ids}, {"q": grades}, list(expected))
    assert frame.loc["q"].to_dict() == pytest.approx(expected, abs=TOLERANCE)
    assert frame.attrs["notes"] == [{"kind": "duplicates", "count": 1, "examples": ["q"]}]
    # In a file a pair that stands twice is an error; chunks of one document keep their places.
    chunks = [f"{identifier}#{place}" for place, identifier in enumerate(ids)]
    assert "stands twice" in command("rank", *files(tmp_path, {"q": grades}, {"q": ids}), "-m", "map").error
    found = ranked(tmp_path, {"q": grades}, {"q": chunks}, ",".join(expected), "--chunk-separator", "#")
    assert found.means == pytest.approx(expected, abs=TOLERANCE)


def test_c03_the_gain_is_named(tmp_path: Path) -> None:
    expected = {"ndcg@4": 0.628385, "ndcg_exp@4": 0.577353, "map": 0.638889, "mrr": 0.5}
    check(tmp_path, ["x", "a", "b", "c"], {"a": 1, "b": 3, "c": 2}, expected)
    assert "gain is the grade" in " ".join(command("explain", "ndcg@4").out.split())
    assert "2^grade - 1" in command("explain", "ndcg_exp@4").out


def test_c07_a_negative_label_gains_nothing(tmp_path: Path) -> None:
    expected = {"ndcg@3": 0.669672, "precision@1": 0, "mrr": 0.5, "map": 0.583333, "recall@3": 1}
    check(tmp_path, ["b", "a", "c"], {"a": 2, "b": -1, "c": 1}, expected)


def test_c13_a_document_may_be_called_as_its_question(tmp_path: Path) -> None:
    ids = ["1", "2", "3", "4", "5"]
    grades: dict[str, float] = dict.fromkeys(ids, 1)
    check(tmp_path, ids, grades, {"precision@5": 1, "recall@5": 1, "map@5": 1, "ndcg@5": 1}, question="3")
    found = ranked(tmp_path, {"3": grades}, {"3": ids}, "precision@5,recall@5", "--drop-self")
    assert found.means == pytest.approx({"precision@5": 0.8, "recall@5": 0.8})
    assert found.notes["self"]["count"] == 1 and found.notes["self"]["examples"] == ["3"]
    shown = command("rank", *files(tmp_path, {"3": grades}, {"3": ids}), "-m", "recall@5", "--drop-self").out
    assert "--drop-self" in shown


def test_c15_precision_divides_by_k_and_short_lists_are_named(tmp_path: Path) -> None:
    grades: dict[str, float] = {"r1": 1, "r2": 1, "r3": 1}
    expected = {"precision@5": 0.4, "recall@5": 0.666667, "ndcg@5": 0.765361}
    check(tmp_path, ["r1", "r2"], grades, expected)
    found = ranked(tmp_path, {"q": grades}, {"q": ["r1", "r2"]}, "precision@5")
    assert found.notes["short_lists"] == {"kind": "short_lists", "count": 1, "examples": ["q (2)"], "run": "run"}
    shown = command("rank", *files(tmp_path, {"q": grades}, {"q": ["r1", "r2"]}), "-m", "precision@5").out
    assert "only 2 returned for q" in shown
