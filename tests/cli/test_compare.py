"""`ragkit compare` as a user meets it: an experiment's folder, run folders, run files, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import command
from tests.support.data import data_folder

FIGURES = {"difference", "low", "high", "p", "p_holm", "wins", "ties", "losses", "n", "decided", "questions_to_decide",
           "repeats_to_decide", "corrected"}
EXPERIMENT = """\
dataset: data
out: runs
metrics: [recall, mrr, ndcg@5]
pipeline: {retriever: lexical, k: 1}
variants: {one: {}, two: {pipeline: {k: 2}}, same: {}}
"""


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment of eight questions, half of them with a category; two gold passages each, alike in their words."""
    data = tmp_path / "data"
    data.mkdir()
    asked, corpus, gold = [], [], ["query-id\tcorpus-id\tscore"]
    for n in range(8):
        asked.append({"_id": f"q{n}", "text": f"Where is the mill{n}?", **({"category": "place"} if n % 2 else {})})
        corpus += [{"_id": f"d{n}a", "text": f"The mill{n} is here."}, {"_id": f"d{n}b", "text": f"A mill{n} stood."}]
        gold += [f"q{n}\td{n}a\t1", f"q{n}\td{n}b\t1"]
    (data / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    (data / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus), encoding="utf-8")
    (data / "qrels.tsv").write_text("\n".join(gold) + "\n", encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_writes_the_comparison_of_its_variants_and_compare_gives_the_same(experiment: Path) -> None:
    done = command("run", "experiment.yaml")
    assert done.code == 0, done
    assert "two is better than one on recall by 0.500 [0.500, 0.500] (decided, 8 questions)" in done.out
    assert "same and one are the same on recall (8 questions)" not in done.out
    assert "same and one are the same on every metric compared (8 questions)" in done.out
    assert "Comparison: runs/comparison.html" in done.out
    written = strict((experiment / "runs" / "comparison.json").read_text(encoding="utf-8"))
    again = command("compare", "runs", "--json")
    assert (again.code, strict(again.out)) == (0, written)
    assert list(written["variants"]) == ["one", "two", "same"], "in the order of the file"
    assert written["schema"] == "ragkit.comparison/1"
    assert (written["baseline"], written["labels"]) == ("one", "gold")
    assert all(set(figures) == FIGURES for found in written["metrics"].values() for figures in found.values())
    same = written["metrics"]["ndcg@5"]["same"]
    assert (same["difference"], same["p"], same["p_holm"], same["decided"]) == (0, 1, 1, False)
    text = (experiment / "runs" / "comparison.md").read_text(encoding="utf-8")
    assert "## two against one" in text and "| `recall` | 0.500 | 1.000 | **+0.500** |" in text


def test_one_variant_run_alone_is_compared_with_what_the_others_folders_hold(experiment: Path) -> None:
    assert command("run", "experiment.yaml", "--variant", "two").code == 0
    assert not (experiment / "runs" / "comparison.json").exists(), "there is nothing to compare it with"
    assert command("run", "experiment.yaml", "--variant", "one").code == 0
    written = strict((experiment / "runs" / "comparison.json").read_text(encoding="utf-8"))
    assert (list(written["variants"]), written["baseline"]) == (["one", "two"], "one")
    assert written["metrics"]["recall"]["two"]["difference"] == 0.5


def test_baseline_metrics_slices_and_files(experiment: Path) -> None:
    command("run", "experiment.yaml")
    done = command("compare", "runs/one", "runs/two", "--baseline", "two", "-m", "recall", "--by", "category",
                   "--out", "out", "--json")
    found = strict(done.out)
    assert found == strict((experiment / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert (found["baseline"], list(found["metrics"]), list(found["slices"])) == ("two", ["recall"], ["category"])
    assert found["metrics"]["recall"]["one"]["difference"] == -0.5
    assert {name: part["n"] for name, part in found["slices"]["category"].items()} == {"place": 4, "(no category)": 4}
    shown = command("compare", "runs/one", "runs/two", "--by", "category")
    assert shown.code == 0 and max(map(len, shown.out.splitlines())) <= 80
    assert "(no category)" in shown.out and "two by category" in shown.out
    assert "by category" not in command("compare", "runs/one", "runs/two").out


@pytest.mark.parametrize(("words", "said"), [
    (("runs/one",), "expected at least two to compare, got 1"),
    (("runs/one", "runs/none"), "runs/none: no run.json"),
    (("runs", "--baseline", "three"), "--baseline 'three': expected one of one, two, same"),
    (("runs", "-m", "map"), "metric map: not in one, two, same; expected one that all hold"),
    (("runs", "--by", "tag"), "--by 'tag': these questions do not differ in it; they do in: category"),
    (("runs", "--labels", "judged"), "labels: one has no judged labels"),
    (("runs", "--labels", "best"), "labels: expected gold or judged, got 'best'"),
    (("data/qrels.tsv", "data/queries.jsonl"), "run files are compared with their labels: add --qrels QRELS"),
    (("--qrels", "data/qrels.tsv", "data/qrels.tsv"), "expected at least two run files to compare, got 1"),
])
def test_what_cannot_be_compared_is_said_in_one_line(experiment: Path, words: tuple[str, ...], said: str) -> None:
    command("run", "experiment.yaml")
    assert said in command("compare", *words).error


def test_run_files_are_compared_as_rank_scores_them(experiment: Path) -> None:
    (experiment / "a.run").write_text("q0 Q0 d0a 1 2 a\nq1 Q0 d1a 1 2 a\n", encoding="utf-8")
    (experiment / "b.run").write_text("q0 Q0 d0a 1 2 b\nq0 Q0 d0b 2 1 b\n", encoding="utf-8")
    done = command("compare", "--qrels", "data/qrels.tsv", "a.run", "b.run", "-m", "recall", "--json")
    found = strict(done.out)
    figures = found["metrics"]["recall"]["b"]
    assert (figures["difference"], figures["wins"], figures["losses"], figures["n"]) == (0.0, 1, 1, 8)
    assert (found["means"]["recall"]["a"]["mean"], found["means"]["recall"]["a"]["n_asked"]) == (1 / 8, 8)
    assert any("b: no results for 7 questions" in warning for warning in found["warnings"])
    assert found["variants"]["a"] | {"detectable": {}, "variance": {}} == {
        "folder": None, "n_asked": 8, "app": {}, "detectable": {}, "variance": {}}
    sliced = command("compare", "--qrels", "data/qrels.tsv", "a.run", "b.run", "--dataset", "data", "--by", "category",
                     "-m", "recall", "--json")
    assert {name: part["n"] for name, part in strict(sliced.out)["slices"]["category"].items()} == {
        "place": 4, "(no category)": 4}


@pytest.mark.data
def test_the_runs_of_hotpotqa_have_their_published_scores_and_all_differences_are_decided() -> None:
    folder = data_folder("hotpotqa_val500_runs")
    runs = [folder / f"run.{name}.trec.gz" for name in ("bm25", "dense", "rerank")]
    done = command("compare", "--qrels", folder / "qrels.trec", *runs, "--ties", "rank", "-m",
                   "allhit@5,hit@5,mrr@10", "--dataset", folder, "--json")
    found = strict(done.out)
    means = {name: [round(found["means"][metric][name]["mean"], 3) for metric in ("allhit@5", "hit@5", "mrr@10")]
             for name in found["variants"]}
    assert means == {"run.bm25": [0.302, 0.874, 0.751], "run.dense": [0.502, 0.962, 0.869],
                     "run.rerank": [0.654, 0.994, 0.948]}
    assert all(figures["decided"] and figures["n"] == 500
               for by_variant in found["metrics"].values() for figures in by_variant.values())
    rerank = found["metrics"]["allhit@5"]["run.rerank"]
    assert rerank["difference"] == pytest.approx(0.352) and rerank["low"] > 0.29 and rerank["high"] < 0.42
    assert sum(part["n"] for part in found["slices"]["category"].values()) == 500
