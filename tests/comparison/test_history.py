"""Runs over time: their order, where numbers stop meaning the same, and whether the last one is better."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragkit.comparison.history import history
from ragkit.comparison.sides import side_of_folder
from ragkit.errors import DataError
from ragkit.metrics.noise import detectable_of_run
from ragkit.records.questions import Dataset
from tests.support.variants import dataset, ranked

DATA = dataset(30)
POOR, FAIR, GOOD = [5] * 30, [2 + place % 2 for place in range(30)], [1] * 29 + [2]


def made(folder: Path, ranks: Sequence[int | None], started: str, of: Dataset = DATA, commit: str = "",
         **more: Any) -> Path:
    """A run folder as it would be of that day."""
    ranked(*ranks, data=of, out=folder)
    path = folder / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    run |= {"started": f"{started}T10:00:00+00:00", "git": {"commit": commit, "changed": False} if commit else None}
    for key, value in more.items():
        run[key] = {**run[key], **value} if isinstance(value, dict) and isinstance(run.get(key), dict) else value
    path.write_text(json.dumps(run), encoding="utf-8")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    made(folder / "c", GOOD, "2026-03-20", commit="ccccccc1")
    made(folder / "a", POOR, "2026-01-02", commit="aaaaaaa1")
    made(folder / "b", FAIR, "2026-02-14", commit="bbbbbbb1")
    return folder


def test_runs_stand_by_time_with_commit_interval_and_what_they_detect(runs: Path) -> None:
    found = history(runs, "mrr")
    assert (found["schema"], [one["name"] for one in found["series"]]) == ("ragkit.history/1", ["runs"])
    entries = found["series"][0]["runs"]
    assert [(Path(run["folder"]).name, run["commit"]) for run in entries] == [
        ("a", "aaaaaaa1"), ("b", "bbbbbbb1"), ("c", "ccccccc1")]
    summary = json.loads((runs / "c" / "summary.json").read_text(encoding="utf-8"))["metrics"]["mrr"]
    last = entries[-1]["metrics"]["mrr"]
    assert {name: last[name] for name in ("mean", "low", "high", "n_scored", "n_asked")} == {
        name: summary[name] for name in ("mean", "low", "high", "n_scored", "n_asked")}
    assert last["detectable"] == detectable_of_run(side_of_folder(runs / "c").repeats("mrr"))
    assert [run["breaks"] for run in entries] == [[], [], []]


def test_the_last_run_is_held_against_the_first_and_against_two_months_ago(runs: Path) -> None:
    (first,) = history(runs, "mrr,recall@5")["series"][0]["comparisons"]
    assert (first["against"], Path(first["baseline"]).name) == (["first", "61 days ago"], "a")
    assert first["differences"]["mrr"]["difference"] == pytest.approx(29 / 30 + 1 / 60 - 0.2)
    assert first["differences"]["mrr"]["decided"] is True and first["differences"]["recall@5"]["wins"] == 0
    assert any("is better than a (2026-01-02, aaaaaaa) on mrr" in said for said in first["conclusion"])


def test_two_months_ago_is_the_latest_run_that_is_so_old(runs: Path) -> None:
    found = history(runs, "mrr", ago=30)["series"][0]["comparisons"]
    assert [(one["against"], Path(one["baseline"]).name) for one in found] == [(["first"], "a"), (["30 days ago"], "b")]
    both = history(runs, "mrr", ago=60)["series"][0]["comparisons"]
    assert [one["against"] for one in both] == [["first", "60 days ago"]]
    none = history(runs, "mrr", ago=100)["series"][0]["comparisons"]
    assert none[1]["conclusion"] == ["there is no run so old"] and none[1]["baseline"] is None


def test_what_changed_between_runs_is_marked_and_only_comparable_runs_are_compared(runs: Path) -> None:
    other = dataset(30, ("g", "more"))
    made(runs / "d", GOOD, "2026-04-01", other)
    made(runs / "e", GOOD, "2026-05-01", other, fingerprints={"embedder": "minilm:1"})
    series = history(runs, "mrr")["series"][0]
    breaks = [[entry["what"] for entry in run["breaks"]] for run in series["runs"]]
    assert breaks == [[], [], [], ["labels"], ["embedder"]]
    assert "the embedder: none, now minilm:1" in series["runs"][-1]["breaks"][0]["told"]
    first = series["comparisons"][0]
    assert Path(first["baseline"]).name == "d", "those before have other labels"
    assert len(first["not_comparable"]) == 3 and "labels: not the same" in first["not_comparable"][0]
    assert first["differences"]["mrr"]["difference"] == 0
    assert series["comparisons"][1]["conclusion"] == ["no earlier run can be compared with the last"]


@pytest.mark.parametrize(("more", "what"), [
    ({"judge": {"name": "gpt", "fingerprint": "1", "endpoint": "e", "embeddings": "m"}}, "judge"),
    ({"config": {"level": 2.0}}, "level"), ({"data": {"corpus": "other"}}, "corpus"),
    ({"data": {"questions": "other"}}, "questions"), ({"config": {"limit": 30}}, "sample"),
])
def test_each_kind_of_break_is_found(runs: Path, more: dict[str, Any], what: str) -> None:
    made(runs / "d", GOOD, "2026-04-01", **more)
    assert [entry["what"] for entry in history(runs, "mrr")["series"][0]["runs"][-1]["breaks"]] == [what]


def test_another_judge_or_other_settings_of_it_are_told_apart(runs: Path) -> None:
    judge = {"name": "gpt", "fingerprint": "1", "endpoint": "e", "embeddings": "m"}
    for place, changed in enumerate([{}, {"fingerprint": "2"}, {"fingerprint": "2", "name": "other"}]):
        made(runs / f"d{place}", GOOD, f"2026-04-0{place + 1}", judge=judge | changed)
    told = [run["breaks"][0]["told"] for run in history(runs, "mrr")["series"][0]["runs"][3:]]
    assert told == ["the judge: none, now gpt", "the judge gpt with other settings", "the judge: gpt, now other"]


def test_variants_of_experiments_are_series_of_their_own(tmp_path: Path) -> None:
    for day, ranks in (("2026-01-01", POOR), ("2026-02-01", GOOD)):
        for name in ("dense", "lexical"):
            made(tmp_path / day / name, ranks if name == "dense" else FAIR, day)
    found = history(tmp_path, "mrr")["series"]
    assert [(one["name"], len(one["runs"])) for one in found] == [("dense", 2), ("lexical", 2)]
    assert found[1]["comparisons"][0]["conclusion"][0].startswith("the last run, lexical (2026-02-01) and lexical "
                                                                   "(2026-01-01) are the same on mrr")


def test_a_metric_that_older_runs_lack_is_shown_where_it_is_and_they_are_not_compared_by_it(runs: Path) -> None:
    ranked(*GOOD, data=DATA, out=runs / "d", metrics="mrr,map")
    entries = history(runs, "map")["series"][0]
    assert [sorted(run["metrics"]) for run in entries["runs"]] == [[], [], [], ["map"]]
    assert entries["comparisons"][0]["baseline"] is None
    assert "metric map: not in" in entries["comparisons"][0]["not_comparable"][0]
    with pytest.raises(DataError, match="ndcg@10: in none of the runs"):
        history(runs, "ndcg@10")


def test_unfinished_and_broken_runs_are_left_out_and_told(runs: Path) -> None:
    made(runs / "d", GOOD, "2026-04-01", state="running")
    shutil.copytree(runs / "c", runs / "e")
    (runs / "e" / "scores.parquet").unlink()
    (runs / "notes").mkdir()
    found = history(runs, "mrr")
    assert len(found["series"][0]["runs"]) == 3
    assert {Path(one["folder"]).name: one["why"].split(":")[-1].strip()[:14] for one in found["left_out"]} == {
        "d": "not finished", "e": "no scores ther"}
    with pytest.raises(DataError, match="no such folder"):
        history(runs / "nowhere")
    with pytest.raises(DataError, match="no finished run in it"):
        history(runs / "notes")


def test_the_order_of_folders_plays_no_role(runs: Path, tmp_path: Path) -> None:
    names = ["z", "y", "x"]
    random.Random(1).shuffle(names)
    for name, old in zip(names, ("a", "b", "c"), strict=True):
        shutil.copytree(runs / old, tmp_path / "renamed" / name)
    again = history(tmp_path / "renamed", "mrr")["series"][0]["runs"]
    assert [run["variant"] for run in again] == ["a", "b", "c"], "names of their own are one series"
    assert [run["commit"] for run in again] == ["aaaaaaa1", "bbbbbbb1", "ccccccc1"]


def test_folders_of_one_variant_name_are_a_series_beside_those_of_another(runs: Path) -> None:
    for name in ("d", "e"):
        made(runs / name, GOOD, f"2026-05-0{1 + (name == 'e')}", variant="nightly")
    found = {one["name"]: len(one["runs"]) for one in history(runs, "mrr")["series"]}
    assert found == {"a": 1, "b": 1, "c": 1, "nightly": 2}
