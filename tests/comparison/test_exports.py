"""A comparison for other programs: CSV no spreadsheet runs, Parquet, LaTeX of any name, a real store of MLflow."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from ragkit.comparison.compare import Comparison, compare
from ragkit.comparison.exports import FORMATS, csv_text, export, latex, latex_text, table_rows
from ragkit.errors import DataError, MissingPackageError
from tests.report.test_comparison import FIGURES, NONE, data
from tests.support.command import command
from tests.support.comparisons import of_runs
from tests.support.variants import ranked


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Comparison:
    folder = tmp_path_factory.mktemp("folders")
    ranked(*[1] * 12, None, out=folder / "good")
    return compare({"bad": ranked(*[3] * 12, None), "good": folder / "good"})


def test_a_row_a_metric_and_variant_with_all_its_figures(made: Comparison) -> None:
    rows = {(row["metric"], row["variant"]): row for row in table_rows(made.data)}
    assert len(rows) == len(made.data["means"]) * 2
    base, good = rows["mrr", "bad"], rows["mrr", "good"]
    assert base["difference"] is None and base["verdict"] is None and base["mean"] == pytest.approx(4 / 13)
    assert good["verdict"] == "better" and good["n"] == good["n_scored"] == good["n_asked"] == 13
    figures = made.data["metrics"]["mrr"]["good"]
    assert all(good[name] == figures[name] for name in ("difference", "low", "high", "p_holm", "wins", "decided"))


def test_csv_reads_back_and_no_cell_of_it_is_a_formula() -> None:
    hostile = data(name='=HYPERLINK("http://x")\r\n;@', metrics={"mrr": {'=HYPERLINK("http://x")\r\n;@': FIGURES},
                                                              "recall": {'=HYPERLINK("http://x")\r\n;@': NONE}})
    rows = list(csv.DictReader(io.StringIO(csv_text(hostile), newline="")))
    assert [row["variant"] for row in rows[:2]] == ["old", '\'=HYPERLINK("http://x")\r\n;@']
    assert rows[1]["difference"] == "-0.05" and rows[1]["decided"] == "true" and rows[3]["difference"] == ""
    assert not [cell for row in rows for cell in row.values() if cell[:1] in "=@+" and cell]


def test_parquet_keeps_whole_numbers_truths_and_what_is_unknown(made: Comparison, tmp_path: Path) -> None:
    assert export(made, "parquet", str(tmp_path / "deep" / "x.parquet")).endswith("6 rows, one a metric and variant")
    frame = pd.read_parquet(tmp_path / "deep" / "x.parquet").set_index(["metric", "variant"])
    assert str(frame["wins"].dtype) == "Int64" and str(frame["decided"].dtype) == "boolean"
    assert frame.loc[("mrr", "good"), "wins"] == 12 and pd.isna(frame.loc[("mrr", "bad"), "wins"])
    assert frame.loc[("mrr", "good"), "difference"] == made.data["metrics"]["mrr"]["good"]["difference"]


def test_latex_marks_what_is_decided_and_prints_any_name(made: Comparison) -> None:
    lines = latex_text(made.data).splitlines()
    row = next(line for line in lines if line.startswith("mrr"))
    assert row.count("&") == 2 and r"\textbf{0.923}$^{\uparrow}$" in row and row.endswith(r"\\")
    assert r"recall@5 & 0.923 " in "\n".join(lines) and "uparrow}$ " not in next(
        line for line in lines if line.startswith("recall@5")), "the same in both"
    hostile = r"\input{/etc/passwd} 50%_$x^2~#&" + "\n\u202e<b>"
    assert latex(hostile) == (r"\textbackslash{}input\{/etc/passwd\} 50\%\_\$x\textasciicircum{}2\textasciitilde{}\#\& "
                              r"\textless{}b\textgreater{}")
    text = latex_text(data(name=hostile, metrics={"mrr": {hostile: FIGURES}, "recall": {hostile: NONE}}))
    assert r"\input" not in text and text.count(r"\begin{tabular}{lrr}") == 1
    assert r"\textbf{0.450}$^{\downarrow}$" in text


def test_the_command_writes_each_form_and_refuses_others(tmp_path: Path) -> None:
    of_runs(tmp_path, 12)
    arguments = ["compare", tmp_path / "run0.json", tmp_path / "run1.json", "--qrels", tmp_path / "qrels.json",
                 "-m", "mrr"]
    for form, begins in (("csv", "metric,variant"), ("markdown", "# Comparison"), ("latex", "% needs")):
        done = command(*arguments, "--export", form, tmp_path / f"x.{form}")
        assert done.code == 0 and f"Wrote {tmp_path / f'x.{form}'}" in done.out.replace("\n", ""), done
        assert (tmp_path / f"x.{form}").read_text(encoding="utf-8").startswith(begins)
    assert "expected one of csv, parquet, markdown, latex, mlflow" in command(*arguments, "--export", "xlsx", "x").error
    found = json.loads(command(*arguments, "--json", "--export", "csv", tmp_path / "y.csv").out)
    assert found["schema"] == "ragkit.comparison/1" and (tmp_path / "y.csv").exists()


# --- MLflow ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def mlflow():
    pytest.importorskip("mlflow", reason="mlflow-skinny is not installed (the extra mlflow)")
    pytest.importorskip("alembic", reason="alembic, which a local store of MLflow needs, is not installed")
    from mlflow import MlflowClient

    return MlflowClient


def test_mlflow_has_a_run_of_the_comparison_and_beneath_it_one_a_variant(made, mlflow, tmp_path: Path) -> None:
    told = export(made, "mlflow", str(tmp_path / "store.db"))
    assert "1 comparison, 2 variants beneath it" in told
    client = mlflow(tracking_uri=f"sqlite:///{tmp_path / 'store.db'}")
    experiment = client.get_experiment_by_name("ragkit")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    parent = runs["good against bad"]
    assert set(runs) == {"good against bad", "good", "bad"}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert {runs[name].data.tags["mlflow.parentRunId"] for name in ("good", "bad")} == {parent.info.run_id}
    assert sorted(one.path for one in client.list_artifacts(parent.info.run_id)) == [
        "comparison.html", "comparison.json", "comparison.md"]
    assert [one.path for one in client.list_artifacts(runs["good"].info.run_id)] == ["report.html"]
    own, base = runs["good"].data.metrics, runs["bad"].data.metrics
    mean, figures = made.data["means"]["recall@5"]["good"], made.data["metrics"]["mrr"]["good"]
    assert own["recall_at_5"] == mean["mean"] and own["recall_at_5.low"] == mean["low"] and own["mrr.n"] == 13
    assert own["mrr.difference"] == figures["difference"] and own["mrr.difference.p_holm"] == figures["p_holm"]
    assert own["mrr.difference.decided"] == 1.0 and not [name for name in base if "difference" in name]
    assert not [value for value in (*own.values(), *base.values()) if math.isnan(value)]
    assert runs["bad"].data.tags["ragkit.role"] == "baseline"
    copied = Path(client.download_artifacts(parent.info.run_id, "comparison.html", str(tmp_path)))
    assert "report.html#" not in copied.read_text(encoding="utf-8"), "what it could link to stays behind"
    export(made, "mlflow", str(tmp_path / "store.db"))
    assert len(client.search_runs([experiment.experiment_id])) == 6, "the same experiment takes the next comparison"


def test_mlflow_sends_nothing_and_leaves_the_environment_as_it_was(mlflow, monkeypatch, tmp_path: Path) -> None:
    for name in ("PYTEST_CURRENT_TEST", "CI", "GITHUB_ACTIONS"):  # where these are set it is silent by itself
        monkeypatch.delenv(name, raising=False)
    of_runs(tmp_path, 6)
    script = ("import os, sys, time; asked = []; sys.addaudithook(lambda name, found: name in ('socket.getaddrinfo', "
              "'socket.connect') and asked.append(found)); from ragkit.cli import main; main(); time.sleep(2); "
              "print('asked', asked, 'MLFLOW_DISABLE_TELEMETRY' in os.environ)")
    done = subprocess.run(
        [sys.executable, "-c", script, "compare", "run0.json", "run1.json", "--qrels", "qrels.json", "-m", "mrr",
         "--export", "mlflow", "store.db"], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    assert done.stdout.endswith("asked [] False\n") and "mlflow" not in done.stderr, done
    assert (tmp_path / "store-artifacts").is_dir() and not (tmp_path / "mlruns").exists()


def test_a_store_that_is_none_is_refused_in_one_line(made, mlflow, tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("not a data base, but long enough to be read as a header of one " * 20)
    with pytest.raises(DataError, match=r"--export mlflow.*other\.db"):
        export(made, "mlflow", str(tmp_path / "other.db"))
    with pytest.raises(DataError, match="is a folder; expected the file of a store"):
        export(made, "mlflow", str(tmp_path))
    with sqlite3.connect(tmp_path / "fine.db"):
        pass
    export(made, "mlflow", str(tmp_path / "fine.db"))


def test_without_mlflow_the_extra_is_named(made, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingPackageError, match=r'pip install "ragkit-eval\[mlflow\]"'):
        export(made, "mlflow", str(tmp_path / "x.db"))


def test_all_forms_are_known() -> None:
    assert list(FORMATS) == ["csv", "parquet", "markdown", "latex", "mlflow"]
