"""`ragkit agreement` as a user meets it: labels in files, judges over HTTP, thresholds that a run then uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragkit.judge.offline import AGREEMENT
from tests.support.command import Done, command
from tests.support.data import data_folder
from tests.support.openai_server import Answer, OpenAIServer, Request, error, lexical_judge

ROWS = [
    {"question": f"Where is the {name}?", "contexts": [f"The {name} stands in {town} on the river."],
     "answer": f"The {name} stands in {town}, they say." if right else f"Nobody ever saw it, says Ann {place}.",
     "label": int(right), "metadata": {"lang": "de" if place % 2 else "en"}}
    for place, (name, town, right) in enumerate(
        (f"mill{n}", f"Tarn{n}", n % 3 != 0) for n in range(18))
]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return written(tmp_path / "labels.jsonl", ROWS)


def found(done: Done) -> list[dict[str, Any]]:
    assert done.code == 0, done
    return json.loads(done.out)["comparisons"]  # type: ignore[no-any-return]


def value(comparison: dict[str, Any], name: str) -> float:
    figure = comparison["figures"][name]
    assert figure["value"] is not None, figure
    return float(figure["value"])


def test_the_embedded_judge_in_full(labels: Path) -> None:
    done = command("agreement", labels, "--judge", "offline")
    assert done.code == 0 and done.err == ""
    lines = done.out.splitlines()
    assert lines[0] == "labels.jsonl: 18 rows, 18 questions; 95 % intervals resample questions"
    assert lines[2] == "offline:lexical lexical_support against label (scores; a label of 1 or more is a yes)"
    for text in ("rows compared      18 of 18", "AUROC              1.000", "decided            yes from",
                 "balanced accuracy  1.000", "kappa              1.000", "label yes        0        12"):
        assert any(text in line for line in lines), text
    assert not list(labels.parent.glob("*.sqlite"))


def test_by_slice_and_by_seed(labels: Path) -> None:
    arguments = ("agreement", labels, "--judge", "offline", "--by", "metadata.lang")
    one = found(command(*arguments, "--json"))
    assert [(c["slice"], c["n"]) for c in one] == [(None, 18), ("de", 9), ("en", 9)]
    assert found(command(*arguments, "--json")) == one
    assert found(command(*arguments, "--json", "--seed", 7)) != one
    assert "By metadata.lang:" in command(*arguments).out


def test_a_judge_over_http_is_asked_once_and_kept(labels: Path) -> None:
    with OpenAIServer() as server:
        arguments = ("agreement", labels, "--judge", "test-model", "--judge-url", server.url, "--json")
        planned = command(*arguments, "--dry-run").out
        assert planned.startswith("labels.jsonl: 18 rows; faithfulness by test-model: 18 of 18 judgements to ask")
        assert not server.calls
        (first,) = found(command(*arguments))
        asked = len(server.calls)
        assert asked == 36  # statements, then verdicts
        (second,) = found(command(*arguments))
        assert "0 of 18 judgements" in command(*arguments, "--dry-run").out
        assert "Judge: 0 calls, 36 answers from the store" in command(*arguments[:-1]).out
        assert len(server.calls) == asked
    assert first == second
    assert first["judge"] == "test-model faithfulness"
    assert (first["n"], value(first, "auroc")) == (18, 1)
    assert (labels.parent / "labels.judgements.sqlite").exists()


def test_what_a_judge_did_not_deliver_is_counted_and_asked_again(labels: Path) -> None:
    def sometimes(request: Request) -> Answer | str:
        return error(400, "content_filter") if "mill4" in request.prompt else lexical_judge(request)

    with OpenAIServer(sometimes) as server:
        arguments = ("agreement", labels, "--judge", "test-model", "--judge-url", server.url)
        done = command(*arguments)
        assert done.code == 3
        assert "rows compared      17 of 18 (1 failed: " in done.out
        assert "1 row was not judged; the same command asks it again" in done.err
        server.reply = lexical_judge
        assert "rows compared      18 of 18\n" in command(*arguments).out


def test_a_budget_of_calls_keeps_what_was_judged(labels: Path) -> None:
    with OpenAIServer() as server:
        done = command("agreement", labels, "--judge", "test-model", "--judge-url", server.url, "--max-calls", 20,
                       "--concurrency", 1)
        assert done.code == 3
        assert len(server.calls) <= 20
        assert "not judged" in done.out and "rows compared" in done.out


def test_a_price_tells_what_it_would_cost_what_it_did_and_when_to_stop(labels: Path) -> None:
    with OpenAIServer() as server:
        arguments = ("agreement", labels, "--judge", "test-model", "--judge-url", server.url, "--concurrency", 1)
        planned = command(*arguments, "--dry-run", "--price", "100,100").out
        assert "36 calls, " in planned
        expected = float(planned.rsplit("cost ", 1)[1])
        assert command(*arguments, "--dry-run").out.endswith(" out, cost unknown (see --price)\n")
        assert not list(labels.parent.glob("*.sqlite")) and not server.calls
        stopped = command(*arguments, "--price", "100,100", "--budget", 1)
        assert stopped.code == 3 and 0 < len(server.calls) < 36
        done = command(*arguments, "--price", "100,100")
        assert (done.code, len(server.calls)) == (0, 36)
    spent = [line for line in done.out.splitlines() if "cost" in line]
    assert spent[0].startswith("Judge: ") and spent[1].startswith("All runs on this store: 36 calls, cost ")
    assert float(spent[1].rsplit("cost ", 1)[1]) == pytest.approx(expected, rel=0.5)


def test_all_verbs_that_judge_have_the_same_flags_for_it() -> None:
    from dataclasses import fields
    from inspect import signature

    from ragkit.cli import agreement, run, score
    from ragkit.judge.settings import JudgeSettings

    known = {entry.name for entry in fields(JudgeSettings)} | {"options"}
    flags = [{name for name in signature(verb).parameters if name.removeprefix("judge_") in known}
             for verb in (score.score, run.run, agreement.agreement)]
    assert flags[0] == flags[1] == flags[2] >= {"price", "prices", "budget", "store", "judge_options"}


def test_grades_of_passages(tmp_path: Path) -> None:
    rows = [{"query_id": f"q{n // 4}", "question": f"Who built mill{n // 4}?", "passage": f"Passage number {n}.",
             "passage_id": f"p{n}", "grade": n % 4} for n in range(16)]

    def grades(request: Request) -> dict[str, Any]:
        number = int(request.first_prompt.rpartition("Passage number ")[2].split(".")[0])
        return {"reason": "r", "grade": min(number % 4 + (number == 0), 3), "carries": []}

    with OpenAIServer(grades) as server:
        (one,) = found(command("agreement", written(tmp_path / "graded.jsonl", rows), "--judge", "test-model",
                               "--judge-url", server.url, "--json"))
        assert len(server.calls) == 16
        assert "relevance by test-model: 0 of 16" in command(
            "agreement", tmp_path / "graded.jsonl", "--judge", "test-model", "--judge-url", server.url, "--dry-run").out
    assert (one["kind"], one["judge"], one["n_questions"]) == ("grades", "test-model relevance", 4)
    assert value(one, "exact") == pytest.approx(15 / 16)
    assert one["confusion"][0] == [3, 1, 0, 0]


def test_ready_columns_as_a_table(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("query-id,human,m_a,m_b,note\n" + "".join(
        f"q{n},{n % 4},{n % 4},{(n + (n % 5 == 0)) % 4 if n else 9},x\n" for n in range(40)), encoding="utf-8")
    done = command("agreement", path, "--column", "m_*")
    assert done.code == 0
    assert "off the scale 0 to 3: 1 × 9" in done.out
    assert [line.split()[0] for line in done.out.splitlines()[3:6]] == ["judge", "m_a", "m_b"]
    assert len(found(command("agreement", path, "--column", "*", "--json"))) == 2
    plain = found(command("agreement", path, "--column", "m_b", "--weights", "none", "--json"))[0]["figures"]
    assert "kappa_quadratic" not in plain and "kappa" in plain


def test_annotators_among_themselves(tmp_path: Path) -> None:
    path = written(tmp_path / "two.jsonl", [{"ann": n % 2, "bob": (n + (n == 3)) % 2} for n in range(12)])
    (one,) = found(command("agreement", path, "--human", "ann,bob", "--json"))
    assert (one["human"], one["judge"], one["n"]) == ("ann", "bob", 12)
    assert value(one, "exact") == pytest.approx(11 / 12)
    assert "expected two raters" in command("agreement", path, "--human", "ann").error


@pytest.mark.parametrize(("arguments", "said"), [
    (["--column", "nothing", "--human", "label"], "no column 'nothing'"),
    (["--judge", "offline", "-m", "faithfulness"], "word overlap only"),
    (["--judge", "offline", "--by", "nowhere"], "no column 'nowhere'"),
    (["--judge", "offline", "--scale", "3,0"], "--scale"),
    (["--judge", "offline", "--scale", "all"], "--scale"),
    (["--judge", "offline", "--human", "label,label", "--calibrate", "t.json"], "one judge and one column"),
    (["--column", "label", "--calibrate", "t.json"], "which metric"),
    (["--judge", "nobody"], "judge 'nobody'"),
])
def test_wrong_calls_are_one_line(labels: Path, arguments: list[str], said: str) -> None:
    assert said in command("agreement", labels, *arguments).error


def trajectories(folder: Path) -> tuple[Path, Path]:
    data = written(folder / "questions.jsonl", [{"id": f"q{n}", "question": row["question"]}
                                                for n, row in enumerate(ROWS)])
    lines = [{"schema": "ragkit.trajectory/1", "question_id": f"q{n}", "question": row["question"],
              "answer": row["answer"], "steps": [{"retrievals": [{"passages": [
                  {"id": f"p{n}", "text": row["contexts"][0]}]}]}]} for n, row in enumerate(ROWS)]
    return written(folder / "trajectories.jsonl", lines), data


def test_a_calibrated_threshold_stands_beside_the_mean_of_a_run(labels: Path, tmp_path: Path) -> None:
    path, (runs, data) = tmp_path / "threshold.json", trajectories(tmp_path)
    with OpenAIServer() as server:
        asked = ("--judge", "test-model", "--judge-url", server.url)
        done = command("agreement", labels, *asked, "--calibrate", path)
        assert done.code == 0 and f"Threshold: {path}" in done.out
        score = ("score", runs, "--dataset", data, "--out", tmp_path / "run", "-m", "faithfulness", *asked)
        done = command(*score, "--threshold", path)
        assert done.code == 0, done
        assert "faithfulness: 67% (" in done.out and "held-out labels" in " ".join(done.out.split())
        again = command(*score, "--json")  # the folder holds the threshold
        unjudged = command(*score[:-4], "-m", "exact_match")  # the folder's own threshold asks for no judge
        other = command("score", runs, "--dataset", data, "--out", tmp_path / "other", "-m", "faithfulness", "--judge",
                        "another-model", "--judge-url", server.url, "--threshold", path)
    assert unjudged.code == 0, unjudged
    entry = json.loads(again.out)["metrics"]["faithfulness"]["above_threshold"]
    assert entry["share"] == pytest.approx(2 / 3)
    assert entry["threshold"] == json.loads(path.read_text())["threshold"]
    assert entry["low"] < entry["share"] < entry["high"]
    assert entry["held_out"]["figures"]["balanced_accuracy"]["value"] == 1
    assert "reach" in (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "reach" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert command("report", tmp_path / "run").code == 0
    assert f"reach {entry['threshold']:g}" in (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "was made with test-model" in other.error and "is another-model" in other.error
    assert "needs a judge" in command("score", runs, "--dataset", data, "--out", tmp_path / "none", "-m",
                                      "faithfulness", "--threshold", path).error
    assert "not measured" in command("score", runs, "--dataset", data, "--out", tmp_path / "none", "-m",
                                     "lexical_support", "--threshold", path).error


def test_a_threshold_of_ready_scores_goes_by_the_name_of_their_judge(labels: Path, tmp_path: Path) -> None:
    rows = [{**row, "scores": 0.9 if row["label"] else 0.1 * place / 18} for place, row in enumerate(ROWS)]
    wide, path = written(tmp_path / "wide.jsonl", rows), tmp_path / "t.json"
    arguments = ("agreement", wide, "--column", "scores", "-m", "lexical_support", "--calibrate", path)
    runs, data = trajectories(tmp_path)
    score = ("score", runs, "--dataset", data, "-m", "lexical_support", "--threshold", path)
    command(*arguments)
    assert "was made with scores" in command(*score, "--out", tmp_path / "a").error
    command(*arguments, "--scored-by", "offline:lexical")
    assert command(*score, "--out", tmp_path / "b").code == 0


@pytest.mark.data
@pytest.mark.parametrize("signal", ["lexical_support", "lexical_coverage"])
def test_the_embedded_judge_agrees_with_people_as_it_is_said_to(signal: str) -> None:
    said = next(row for row in AGREEMENT if row["signal"] == signal)
    for name, head in (("q2_wow", "q2_wow (600)"), ("begin", "begin (4,748)")):
        (one,) = found(command("agreement", data_folder(name) / "rows.jsonl", "--judge", "offline", "-m", signal,
                               "--json"))
        assert f"{one['n']:,}" in head
        assert round(value(one, "auroc"), 3) == said[head]


@pytest.mark.data
def test_33_judges_of_relevance_have_the_published_kappa() -> None:
    folder = data_folder("llmjudge_dl23")
    published = json.loads((folder / "cohen_kappa_vs_human.json").read_text(encoding="utf-8"))
    judges = {one["judge"]: one for one in found(command("agreement", folder / "judgments_wide.tsv", "--column", "*",
                                                         "--json"))}
    assert {name: round(value(one, "kappa"), 4) for name, one in judges.items()} == published
    assert {name: one["off_scale"] for name, one in judges.items() if one["off_scale"]} == {
        "RMITIR-llama70B": {"5": 2}, "h2oloo-zeroshot2": {"10": 1}}
    for one in judges.values():
        assert one["n"] == 4423 and one["n_questions"] == 25 and one["level"] == 2
        assert value(one, "kappa_quadratic") > value(one, "kappa")


@pytest.mark.data
def test_two_annotators_of_published_pairs() -> None:
    path = data_folder("ragchecker_meta") / "pairs.jsonl"
    (one,) = found(command("agreement", path, "--human", "human.overall", "--json"))
    assert value(one, "exact") == pytest.approx(155 / 280)
    near = sum(count for i, line in enumerate(one["confusion"]) for j, count in enumerate(line) if abs(i - j) < 2)
    assert near == 253
    assert value(one, "kappa_quadratic") > value(one, "kappa")
