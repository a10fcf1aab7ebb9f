"""What each k brings and costs, per variant: hit, recall, complete evidence and precision, and tokens of the context.

To choose k by. Plain data; renders nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import Any

from ragkit.comparison.context import Context
from ragkit.comparison.intervals import averaged, averaged_columns, means_of
from ragkit.comparison.sides import GOLD, Side
from ragkit.comparison.sweep_tokens import Count, token_counter
from ragkit.evaluation.scoring import final_list, passage_text
from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays
from ragkit.metrics.registry import parse_all
from ragkit.records.trajectory import Passage, Trajectory

KS = (1, 2, 3, 5, 10, 20, 50, 100)
MEASURES = ("hit", "recall", "allhit", "precision")
ENOUGH = 0.95  # of the recall at the deepest k


@dataclass(frozen=True)
class _Listed:
    """One ranking of a question: names in the unit of its gold, and the texts behind them, None where unknown."""

    question: str
    names: tuple[str, ...]
    texts: tuple[str | None, ...]


def find_sweep(sides: Sequence[Side], baseline: str, context: Context) -> dict[str, Any] | None:
    """Every variant's figures at every k up to its longest list, by gold; None without gold or rankings.

    The list is what the only search gave back where the context begins it, else the ranking at the end. Contexts
    without an order have no k: such a variant is left out.
    """
    if context.labels != GOLD:
        return None
    by, count = token_counter()
    lists = {side.name: _lists(side, context) for side in sides}
    swept = [(side, lists[side.name]) for side in sides
             if any(len(one.names) > 1 for one in lists[side.name])]
    if not swept:
        return None
    depths = [_ks(listed) for _, listed in swept]
    columns = [_columns(side, listed, ks) for (side, listed), ks in zip(swept, depths, strict=True)]
    means = iter(means_of([column for own in columns for column in own], context.seed))  # all draw together
    return {"tokens_by": by, "variants": {
        side.name: _entry(listed, ks, [next(means) for _ in own], count)
        for (side, listed), ks, own in zip(swept, depths, columns, strict=True)}}


def _lists(side: Side, context: Context) -> list[_Listed]:
    """The rankings of the compared questions that have gold, all repeats."""
    asked = {name for name in context.questions if name in side.questions
             and side.questions[name].label_state == "labelled" and side.questions[name].grades}
    if side.past is None:
        corpus, lists = side.corpus or {}, side.lists or {}
        return [_Listed(name, lists.get(name, ()), tuple(
            corpus[one].content if one in corpus else None for one in lists.get(name, ())[:KS[-1]]))
            for name in context.questions if name in asked] if lists else []
    made, dataset, gold = [], side.past.plan.dataset, side.past.gold
    for trajectory in side.past.scoring().trajectories:
        ranked = ranking(trajectory) if trajectory.question_id in asked and trajectory.error is None else None
        if ranked is not None:
            texts = tuple(passage_text(passage, dataset) for passage in ranked)
            made.append(_Listed(trajectory.question_id, gold.names(trajectory.question_id, ranked), texts))
    return made


def ranking(trajectory: Trajectory) -> tuple[Passage, ...] | None:
    """The list that a context of k passages would be the first k of; None where there is no order."""
    end = final_list(trajectory)
    if len(trajectory.steps) == 1:
        own = trajectory.steps[0].outermost
        ids = tuple(passage.id for passage in end.passages)
        if own.error is None and own.ranked and own.ids[:len(ids)] == ids:
            return own.passages
    return end.passages if end.ranked and end.cuttable else None


def _ks(listed: Sequence[_Listed]) -> tuple[int, ...]:
    longest = max(len(one.names) for one in listed)
    return (*(k for k in KS if k < longest), min(longest, KS[-1]))


def _columns(side: Side, listed: Sequence[_Listed], ks: Sequence[int]) -> list[dict[str, float]]:
    """The values by question of every measure at every k."""
    metrics = parse_all(",".join(f"{measure}@{k}" for k in ks for measure in MEASURES))
    level = float(side.run.get("level", (side.run.get("config") or {}).get("level", 1.0)))
    qrels = {one.question: side.questions[one.question].grades or {} for one in listed}
    batch = build_batch([RankedIds(one.question, one.names) for one in listed], qrels, level=level)
    return averaged_columns([one.question for one in listed], score_arrays(batch, metrics))


def _entry(listed: Sequence[_Listed], ks: Sequence[int], means: Sequence[Mapping[str, Any]],
           count: Count) -> dict[str, Any]:
    tokens, at = _tokens(listed, ks[-1], count), {}
    for place, k in enumerate(ks):
        own = means[place * len(MEASURES):(place + 1) * len(MEASURES)]
        at[str(k)] = {**dict(zip(MEASURES, own, strict=True)), "tokens": _tokens_at(tokens, k),
                      "shorter": sum(len(one.names) < k for one in listed)}
    return {"n": len({one.question for one in listed}), "at": at, "enough": _enough(at)}


def _tokens(listed: Sequence[_Listed], deepest: int, count: Count) -> list[tuple[str, list[float | None]]]:
    """Of each list the tokens of its first 1, 2, … passages; None from the first text on that nobody knows."""
    texts = list(dict.fromkeys(text for one in listed for text in one.texts[:deepest] if text is not None))
    known = dict(zip(texts, count(texts), strict=True))
    made = []
    for one in listed:
        counts = [None if text is None else known[text] for text in one.texts[:deepest]]
        until = counts.index(None) if None in counts else len(counts)
        sums = [*accumulate(value for value in counts[:until] if value is not None)]
        made.append((one.question, [*sums, *[None] * (len(counts) - until)]))
    return made


def _tokens_at(tokens: Sequence[tuple[str, Sequence[float | None]]], k: int) -> dict[str, Any]:
    """The mean over questions of what the first k passages hold; of a shorter list, all of it."""
    found = [(question, sums[min(k, len(sums)) - 1] if sums else 0.0) for question, sums in tokens]
    values = averaged((question, value) for question, value in found if value is not None)
    return {"mean": fmean(values.values()) if values else None, "n": len(values)}


def _enough(at: dict[str, dict[str, Any]]) -> int | None:
    """The smallest k with nearly the recall of the deepest; None where nothing is found at any."""
    deepest = [*at.values()][-1]["recall"]["mean"]
    return next((int(k) for k, figures in at.items() if figures["recall"]["mean"] >= ENOUGH * deepest), None) \
        if deepest else None
