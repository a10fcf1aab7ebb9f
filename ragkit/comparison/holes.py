"""Label holes: passages that nobody judged, what they could do to each metric and decision, and which would settle it.

The bounds are computed in holes_bounds.py, the file to label is written in holes_sheet.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ragkit.comparison.context import Context, Table, of_name, others
from ragkit.comparison.holes_bounds import Extremes, bounded, extremes
from ragkit.comparison.holes_pool import DEEPEST, FAR, Pool, pool_of
from ragkit.comparison.sides import GOLD, Side
from ragkit.metrics.paired import RESAMPLES, Pair, compare_pairs, holm
from ragkit.metrics.registry import Metric
from ragkit.report.comparison_rows import verdict

SHOWN = 20  # pairs in comparison.json; a file takes all of them
POSITIVES, GRADES = "positives", "grades"
_QUICK = 2000
_NOTES = {
    POSITIVES: "the labels list only what is relevant: every other passage is a hole by definition, and the bounds are "
               "as wide as they can be",
    GRADES: "no passage is labelled as not relevant (grade 0): what somebody looked at and left out counts as a hole",
}


class HolePair(NamedTuple):
    """A question and a passage that nobody judged for it: its rank by variant (None: not in the list), and by how much
    it alone would move the difference that it moves most."""

    question_id: str
    passage_id: str
    ranks: Mapping[str, int | None]
    effect: float


class _Difference(NamedTuple):
    metric: Metric
    side: Side
    rows: list[int]  # the questions of the pool that both scored
    found: Extremes


def find_holes(sides: Sequence[Side], baseline: str, context: Context, table: Table) -> dict[str, Any] | None:
    """What unjudged passages could do: judged@k and bounds by variant, bounds of each difference, and what to label.

    `table` holds the differences as they were tested. None where labels are a judge's, or lists or grades unknown.
    """
    pool = pool_of_sides(sides, baseline, context)
    if pool is None:
        return None
    metrics = _metrics(context)
    compared = _differences(sides, baseline, context, pool)
    entries, flips = _decisions(compared, context, table)
    total, pairs = _pairs(pool, [one for one in compared if (one.metric.name, one.side.name) in flips], SHOWN)
    kind, note = _labels(of_name(sides, baseline), pool)
    return {
        "labels": kind, "note": note, "grade": pool.grade, "n": len(pool.questions),
        "repeats": "first" if any(_repeated(side, context) for side in sides) else None,
        "variants": {side.name: {"judged": _judged(pool, side.name, metrics),
                                 "bounds": {metric.name: _bounds(pool, metric, side, context) for metric in metrics}}
                     for side in sides},
        "differences": entries,
        "pairs": {"total": total, "first": [_row(pair) for pair in pairs]},
    }


def pairs_to_label(sides: Sequence[Side], baseline: str, context: Context, holes: Mapping[str, Any]) -> list[HolePair]:
    """All pairs that would settle what the holes leave open, those that move it most first."""
    pool = pool_of_sides(sides, baseline, context)
    if pool is None:
        return []
    flips = {(metric, variant) for metric, found in holes["differences"].items()
             for variant, entry in found.items() if entry["could_flip"]}
    return _pairs(pool, [one for one in _differences(sides, baseline, context, pool)
                         if (one.metric.name, one.side.name) in flips])[1]


def pool_of_sides(sides: Sequence[Side], baseline: str, context: Context) -> Pool | None:
    """The lists of all sides against their gold, on the labelled questions whose gold is the same for all of them."""
    base = of_name(sides, baseline)
    lists = {side.name: side.lists for side in sides}
    known = {name: found for name, found in lists.items() if found is not None}
    metrics = _metrics(context)
    if context.labels != GOLD or not metrics or len(known) < len(sides):
        return None
    grades = {question: found for question in context.questions
              if (found := _same_grades(sides, base, question)) is not None}
    if not grades:
        return None
    cuts = [metric.k for metric in metrics]
    depth = None if None in cuts else max(k for k in cuts if k is not None)
    level = base.run.get("level", (base.run.get("config") or {}).get("level", 1.0))
    return pool_of(known, grades, float(level), depth)


def _same_grades(sides: Sequence[Side], base: Side, question: str) -> Mapping[str, float] | None:
    facts = base.questions.get(question)
    if facts is None or not facts.grades or not facts.n_gold:
        return None
    same = all(side is base or (question in side.questions and side.questions[question].grades == facts.grades)
               for side in sides)
    return facts.grades if same else None


def _metrics(context: Context) -> list[Metric]:
    return [metric for metric in context.metrics if metric.definition.kind == "ranking" and bounded(metric)]


def _repeated(side: Side, context: Context) -> bool:
    return any(len(values) > 1 for metric in _metrics(context)[:1]
               for values in context.repeats(side, metric.name).values())


def _labels(base: Side, pool: Pool) -> tuple[str, str | None]:
    """What the labels hold, and what that means for the bounds."""
    grades = {grade for question in pool.questions for grade in (base.questions[question].grades or {}).values()}
    if min(grades) <= 0:
        return GRADES, None
    kind = GRADES if len(grades) > 1 else POSITIVES
    return kind, _NOTES[kind]


def _judged(pool: Pool, name: str, metrics: Sequence[Metric]) -> dict[str, dict[str, Any]]:
    """judged@k of each cut that is compared: the mean over the questions, and how many holes stand in all lists."""
    found = {}
    for k in sorted({metric.k or DEEPEST for metric in metrics}):
        values = pool.sides[name].judged(k)
        some = values[~np.isnan(values)]
        found[f"judged@{k}"] = {"mean": float(some.mean()) if len(some) else None, "n": len(some),
                                "holes": pool.sides[name].holes(k)}
    return found


def _bounds(pool: Pool, metric: Metric, side: Side, context: Context) -> dict[str, Any]:
    scored = context.values(side, metric.name)
    rows = [place for place, question in enumerate(pool.questions) if question in scored]
    if not rows:
        return {"mean": None, "low": None, "high": None, "n": 0}
    found = extremes(pool, metric, side.name)
    return {"mean": _mean(found.value, rows), "low": _mean(found.low, rows), "high": _mean(found.high, rows),
            "n": len(rows)}


def _mean(values: Any, rows: Sequence[int]) -> float:
    return float(np.mean(values[rows]))


def _differences(sides: Sequence[Side], baseline: str, context: Context, pool: Pool) -> list[_Difference]:
    base, made = of_name(sides, baseline), []
    for metric in _metrics(context):
        for side in others(sides, baseline):
            both = context.values(base, metric.name).keys() & context.values(side, metric.name).keys()
            rows = [place for place, question in enumerate(pool.questions) if question in both]
            if rows:
                made.append(_Difference(metric, side, rows, extremes(pool, metric, side.name, base.name)))
    return made


def _decisions(compared: Sequence[_Difference], context: Context,
               table: Table) -> tuple[dict[str, dict[str, Any]], set[tuple[str, str]]]:
    """The bounds of each difference with what the test would say at either end; and those that could be decided
    otherwise. Holm's other p stay as they are."""
    ps = {(metric, variant): figures["p"] for metric, found in table.items() for variant, figures in found.items()}
    pairs = []
    for one in compared:
        names = [str(row) for row in one.rows]
        zeros = dict.fromkeys(names, 0.0)
        for values in (one.found.low, one.found.high):
            pairs.append(Pair(zeros, dict(zip(names, values[one.rows].tolist(), strict=True))))
    tested = compare_pairs(pairs, context.seed, min(RESAMPLES, max(_QUICK, 60 * len(ps))))
    entries: dict[str, dict[str, Any]] = {}
    flips = set()
    for place, one in enumerate(compared):
        key = one.metric.name, one.side.name
        said = []
        for end in tested[2 * place:2 * place + 2]:
            adjusted = dict(zip(ps, holm([end.p if own == key else p for own, p in ps.items()]), strict=True))[key]
            figures = {"n": end.n, "difference": end.difference, "wins": end.wins, "losses": end.losses,
                       "decided": adjusted is not None and adjusted < 0.05}
            said.append(verdict(figures, one.metric.definition.direction))
        now = verdict(table[key[0]][key[1]], one.metric.definition.direction)
        low, high = _mean(one.found.low, one.rows), _mean(one.found.high, one.rows)
        could = bool(np.any(one.found.high[one.rows] > one.found.low[one.rows])) and {now} != set(said)
        entries.setdefault(key[0], {})[key[1]] = {
            "difference": _mean(one.found.value, one.rows), "low": low, "high": high, "n": len(one.rows),
            "verdict": now, "worst": said[0], "best": said[1], "could_flip": could}
        flips |= {key} if could else set()
    return entries, flips


def _pairs(pool: Pool, compared: Sequence[_Difference], most: int | None = None) -> tuple[int, list[HolePair]]:
    """How many holes move one of these differences, and the first of them by how far each alone moves the mean."""
    if not compared or not pool.questions:
        return 0, []
    effects = np.zeros_like(compared[0].found.effects)
    for one in compared:
        moved = np.zeros(len(pool.questions), dtype=np.bool_)
        moved[one.rows] = True
        effects = np.maximum(effects, np.where(moved[:, None], np.abs(one.found.effects), 0.0) / len(one.rows))
    best = np.min([side.ranks for side in pool.sides.values()], axis=0)
    rows, holes = np.nonzero(effects > 1e-12)
    order = np.lexsort((holes, rows, best[rows, holes], -effects[rows, holes].round(12)))
    first = [(int(rows[place]), int(holes[place])) for place in order[:most]]
    return len(rows), [HolePair(pool.questions[row], pool.holes[row][hole],
                                {name: None if side.ranks[row, hole] == FAR else int(side.ranks[row, hole])
                                 for name, side in pool.sides.items()}, float(effects[row, hole]))
                       for row, hole in first]


def _row(pair: HolePair) -> dict[str, Any]:
    return {"question_id": pair.question_id, "passage_id": pair.passage_id, "ranks": dict(pair.ranks),
            "effect": pair.effect}
