"""Real agents' traces through score: what the README of experiments/hotpotqa_agents says of them, held."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.hotpotqa_agents import convert_traces, traces_table
from ragkit import score
from tests.support.data import data_folder


def test_what_real_agents_did_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = data_folder("hotpotqa_react_traces")
    convert_traces.main(data, tmp_path)
    made = score(tmp_path / "react.jsonl", data, out=tmp_path / "react")
    funnel, how = made.summary["funnel"], made.summary["retrieval"]
    assert funnel["all"]["total"] == 400, "two paragraphs of 100 questions in two trials"
    assert {fate: stage["count"] for fate, stage in funnel["all"]["stages"].items()} == {
        "never_retrieved": 210, "in_context_unchecked": 8, "in_context_wrong": 62, "in_context_right": 120}
    for entry in (funnel["all"], *funnel["categories"].values()):
        assert sum(stage["share"] for stage in entry["stages"].values()) == pytest.approx(1)
    assert (how["wasted_steps"]["count"], how["wasted_steps"]["of"]) == (165 + 162, 517)
    assert (how["repeated_queries"]["count"], how["context"]["sets"]) == (30, 200)
    reached = made.summary["metrics"]["steps_to_evidence"]
    assert (reached["share"]["mean"], reached["median"]) == (pytest.approx(0.28), 2)
    assert made.summary["metrics"]["survival"]["mean"] == 1, "the prompt of such an agent holds every observation"
    capsys.readouterr()
    traces_table.main([tmp_path / "react"])
    printed = capsys.readouterr().out
    assert "| react, trial 1 | 100 | 2.60 | 0.280 [0.200, 0.370] | 2 | 165 of 260 (63%) | 15 of 260 (6%) |" in printed
    assert "| halted |" in printed
