"""A folder and the judge that comes to it second: what binds it to the first one, and what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ragkit
from ragkit.errors import DataError
from ragkit.evaluation.result import Evaluation
from ragkit.judge.settings import JudgeSettings
from tests.support.openai_server import OpenAIServer
from tests.support.tower_app import TOWERS, tower_run, towers


def test_a_judge_that_gave_no_score_binds_no_folder(tmp_path: Path) -> None:
    with OpenAIServer(reply=lambda _: "I'm sorry, but I can't help with that.") as refusing:
        made = tower_run(tmp_path, refusing)
    assert made.partial and made.summary["metrics"]["faithfulness"]["n_scored"] == 0
    with OpenAIServer() as server:
        made = tower_run(tmp_path, server, judge="another")
        assert not made.partial and "bridge" not in made.summary
        with pytest.raises(DataError, match="was judged by another at"):
            tower_run(tmp_path, server, judge="a third")


def test_prompts_in_a_language_that_no_judge_could_make_bind_no_folder(tmp_path: Path) -> None:
    with OpenAIServer() as server:  # translates nothing
        made = tower_run(tmp_path, server, judge_settings=JudgeSettings(language="german", reasks=0))
        assert made.partial and made.summary["metrics"]["faithfulness"]["n_scored"] == 0
        assert not tower_run(tmp_path, server).partial
        with pytest.raises(DataError, match="was judged with prompts in english, now in german"):
            tower_run(tmp_path, server, judge_settings=JudgeSettings(language="german"))


def test_a_bridge_knows_of_each_metric_how_many_were_judged_and_tells_judges_of_one_name_apart(tmp_path: Path) -> None:
    rows = [row if place % 2 else {**row, "reference": ""} for place, row in enumerate(TOWERS[:20])]

    def run(server: OpenAIServer, **options: Any) -> Evaluation:
        return ragkit.evaluate(towers, rows, metrics="faithfulness,context_recall", judge="m", judge_url=server.url,
                               out=tmp_path, **options)

    with OpenAIServer() as first, OpenAIServer() as second:
        run(first)
        found = run(second, rejudge=60).summary["bridge"]["metrics"]
        assert [(one["n"], one["offset"], one["low"], one["high"]) for one in found.values()] == [
            (20, 0, 0, 0), (10, 0, 0, 0)], "all that either judged was asked of both: nothing is left to chance"
        report = (tmp_path / "report.md").read_text(encoding="utf-8").replace("\\", "")
        assert f"m at {first.url} judged before, m at {second.url} now: 20 / 20 questions" in report


def test_two_judges_are_compared_only_where_there_is_one(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--rejudge: needs a judge"):
        ragkit.evaluate(towers, TOWERS, out=tmp_path, rejudge=60)
