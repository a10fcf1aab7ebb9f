"""Public reports about ties (C05), questions without labels (C09) and questions without results (C11)."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragkit
from tests.support.command import command, files, ranked

TOLERANCE = 1e-6


def test_c05_equal_scores_follow_the_rule_that_is_said(tmp_path: Path) -> None:
    qrels = {"q1": {"m9": 1}}
    ids = ["k1", "k2", "m9"]
    in_order = {"mrr": 1 / 3, "map": 1 / 3, "ndcg": 0.5}
    by_id = {"mrr": 1.0, "map": 1.0, "ndcg": 1.0}
    metrics = list(in_order)
    scored = dict.fromkeys(ids, 7.0)
    assert ragkit.score_rankings({"q1": ids}, qrels, metrics).loc["q1"].to_dict() == pytest.approx(in_order)
    frame = ragkit.score_rankings({"q1": scored}, qrels, metrics)
    assert frame.loc["q1"].to_dict() == pytest.approx(by_id)
    assert frame.attrs["notes"][0]["kind"] == "ties" and frame.attrs["notes"][0]["count"] == 2
    frame = ragkit.score_rankings({"q1": scored}, qrels, metrics, ties="rank")
    assert frame.loc["q1"].to_dict() == pytest.approx(in_order)

    run = b"".join(b"q1 Q0 %s %d 7 r\n" % (name.encode(), rank) for rank, name in enumerate(ids, 1))
    for content in (run, {"q1": scored}):
        found = ranked(tmp_path, qrels, content, ",".join(metrics))
        assert found.means == pytest.approx(by_id)
        assert found.notes["ties"]["count"] == 2
        assert ranked(tmp_path, qrels, content, ",".join(metrics), "--ties", "rank").means == pytest.approx(in_order)
    live = ranked(tmp_path, qrels, {"q1": ids}, ",".join(metrics))
    assert live.means == pytest.approx(in_order) and "ties" not in live.notes

    paths = files(tmp_path, qrels, run)
    shown = " ".join(command("rank", *paths, "-m", "mrr").out.split())
    assert "equal scores: by document id, descending" in shown
    assert "2 results have the score of one above of the same question" in shown
    shown = " ".join(command("rank", *paths, "-m", "mrr", "--ties", "rank").out.split())
    assert "equal scores: in the run's own order" in shown


def test_c09_a_question_without_labels_leaves_the_others_alone(tmp_path: Path) -> None:
    qrels: dict[str, dict[str, float]] = {"q1": {"n1": 0, "n2": 1}, "q2": {}, "q3": {"n2": 1, "n3": 1}}
    rankings = {"q1": ["n1", "n2"], "q2": ["n2"], "q3": ["n1", "n2", "n3"]}
    expected = {"q1": (0.5, 0.630930), "q3": (0.583333, 0.693426)}
    frame = ragkit.score_rankings(rankings, qrels, "map,ndcg")
    for question, values in expected.items():
        assert tuple(frame.loc[question]) == pytest.approx(values, abs=TOLERANCE)
    assert frame.loc["q2"].isna().all()
    assert frame.mean().to_dict() == pytest.approx({"map": 0.541667, "ndcg": 0.662178}, abs=TOLERANCE)

    judged_nothing = b"q1 0 n1 0\nq1 0 n2 1\nq2 0 n9 0\nq3 0 n2 1\nq3 0 n3 1\n"
    for labels in (qrels, judged_nothing):
        found = ranked(tmp_path, labels, rankings, "map,ndcg")
        assert found.means == pytest.approx({"map": 0.541667, "ndcg": 0.662178}, abs=TOLERANCE)
        one = found.metrics["map"]
        assert (one["n_scored"], one["n_asked"], one["n_undefined"]) == (2, 3, 1)
        assert one["per_question"]["q2"] is None
        assert found.notes["nothing_relevant"] == {"kind": "nothing_relevant", "count": 1, "examples": ["q2"]}
    trec = ranked(tmp_path, judged_nothing, rankings, "map", "--trec").metrics["map"]
    assert trec["mean"] == pytest.approx(0.541667 * 2 / 3, abs=TOLERANCE)
    assert (trec["n_scored"], trec["n_undefined"], trec["per_question"]["q2"]) == (3, 0, 0.0)


def test_c11_a_question_without_results_stays_in_the_mean(tmp_path: Path) -> None:
    qrels = b"q1 0 d1 1\nq2 0 d2 1\nq3 0 d3 1\nq4 0 d4 1\n"
    run = b"q1 Q0 d1 1 9.0 r\nq2 Q0 d2 1 8.0 r\nq4 Q0 d9 1 7.0 r\nq4 Q0 d4 2 6.0 r\n"
    found = ranked(tmp_path, qrels, run, "mrr,hit@1")
    assert found.means == pytest.approx({"mrr": 0.625, "hit@1": 0.5})
    assert found.metrics["mrr"]["n_asked"] == found.metrics["mrr"]["n_scored"] == 4
    assert found.metrics["mrr"]["per_question"]["q3"] == 0.0
    assert found.notes["missing"] == {"kind": "missing", "count": 1, "examples": ["q3"], "run": "run"}
    shown = command("rank", *files(tmp_path, qrels, run), "-m", "mrr").out
    assert "no results for 1 question of the qrels (scored 0): q3" in shown

    rankings = {"q1": ["d1"], "q2": ["d2"], "q4": ["d9", "d4"]}
    frame = ragkit.score_rankings(rankings, tmp_path / "qrels.txt", "mrr,hit@1")
    assert list(frame.index) == ["q1", "q2", "q4"]
    assert {"kind": "missing", "count": 1, "examples": ["q3"]} in frame.attrs["notes"]
    trec = ragkit.score_rankings(rankings, tmp_path / "qrels.txt", "mrr,hit@1", trec=True)
    assert trec.mean().to_dict() == pytest.approx({"mrr": 0.625, "hit@1": 0.5})
