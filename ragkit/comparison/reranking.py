"""What a re-ranker did to the same frozen candidates: lift, ceiling, depth, what it pushed out, time, and the answers.

Which lists belong together is found in reranking_lists.py. Plain data; renders nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from ragkit.comparison.context import Context, of_name
from ragkit.comparison.intervals import averaged, averaged_columns, differences_of, means_of
from ragkit.comparison.reranking_lists import Reranking, Search, find_rerankings
from ragkit.comparison.sides import GOLD, QuestionFacts, Side
from ragkit.metrics.paired import Pair
from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays
from ragkit.metrics.registry import Metric, parse_all
from ragkit.metrics.resampling import Array, Resampling

DEPTHS = (10, 20, 50, 100)
EXAMPLES = 50  # pushed-out passages that are named; all are counted
_CUT, _CONTEXT = 10, 5
_BEFORE, _AFTER, _CEILING = 0, 1, 2  # the orders that are scored; those of the depths follow
_NO_HEADROOM = "the candidates stand in their best order"


def find_rerankers(sides: Sequence[Side], baseline: str, context: Context) -> dict[str, Any] | None:
    """variant -> what its re-ranker did to its candidates, by gold. None where no variant re-ranks, or without gold.

    The best order of the candidates is the ceiling; the share of the headroom is (after - before) / (ceiling - before),
    of the means. A depth d is the re-ranker's order of the first d candidates and the first stage's of the rest.
    """
    if context.labels != GOLD:
        return None
    found = {}
    for one in find_rerankings(sides, context):
        scored = _scored(one, of_name(sides, one.variant))
        if scored is not None:
            found[one.variant] = _entry(one, scored, context) | _answers(one, sides, context)
    return found or None


@dataclass(frozen=True)
class _Scored:
    """The searches with gold. values: (search, order, metric), NaN where undefined."""

    searches: tuple[Search, ...]
    gold: tuple[frozenset[str], ...]
    metrics: tuple[Metric, ...]
    depths: tuple[int, ...]
    values: Array

    def column(self, order: int, metric: int) -> dict[str, float]:
        """The values by question."""
        return averaged_columns([search.question for search in self.searches], self.values[:, order, [metric]])[0]


def _scored(one: Reranking, side: Side) -> _Scored | None:
    facts = side.questions
    searches = tuple(search for search in one.searches if _grades(facts.get(search.question)))
    if not searches:
        return None
    level = float(side.run.get("level", (side.run.get("config") or {}).get("level", 1.0)))
    qrels = {search.question: _grades(facts[search.question]) for search in searches}
    metrics = _metrics(max(len(search.after) for search in searches))
    deepest = max(len(search.before) for search in searches)
    depths = (*(depth for depth in DEPTHS if depth < deepest), deepest)
    orders = [order for search in searches for order in _orders(search, qrels[search.question], depths)]
    batch = build_batch([RankedIds(question, ids) for question, ids in orders], qrels, level=level)
    values = score_arrays(batch, metrics).reshape(len(searches), _CEILING + 1 + len(depths), len(metrics))
    gold = tuple(frozenset(name for name, grade in qrels[search.question].items() if grade >= level)
                 for search in searches)
    return _Scored(searches, gold, metrics, depths, values)


def _grades(facts: QuestionFacts | None) -> Mapping[str, float]:
    return {} if facts is None or facts.label_state != "labelled" else facts.grades or {}


def _metrics(longest: int) -> tuple[Metric, ...]:
    """At cuts that the re-ranker's lists reach: a list is not blamed for being cut."""
    cut, context = min(_CUT, longest), min(_CONTEXT, longest)
    return parse_all(f"hit@1,mrr@{cut},ndcg@{cut},recall@{context},recall@{cut},allhit@{context}")


def _orders(search: Search, grades: Mapping[str, float], depths: Sequence[int]) -> list[tuple[str, tuple[str, ...]]]:
    best = sorted(search.named(search.before), key=lambda name: -grades.get(name, 0.0))
    orders = [search.named(search.before), search.named(search.after), tuple(dict.fromkeys(best)),
              *(search.named(at_depth(search, depth)) for depth in depths)]
    return [(search.question, order) for order in orders]


def at_depth(search: Search, depth: int) -> tuple[str, ...]:
    """The re-ranker's order of the first `depth` candidates, then the rest as the first stage had it.

    What the re-ranker did not give back stands behind what it did, in the first stage's order.

    >>> at_depth(Search("q", ("a", "b", "c", "d"), ("d", "b", "a", "c")), 2)
    ('b', 'a', 'c', 'd')
    """
    first = search.before[:depth]
    members, given = set(first), set(search.after)
    return (*(name for name in search.after if name in members), *(name for name in first if name not in given),
            *search.before[depth:])


def _is_exact(search: Search, depth: int, cut: int) -> bool:
    """Whether the first `cut` places at this depth are known from what the re-ranker gave back."""
    first = set(search.before[:depth])
    known = len(first & set(search.after))
    return known == len(first) or known >= cut


def _entry(one: Reranking, scored: _Scored, context: Context) -> dict[str, Any]:
    sizes = [len(search.before) for search in scored.searches]
    longest = max(len(search.after) for search in scored.searches)
    times = [search.ms for search in one.searches if search.ms is not None]
    return {
        "source": one.source, "first_stage": one.first_stage, "reranker": one.reranker,
        "n": len({search.question for search in scored.searches}), "n_searches": len(scored.searches),
        "left_out": one.left_out,
        "candidates": {"min": min(sizes), "median": float(median(sizes)), "max": max(sizes)},
        "kept": longest,
        "metrics": _metric_entries(scored, context.seed),
        "depths": _depth_entries(scored, context.seed),
        "pushed_out": {str(cut): _pushed_out(scored, cut) for cut in sorted({min(_CONTEXT, longest),
                                                                              min(_CUT, longest)})},
        "ms": _times(one) if times else None,
    }


def _metric_entries(scored: _Scored, seed: int) -> dict[str, Any]:
    places = range(len(scored.metrics))
    orders = [[scored.column(order, place) for place in places] for order in (_BEFORE, _AFTER, _CEILING)]
    means = means_of([column for columns in orders for column in columns], seed)
    lifts = differences_of([Pair(orders[_BEFORE][place], orders[_AFTER][place]) for place in places], seed)
    made = {}
    for place, metric in enumerate(scored.metrics):
        before, after, ceiling = (orders[order][place] for order in (_BEFORE, _AFTER, _CEILING))
        row = {name: means[order * len(places) + place]["mean"] for order, name in
               ((_BEFORE, "before"), (_AFTER, "after"), (_CEILING, "ceiling"))}
        made[metric.name] = {**row, "lift": lifts[place], "headroom": _headroom(before, after, ceiling, seed)}
    return made


def _headroom(before: Mapping[str, float], after: Mapping[str, float], ceiling: Mapping[str, float],
              seed: int) -> dict[str, Any]:
    won = np.array([after[question] - before[question] for question in before])
    room = np.array([ceiling[question] - before[question] for question in before])

    def share(weights: Array) -> Array:
        below = weights @ room
        found: Array = np.divide(weights @ won, below, out=np.full(len(below), np.nan), where=below > 1e-12)
        return found

    figure = Resampling(len(won), seed=seed).of_rows(_NO_HEADROOM, share)
    return {"share": figure.value, "low": figure.low, "high": figure.high, "reason": figure.reason}


def _depth_entries(scored: _Scored, seed: int) -> list[dict[str, Any]]:
    made = []
    for at, depth in enumerate(scored.depths, _CEILING + 1):
        columns = [scored.column(at, place) for place in range(len(scored.metrics))]
        before = [scored.column(_BEFORE, place) for place in range(len(scored.metrics))]
        lifts = differences_of([Pair(one, other) for one, other in zip(before, columns, strict=True)], seed)
        means = means_of(columns, seed)
        cut = max(metric.k or 1 for metric in scored.metrics)
        exact = sum(_is_exact(search, depth, cut) for search in scored.searches)
        made.append({"depth": depth, "exact": exact, "of": len(scored.searches), "metrics": {
            metric.name: {"mean": mean["mean"], "lift": lift["difference"], "low": lift["low"], "high": lift["high"]}
            for metric, mean, lift in zip(scored.metrics, means, lifts, strict=True)}})
    return made


def _pushed_out(scored: _Scored, cut: int) -> dict[str, Any]:
    """Gold that stood in the first `cut` places and does no more, and gold that came in."""
    examples, questions, pulled = list[dict[str, Any]](), set[str](), 0
    for search, gold in zip(scored.searches, scored.gold, strict=True):
        before, after = (tuple(dict.fromkeys(search.named(ids[:cut]))) for ids in (search.before, search.after))
        lost = [name for name in before if name in gold and name not in after]
        pulled += sum(name in gold and name not in before for name in after)
        questions |= {search.question} if lost else set()
        rest = search.named(search.after)
        examples += [{"question": search.question, "passage": name, "from": before.index(name) + 1,
                      "to": rest.index(name) + 1 if name in rest else None} for name in lost]
    return {"passages": len(examples), "questions": len(questions), "pulled_in": pulled,
            "examples": examples[:EXAMPLES]}


def _times(one: Reranking) -> dict[str, Any]:
    """Of the re-ranker alone, a question: its searches are added up, repeats are questions of their own."""
    sums: dict[tuple[str, int], float] = {}
    for search in one.searches:
        key = (search.question, search.repeat)
        sums[key] = sums.get(key, 0.0) + (search.ms or 0.0)
    values = list(sums.values())
    return {"mean": fmean(values), "median": float(median(values)), "p95": float(np.quantile(values, 0.95)),
            "n": len(values)}


def _answers(one: Reranking, sides: Sequence[Side], context: Context) -> dict[str, Any]:
    """What changed in answers and in time against the variant that searches alike and does not re-rank."""
    if one.without is None:
        return {"without": None, "answers": {}, "question_ms": None}
    side, other = of_name(sides, one.variant), of_name(sides, one.without)
    asked = [metric for metric in context.metrics if metric.definition.kind in ("answer", "judged")]
    pairs = [Pair(context.values(other, metric.name), context.values(side, metric.name), metric.definition.direction)
             for metric in asked]
    made = differences_of([*pairs, Pair(_milliseconds(other, context), _milliseconds(side, context), "lower")],
                          context.seed)
    return {"without": one.without,
            "answers": {metric.name: found for metric, found in zip(asked, made[:-1], strict=True)},
            "question_ms": made[-1] if made[-1]["n"] else None}


def _milliseconds(side: Side, context: Context) -> dict[str, float]:
    assert side.past is not None
    asked = frozenset(context.questions)
    return averaged((one.question_id, one.ms) for one in side.past.trajectories
                    if one.ms is not None and one.question_id in asked)
