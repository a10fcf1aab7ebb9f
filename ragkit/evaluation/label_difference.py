"""The difference of two runs' means, corrected by the labels of both. Compares nothing else of two runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError
from ragkit.evaluation.label_report import Matched, codes_of, labels_to_decide, matched, read_labels
from ragkit.evaluation.reopen import RunParts, reopen
from ragkit.evaluation.table import final_values, read_scores
from ragkit.metrics.prediction_powered import corrected_difference as difference_of
from ragkit.metrics.registry import Metric, parse
from ragkit.records.human_labels import HumanLabel

if TYPE_CHECKING:
    import pandas as pd


def corrected_difference(baseline: str | Path, variant: str | Path, metric: str = "faithfulness",
                         labels: Iterable[str | Path] = ()) -> dict[str, Any]:
    """The mean difference variant - baseline of two run folders, corrected by the labels that each of them holds.

    `labels` are two further files instead, the baseline's and the variant's. Best where the same questions were
    labelled in both (`ragkit labels sample VARIANT --like BASELINE/labels.jsonl`). The result is plain data: raw and
    corrected difference with its interval, and how many labels other differences would need.
    """
    wanted, files = parse(metric), [Path(path) for path in labels]
    if files and len(files) != 2:
        raise DataError(f"labels: expected two files, the baseline's and the variant's, got {len(files)}")
    found = [_of_folder(Path(folder), wanted, files[place] if files else None)
             for place, folder in enumerate((baseline, variant))]
    return difference_of_labels(found[0], found[1], wanted)


def difference_of_labels(baseline: Matched, variant: Matched, metric: Metric) -> dict[str, Any]:
    """As `corrected_difference`, of labels that were put together with their runs already."""
    made = difference_of((baseline.judged, baseline.labelled), (variant.judged, variant.labelled),
                         metric.definition.range, finite=baseline.finite and variant.finite)
    shared = baseline.labelled.keys() & variant.labelled.keys()
    own = made.labels_to_decide(made.mean) if made.mean else None
    return {**asdict(made), "metric": metric.name, "n_paired": len(shared), "labels_to_decide_this": own,
            "labels_to_decide": labels_to_decide(made, metric), "notes": [*baseline.notes, *variant.notes]}


def labels_of(past: RunParts, scores: pd.DataFrame, metric: Metric, labels: Iterable[HumanLabel]) -> Matched:
    """Those of the labels that are of this metric, put together with the judge's scores of the run."""
    own = [label for label in labels if parse(label.metric) == metric]
    return matched(final_values(scores, metric.name), own, codes_of(past.scoring()))


def _of_folder(folder: Path, metric: Metric, file: Path | None) -> Matched:
    past = reopen(folder)
    labels = read_labels(file) if file is not None else past.plan.labels
    return labels_of(past, read_scores(past.folder.scores), metric, labels)
