"""Comparing in Python: what is paired with what, repeats, identical runs, labels, and what the result becomes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragkit
from ragkit.comparison.sides import side_of_evaluation, side_of_folder
from ragkit.errors import DataError
from ragkit.evaluation.label_import import in_a_run
from ragkit.evaluation.label_sample import sample_labels
from ragkit.evaluation.reopen import reopen
from tests.support.openai_server import OpenAIServer
from tests.support.relevance import relevance_judge
from tests.support.tower_app import is_right, tower_run
from tests.support.variants import at_rank, dataset, ranked, variant


def figures(made: ragkit.Comparison, metric: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = made.data["metrics"][metric][name]
    return found


def test_identical_runs_differ_by_nothing_with_p_one_and_never_nan() -> None:
    made = ragkit.compare({"a": ranked(1, 2, None), "b": ranked(1, 2, None)})
    for metric in ("mrr", "recall@5", "exact_match"):
        found = figures(made, metric, "b")
        assert (found["difference"], found["low"], found["high"]) == (0, 0, 0)
        assert (found["p"], found["p_holm"], found["decided"], found["ties"], found["n"]) == (1, 1, False, 3, 3)
        assert found["questions_to_decide"] is None
    assert made.data["conclusion"] == ["b and a are the same on every metric compared (3 questions)"]


def test_questions_are_paired_by_id_never_by_position() -> None:
    forwards = {f"q{n}": [at_rank(n + 1)] for n in range(6)}
    made = ragkit.compare([variant(forwards, variant="one"),
                           variant(dict(reversed(forwards.items())), variant="two")])
    assert figures(made, "mrr", "two")["ties"] == 6


def test_a_difference_is_variant_minus_baseline_whichever_is_the_baseline() -> None:
    better, worse = ranked(*[1] * 12), ranked(*[2] * 12)
    made = ragkit.compare({"worse": worse, "better": better})
    assert figures(made, "mrr", "better")["difference"] == 0.5
    assert figures(made, "mrr", "better")["decided"]
    turned = ragkit.compare({"worse": worse, "better": better}, baseline="better", metrics="mrr")
    assert turned.data["baseline"] == "better" and list(turned.data["variants"]) == ["better", "worse"]
    assert figures(turned, "mrr", "worse") | {"wins": 0} == figures(turned, "mrr", "worse")
    assert turned.data["conclusion"] == ["worse is worse than better on mrr by 0.500 [0.500, 0.500] (decided, 12 "
                                         "questions)"]


def test_holm_counts_all_variants_and_metrics_of_the_table() -> None:
    one = {"base": ranked(*[2] * 6, None), "up": ranked(*[1] * 6, None)}
    alone = ragkit.compare(one, metrics="mrr")
    p = figures(alone, "mrr", "up")["p"]
    assert figures(alone, "mrr", "up")["p_holm"] == p and 0.02 < p < 0.05 and figures(alone, "mrr", "up")["decided"]
    many = ragkit.compare({**one, "too": ranked(*[1] * 6, None)}, metrics="mrr")
    assert figures(many, "mrr", "up")["p_holm"] == pytest.approx(2 * p)
    assert not figures(many, "mrr", "up")["decided"]
    assert "by itself it would be (p = 0.0" in many.data["conclusion"][0]
    assert "not among 2 differences tested together" in many.data["conclusion"][0]


def test_repeats_are_averaged_first_and_their_variance_is_told_apart() -> None:
    steady = {f"q{n}": [at_rank(1), at_rank(2)] for n in range(8)}
    made = ragkit.compare({"two": variant(steady), "one": ranked(*[1] * 8)}, metrics="mrr")
    found = figures(made, "mrr", "one")
    assert (found["difference"], found["n"], found["wins"]) == (0.25, 8, 8), "eight questions, not sixteen answers"
    spread = made.data["variants"]["two"]["variance"]["mrr"]
    assert spread == {"question": 0.0, "app": pytest.approx(0.125), "judge": None}
    assert made.data["variants"]["one"]["variance"]["mrr"]["app"] is None
    assert made.data["variants"]["two"]["detectable"]["mrr"] == pytest.approx(2.8016 * np.sqrt(0.125 / 8), rel=1e-3)
    assert any("not equally often asked (two 2, one 1 a question)" in told for told in made.data["warnings"])


def test_what_would_decide_is_said_in_questions_and_in_repeats() -> None:
    """Ten questions whose answers come and go between rank 1 and 2; the new variant is a little less often right."""
    base = {f"q{n}": [at_rank(1 + (n + r) % 2) for r in range(2)] for n in range(10)}
    made = ragkit.compare({"base": variant(base), "new": variant({**base, "q9": [at_rank(2)] * 2})}, metrics="mrr")
    found, said = figures(made, "mrr", "new"), made.data["conclusion"]
    assert (found["difference"], found["decided"], found["losses"]) == (-0.025, False, 1)
    questions, repeats = found["questions_to_decide"], found["repeats_to_decide"]
    assert questions > 10 and repeats > 2
    assert said == [f"not decided: new and base on mrr, a difference of -0.025 [-0.075, 0.000] (10 questions); "
                    f"{questions - 10} more questions, or {repeats} repeats each, would do"]


def test_failures_and_questions_without_labels_never_count_as_nothing() -> None:
    lists = {f"q{n}": [at_rank(1)] for n in range(4)}
    made = ragkit.compare({"all": variant(lists), "some": variant({**lists, "q3": None})}, metrics="mrr")
    found, average = figures(made, "mrr", "some"), made.data["means"]["mrr"]["some"]
    assert (found["difference"], found["n"]) == (0, 3)
    assert (average["n_scored"], average["n_asked"], average["n_failed"]) == (3, 4, 1)
    told = " ".join(made.data["warnings"])
    assert "some: up to 1 question failed (mrr)" in told and "only in all on 1 question" in told


def test_folders_results_and_sides_give_the_same_comparison(tmp_path: Path) -> None:
    kept = {name: ranked(*ranks, out=tmp_path / name) for name, ranks in (("a", (1, 2, 3)), ("b", (2, 1, None)))}
    by_folder = ragkit.compare([tmp_path / "a", str(tmp_path / "b")])
    by_result = ragkit.compare(kept.values())
    by_side = ragkit.compare([side_of_folder(tmp_path / "a"), side_of_evaluation("b", kept["b"])])
    for made in (by_result, by_side):
        assert made.data["metrics"] == by_folder.data["metrics"] and made.data["means"] == by_folder.data["means"]
    assert by_folder.data["variants"]["b"]["folder"] == str(tmp_path / "b")
    own = json.loads((tmp_path / "a" / "summary.json").read_text(encoding="utf-8"))["metrics"]["mrr"]
    assert by_folder.data["means"]["mrr"]["a"] | {"low": own["low"], "high": own["high"]} == \
        by_folder.data["means"]["mrr"]["a"], "the report and the comparison show one interval"


def test_equal_names_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for place in ("x/base", "y/base"):
        ranked(1, 2, out=tmp_path / place)
    made = ragkit.compare([tmp_path / "x/base", tmp_path / "y/base"])
    assert list(made.data["variants"]) == [str(tmp_path / "x/base"), str(tmp_path / "y/base")]
    one = ranked(1)
    with pytest.raises(DataError, match="'run' is given twice"):
        ragkit.compare([one, one])


def test_an_experiments_folder_keeps_the_order_of_its_variants(tmp_path: Path) -> None:
    for name in ("z", "a"):
        ranked(1, 2, out=tmp_path / name)
        run = json.loads((tmp_path / name / "run.json").read_text(encoding="utf-8"))
        (tmp_path / name / "run.json").write_text(json.dumps({**run, "started": "2026"}), encoding="utf-8")
    assert list(ragkit.compare(tmp_path).data["variants"]) == ["a", "z"], "nothing tells their order"
    ragkit.compare([tmp_path / "z", tmp_path / "a"]).save(tmp_path)
    assert list(ragkit.compare(tmp_path).data["variants"]) == ["z", "a"]


def test_frames_and_files(tmp_path: Path) -> None:
    made = ragkit.compare({"a": ranked(1, 2, None), "b": ranked(2, 2, 1)}, metrics="mrr,recall@5")
    frame = made.frame().set_index(["metric", "variant"])
    assert frame.loc[("mrr", "b"), "difference"] == pytest.approx(1 / 6)
    assert frame.loc[("mrr", "b"), "baseline_mean"] == pytest.approx(0.5)
    wide = made.wide()
    assert wide.shape == (6, 2) and wide.loc[("b", "q2"), "mrr"] == 1 and wide.index.names == ["variant", "question_id"]
    made.save(tmp_path / "out")
    kept = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert kept == made.data
    assert "## b against a" in (tmp_path / "out" / "comparison.md").read_text(encoding="utf-8")


# --- judged labels, and people's -------------------------------------------------------------------------------------


def test_judged_labels_are_brought_on_one_pool_and_the_folders_keep_theirs(tmp_path: Path) -> None:
    texts = {"film": "The film was made by Ines. [1]", "ines": "Ines was born in 1951. [3]", "dogs": "Dogs bark. [0]"}
    rows = [{"id": "q1", "question": "When was the maker born?",
             "reference": "The film was made by Ines. Ines was born in 1951."}]
    with OpenAIServer(relevance_judge) as server:
        for name, found in (("one", ("film", "dogs")), ("two", ("film", "ines"))):
            def app(question: str, found: tuple[str, ...] = found) -> str:
                trace = ragkit.current_trace()
                assert trace is not None
                trace.step(question, [(key, texts[key]) for key in found])
                trace.context([(key, texts[key]) for key in found])
                return "1951"

            ragkit.evaluate(app, rows, metrics="mrr,ndcg@5,recall", judge="test-model", judge_url=server.url,
                            relevance="judge", out=tmp_path / name)
        asked = len(server.calls)
        kept = (tmp_path / "one" / "scores.parquet").read_bytes()
        made = ragkit.compare([tmp_path / "one", tmp_path / "two"])
        assert len(server.calls) == asked and (tmp_path / "one" / "scores.parquet").read_bytes() == kept
    assert made.data["labels"] == "judged"
    own = side_of_folder(tmp_path / "one").values("ndcg@5", "judged")["q1"]
    pooled = made.data["means"]["ndcg@5"]["one"]["mean"]
    assert own == 1 and pooled < 0.5, "what only the other one found is missing here"
    assert any("union of what was judged" in told for told in made.data["warnings"])


def test_labels_of_both_variants_correct_a_judged_difference(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        for name in ("base", "same"):
            tower_run(tmp_path / name, server)
    for name in ("base", "same"):
        drawn = sample_labels(reopen(tmp_path / name), None, 30, None, 0).labels
        in_a_run(tmp_path / name, [replace(label, value=is_right(label.question_id)) for label in drawn])
    made = ragkit.compare([tmp_path / "base", tmp_path / "same"])
    corrected = figures(made, "faithfulness", "same")["corrected"]
    assert corrected["n_labels"] and corrected["mean"] == pytest.approx(0, abs=1e-9)
    assert figures(made, "lexical_support", "same")["corrected"] is None


def test_a_run_by_gold_is_not_held_against_one_by_judged_labels_alone() -> None:
    gold = side_of_evaluation("gold", ranked(1, 2))
    judged = side_of_evaluation("judged", variant({"q0": [at_rank(1)], "q1": [at_rank(1)]}, dataset(2)))
    judged = replace(judged, scores={}, judged=judged.scores, by_gold=frozenset())
    with pytest.raises(DataError, match="gold was scored by gold and judged by judged labels alone"):
        ragkit.compare([gold, judged])
