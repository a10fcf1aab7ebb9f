"""Whether variants may be held against each other: the same questions, labels, judge and level. Computes no difference.

What makes a difference meaningless is refused; what only narrows it is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragkit.comparison.sides import GOLD, JUDGED, Side
from ragkit.errors import DataError, shown
from ragkit.evaluation.join import listed
from ragkit.metrics.registry import Metric, parse, parse_all
from ragkit.report.numbers import counted, plain

_RELEVANCY = "answer_relevancy"  # the one metric that the judge's embeddings decide


@dataclass(frozen=True)
class Fit:
    """What can be compared: the labels, the metrics, the questions that all were asked, and what must be said."""

    labels: str
    metrics: tuple[Metric, ...]
    questions: tuple[str, ...]
    warnings: tuple[str, ...]


def fit(sides: Sequence[Side], metrics: str | Sequence[str] | None = None, labels: str | None = None) -> Fit:
    """Hold the first side against each other one, and say what they have in common.

    Raises DataError where they differ in what the numbers mean: no common question, another text or other labels of a
    question, another level of relevance, gold here and a judge's labels there, another judge of a metric that was
    named. A metric that was not named and does not fit is left out and told.
    """
    chosen = _labels(sides, labels)
    questions, warnings = _common_questions(sides)
    first, touched = sides[0], dict[str, str]()
    for other in sides[1:]:
        _same_level(first, other)
        warnings += _same_questions(first, other, questions, touched)
        warnings += _same_labels(first, other, questions) if chosen == GOLD else []
        warnings += _same_end(first, other)
        warnings += _same_corpus(first, other)
        warnings += _same_judge(first, other, chosen, touched)
    found, more = _metrics(sides, metrics, chosen, touched)
    return Fit(chosen, found, questions, tuple(dict.fromkeys([*warnings, *more])))


def _labels(sides: Sequence[Side], wanted: str | None) -> str:
    """By which labels all sides can be compared."""
    if wanted not in (None, GOLD, JUDGED):
        raise DataError(f"labels: expected gold or judged, got {shown(wanted)}")
    gold, judged = [bool(side.by_gold) for side in sides], [bool(side.judged) for side in sides]
    if wanted == JUDGED and not all(judged):
        lacks = sides[judged.index(False)].name
        raise DataError(f"labels: {lacks} has no judged labels; expected runs made with --relevance judge")
    if wanted == GOLD or all(gold) or not any(judged):
        return GOLD
    if wanted == JUDGED or all(judged):
        return JUDGED
    by_gold = [side.name for side, has in zip(sides, gold, strict=True) if has]
    by_judge = [side.name for side, has, own in zip(sides, judged, gold, strict=True) if has and not own]
    raise DataError(f"labels: {listed(by_gold)} was scored by gold and {listed(by_judge)} by judged labels alone; "
                    "expected the same labels: score all with one data set, or all with --relevance judge")


def _common_questions(sides: Sequence[Side]) -> tuple[tuple[str, ...], list[str]]:
    asked = [set(side.asked) for side in sides]
    common = set.intersection(*asked)
    if not common:
        raise DataError(f"questions: {sides[0].name} and {listed([side.name for side in sides[1:]])} have none in "
                        f"common (the first are {shown(next(iter(sides[0].asked), ''))} and "
                        f"{shown(next(iter(sides[1].asked), ''))}); expected variants on the same questions")
    questions = tuple(question for question in sides[0].asked if question in common)
    if all(len(own) == len(common) for own in asked):
        return questions, []
    each = ", ".join(f"{side.name} {len(own)}" for side, own in zip(sides, asked, strict=True))
    left = sorted(set.union(*asked) - common)
    return questions, [f"not the same questions were asked ({each}): compared on the {len(common)} that all have; left "
                       f"out: {listed(left)}"]


def _same_level(first: Side, other: Side) -> None:
    levels = [side.run.get("level", (side.run.get("config") or {}).get("level", 1.0)) for side in (first, other)]
    if levels[0] != levels[1]:
        raise DataError(f"relevant: from grade {plain(levels[0])} in {first.name}, from {plain(levels[1])} in "
                        f"{other.name}; expected one level: score one of them again")


def _same_end(first: Side, other: Side) -> list[str]:
    ends = [str((side.run.get("config") or {}).get("without_context", "union")) for side in (first, other)]
    if ends[0] == ends[1]:
        return []
    return [f"where the app shows no final context, {ends[0]} stands for it in {first.name} and {ends[1]} in "
            f"{other.name}: what is measured at the end differs by that, too"]


def _same_questions(first: Side, other: Side, questions: Sequence[str], touched: dict[str, str]) -> list[str]:
    same = _data(first).get("questions")
    if same is not None and same == _data(other).get("questions"):  # texts and answers are in the fingerprint
        return []
    one, two = first.questions, other.questions
    answers, unread = [], 0
    for question in questions:
        mine, its = one.get(question), two.get(question)
        if mine is None or its is None or mine.text is None or its.text is None:
            unread += 1
            continue
        if mine.text != its.text:
            raise DataError(f"questions: {question!r} is another one in {first.name} ({shown(mine.text)}) than in "
                            f"{other.name} ({shown(its.text)}); expected variants on the same questions")
        answers += [question] if mine.answers != its.answers else []
    if answers:
        why = f"{counted(len(answers), 'question')} with another reference answer, such as {answers[0]}"
        touched.update(dict.fromkeys(("answer", "judged"), f"{why}, in {first.name} and {other.name}"))
    if unread:
        return [f"the texts of {counted(unread, 'question')} of {first.name} and {other.name} cannot be held against "
                f"each other: {first.why_closed or other.why_closed or 'they are not known'}"]
    return []


def _same_labels(first: Side, other: Side, questions: Sequence[str]) -> list[str]:
    warnings = []
    if _data(first).get("labels") != _data(other).get("labels"):
        rows = [_gold(first), _gold(other)]
        if rows[0] is None or rows[1] is None:
            why = first.why_closed or other.why_closed
            if _data(first).get("questions") == _data(other).get("questions"):
                raise DataError(f"labels: not the same in {first.name} and {other.name}; expected one set of labels: "
                                "score one of them again")
            warnings.append(f"the labels of {first.name} and {other.name} cannot be held against each other: {why}")
        else:
            differing = [question for question in questions if rows[0].get(question) != rows[1].get(question)]
            if differing:
                raise DataError(f"labels: not the same in {first.name} and {other.name} for "
                                f"{counted(len(differing), 'question')}, such as {differing[0]!r}; expected one set of "
                                "labels: score one of them again with the other's data set")
    counts = [{question: facts.n_gold for question, facts in side.questions.items()} for side in (first, other)]
    moved = [q for q in questions if counts[0].get(q) != counts[1].get(q)] if first.past and other.past else []
    if moved:
        warnings.append(f"the same gold makes another number of relevant units in {first.name} than in {other.name} "
                        f"for {counted(len(moved), 'question')} (they cut documents otherwise), such as {moved[0]}; "
                        "recall, map and ndcg divide by that number")
    return warnings


def _gold(side: Side) -> dict[str, Any] | None:
    """The labels as the data set has them, which no chunking changes; None where they cannot be read."""
    if side.past is not None:
        dataset = side.past.plan.dataset
        return {question.id: (dict(dataset.qrels.get(question.id, {})), question.gold_texts, question.unanswerable)
                for question in dataset.questions}
    if side.known_questions is None:
        return None
    return {question: facts.grades for question, facts in side.known_questions.items()}


def _same_corpus(first: Side, other: Side) -> list[str]:
    one, two = _data(first).get("corpus"), _data(other).get("corpus")
    return [] if one == two else [f"{first.name} and {other.name} searched another corpus: a difference may be the "
                                  "documents', not the variant's"]


def _same_judge(first: Side, other: Side, labels: str, touched: dict[str, str]) -> list[str]:
    judges: list[Mapping[str, Any]] = [side.run.get("judge") or {} for side in (first, other)]
    if not all(judges):  # who was not judged has no score to compare
        return []
    differs = [key for key in ("fingerprint", "language") if judges[0].get(key) != judges[1].get(key)]
    if differs:
        names = [f"{judge['name']}{' in ' + judge['language'] if judge.get('language') else ''}" for judge in judges]
        why = f"{first.name} was judged by {names[0]}, {other.name} by {names[1]}"
        why += " with other settings" if names[0] == names[1] else ""
        if labels == JUDGED:
            raise DataError(f"judge: {why}; expected labels of one judge: score one of them again")
        touched.setdefault("judged", why)
    elif judges[0].get("embeddings") != judges[1].get("embeddings"):
        touched.setdefault(_RELEVANCY, f"its embeddings are {judges[0].get('embeddings')} in {first.name} and "
                                       f"{judges[1].get('embeddings')} in {other.name}")
    ragas = [(side.run.get("versions") or {}).get("ragas") for side in (first, other)]
    return [f"{first.name} was judged with ragas {ragas[0]}, {other.name} with ragas {ragas[1]}"] \
        if ragas[0] != ragas[1] else []


def _metrics(sides: Sequence[Side], wanted: str | Sequence[str] | None, labels: str,
             touched: Mapping[str, str]) -> tuple[tuple[Metric, ...], list[str]]:
    held = [side.scores_by(labels) for side in sides]
    if wanted:
        found = parse_all(wanted)
        for metric in found:
            lacks = [side.name for side, scores in zip(sides, held, strict=True) if metric.name not in scores]
            if lacks:
                known = ", ".join(_names(sides[0], held[0]))
                raise DataError(f"metric {metric.name}: not in {listed(lacks)}; expected one that all hold, such as "
                                f"{known}; `ragkit score` adds others to a folder")
            why = _touched(metric, touched)
            if why:
                raise DataError(f"metric {metric.name}: cannot be compared, since {why}")
        return found, []
    names = _names(sides[0], held[0])
    everywhere = [name for name in names if all(name in scores for scores in held)]
    partly = sorted({name for scores in held for name in scores} - set(everywhere))
    warnings = [f"not in all variants, and left out: {', '.join(partly)}"] if partly else []
    found, unknown = _parsed(everywhere)
    if unknown:
        warnings.append(f"unknown here, and left out: {', '.join(unknown)} (--import MODULE loads your own)")
    reasons: dict[str, list[str]] = {}
    for metric in found:
        why = _touched(metric, touched)
        if why:
            reasons.setdefault(why, []).append(metric.name)
    warnings += [f"left out: {', '.join(named)}, since {why}" for why, named in reasons.items()]
    found = tuple(metric for metric in found if not _touched(metric, touched) and not metric.definition.series
                  and any(_is_scored(scores[metric.name]) for scores in held))
    if not found:
        raise DataError(f"metrics: nothing to compare in {listed([side.name for side in sides])}"
                        + "".join(f"; {warning}" for warning in warnings))
    return found, warnings


def _names(side: Side, scores: Iterable[str]) -> list[str]:
    """The metrics of a side in the order in which its run lists them."""
    held = list(scores)
    order = [name for name in side.run.get("metrics", ()) if name in held]
    return [*order, *(name for name in held if name not in order)]


def _parsed(names: Iterable[str]) -> tuple[tuple[Metric, ...], list[str]]:
    found, unknown = [], []
    for name in names:
        try:
            found.append(parse(name))
        except DataError:
            unknown.append(name)
    return tuple(found), unknown


def _touched(metric: Metric, touched: Mapping[str, str]) -> str | None:
    return touched.get(metric.name) or touched.get(metric.definition.kind)


def _is_scored(rows: Mapping[str, Mapping[int, Any]]) -> bool:
    return any(score.value is not None for repeats in rows.values() for score in repeats.values())


def _data(side: Side) -> Mapping[str, Any]:
    """The fingerprints of questions, labels and corpus; of a run file that of its qrels' path."""
    own = side.run.get("data")
    return own if own is not None else {"labels": side.run.get("qrels"), "questions": side.run.get("qrels")}
