"""Variants with judged labels brought on one pool of them, before they are held against each other. Asks no model."""

from __future__ import annotations

from collections.abc import Sequence

from ragkit.comparison.sides import Side, side_of_evaluation
from ragkit.errors import RagkitError
from ragkit.evaluation.evaluate import areport, run_async
from ragkit.evaluation.pooling import on_one_pool, pool_fingerprint
from ragkit.evaluation.result import Evaluation
from ragkit.report.numbers import counted


def on_common_pool(sides: Sequence[Side]) -> tuple[list[Side], list[str]]:
    """The sides scored on the union of what was judged for them, and what must be said where that cannot be done.

    What another variant found relevant is missing from one that never saw it: without the union it would count as
    nothing there. Run folders stay as they are.
    """
    if len({_pool(side) for side in sides}) < 2:
        return list(sides), []
    try:
        pooled = run_async(_pooled(sides))
    except (RagkitError, OSError) as error:
        return list(sides), [f"the variants are scored on different pools of judged labels, and cannot be scored again "
                             f"({error}): a passage that only one of them found counts only there"]
    found = [side_of_evaluation(side.name, made, side.folder) for side, made in zip(sides, pooled, strict=True)]
    if len({pool_fingerprint(made) for made in pooled}) > 1:
        return found, ["the variants are scored on different pools of judged labels (their stores are gone, or another "
                       "judge labelled them): a passage that only one of them found counts only there"]
    return found, [f"judged labels: {counted(len(sides), 'variant')} scored again on the union of what was judged for "
                   "them; the folders keep their own figures"]


async def _pooled(sides: Sequence[Side]) -> list[Evaluation]:
    made = [side.evaluation or await areport(_folder(side)) for side in sides]
    return await on_one_pool(made)


def _folder(side: Side) -> str:
    return str(side.folder)


def _pool(side: Side) -> str | None:
    entry = side.summary.get("judged_labels")
    return None if entry is None else str(entry["pool"]["fingerprint"])
