"""ragkit on lists that are in memory; its file part is the command `ragkit rank`, which run.py calls."""

from __future__ import annotations

from typing import cast

import pandas as pd
from common import METRICS, Grades, Rankings, Values, Way, contender

import ragkit
from ragkit.metrics.batch import Floats, batch_of_lists
from ragkit.metrics.ranking import score_arrays
from ragkit.metrics.registry import parse_all


def lists(rankings: Rankings, grades: Grades) -> list[Way]:
    def frame_values(found: object) -> Values:
        frame = cast("pd.DataFrame", found)
        return {name: dict(zip(rankings, frame[name].tolist(), strict=True)) for name in METRICS}

    def array_values(found: object) -> Values:
        columns = cast("Floats", found).T.tolist()
        return {name: dict(zip(rankings, column, strict=True)) for name, column in zip(METRICS, columns, strict=True)}

    metrics = parse_all(METRICS)
    return [Way("ragkit", lambda: ragkit.score_rankings(rankings, grades, METRICS), frame_values),
            Way("ragkit, arrays alone",
                lambda: score_arrays(batch_of_lists(rankings, rankings.values(), grades), metrics),
                array_values)]


if __name__ == "__main__":
    contender(None, lists)
