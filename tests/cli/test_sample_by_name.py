"""The built-in sample by its name, and judgements written to a pipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import command
from tests.support.openai_server import OpenAIServer

TRAJECTORY = {"schema": "ragkit.trajectory/1", "question_id": "factual-1", "question": "How deep is Lake Ismere?",
              "steps": [{"index": 0, "retrievals": [{"stage": "retrieve", "query": "?", "passages": [
                  {"id": "lake", "text": "Lake Ismere is 212 metres deep."}]}]}],
              "context": {"stage": "context", "passages": [{"id": "lake", "text": "Lake Ismere is 212 metres deep."}]},
              "answer": "Lake Ismere is 212 metres deep."}


def test_the_sample_is_a_data_set_for_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("labels", "check", "sample").out.startswith("floating_library: 30 questions")
    Path("t.jsonl").write_text(json.dumps(TRAJECTORY) + "\n", encoding="utf-8")
    score = ("score", "t.jsonl", "-m", "recall", "--out")
    done = command(*score, "o", "--dataset", "sample", "--json")
    assert done.code == 0 and json.loads(done.out)["metrics"]["recall"]["mean"] == 1
    assert "no such file or folder" in command(*score, "p", "--dataset", "./sample").error


def test_judgements_go_to_stdout_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text(json.dumps(TRAJECTORY) + "\n", encoding="utf-8")
    with OpenAIServer() as server:
        assert command("score", "t.jsonl", "-m", "faithfulness", "--out", "o", "--dataset", "sample", "--judge", "m",
                       "--judge-url", server.url).code == 0
    (line,) = command("judgements", "export", "o", "--out", "-").out.splitlines()
    assert json.loads(line)["metric"] == "faithfulness" and not Path("-").exists()
