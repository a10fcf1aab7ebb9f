"""Labels for a part of a run: drawn, filled in, read back, and what they change in summary, report and differences."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ragkit
from ragkit.cli.main import main
from ragkit.errors import DataError
from ragkit.evaluation.label_difference import corrected_difference
from ragkit.evaluation.label_import import in_a_run
from ragkit.evaluation.label_sample import sample_labels
from ragkit.evaluation.label_sheets import write_sheet
from ragkit.evaluation.reopen import reopen
from ragkit.evaluation.runfolder import RunFolder
from ragkit.metrics.prediction_powered import UNKNOWN_DRAW
from ragkit.records.files import read_trajectories
from ragkit.records.human_labels import HumanLabel, content_code, read_human_labels, write_human_labels
from tests.support.openai_server import OpenAIServer, lexical_judge
from tests.support.tower_app import BAD, TOWERS, TRUTH, is_right, tower_run, towers


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A judged run, made once; tests copy what they change."""
    out = tmp_path_factory.mktemp("judged") / "run"
    with OpenAIServer() as server:
        tower_run(out, server)
    yield out


@pytest.fixture
def run(judged: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(judged, tmp_path / "run"))


def drawn(run: Path, count: int = 40, **more: Any) -> list[HumanLabel]:
    labels = sample_labels(reopen(run), None, count, more.get("by"), more.get("seed", 0)).labels
    return [replace(label, value=is_right(label.question_id)) for label in labels]


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["ragkit", *map(str, arguments)])
    try:
        main()
    except SystemExit as left:
        return int(left.code or 0)
    return 0


def summary(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "summary.json").read_text(encoding="utf-8")))


def test_the_sample_holds_likely_negatives_of_every_category(run: Path) -> None:
    found = sample_labels(reopen(run), None, 40, None, 0)
    assert (found.metric.name, found.pool, len(found.labels)) == ("faithfulness", 120, 40)
    bad = [label for label in found.labels if not is_right(label.question_id)]
    assert len(bad) == 15  # a quarter of the run, more of the sample
    assert {int(label.question_id) % 3 for label in bad} == {0, 1, 2}
    assert sum(label.weight or 0 for label in found.labels) == pytest.approx(120)
    assert all(label.value is None for label in found.labels)


def test_the_corrected_mean_finds_the_truth_that_the_judge_misses(run: Path) -> None:
    made = in_a_run(run, drawn(run))
    entry = summary(run)["corrected"]["faithfulness"]
    assert entry["raw"] == pytest.approx(0.875) == summary(run)["metrics"]["faithfulness"]["mean"]
    assert entry["mean"] == pytest.approx(TRUTH)
    assert entry["low"] < TRUTH < entry["high"]
    assert (entry["n_labels"], entry["n_questions"], entry["weighted"], entry["warning"]) == (40, 120, True, None)
    assert entry["agreement"]["auroc"]["value"] == 1.0  # it ranks them right, and is too mild
    assert entry["agreement"]["base_rate"]["value"] == pytest.approx(TRUTH)  # of the run, not of the sample
    assert entry["labels_to_decide"]["0.1"].keys() == {"labels", "more", "questions"}
    assert made.evaluation is not None and made.evaluation.summary["judge"]["calls"] > 0  # the ledger of the run stays
    for report in ("report.html", "report.md"):
        text = (run / report).read_text(encoding="utf-8")
        assert "Judge and people" in text and "0.750" in text and "40 / 120, weighted" in text


def test_labels_in_the_folder_count_in_every_later_report(run: Path) -> None:
    in_a_run(run, drawn(run))
    again = asyncio.run(ragkit.areport(run))
    assert again.summary["corrected"] == summary(run)["corrected"]
    scored = ragkit.score(read_trajectories(run / "trajectories.jsonl"), TOWERS, metrics="lexical_support")
    assert "corrected" not in scored.summary


def test_score_takes_labels_from_a_file(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    labels = tmp_path / "labels.jsonl"
    write_human_labels(labels, [replace(label, metric="lexical_support") for label in drawn(run)])
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in TOWERS), encoding="utf-8")
    code = command(monkeypatch, "score", run / "trajectories.jsonl", "--dataset", data, "--out", tmp_path / "scored",
                   "-m", "lexical_support", "--labels", labels)
    assert code == 0
    shown = capsys.readouterr().out
    assert "Corrected by labels" in shown and "0.750" in shown and "kappa" in shown
    entry = summary(tmp_path / "scored")["corrected"]["lexical_support"]
    assert entry["mean"] == pytest.approx(TRUTH, abs=0.02)
    assert len(read_human_labels(tmp_path / "scored" / "labels.jsonl")) == 40


def test_nothing_known_of_the_draw_is_said_plainly(run: Path) -> None:
    labels = [HumanLabel("faithfulness", row["id"], 0, is_right(row["id"])) for row in TOWERS[:24]]
    write_human_labels(run / "labels.jsonl", labels)
    entry = asyncio.run(ragkit.areport(run)).summary["corrected"]["faithfulness"]
    assert (entry["weighted"], entry["warning"]) == (False, UNKNOWN_DRAW)
    assert entry["mean"] == pytest.approx(TRUTH, abs=0.02)


def test_empty_labels_are_counted_and_the_rest_of_their_stratum_stands_for_them(run: Path) -> None:
    labels = drawn(run)
    strata = {label.stratum for label in labels}
    for stratum in strata:  # the first of each stratum is left empty
        place = next(i for i, label in enumerate(labels) if label.stratum == stratum)
        labels[place] = replace(labels[place], value=None)
    in_a_run(run, labels)
    entry = summary(run)["corrected"]["faithfulness"]
    assert entry["n_labels"] == 40 - len(strata)
    assert entry["mean"] == pytest.approx(TRUTH)
    assert entry["notes"] == [f"{len(strata)} of 40 labels were left empty by the labeller"]


def test_a_label_of_another_answer_is_left_out_and_counted(run: Path) -> None:
    labels = drawn(run)
    stale = [replace(label, row=content_code("x", 0, [])) for label in labels[:5]]
    write_human_labels(run / "labels.jsonl", [*stale, *labels[5:]])
    entry = asyncio.run(ragkit.areport(run)).summary["corrected"]["faithfulness"]
    assert entry["n_labels"] == 35
    assert entry["notes"][0].startswith("5 of 40 labels were of an answer that this run does not hold")
    with pytest.raises(DataError, match="5 of 40 rows are of no answer of this run"):
        in_a_run(run, [*stale, *labels[5:]])
    write_human_labels(run / "labels.jsonl", stale)
    with pytest.raises(DataError, match="not one of 5 belongs to an answer of this run"):
        asyncio.run(ragkit.areport(run))


def test_ids_that_a_spreadsheet_took_for_numbers_are_set_right(run: Path) -> None:
    labels = [replace(label, question_id=label.question_id.lstrip("0") or "0") for label in drawn(run)]
    in_a_run(run, labels)
    assert {label.question_id for label in read_human_labels(run / "labels.jsonl")} <= {row["id"] for row in TOWERS}
    assert summary(run)["corrected"]["faithfulness"]["n_labels"] == 40


def test_labels_without_a_judges_score_give_no_mean_and_say_why(run: Path, tmp_path: Path) -> None:
    write_human_labels(tmp_path / "l.jsonl", drawn(run))
    made = ragkit.score(read_trajectories(run / "trajectories.jsonl"), TOWERS, metrics="faithfulness",
                        labels=tmp_path / "l.jsonl")
    entry = made.summary["corrected"]["faithfulness"]
    assert entry["mean"] is None and "no question with a judge's score" in entry["warning"]
    assert "40 of 40 labels were of an answer without a judge's score" in entry["notes"]


def test_without_a_judge_word_overlap_says_what_is_likely_bad(tmp_path: Path) -> None:
    ragkit.evaluate(towers, TOWERS, metrics="lexical_support", out=tmp_path / "bare")
    found = sample_labels(reopen(tmp_path / "bare"), None, 40, "none", 0)
    assert (found.metric.name, found.drawn_by.name) == ("faithfulness", "lexical_support")
    assert sum(not is_right(label.question_id) for label in found.labels) == 15
    with pytest.raises(DataError, match="no answer has a score by answer_f1"):
        sample_labels(reopen(tmp_path / "bare"), "answer_f1", 40, None, 0)
    with pytest.raises(DataError, match=r"--by colour: no question has such a field"):
        sample_labels(reopen(tmp_path / "bare"), None, 40, "colour", 0)


def test_no_texts_are_written_where_none_may_be_shared(run: Path, tmp_path: Path) -> None:
    ragkit.score(read_trajectories(run / "trajectories.jsonl"), TOWERS, metrics="lexical_support",
                 labels=[replace(label, metric="lexical_support") for label in drawn(run)], out=tmp_path / "secret",
                 include_text=False)
    text = (tmp_path / "secret" / "labels.jsonl").read_text(encoding="utf-8")
    assert "monks" not in text and "Tower" not in text and '"label"' in text


# --- the command line -------------------------------------------------------------------------------------------------


def fill(sheet: Path, delimiter: str = ",") -> None:
    rows = list(csv.DictReader(io.StringIO(sheet.read_bytes().decode("utf-8-sig"), newline="")))
    with sheet.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0])[::-1], delimiter=delimiter)
        writer.writeheader()
        writer.writerows({**row, "label": f"{is_right(row['question_id']):g}"} for row in rows)


def test_sample_label_import_and_a_second_person(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(monkeypatch, "labels", "sample", run, "--n", 30, "--seed", 3) == 0
    told = capsys.readouterr().out
    assert "labels-faithfulness.csv: 30 answers to label (of 120 questions" in told and "1 yes, 0 no" in told
    sheet = tmp_path / "labels-faithfulness.csv"
    assert "'=1+1 Ferries" in sheet.read_text(encoding="utf-8")
    assert "0.5" not in {cell for line in sheet.read_text(encoding="utf-8").split("\n") for cell in line.split(",")}
    assert command(monkeypatch, "labels", "sample", run, "--n", 30) == 2  # never over labels that may be in there
    assert "exists, and may hold labels" in capsys.readouterr().err
    fill(sheet, ";")
    assert command(monkeypatch, "labels", "import", sheet, run) == 0
    told = capsys.readouterr().out
    assert "30 labels came; 30 rows in all" in told and "Corrected by labels" in told
    assert command(monkeypatch, "labels", "import", sheet, run, "--as", "bob") == 0
    rows = [json.loads(line) for line in (run / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(row["bob"] == row["label"] for row in rows) and rows[0]["contexts"]
    assert command(monkeypatch, "labels", "import", sheet, "--out", tmp_path / "l.jsonl") == 0
    assert len(read_human_labels(tmp_path / "l.jsonl")) == 30
    assert command(monkeypatch, "labels", "import", sheet) == 2


def test_a_sheet_of_another_metric_or_question_is_no_label_of_this_run(run: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "s.csv"
    write_sheet(sheet, [HumanLabel("faithfulness", "zzz", 0, 1.0, content_code("zzz", 0, ["?"]), 1.0, "s")], "")
    with pytest.raises(DataError, match="not one of 1 belongs"):
        ragkit.score(read_trajectories(run / "trajectories.jsonl"), TOWERS, metrics="lexical_support", labels=sheet)


def test_labels_do_not_come_into_a_folder_that_a_run_is_writing_to(run: Path) -> None:
    labels = drawn(run)
    with RunFolder(run).locked(), pytest.raises(DataError, match="another run is writing to this folder"):
        in_a_run(run, labels)
    assert not RunFolder(run).labels.exists()
    with pytest.raises(DataError, match=r"no run\.json"):
        in_a_run(run / "nowhere", labels)
    assert not (run / "nowhere").exists()


# --- two runs ---------------------------------------------------------------------------------------------------------


def test_a_difference_of_two_runs_is_corrected_by_the_labels_of_both(run: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        ragkit.evaluate(lambda question: towers(question).replace("was painted by monks. ", "stands there. ", 1)
                        if int(question.split()[3]) % 8 else towers(question), TOWERS, metrics="faithfulness",
                        judge="m", judge_url=server.url, out=tmp_path / "better")
    labels = drawn(run)
    in_a_run(run, labels)
    from ragkit.evaluation.label_sample import same_questions

    twins, missing = same_questions(reopen(tmp_path / "better"), labels)
    assert missing == 0
    in_a_run(tmp_path / "better", [replace(twin, value=float(int(twin.question_id) % 8 != 0)) for twin in twins])
    found = corrected_difference(run, tmp_path / "better")
    assert (found["n_paired"], found["n_questions"], found["weighted"]) == (40, 120, True)
    assert found["mean"] == pytest.approx(15 / 120, abs=0.05)
    assert found["low"] < 15 / 120 < found["high"] and found["raw"] != found["mean"]
    assert set(found["labels_to_decide"]) == {"0.1", "0.05", "0.02"}


def test_without_labels_of_the_other_run_there_is_no_difference(run: Path, judged: Path) -> None:
    in_a_run(run, drawn(run))
    found = corrected_difference(judged, run)
    assert found["mean"] is None and "each run" in found["reason"]


# --- another judge ----------------------------------------------------------------------------------------------------


def strict_judge(request: Any) -> str:
    """As the other one, but it never accepts a statement about a tower whose number ends in 5."""
    said = json.loads(lexical_judge(request))
    for row in said.get("statements", ()):
        if isinstance(row, dict) and row["statement"].split()[1].endswith("5"):
            row["verdict"] = 0
    return json.dumps(said)


def test_another_judge_goes_on_after_a_bridge(run: Path) -> None:
    with OpenAIServer(reply=strict_judge) as server:
        with pytest.raises(DataError, match="or ask both about a part first: --rejudge 60"):
            tower_run(run, server, judge="strict")
        assert not server.calls
        made = tower_run(run, server, judge="strict", rejudge=60)
        paid = len(server.calls)
        assert paid == 240  # every answer once, in the bridge or after it
        bridge = made.summary["bridge"]
        assert (bridge["from"]["judge"], bridge["to"]["judge"]) == ("m", "strict")
        assert (bridge["n_drawn"], bridge["n_judged"]) == (60, 120)
        entry = bridge["metrics"]["faithfulness"]
        truth = made.summary["metrics"]["faithfulness"]["mean"] - 0.875
        assert entry["low"] < truth < entry["high"] < 0.05 and entry["n"] == 60
        assert entry["new"] - entry["old"] == pytest.approx(entry["offset"])
        assert entry["kappa_of"] == "verdicts" and 0 < entry["kappa"] < 1 and entry["n_kappa"] > 60
        assert "m judged before, strict now: 60 / 120 questions" in (run / "report.md").read_text(encoding="utf-8")
        again = tower_run(run, server, judge="strict")
        assert again.summary["bridge"] == bridge and len(server.calls) == paid
    assert asyncio.run(ragkit.areport(run)).summary["bridge"] == bridge


def test_a_plan_tells_what_the_bridge_takes_of_it(run: Path) -> None:
    from ragkit.evaluation.plan import plan_run
    from ragkit.evaluation.standins import Shape
    from ragkit.judge.settings import JudgeSettings

    settings = JudgeSettings(price=(1000.0, 1000.0))
    with OpenAIServer(reply=strict_judge) as server:
        def planned(**options: Any) -> dict[str, Any]:
            return asyncio.run(plan_run(TOWERS, Shape(), metrics="faithfulness", judge="strict", judge_url=server.url,
                                        judge_settings=settings, out=run, config=app, **options)).as_dict()

        app = {"app": json.loads((run / "run.json").read_text(encoding="utf-8"))["config"]["app"]}
        assert "bridge" not in planned()
        plan, bridge = planned(rejudge=60), planned(rejudge=60)["bridge"]
        assert not server.calls
        tower_run(run, server, judge="strict", rejudge=60)
        asked = [json.dumps(call.body["messages"]) for call in server.calls]
        first = {question for question in (row["question"] for row in TOWERS)
                 if any(f"Tower {question.split()[3]} " in prompt for prompt in asked[:bridge["calls"]])}
    assert (bridge["questions"], bridge["of"], bridge["judgements"], bridge["stored"]) == (60, 120, 60, 0)
    assert (len(first), bridge["calls"], plan["total"]["calls"], len(asked)) == (60, 120, 240, 240)
    tokens = bridge["tokens"]
    assert 0.4 < tokens["input"] / plan["total"]["tokens"]["input"] < 0.6
    assert bridge["cost"] == pytest.approx((tokens["input"] + tokens["output"]) / 1000, abs=0.01)


def test_a_bridge_that_the_budget_stops_holds_what_was_judged(run: Path) -> None:
    from ragkit.judge.settings import JudgeSettings

    with OpenAIServer(reply=strict_judge) as server:
        made = tower_run(run, server, judge="strict", rejudge=60,
                         judge_settings=JudgeSettings(max_calls=41, concurrency=1))
    entry = made.summary["bridge"]["metrics"]["faithfulness"]
    assert 10 <= entry["n"] <= 20 and made.partial
    assert made.summary["metrics"]["faithfulness"]["n_failed"] >= 100


def test_a_lost_store_cannot_be_compared_with(run: Path) -> None:
    for file in RunFolder(run).path.glob("judgements.sqlite*"):
        file.unlink()
    with OpenAIServer() as server, pytest.raises(DataError, match="judgements of m are gone"):
        record = json.loads((run / "run.json").read_text(encoding="utf-8"))
        record["store"] = str(run / "gone.sqlite")
        (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
        tower_run(run, server, judge="strict", rejudge=10)


def test_the_truth_of_this_file() -> None:
    assert sum(is_right(row["id"]) for row in TOWERS) / 120 == TRUTH == 1 - BAD / 120
