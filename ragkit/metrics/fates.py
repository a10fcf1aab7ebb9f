"""Where each piece of evidence ended: the funnel from the index to the context of the answer. Ids only."""

from __future__ import annotations

from typing import Final

from ragkit.metrics.trajectory import EvidencePath

FATES: Final = ("not_in_index", "never_retrieved", "lost_at_fuse", "lost_at_rerank", "lost_at_filter", "lost_at_cut",
                "lost_at_budget", "in_context", "in_context_wrong", "in_context_right")
"""The stages from the shallowest on; a path without a known answer has in_context alone."""


def fates(path: EvidencePath) -> dict[str, str]:
    """Where each relevant gold id ended: the deepest place that it reached in any step. They add up to |G|.

    not_in_index (only where the index's ids are known), never_retrieved, lost_at_fuse, lost_at_rerank,
    lost_at_filter (found beneath that stage and dropped by it; any other stage that drops something is a filter),
    lost_at_cut (a step returned it, the context does not hold it), lost_at_budget (the same, where the context was cut
    off in the middle of a text: there was no more room), in_context, which is in_context_right or
    in_context_wrong where the answer's correctness is known. Empty where the question has no labels.

    >>> path = EvidencePath((("a", "b"),), {"a": 1, "b": 1, "c": 1}, ("a",), answer_right=False)
    >>> fates(path)
    {'a': 'in_context_wrong', 'b': 'lost_at_cut', 'c': 'never_retrieved'}
    """
    if path.label_state != "labelled":
        return {}
    suffix = {None: "", True: "_right", False: "_wrong"}[path.answer_right]
    end = path.everything if path.context is None else frozenset(path.context)
    where: dict[str, str] = {}
    for gold in sorted(path.relevant):
        if gold in end:
            where[gold] = "in_context" + suffix
        elif gold in path.everything:
            where[gold] = "lost_at_budget" if path.truncated and path.context else "lost_at_cut"
        else:
            where[gold] = _lost_beneath(path, gold)
    return where


def _lost_beneath(path: EvidencePath, gold: str) -> str:
    found = [(depth, step) for step in range(len(path.steps))
             for depth, listed in enumerate(path.lists(step)) if gold in listed.ids]
    if not found:
        missing = path.index_ids is not None and gold not in path.index_ids
        return "not_in_index" if missing else "never_retrieved"
    depth, step = min(found)
    # Several retrievers under one fusion are siblings: the list that dropped it is the nearest that is no retriever.
    above = [listed.stage for listed in path.lists(step)[:depth] if listed.stage != "retrieve"]
    stage = {"fuse": "fuse", "union": "fuse", "rerank": "rerank"}.get(above[-1] if above else "", "filter")
    return f"lost_at_{stage}"
