"""What stands at the end where the app shows no final context: all that its steps found, never cut in a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragkit import compare, score
from ragkit.errors import DataError
from ragkit.evaluation.evaluate import areport, run_async
from ragkit.evaluation.scoring import final_list, fused_ends
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

ROWS = [{"id": "q1", "question": "Who?", "gold_ids": "b"}]
METRICS = "recall,recall@2,mrr,precision_set,survival,steps_to_evidence"


def steps(*lists: str, **more: object) -> Trajectory:
    made = tuple(Step(i, (Retrieval("retrieve", f"s{i}", tuple(map(Passage, ids)), ranked=ids.islower()),))
                 for i, ids in enumerate(lists))
    return Trajectory("q1", "Who?", made, answer="x", **more)  # type: ignore[arg-type]


def ends(run: Trajectory, **more: object) -> dict[str, float | str]:
    metrics = score([run], ROWS, metrics=METRICS, **more).summary["metrics"]
    return {name: entry["mean"] if entry["mean"] is not None else next(iter(entry["reasons"])) for name, entry in
            metrics.items()}


def test_the_union_has_no_cut_and_evidence_of_the_second_step_counts() -> None:
    made = ends(steps("xyz", "wb"))
    assert (made["recall"], made["steps_to_evidence"], made["precision_set"]) == (1, 2, 0.2)
    assert made["recall@2"] == "union, no cut", "no rank of one list is a rank of the union"
    assert made["survival"] == "context unknown"


def test_lists_fused_by_reciprocal_rank_are_one_ranking() -> None:
    run = steps("xyb", "bw", "zb")
    made = ends(run, without_context="rrf")
    # b: 1/63 + 1/61 + 1/62; x, z: 1/61, z later; y, w: 1/62
    assert [p.id for p in final_list(fused_ends([run])[0]).passages] == ["b", "x", "z", "y", "w"]
    assert (made["recall@2"], made["mrr"]) == (1, 1)
    assert made["survival"] == "context unknown", "what the answer was written from is still unknown"
    assert ends(run)["mrr"] == pytest.approx(1 / 3), "in the union it stands where it first appeared"


def test_sets_are_not_fused_and_a_shown_context_stands() -> None:
    assert ends(steps("xyb", "BW"), without_context="rrf")["recall@2"] == "no order"
    shown = Trajectory("q1", "Who?", steps("xb").steps, Retrieval("context", passages=(Passage("x"),)), "x")
    assert ends(shown, without_context="rrf")["recall"] == 0
    assert fused_ends([shown]) == [shown], "nothing is asked of it"


@pytest.mark.parametrize(("lists", "more", "said"), [
    (("xyb", "bw"), {}, "1 trajectory shows no final context; the union of their steps stands for it, uncut"),
    (("xyb", "bw"), {"without_context": "rrf"},
     "1 trajectory shows no final context; their steps' lists, fused by reciprocal rank, stand for it"),
    (("xyb",), {}, "1 trajectory shows no final context; their only list stands for it"),
])
def test_which_of_them_it_is_is_said(lists: tuple[str, ...], more: dict[str, str], said: str) -> None:
    assert said in score([steps(*lists)], ROWS, metrics="recall", **more).data.notes


def test_a_folder_keeps_to_what_it_was_made_with_and_a_comparison_tells(tmp_path: Path) -> None:
    run = steps("xyb", "bw")
    fused = score([run], ROWS, metrics="mrr", out=tmp_path / "a", without_context="rrf")
    again = run_async(areport(tmp_path / "a"))
    assert again.summary["metrics"] == fused.summary["metrics"]
    assert score([run], ROWS, metrics="mrr", out=tmp_path / "a", without_context="rrf").summary == fused.summary
    with pytest.raises(DataError, match="without_context"):
        score([run], ROWS, metrics="mrr", out=tmp_path / "a")
    plain = score([run], ROWS, metrics="mrr", out=tmp_path / "b")
    warned = compare({"fused": fused, "plain": plain}).data["warnings"]
    assert any("rrf stands for it in fused and union in plain" in warning for warning in warned)


def test_another_word_is_refused() -> None:
    with pytest.raises(DataError, match="without_context: expected union or rrf, got 'concat'"):
        score([steps("x")], ROWS, metrics="recall", without_context="concat")
