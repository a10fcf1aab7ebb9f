"""pytrec_eval: trec_eval's C code called with dicts."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pandas as pd
import pytrec_eval
from common import (
    TREC_MEASURES,
    Grades,
    Rankings,
    Values,
    Way,
    contender,
    from_trec_names,
    scores_by_place,
)


def files(qrels_path: str, run_path: str) -> Values:
    with Path(qrels_path).open(encoding="utf-8") as file:
        qrels = pytrec_eval.parse_qrel(file)
    with Path(run_path).open(encoding="utf-8") as file:
        run = pytrec_eval.parse_run(file)
    return from_trec_names(pytrec_eval.RelevanceEvaluator(qrels, TREC_MEASURES).evaluate(run))


def lists(rankings: Rankings, grades: Grades) -> list[Way]:
    def dicts() -> dict[str, dict[str, float]]:
        return {question: scores_by_place(ids) for question, ids in rankings.items()}

    def frame() -> pd.DataFrame:
        found = pytrec_eval.RelevanceEvaluator(grades, TREC_MEASURES).evaluate(dicts())
        return pd.DataFrame(list(found.values()), index=list(found))

    def frame_values(found: object) -> Values:
        return from_trec_names(cast("pd.DataFrame", found).to_dict(orient="index"))

    evaluator, run = pytrec_eval.RelevanceEvaluator(grades, TREC_MEASURES), dicts()
    return [Way("pytrec_eval, its dicts built", lambda: pytrec_eval.RelevanceEvaluator(grades, TREC_MEASURES).evaluate(
                dicts()), from_trec_names),
            Way("pytrec_eval, its dicts built, its values in a frame", frame, frame_values),
            Way("pytrec_eval, its dicts given", lambda: evaluator.evaluate(run), from_trec_names)]


if __name__ == "__main__":
    contender(files, lists)
