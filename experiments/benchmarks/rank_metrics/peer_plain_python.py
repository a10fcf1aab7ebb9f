"""The loop that one writes without a tool: sets, dicts and sums for each ranking, a DataFrame at the end."""

from __future__ import annotations

import math
from typing import cast

import pandas as pd
from common import METRICS, Grades, Rankings, Values, Way, contender

ASKED = [(name, *name.split("@")) for name in METRICS]
DISCOUNTS = [1 / math.log2(rank + 1) for rank in range(1, 1001)]


def score_one(ids: list[str], gold: dict[str, int]) -> dict[str, float]:
    gains = [gold.get(document, 0) for document in ids]
    hits = [rank for rank, gain in enumerate(gains, start=1) if gain > 0]
    ideal = sorted(gold.values(), reverse=True)
    relevant = sum(grade > 0 for grade in ideal)
    row: dict[str, float] = {}
    for name, base, cut in ASKED:
        k = int(cut)
        inside = [rank for rank in hits if rank <= k]
        if base == "precision":
            row[name] = len(inside) / k
        elif base == "recall":
            row[name] = len(inside) / relevant
        elif base == "hit":
            row[name] = float(bool(inside))
        elif base == "mrr":
            row[name] = 1 / inside[0] if inside else 0.0
        elif base == "map":
            row[name] = sum(number / rank for number, rank in enumerate(inside, start=1)) / relevant
        else:
            gained = sum(gain * discount for gain, discount in zip(gains[:k], DISCOUNTS, strict=False))
            row[name] = gained / sum(gain * discount for gain, discount in zip(ideal[:k], DISCOUNTS, strict=False))
    return row


def lists(rankings: Rankings, grades: Grades) -> list[Way]:
    def score() -> pd.DataFrame:
        return pd.DataFrame([score_one(ids, grades[question]) for question, ids in rankings.items()],
                            index=list(rankings))

    def values(found: object) -> Values:
        return {str(name): column.to_dict() for name, column in cast("pd.DataFrame", found).items()}

    return [Way("a loop in plain Python", score, values)]


if __name__ == "__main__":
    contender(None, lists)
