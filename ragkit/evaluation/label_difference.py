"""The difference of two runs' means, corrected by the labels of both. Compares nothing else of two runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.evaluation.label_report import Matched, codes_of, labels_to_decide, matched, read_labels
from ragkit.evaluation.reopen import reopen
from ragkit.evaluation.table import final_values, read_scores
from ragkit.metrics.prediction_powered import corrected_difference as difference_of
from ragkit.metrics.registry import Metric, parse


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
    made = difference_of((found[0].judged, found[0].labelled), (found[1].judged, found[1].labelled),
                         wanted.definition.range, finite=all(side.finite for side in found))
    shared = found[0].labelled.keys() & found[1].labelled.keys()
    own = made.labels_to_decide(made.mean) if made.mean else None
    return {**asdict(made), "metric": wanted.name, "n_paired": len(shared), "labels_to_decide_this": own,
            "labels_to_decide": labels_to_decide(made, wanted), "notes": [*found[0].notes, *found[1].notes]}


def _of_folder(folder: Path, metric: Metric, file: Path | None) -> Matched:
    past = reopen(folder)
    scores = final_values(read_scores(past.folder.scores), metric.name)
    own = [label for label in (read_labels(file) if file is not None else past.plan.labels)
           if parse(label.metric) == metric]
    return matched(scores, own, codes_of(past.scoring()))
