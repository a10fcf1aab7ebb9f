"""The language of the judge's prompts from the command line and the experiment file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import command, process
from tests.support.openai_server import OpenAIServer
from tests.support.translator import adaptations, translating

pytest.importorskip("ragas")
ROWS = [("q1", "Wo steht der Turm?", "Der Turm steht in Paris."), ("q2", "Where is the tower?", "It is in Paris.")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set and its trajectories, a German and an English question."""
    lines = []
    for name, question, answer in ROWS:
        found = {"stage": "retrieve", "query": question, "passages": [{"id": "d1", "text": answer}]}
        lines.append({"schema": "ragkit.trajectory/1", "question_id": name, "question": question, "answer": answer,
                      "steps": [{"index": 0, "retrievals": [found]}], "context": {**found, "stage": "context"}})
    rows = [{"id": name, "question": question, "reference": answer} for name, question, answer in ROWS]
    for name, objects in (("trajectories.jsonl", lines), ("data.jsonl", rows)):
        (tmp_path / name).write_text("".join(json.dumps(o) + "\n" for o in objects), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def score(server: OpenAIServer, *more: object, judge: bool = True) -> dict[str, object] | str:
    asked = ("--judge", "test-model", "--judge-url", server.url) if judge else ()
    done = command("score", "trajectories.jsonl", "--dataset", "data.jsonl", "--out", "run", "-m", "faithfulness",
                   *asked, *more)
    return done.err if done.code else json.loads((Path("run") / "summary.json").read_text(encoding="utf-8"))


def test_the_flag_adapts_once_is_kept_with_the_run_and_reported_again(folder: Path) -> None:
    with OpenAIServer(translating()) as server:
        summary = score(server, "--judge-language", "auto")
        assert isinstance(summary, dict) and summary["metrics"]["faithfulness"]["mean"] == 1.0
        assert summary["judge"]["prompt_languages"] == {"german": 1, "english": 1}
        assert "prompt languages, german" in Path("run/report.md").read_text(encoding="utf-8")
        assert adaptations(server.calls) == ["german", "german"]
        assert [path.parts[2] for path in Path("run").rglob("prompts/*/*/faithfulness.json")] == ["german"]
        sent = len(server.calls)
        assert json.loads(Path("run/run.json").read_text(encoding="utf-8"))["judge"]["language"] == "auto"
        done = command("report", "run")
        assert done.code == 0, done
        again = score(server, "--judge-language", "auto", "--frozen")
        assert isinstance(again, dict) and again["metrics"] == summary["metrics"]
        assert len(server.calls) == sent, "nothing was asked again"
        warm = process("score", "trajectories.jsonl", "--dataset", "data.jsonl", "--out", "run", "-m", "faithfulness",
                       "--judge", "test-model", "--judge-url", server.url, "--judge-language", "auto", "--json",
                       after="import sys; print('ragas' in sys.modules, file=sys.stderr)")
        assert warm.code == 0 and warm.err.split()[-1] == "False", "stored verdicts need no ragas"
        refused = score(server)
        assert isinstance(refused, str) and "was judged with prompts in auto, now in english" in refused
        assert len(server.calls) == sent


def test_a_wrong_language_is_one_line(folder: Path) -> None:
    with OpenAIServer(translating()) as server:
        wrong = score(server, "--judge-language", "x7")
    assert isinstance(wrong, str) and len(wrong.splitlines()) == 1 and "judge language: expected auto" in wrong


def test_the_experiment_file_names_it_and_all_variants_share_the_prompts(folder: Path) -> None:
    Path("apps.py").write_text("def one(question):\n    return 'Der Turm steht in Paris.'\n\n\ndef two(question):\n"
                               "    return 'It is in Paris.'\n", encoding="utf-8")
    with OpenAIServer(translating()) as server:
        Path("e.yaml").write_text(
            f"dataset: {{path: data.jsonl}}\nmetrics: [answer_accuracy]\n"
            "variants: {a: {app: {call: 'apps:one'}}, b: {app: {call: 'apps:two'}}}\n"
            f"judge: {{model: test-model, url: '{server.url}', language: german}}\n", encoding="utf-8")
        command("run", "e.yaml", "--out", "out")
        assert set(adaptations(server.calls)) == {"german"} and len(adaptations(server.calls)) == 2
    assert len(list(Path("out").rglob("answer_accuracy.json"))) == 1
