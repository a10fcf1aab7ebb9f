"""`ragkit import` as a user meets it: counts, matching, what was left out, exit codes, and the scored report's note."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ragkit
from ragkit.records.files import read_trajectories
from ragkit.records.readers import load_dataset
from tests.support.command import command
from tests.support.data import data_folder
from tests.support.spans import root, search, write

QUESTIONS = [("q1", "Who?"), ("q2", "When?"), ("q3", "When?")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    (data / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in QUESTIONS), encoding="utf-8")
    (data / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n", encoding="utf-8")
    rows = []
    for number, text in enumerate(["Who?", "When?", "Why?", "who ?"]):
        metadata = json.dumps({"ticket": "q2"} if number == 2 else {})
        rows += [root(text, trace=f"t{number}", metadata=metadata),
                 search("r", 1, 2, "x", ["d1", "d2"], trace=f"t{number}")]
    write(tmp_path / "spans.jsonl", rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_dataset_the_traces_keep_their_ids(folder: Path) -> None:
    done = command("import", "openinference", "spans.jsonl")
    assert done.code == 0
    assert "4 traces of 4 questions; 0 without a search, 0 with a known context" in done.out
    assert "4 searches, 0 failed; 8 passages, 0 without an id, 8 without a score, 0 without a text" in done.out
    assert "note: no retrieval scores in this file" in done.out and "Wrote trajectories.jsonl" in done.out
    written = read_trajectories(folder / "trajectories.jsonl")
    assert [one.question for one in written] == ["Who?", "When?", "Why?", "who ?"]
    again = command("import", "openinference", "spans.jsonl")
    assert again.error == "ragkit: trajectories.jsonl: exists; name another --out, or remove it"


def test_questions_alone_are_counted(folder: Path) -> None:
    (folder / "rows.csv").write_text("user_input,reference_contexts\nWho?,\"['Ada']\"\nWhen?,\n", encoding="utf-8")
    done = command("import", "ragas", "rows.csv")
    assert "2 questions, 1 with gold; no trace of an app" in done.out and "Wrote trajectories-dataset" in done.out


def test_traces_are_joined_and_what_was_left_out_is_listed(folder: Path) -> None:
    done = command("import", "openinference", "spans.jsonl", "--dataset", "data", "--out", "a.jsonl", "--json")
    told = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert told["counts"]["trajectories"] == 1 and told["matched"] == {
        "by": {"text": 1}, "ambiguous": ["t1 (When?) is the text of q2, q3"], "unmatched": ["t2 (Why?)", "t3 (who ?)"]}
    plain = command("import", "openinference", "spans.jsonl", "--dataset", "data", "--out", "p.jsonl").out
    assert "1 trace of 1 question; 0 without" in plain and "1 search, 0 failed; 2 passages," in plain
    assert "1 trace matches several questions and was left out:" in plain
    by_key = command("import", "openinference", "spans.jsonl", "--dataset", "data", "--match", "metadata:ticket",
                     "--out", "b.jsonl")
    assert "joined by metadata:ticket: 1" in by_key.out
    assert "3 traces match no question and were left out:" in by_key.out
    assert [one.question_id for one in read_trajectories(folder / "b.jsonl")] == ["q2"]


@pytest.mark.parametrize(("arguments", "what"), [
    ("phoenix spans.jsonl", "import: expected a format of openinference, langsmith, ragas, deepeval, autorag, got "),
    ("openinference none.jsonl", "none.jsonl: no such file"),
    ("openinference spans.jsonl --match text", "import: --match joins traces to the questions of a --dataset"),
    ("openinference spans.jsonl --dataset data --match name", "match: expected id, text or metadata:KEY"),
    ("openinference spans.jsonl --dataset data --match id", "match: none of 4 trajectories belongs"),
    ("langsmith spans.jsonl", "spans.jsonl:1: expected a run with id and run_type"),
])
def test_wrong_input_is_one_line_and_writes_nothing(folder: Path, arguments: str, what: str) -> None:
    assert what in command("import", *arguments.split()).error
    assert not (folder / "trajectories.jsonl").exists()


def test_the_report_of_an_imported_run_says_that_it_has_no_scores(folder: Path) -> None:
    command("import", "openinference", "spans.jsonl", "--dataset", "data")
    assert command("score", "trajectories.jsonl", "--dataset", "data", "--out", "run", "-m", "recall").code == 0
    wanted = ("1 trajectories were imported from openinference, with no retrieval scores: the order of each list is "
              "all that is known of its ranking")
    for name in ("report.html", "report.md"):
        assert wanted in (folder / "run" / name).read_text(encoding="utf-8")


def test_gold_of_the_file_becomes_a_dataset_folder_and_questions_alone_are_no_run(folder: Path) -> None:
    (folder / "rows.jsonl").write_text(json.dumps({
        "user_input": "Who?", "retrieved_contexts": ["Ada built it."], "response": "Ada", "reference": "Ada",
        "reference_contexts": ["Ada built it."]}) + "\n", encoding="utf-8")
    done = command("import", "ragas", "rows.jsonl", "--out", "a.jsonl")
    assert done.code == 0 and "Wrote a.jsonl and a-dataset" in done.out
    assert "ragkit score a.jsonl --dataset a-dataset" in done.out
    assert command("score", "a.jsonl", "--dataset", "a-dataset", "--out", "run", "-m", "recall").code == 0
    (folder / "questions.csv").write_text("user_input,reference\nWho?,Ada\n", encoding="utf-8")
    alone = command("import", "ragas", "questions.csv", "--out", "b.jsonl")
    assert alone.code == 0 and "Wrote b-dataset" in alone.out and not (folder / "b.jsonl").exists()
    assert load_dataset(folder / "b-dataset").questions[0].answers == ("Ada",)


def test_no_text_writes_hashes(folder: Path) -> None:
    assert command("import", "openinference", "spans.jsonl", "--no-text").code == 0
    text = (folder / "trajectories.jsonl").read_text(encoding="utf-8")
    assert "Who?" not in text and "long enough" not in text and "d1" in text


def test_the_sample_of_real_traces_scores_15_of_20(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces, gold = data_folder("otel_traces"), data_folder("hotpotqa_react_traces")
    monkeypatch.chdir(tmp_path)
    for tool, name in (("openinference", "openinference_spans.jsonl"), ("langsmith", "langchain_runs.jsonl")):
        done = command("import", tool, traces / name, "--dataset", gold, "--out", f"{tool}.jsonl", "--json")
        told = json.loads(done.out)
        assert (told["counts"]["trajectories"], told["counts"]["searches"]) == (20, 48)
        assert told["matched"] == {"by": {"text": 20}, "ambiguous": [], "unmatched": []}
        command("score", f"{tool}.jsonl", "--dataset", gold, "--out", tool, "-m", "allhit")
        entry = json.loads((tmp_path / tool / "summary.json").read_text(encoding="utf-8"))["metrics"]["allhit"]
        assert (entry["mean"], entry["n_scored"]) == (0.75, 20)


def test_a_log_of_ones_own_as_the_page_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(ragkit.__file__).parent / "docs" / "import.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("log.jsonl").write_text(" ".join(block.split()) + "\n", encoding="utf-8")
    Path("golden.csv").write_text("id,question,gold_ids\nq1,Who is the mayor?,d2\n", encoding="utf-8")
    done = command("score", "log.jsonl", "--dataset", "golden.csv", "--out", "run")
    assert done.code == 0 and re.search(r"mrr +0\.500 +– +1 / 1", done.out)
