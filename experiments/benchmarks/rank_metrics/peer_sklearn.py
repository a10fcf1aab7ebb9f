"""scikit-learn: of the fifteen metrics it has ndcg, as a mean over a matrix; files it does not read."""

from __future__ import annotations

from typing import cast

import numpy as np
from common import MEAN, Grades, Rankings, Values, Way, contender
from sklearn.metrics import ndcg_score

CUTS = (5, 10)  # a deeper cut would need columns down to it, since what was missed must stand below every cut


def lists(rankings: Rankings, grades: Grades) -> list[Way]:
    def matrices() -> tuple[np.ndarray, np.ndarray]:
        """Grades and scores, a row a ranking; what was missed stands in the last columns, for the ideal alone."""
        depth = max(map(len, rankings.values()))
        truth = np.zeros((len(rankings), depth + max(map(len, grades.values()))))
        for row, (question, ids) in enumerate(rankings.items()):
            gold = grades[question]
            truth[row, : len(ids)] = [gold.get(document, 0) for document in ids]
            missed = gold.keys() - set(ids)
            truth[row, depth : depth + len(missed)] = [gold[document] for document in missed]
        return truth, np.broadcast_to(-np.arange(truth.shape[1], dtype=float), truth.shape)

    def score() -> dict[int, float]:
        truth, scores = matrices()
        return {k: float(ndcg_score(truth, scores, k=k, ignore_ties=True)) for k in CUTS}

    def values(found: object) -> Values:
        return {f"ndcg@{k}": {MEAN: value} for k, value in cast("dict[int, float]", found).items()}

    return [Way("scikit-learn, ndcg@5 and @10 only", score, values)]


if __name__ == "__main__":
    contender(None, lists)
