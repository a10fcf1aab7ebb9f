"""The metrics that are computed when none is named, and how a list of names becomes metrics."""

from __future__ import annotations

from collections.abc import Iterable

from ragkit.errors import DataError
from ragkit.metrics.registry import Metric, parse_all

RANK = ("hit@1", "hit@3", "hit@5", "precision@5", "recall", "recall@5", "recall@10", "allhit", "precision_set", "mrr",
        "map", "ndcg@5", "ndcg@10")
TRAJECTORY = ("cumulative_recall", "marginal_recall", "novelty", "query_drift", "aucr", "steps_to_evidence",
              "step_efficiency", "redundancy", "rerank_lift", "survival")
KEYLESS = ("id_context_precision", "id_context_recall", "lexical_support", "lexical_coverage", "answer_f1",
           "exact_match")
RAGAS = ("context_precision", "context_recall", "faithfulness", "answer_relevancy")
PER_STEP_QUERY = ("query_precision@5", "query_ndcg@5")
DEFAULT = RANK + TRAJECTORY + KEYLESS + RAGAS


def wanted_metrics(names: Iterable[str] | str | None, k_values: Iterable[int] = ()) -> tuple[Metric, ...]:
    """The metrics of these names, the default ones where there are none, and hit, recall, precision, ndcg at each k."""
    if names is not None and not isinstance(names, Iterable):
        raise DataError(f"metrics: expected names, got {type(names).__name__} {names!r}")
    given = [names] if isinstance(names, str) else list(names or ())
    for name in given:
        if not isinstance(name, str):
            raise DataError(f"metrics: expected names, got {type(name).__name__} {name!r}")
    cuts = [f"{name}@{k}" for k in k_values for name in ("hit", "recall", "precision", "ndcg")]
    return parse_all([*(given or DEFAULT), *cuts])
