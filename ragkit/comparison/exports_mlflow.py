"""A comparison as runs of MLflow: one for the comparison with its page, beneath it one for each variant."""

from __future__ import annotations

import logging
import os
import re
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.comparison.variants import FILE, PAGE
from ragkit.errors import DataError, MissingPackageError, describe
from ragkit.records.files import write_json, write_text
from ragkit.report.comparison_html import render_comparison_html
from ragkit.report.comparison_markdown import render_comparison_markdown
from ragkit.report.comparison_rows import compared
from ragkit.report.numbers import counted

if TYPE_CHECKING:
    from ragkit.comparison.compare import Comparison

EXPERIMENT = "ragkit"
_PARENT = "mlflow.parentRunId"
_TELEMETRY = "MLFLOW_DISABLE_TELEMETRY"
_LONGEST = 500  # characters of a parameter or tag that every version of MLflow takes
_AT_ONCE = 1000
_DIFFERENCE = ("difference", "low", "high", "p", "p_holm", "wins", "ties", "losses", "n", "decided")


def to_mlflow(comparison: Comparison, target: str, experiment: str = EXPERIMENT) -> str:
    """Log a comparison; what was logged, in a sentence.

    target: the file of a local store (SQLite, made where it is missing; its artifacts lie beside it), or a tracking URI
    ("http://host:5000"). Names hold _at_ for @, as MLflow's own metrics do. A run of a variant has METRIC, METRIC.low,
    METRIC.high, METRIC.n, and METRIC.difference with .difference.low and so on; what is unknown is not logged.
    Raises MissingPackageError without the extra `mlflow`, DataError where the store refuses.
    """
    uri, artifacts = _store(target)
    records = _imported()
    with _quiet():  # once it is imported: that sets its loggers up
        return _logged(comparison, target, experiment, uri, artifacts, records)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what MLflow and alembic tell of tables that they make."""
    loggers = [logging.getLogger(name) for name in ("mlflow", "alembic")]
    before = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _logged(comparison: Comparison, target: str, experiment: str, uri: str, artifacts: str | None,
            mlflow: Any) -> str:
    client, entities = _client(mlflow, uri), mlflow.entities
    data = comparison.data
    try:
        home = _experiment(client, experiment, artifacts)
        parent = client.create_run(home, run_name=_title(data), tags=_tags(data)).info.run_id
        _files(client, parent, comparison)
        client.log_batch(parent, metrics=_points(entities, _summary(data)))
        client.set_terminated(parent)
        for name in data["variants"]:
            tags = {_PARENT: parent, "ragkit.role": "baseline" if name == data["baseline"] else "variant"}
            run = client.create_run(home, run_name=name, tags=tags).info.run_id
            _variant(client, entities, run, data, name)
            client.set_terminated(run)
    except Exception as error:  # of a server or a data base, which raise what they like
        raise DataError(f"--export mlflow {target}: the store refused it ({describe(error)[:300]})") from error
    seen = f"; to see it: mlflow ui --backend-store-uri {uri}" if artifacts else ""
    return f"Logged to {uri}: 1 comparison, {counted(len(data['variants']), 'variant')} beneath it{seen}"


def metric_keys(names: list[str]) -> dict[str, str]:
    """Names that MLflow takes, no two of them the same.

    >>> metric_keys(["ndcg@10", "mrr", "mine(x)", "mine[x]"])
    {'ndcg@10': 'ndcg_at_10', 'mrr': 'mrr', 'mine(x)': 'mine_x_', 'mine[x]': 'mine_x_-2'}
    """
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_.\- ]", "_", name.replace("@", "_at_"))[:200] or "_"
        key, count = plain, 1
        while key in found.values():
            count += 1
            key = f"{plain}-{count}"
        found[name] = key
    return found


def _store(target: str) -> tuple[str, str | None]:
    """(tracking URI, where a local store's artifacts lie)."""
    if "://" in target or target in ("databricks", "uc"):
        return target, None
    path = Path(target).resolve()
    if path.is_dir():
        raise DataError(f"--export mlflow {target}: is a folder; expected the file of a store (mlflow.db), or a URI")
    path.parent.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{path.as_posix()}", path.with_name(f"{path.stem}-artifacts").as_uri()


def _imported() -> Any:
    """MLflow; its telemetry stays off where nobody had it imported before."""
    before = os.environ.get(_TELEMETRY)
    os.environ[_TELEMETRY] = "true"  # read while it is imported
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mlflow
            import mlflow.entities
    except ImportError as error:
        raise MissingPackageError("mlflow-skinny", "mlflow", "--export mlflow") from error
    finally:
        if before is None:
            os.environ.pop(_TELEMETRY, None)
        else:
            os.environ[_TELEMETRY] = before
    return mlflow


def _client(mlflow: Any, uri: str) -> Any:
    try:
        return mlflow.MlflowClient(tracking_uri=uri)
    except ImportError as error:
        raise MissingPackageError(error.name or "alembic", "mlflow", "a local store of --export mlflow") from error
    except Exception as error:
        raise DataError(f"--export mlflow: {uri} cannot be opened ({describe(error)[:300]})") from error


def _experiment(client: Any, name: str, artifacts: str | None) -> str:
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    return str(client.create_experiment(name, artifact_location=artifacts))


def _title(data: Mapping[str, Any]) -> str:
    return f"{', '.join(compared(data))} against {data['baseline']}"[:_LONGEST]


def _tags(data: Mapping[str, Any]) -> dict[str, str]:
    return {"ragkit.schema": data["schema"], "ragkit.baseline": data["baseline"][:_LONGEST],
            "ragkit.labels": data["labels"], "mlflow.note.content": "\n".join(
                f"- {line}" for line in (*data["conclusion"], *data["warnings"]))[:5000]}


def _files(client: Any, run: str, comparison: Comparison) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_json(Path(folder) / FILE, comparison.data)
        write_text(Path(folder) / PAGE, render_comparison_html(comparison.data))  # what it could link to stays behind
        write_text(Path(folder) / "comparison.md", render_comparison_markdown(comparison.data))
        client.log_artifacts(run, folder)


def _summary(data: Mapping[str, Any]) -> dict[str, float]:
    found = [figures for own in data["metrics"].values() for figures in own.values()]
    return {"differences": float(len(found)), "decided": float(sum(bool(one["decided"]) for one in found)),
            "conflicts": float(len(data["conflicts"])), "warnings": float(len(data["warnings"]))}


def _variant(client: Any, entities: Any, run: str, data: Mapping[str, Any], name: str) -> None:
    entry, keys = data["variants"][name], metric_keys(list(data["means"]))
    values = {"n_asked": entry["n_asked"]}
    for metric, means in data["means"].items():
        own, key = means[name], keys[metric]
        values |= {key: own["mean"], f"{key}.low": own["low"], f"{key}.high": own["high"], f"{key}.n": own["n_scored"]}
        figures = data["metrics"].get(metric, {}).get(name)
        if figures is not None:
            values |= {f"{key}.{part if part == 'difference' else f'difference.{part}'}": figures[part]
                       for part in _DIFFERENCE}
    params = {"variant": name, "baseline": data["baseline"], "labels": data["labels"], "folder": entry["folder"] or ""}
    points = _points(entities, values)
    client.log_batch(run, params=[entities.Param(key, str(value)[:_LONGEST]) for key, value in params.items()])
    for start in range(0, len(points), _AT_ONCE):
        client.log_batch(run, metrics=points[start:start + _AT_ONCE])
    report = None if entry["folder"] is None else Path(entry["folder"]) / "report.html"
    if report is not None and report.is_file():
        client.log_artifact(run, str(report))


def _points(entities: Any, values: Mapping[str, Any]) -> list[Any]:
    now = int(time.time() * 1000)
    return [entities.Metric(key, float(value), now, 0) for key, value in values.items() if value is not None]
