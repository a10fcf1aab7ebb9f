"""`ragkit history` as a user meets it: the table, breaks, what the last run is held against, JSON, errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_compare import strict
from tests.comparison.test_history import FAIR, GOOD, POOR, made
from tests.support.command import command
from tests.support.variants import dataset


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "runs"
    made(folder / "old", POOR, "2025-11-01", dataset(30, ("g", "more")), commit="0000000aa")
    made(folder / "a", POOR, "2026-01-02", commit="aaaaaaa11")
    made(folder / "b", FAIR, "2026-02-14", git={"commit": "bbbbbbb11", "changed": True})
    made(folder / "c", GOOD, "2026-03-20", commit="ccccccc11")
    return folder


def test_runs_stand_in_a_table_with_breaks_and_a_conclusion(runs: Path) -> None:
    done = command("history", runs, "-m", "mrr")
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert lines[:2] == ["runs: 4 runs", ""]
    assert lines[3].split() == ["Started", "Commit", "Run", "Mean", "95%", "interval", "Scored", "Detects"]
    assert lines[5] == "---- other labels", "before the run that it begins with"
    assert [line.split()[:4] for line in (lines[4], *lines[6:9])] == [
        ["2025-11-01", "10:00", "0000000aa", "old"], ["2026-01-02", "10:00", "aaaaaaa11", "a"],
        ["2026-02-14", "10:00", "bbbbbbb11*", "b"], ["2026-03-20", "10:00", "ccccccc11", "c"]]
    assert "Against first and 61 days ago:" in lines
    assert any("is better than a (2026-01-02, aaaaaaa) on mrr by 0.783" in line for line in lines)
    assert any("not comparable: old (2025-11-01, 0000000): labels: not the same" in line for line in lines)


def test_json_is_the_same_and_strict(runs: Path) -> None:
    found = strict(command("history", runs, "-m", "mrr", "--ago", "30", "--json").out)
    assert found["schema"] == "ragkit.history/1" and found["ago_days"] == 30
    first, month = found["series"][0]["comparisons"]
    assert (Path(first["baseline"]).name, Path(month["baseline"]).name) == ("a", "b")
    assert month["differences"]["mrr"]["decided"] is True


@pytest.mark.parametrize(("words", "said"), [
    (("nowhere",), "nowhere: no such folder"), ((".", "-m", "mmr"), "no finished run in it"),
])
def test_a_wrong_call_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...],
                                  said: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in command("history", *words).error


def test_an_unknown_metric_and_one_that_no_run_has_are_told(runs: Path) -> None:
    assert "unknown metric 'mmr'" in command("history", runs, "-m", "mmr").error
    assert "map: in none of the runs" in command("history", runs, "-m", "map").error
