"""Conflicts and label holes of a comparison as finished texts, for any renderer; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ragkit.report import labels, numbers
from ragkit.report.comparison_searches import Part

KINDS = {
    "order_up_hit_unchanged": "The order is better, the hit rate unchanged",
    "recall_up_precision_down": "Recall is better, precision worse",
    "rank_up_judged_down": "A rank metric is better, a judged one worse",
    "rank_up_support_down": "A rank metric is better, the answer's support worse",
    "rank_up_answer_down": "A rank metric is better, the answers worse",
    "right_without_gold": "Right answers with no gold in the context",
    "judged_recall_high_labelled_low": "A judge finds what the labels do not have",
}
_OWN = frozenset({"questions", "net"})
_PAIRS_SHOWN = 10
_SENTENCES = 4
_ONLY = {"positives": " (the labels list only what is relevant)"}


class Cause(NamedTuple):
    """One cause that was tested: in words, how often it holds here and on the other questions, and p."""

    name: str
    told: str
    here: str
    elsewhere: str
    p: str
    likely: bool


class Listed(NamedTuple):
    """Questions behind a conflict: what they are, how many, and the first of them."""

    title: str
    total: str
    ids: tuple[str, ...]
    more: str


class Conflict(NamedTuple):
    """One disagreement of two signals between a variant and the baseline."""

    title: str
    variant: str
    up: str
    says: str
    counts: str
    net: str
    in_means: bool
    likely: str
    causes: tuple[Cause, ...]
    untested: tuple[tuple[str, str], ...]
    lists: tuple[Listed, ...]


def conflicts(data: Mapping[str, Any]) -> list[Conflict]:
    """All conflicts, in their order."""
    return [_conflict(one) for one in data["conflicts"] or ()]


def finding_sentences(data: Mapping[str, Any]) -> list[str]:
    """The conflicts and the holes in a sentence each, for where there is no room for tables.

    Conflicts that happen one way more often than the other, or that the means show, have a sentence; others are
    counted.
    """
    raw = data["conflicts"] or ()
    plain = [_conflict(one) for one in raw if one["in_means"] or (one["net"]["low"] or 0) > 0][:_SENTENCES]
    made = [f"{one.variant}: {one.says}" + (f"; likely cause: {one.likely}" if one.likely else "") for one in plain]
    if len(raw) > len(plain):
        made.append(f"{numbers.counted(len(raw) - len(plain), 'conflict')} of signals on single questions"
                    f"{' besides' if plain else ''} (comparison.json)")
    holes = data["holes"]
    if holes:
        ends = [end for own in holes["differences"].values() for end in own.values()]
        open_ = sum(end["could_flip"] for end in ends)
        told = f"{numbers.of(open_, len(ends))} verdicts could be others, were all passages judged"
        pairs = numbers.counted(holes["pairs"]["total"], "pair")
        settle = f"; {pairs} to label would settle it (--holes FILE)" if open_ else ""
        made.append(f"label holes{_ONLY.get(holes['labels'], '')}: {told}{settle}")
    return made


def _conflict(one: Mapping[str, Any]) -> Conflict:
    causes = tuple(Cause(labels.words(cause["cause"]), cause["told"], numbers.of(cause["count"], cause["of"]),
                         numbers.of(cause["elsewhere"], cause["elsewhere_of"]) if cause["compared"] else "cannot hold",
                         numbers.p_value(cause["p"]), cause["cause"] == one["likely"]) for cause in one["causes"])
    told = next((cause["told"] for cause in one["causes"] if cause["cause"] == one["likely"]), "")
    more = [(key, value) for key, value in one.items()
            if key not in _OWN and isinstance(value, Mapping) and "ids" in value and value["ids"]]
    lists = [_listed("the questions", one["questions"]), *(_listed(labels.words(key), found) for key, found in more)]
    net = one["net"]
    return Conflict(
        KINDS.get(one["kind"], labels.words(one["kind"])), one["variant"], one["up"], one["says"],
        f"{numbers.counted(one['count'], 'question')} this way, {numbers.count(one['other_way'])} the other way, of "
        f"{numbers.count(one['n'])}",
        f"{numbers.signed(net['difference'])} ({numbers.interval(net['low'], net['high'])})",
        bool(one["in_means"]), told, causes,
        tuple((labels.words(name), why) for name, why in one["untested"].items()), tuple(lists))


def _listed(title: str, found: Mapping[str, Any]) -> Listed:
    left = found["total"] - len(found["ids"])
    return Listed(title, numbers.count(found["total"]), tuple(found["ids"]),
                  f"and {numbers.count(left)} more" if left > 0 else "")


def hole_parts(data: Mapping[str, Any]) -> list[Part]:
    """What of the lists is judged, what the holes could do, and which labels would settle it, as tables."""
    found = data["holes"]
    if not found:
        return []
    made = [_judged(found), _bounds(found)]
    return made + ([_pairs(found, list(data["variants"]))] if found["pairs"]["total"] else [])


def _judged(found: Mapping[str, Any]) -> Part:
    cuts = list(dict.fromkeys(cut for one in found["variants"].values() for cut in one["judged"]))
    body = [(name, *(_share(one["judged"].get(cut)) for cut in cuts)) for name, one in found["variants"].items()]
    notes = [f"The share of each list that somebody judged, and how many passages nobody did, on "
             f"{numbers.counted(found['n'], 'question')}."]
    notes += [f"{found['note'][:1].upper()}{found['note'][1:]}."] if found["note"] else []
    notes += ["Of the first repeat."] if found["repeats"] else []
    return Part("How much is judged", tuple(notes), (("Variant", *cuts), *body))


def _share(figures: Mapping[str, Any] | None) -> str:
    if figures is None or figures["mean"] is None:
        return numbers.NONE
    return f"{numbers.share(figures['mean'])} ({numbers.counted(figures['holes'], 'hole')})"


def _bounds(found: Mapping[str, Any]) -> Part:
    body = [(metric, variant, numbers.signed(one["difference"]),
             f"{numbers.signed(one['low'])} to {numbers.signed(one['high'])}", one["verdict"],
             "could be " + " or ".join(dict.fromkeys(end for end in (one["worst"], one["best"])
                                                     if end != one["verdict"])) if one["could_flip"] else "stands")
            for metric, own in found["differences"].items() for variant, one in own.items()]
    return Part("What the holes could do", (
        "The difference as it is, and the least and the most that it could be, whatever the holes turn out to be: none "
        f"relevant, or relevant with grade {numbers.plain(found['grade'])}.",),
        (("Metric", "Variant", "Difference", "From, to", "Now", "With all labels"), *body))


def _pairs(found: Mapping[str, Any], variants: list[str]) -> Part:
    first = found["pairs"]["first"][:_PAIRS_SHOWN]
    body = [(pair["question_id"], pair["passage_id"],
             *(numbers.count(pair["ranks"].get(name)) for name in variants), numbers.number(pair["effect"], 4))
            for pair in first]
    return Part("Labels that would settle it", (
        f"{numbers.counted(found['pairs']['total'], 'pair')} of question and passage could change a decision; the "
        f"{numbers.count(len(first))} that move a difference most. ragkit compare … --holes FILE writes all of them, "
        "to be labelled.",), (("Question", "Passage", *(f"rank, {name}" for name in variants), "Moves by"), *body))
