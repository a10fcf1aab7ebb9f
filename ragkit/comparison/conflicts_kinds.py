"""The kinds of disagreement between two variants: which signals, on which questions, and what could explain them.

A kind is looked for both ways; the one with more questions is kept, and the other counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from ragkit.comparison.causes import SideFacts
from ragkit.comparison.causes_weighing import Suspect
from ragkit.comparison.context import Context, Table
from ragkit.comparison.sides import GOLD, JUDGED, Side
from ragkit.metrics.registry import Metric, parse
from ragkit.report.numbers import counted

HIT, PRECISION, JUDGE, SUPPORT, ANSWER, MEMORY, LENIENT = (
    "order_up_hit_unchanged", "recall_up_precision_down", "rank_up_judged_down", "rank_up_support_down",
    "rank_up_answer_down", "right_without_gold", "judged_recall_high_labelled_low")
_ORDER = ("ndcg", "map", "mrr", "recall", "allhit")
_SECOND = ((JUDGE, ("faithfulness",)), (JUDGE, ("context_precision",)), (SUPPORT, ("lexical_support",)),
           (ANSWER, ("answer_accuracy", "answer_f1", "exact_match")))
_WIDE = 0.5  # by so much a judge's recall stands above the labels'
_SAME = 1e-12


@dataclass(frozen=True)
class Draft:
    """One disagreement, before its interval and its causes are computed.

    questions: where `up` is better by the first metric, most telling first; turned: where it is the other way round;
    known: where both signals are known. in_means: whether both means show it; None where the interval of how often it
    happens says so. more: further lists of questions by name.
    """

    kind: str
    variant: str
    up: str
    metrics: tuple[str, ...]
    says: str
    questions: tuple[str, ...]
    turned: tuple[str, ...]
    known: tuple[str, ...]
    suspects: tuple[Suspect, ...]
    in_means: bool | None = None
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)


class _Changes(NamedTuple):
    """How two metrics changed from the baseline to the variant, on the questions where both know both."""

    first: Mapping[str, float]
    second: Mapping[str, float]


@dataclass(frozen=True)
class _Two:
    """A variant, the baseline, and what they are compared by."""

    base: SideFacts
    own: SideFacts
    context: Context
    table: Table

    @property
    def name(self) -> str:
        return self.own.side.name

    def changes(self, first: Metric, second: Metric) -> _Changes:
        made = []
        for metric in (first, second):
            before, after = (self.context.values(facts.side, metric.name) for facts in (self.base, self.own))
            made.append({question: after[question] - before[question] for question in self.context.questions
                         if question in before and question in after})
        both = [question for question in made[0] if question in made[1]]
        return _Changes(*({question: one[question] for question in both} for one in made))

    def ways(self) -> Iterable[tuple[float, SideFacts, SideFacts]]:
        """(sign, the side that is up, the other one)."""
        return ((1.0, self.own, self.base), (-1.0, self.base, self.own))

    def moved(self, metric: Metric, sign: float) -> bool:
        """Whether the interval of the mean's difference stands on this side of nothing."""
        figures = self.table[metric.name][self.name]
        low, high = figures["low"], figures["high"]
        return low is not None and (low > _SAME if sign > 0 else high < -_SAME)


def drafts(base: SideFacts, own: SideFacts, context: Context, table: Table) -> list[Draft]:
    """All kinds of disagreement of two variants that some question shows."""
    two = _Two(base, own, context, table)
    order = _first(context, _ORDER)
    made = [_hit_unchanged(two), _precision_down(two), _right_without_gold(two), _judge_sees_more(two)]
    for kind, names in _SECOND:
        against = _first(context, names)
        if order is not None and against is not None:
            made.append(_answer_side_down(two, kind, order, against))
    return [one for one in made if one is not None and one.questions]


def _first(context: Context, names: Sequence[str], near: int = 10) -> Metric | None:
    """The first metric of these names, at the cut nearest to the one wanted."""
    for name in names:
        own = [metric for metric in context.metrics if metric.definition.name == name]
        if own:
            return min(own, key=lambda metric: abs((metric.k or 10) - near))
    return None


def _chosen(two: _Two, select: Callable[[float], list[str]]) -> tuple[float, list[str], list[str]]:
    """(sign, questions, the other way) of the way with more questions."""
    ways = {sign: select(sign) for sign in (1.0, -1.0)}
    sign = 1.0 if len(ways[1.0]) >= len(ways[-1.0]) else -1.0
    return sign, ways[sign], ways[-sign]


def _sides(two: _Two, sign: float) -> tuple[SideFacts, SideFacts]:
    return (two.own, two.base) if sign > 0 else (two.base, two.own)


def _against(changes: _Changes, sign: float) -> list[str]:
    """Where the first metric is up and the second one down, by the smaller of both changes."""
    telling = {question: min(sign * first, -sign * changes.second[question])
               for question, first in changes.first.items()}
    return sorted((q for q, size in telling.items() if size > _SAME), key=lambda q: -telling[q])


def _hit_unchanged(two: _Two) -> Draft | None:
    order = _first(two.context, ("ndcg", "map", "mrr"))
    hit = None if order is None else _first(two.context, ("hit",), order.k or 10)
    if order is None or hit is None:
        return None
    changes = two.changes(order, hit)

    def select(sign: float) -> list[str]:
        found = [q for q, change in changes.first.items() if sign * change > _SAME and abs(changes.second[q]) <= _SAME]
        return sorted(found, key=lambda q: -sign * changes.first[q])

    sign, questions, turned = _chosen(two, select)
    up, down = _sides(two, sign)
    hits = {facts: two.context.values(facts.side, hit.name) for facts in (up, down)}
    worked = [q for q in questions if hits[down][q] > 0]
    failed = [q for q in changes.first if hits[down][q] == 0]
    still = [q for q in failed if hits[up][q] == 0]
    k = hit.k or len(failed)
    suspects = (
        Suspect("label_hole", f"an unjudged passage in the top {k} of {up.side.name} holds the reference answer (or, "
                "without one, stands there at all)", partial(up.label_hole, k=hit.k), still),
        Suspect("below_the_cut", f"its gold stands in the list of {up.side.name}, below place {k}",
                partial(up.below, k=k), still, False),
        Suspect("lost_after_retrieval", f"a step of {up.side.name} found gold that the context lacks", up.lost, still,
                False))
    says = (f"{order.name} is better in {up.side.name} on {counted(len(questions), 'question')} whose {hit.name} is "
            f"unchanged; {len(worked)} of them worked in {down.side.name} already, and of the {len(failed)} that "
            f"failed there {len(still)} still do")
    flat = not two.moved(hit, 1.0) and not two.moved(hit, -1.0)
    return Draft(HIT, two.name, up.side.name, (order.name, hit.name), says, tuple(questions), tuple(turned),
                 tuple(changes.first), suspects, two.moved(order, sign) and flat, {"still_failing": still})


def _precision_down(two: _Two) -> Draft | None:
    recall = _first(two.context, ("recall",), 100)
    whole, top = _first(two.context, ("precision_set", "id_context_precision")), _first(two.context, ("precision",), 5)
    if recall is None:
        return None
    # At one cut both count the same hits: they cannot part.
    precision = (whole or top) if recall.k is None else (top if top is not None and top.k != recall.k else whole)
    if precision is None:
        return None
    changes = two.changes(recall, precision)
    sign, questions, turned = _chosen(two, partial(_against, changes))
    up, down = _sides(two, sign)
    suspects = (
        _hole(up, precision.k), _same_again(up, precision.k),
        Suspect("more_passages", f"{up.side.name} returned more passages than {down.side.name}",
                lambda question: up.longer(question, down)))
    says = (f"{recall.name} is better and {precision.name} worse in {up.side.name} than in {down.side.name} on "
            f"{counted(len(questions), 'question')}")
    return Draft(PRECISION, two.name, up.side.name, (recall.name, precision.name), says, tuple(questions),
                 tuple(turned), tuple(changes.first), suspects, two.moved(recall, sign) and two.moved(precision, -sign))


def _hole(facts: SideFacts, k: int | None) -> Suspect:
    where = "its list" if k is None else f"its top {k}"
    return Suspect("label_hole", f"{facts.side.name} has an unjudged passage in {where} that holds the reference "
                   "answer (or, without one, has an unjudged passage there at all)", partial(facts.label_hole, k=k))


def _same_again(facts: SideFacts, k: int | None) -> Suspect:
    where = "its list" if k is None else f"its top {k}"
    return Suspect("redundant_passages", f"{facts.side.name} has two passages of nearly the same words in {where}",
                   partial(facts.redundant, k=k))


def _answer_side_down(two: _Two, kind: str, order: Metric, against: Metric) -> Draft:
    changes = two.changes(order, against)
    sign, questions, turned = _chosen(two, partial(_against, changes))
    up, down = _sides(two, sign)
    failed = _failed(two, order, against, sign)
    suspects = [
        Suspect("answer_refused", f"{up.side.name} says that it cannot answer", up.refused), _same_again(up, order.k),
        Suspect("lost_after_retrieval", f"a step of {up.side.name} found gold that the context lacks", up.lost),
        Suspect("label_hole", f"{down.side.name} has an unjudged passage that holds the reference answer: its list is "
                "better than the labels say", partial(down.label_hole, k=order.k))]
    if against.definition.kind == "judged":
        suspects.append(_judge_failed(two, against, failed))
    says = (f"{order.name} is better and {against.name} worse in {up.side.name} than in {down.side.name} on "
            f"{counted(len(questions), 'question')}")
    if failed:
        says += f"; on {len(failed)} more where {order.name} is better, {against.name} failed in one of the two"
    return Draft(kind, two.name, up.side.name, (order.name, against.name), says, tuple(questions), tuple(turned),
                 tuple(changes.first), tuple(suspects), two.moved(order, sign) and two.moved(against, -sign),
                 {"judge_failed": failed} if failed else {})


def _has_failed(side: Side, metric: str, question: str) -> bool:
    return any(score.status == "failed" for score in side.scores.get(metric, {}).get(question, {}).values())


def _failed(two: _Two, order: Metric, against: Metric, sign: float) -> list[str]:
    """The questions that are up by the rank metric, and of which a judgement failed: they say nothing either way."""
    before, after = (two.context.values(facts.side, order.name) for facts in (two.base, two.own))
    return [q for q in two.context.questions if q in before and q in after and sign * (after[q] - before[q]) > _SAME
            and any(_has_failed(facts.side, against.name, q) for facts in (two.base, two.own))]


def _judge_failed(two: _Two, against: Metric, failed: Sequence[str]) -> Suspect:
    """Whether judgements fail oftener where the rank metric is up: then the others are no fair part of them."""
    return Suspect("judge_failed", f"the judgement of {against.name} failed in one of the two", lambda question: any(
        _has_failed(facts.side, against.name, question) for facts in (two.base, two.own)), failed or None)


def _right_without_gold(two: _Two) -> Draft | None:
    known = [q for q in two.context.questions if all(facts.without_gold(q) is not None and facts.right(q) is not None
                                                     for facts in (two.base, two.own))]
    if not known:
        return None

    def select(sign: float) -> list[str]:
        facts = _sides(two, sign)[0]
        return [q for q in known if facts.right(q) and facts.without_gold(q)]

    sign, questions, turned = _chosen(two, select)
    up = _sides(two, sign)[0]
    suspects = (
        _hole(up, None),
        Suspect("lost_after_retrieval", f"a step of {up.side.name} found gold that the context lacks", up.lost),
        Suspect("from_memory", f"no passage in the list of {up.side.name} holds the reference answer", up.unsupported),
        Suspect("guessable", "the reference answer is yes or no", up.guessable))
    both = len(set(questions) & set(turned))
    says = (f"{up.side.name} answers {counted(len(questions), 'question')} right with no gold in its context; "
            f"{_sides(two, sign)[1].side.name} does so on {len(turned)}, {both} of them the same")
    return Draft(MEMORY, two.name, up.side.name, ("right answer", "gold in context"), says, tuple(questions),
                 tuple(turned), tuple(known), suspects)


def _judge_sees_more(two: _Two) -> Draft | None:
    both = (two.base.side, two.own.side)
    pairs = [(name, labels, gold) for name, labels, gold in (("recall", JUDGED, "recall"),
                                                             ("context_recall", GOLD, "recall"))
             if all(name in side.scores_by(labels) and gold in side.by_gold for side in both)]
    if not pairs:
        return None
    name, labels, gold = pairs[0]
    gaps = {facts: _gaps(facts.side, name, labels, gold, two.context) for facts in (two.base, two.own)}
    known = [q for q in two.context.questions if all(q in gaps[facts] for facts in (two.base, two.own))]

    def select(sign: float) -> list[str]:
        own = gaps[_sides(two, sign)[0]]
        return sorted((q for q in known if own[q] >= _WIDE), key=lambda q: -own[q])

    sign, questions, turned = _chosen(two, select)
    up, down = _sides(two, sign)
    judged = f"{name} by a judge's labels" if labels == JUDGED else parse(name).name
    says = (f"in {up.side.name} {judged} is at least {_WIDE:g} above {gold} by gold on "
            f"{counted(len(questions), 'question')}; in {down.side.name} on {len(turned)}")
    return Draft(LENIENT, two.name, up.side.name, (judged, gold), says, tuple(questions), tuple(turned), tuple(known),
                 (_hole(up, None), _same_again(up, None)))


def _gaps(side: Side, name: str, labels: str, gold: str, context: Context) -> dict[str, float]:
    high, low = side.values(name, labels), side.values(gold)
    return {q: high[q] - low[q] for q in context.questions if q in high and q in low}
