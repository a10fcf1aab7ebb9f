"""The keys of a summary that are about an app's searches, as a real run gives them; figures of one metric."""

from __future__ import annotations

from typing import Any


def figures(mean: float | None, scored: int, asked: int = 30, failed: int = 0, **more: Any) -> dict[str, Any]:
    """The figures of one metric as summary.json has them."""
    spread = 0.11 if scored > 20 else 0.17
    return {
        "mean": mean, "low": None if mean is None else max(mean - spread, -1.0),
        "high": None if mean is None else mean + spread * 0.9, "worst": mean, "best": mean, "n_scored": scored,
        "n_asked": asked, "n_undefined": asked - scored - failed, "n_failed": failed, "labels": "gold", "reasons": {},
        **more,
    }


def per_step() -> dict[str, Any]:
    curves = {"recall": (0.521, 0.382, 0.25), "ndcg@10": (0.563, 0.301, 0.214), "mrr": (0.604, 0.35, 0.3),
              "precision@5": (0.23, 0.15, 0.1), "cumulative_recall": (0.521, 0.646, 0.722),
              "marginal_recall": (0.521, 0.125, 0.076), "novelty": (1.0, 0.62, None)}
    reached = (24, 16, 5)
    return {str(step): {name: figures(means[step], reached[step] if means[step] is not None else 0, reached[step],
                                      reasons={} if means[step] is not None else {"empty list": 5})
                        for name, means in curves.items()} for step in range(3)}


def slice_of(**counts: int) -> dict[str, Any]:
    """One slice of the funnel."""
    total = sum(counts.values())
    return {"total": total, "stages": {fate: {"count": count, "share": count / total}
                                       for fate, count in counts.items()}}


def part(count: int, of: int) -> dict[str, Any]:
    return {"count": count, "of": of, "share": count / of if of else None}


def searches(hostile: str = "") -> dict[str, Any]:
    """The keys funnel, retrieval, per_turn and recall_spread; `hostile` is the name of a category."""
    return {
        "funnel": {
            "labels": "gold", "noun": "gold passages",
            "all": slice_of(not_in_index=1, never_retrieved=7, lost_at_fuse=2, lost_at_rerank=6, lost_at_filter=1,
                            lost_at_cut=2, lost_at_budget=1, in_context_right=19, in_context_wrong=8,
                            in_context_unchecked=1),
            "categories": {
                "factual": slice_of(never_retrieved=1, lost_at_cut=1, in_context_right=12, in_context_unchecked=1),
                "comparison": slice_of(not_in_index=1, never_retrieved=2, lost_at_fuse=2, in_context_right=5,
                                       in_context_wrong=3),
                "multi-hop": slice_of(never_retrieved=4, lost_at_rerank=6, lost_at_filter=1, lost_at_cut=1,
                                      lost_at_budget=1, in_context_right=2, in_context_wrong=3),
                **({hostile: slice_of(in_context_wrong=1)} if hostile else {}),
                "(no category)": slice_of(in_context_wrong=1),
            },
        },
        "retrieval": {
            "answered_without": part(2, 30), "failing_steps": part(1, 45), "repeated_queries": part(3, 45),
            "wasted_steps": part(17, 45), "steps": {"mean": 1.5, "median": 2.0, "max": 3},
            "turns": {"mean": 1.3, "median": 1.0, "max": 2},
            "context": {"known": 27, "of": 30, "truncated": 1, "sets": 20},
        },
        "per_turn": {str(turn): {"recall": figures(recall, n, n), "allhit": figures(allhit, n, n),
                                 "cumulative_recall": figures(gathered, n, n)}
                     for turn, (recall, allhit, gathered, n) in enumerate([(0.521, 0.25, 0.521, 24),
                                                                           (0.42, 0.2, 0.722, 16)])},
        "recall_spread": {str(step): {"q10": q10, "q25": q25, "median": q50, "q75": q75, "q90": q90, "n": 24}
                          for step, (q10, q25, q50, q75, q90) in enumerate([
                              (0.0, 0.5, 0.5, 0.5, 1.0), (0.0, 0.5, 0.5, 1.0, 1.0), (0.333, 0.5, 1.0, 1.0, 1.0)])},
    }


def one_search(silent: int = 0, **funnel: int) -> dict[str, Any]:
    """The same keys of an app that searches once; without fates no question has labels."""
    once = {"mean": 1.0, "median": 1.0, "max": 1}
    whole = slice_of(**funnel)
    return {
        "funnel": {"labels": "gold", "noun": "gold passages", "all": whole,
                   "categories": {"(no category)": whole} if funnel else {}},
        "retrieval": {
            "answered_without": part(silent, 30), "failing_steps": part(0, 30), "repeated_queries": part(0, 30),
            "wasted_steps": part(4, 26), "steps": once, "turns": once,
            "context": {"known": 30, "of": 30, "truncated": 0, "sets": 0},
        },
        "per_turn": {}, "recall_spread": {"0": {"q10": 0.0, "q25": 0.5, "median": 1.0, "q75": 1.0, "q90": 1.0,
                                                "n": 26}} if funnel else {},
    }
