"""Differences on parts of the questions: by category, gold passages, label state, length, tag, and own metadata.

A question without a category is in a part of its own, so that the counts of a slicing add up; tags alone may overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ragkit.comparison.context import Context, of_name, others
from ragkit.comparison.sides import QuestionFacts, Side
from ragkit.errors import DataError, shown
from ragkit.evaluation.summary import NO_CATEGORY
from ragkit.metrics.paired import Pair, compare_pairs

CATEGORY, GOLD_PASSAGES, LABEL_STATE, LENGTH, TAG, METADATA = (
    "category", "gold passages", "label state", "question length", "tag", "metadata.")
UNKNOWN, NO_TAG, NO_VALUE = "(unknown)", "(no tag)", "(no value)"
RESAMPLES = 2000
_MOST_VALUES = 20  # a key of the metadata with more values tells questions apart, not kinds of questions
_SHORT = {"gold": GOLD_PASSAGES, "labels": LABEL_STATE, "length": LENGTH, "tags": TAG}


def slicings(facts: Sequence[QuestionFacts]) -> dict[str, dict[str, tuple[str, ...]]]:
    """As `all_slicings`, without those that do not tell the questions apart.

    >>> made = slicings([QuestionFacts("q1", category="how-to"), QuestionFacts("q2"), QuestionFacts("q3")])
    >>> made
    {'category': {'how-to': ('q1',), '(no category)': ('q2', 'q3')}}
    """
    return {name: parts for name, parts in all_slicings(facts).items() if len(parts) > 1}


def all_slicings(facts: Sequence[QuestionFacts]) -> dict[str, dict[str, tuple[str, ...]]]:
    """slicing -> slice -> question ids, in the order of the questions."""
    made = {
        CATEGORY: _by(facts, lambda one: one.category, NO_CATEGORY),
        GOLD_PASSAGES: _by(facts, _hops, UNKNOWN),
        LABEL_STATE: _by(facts, lambda one: one.label_state, UNKNOWN),
        LENGTH: _by_length(facts),
        TAG: _by_tag(facts),
    }
    for key in dict.fromkeys(key for one in facts for key in one.metadata):
        values = [one.metadata.get(key) for one in facts]
        if all(value is None or isinstance(value, str | bool | int) for value in values) \
                and len(set(values)) <= _MOST_VALUES:
            made[f"{METADATA}{key}"] = _by(facts, partial(_value, key), NO_VALUE)
    return made


def slicing_name(short: str) -> str:
    """The full name of a slicing.

    >>> slicing_name("gold"), slicing_name("category")
    ('gold passages', 'category')
    """
    return _SHORT.get(short, short)


def _value(key: str, facts: QuestionFacts) -> str | None:
    value = facts.metadata.get(key)
    return None if value is None else str(value)


def _by(facts: Sequence[QuestionFacts], key: Callable[[QuestionFacts], str | None],
        without: str) -> dict[str, tuple[str, ...]]:
    """Parts by a key, in alphabetical order; those without one last."""
    found: dict[str | None, list[str]] = {}
    for one in facts:
        found.setdefault(key(one), []).append(one.id)
    named = {name: tuple(found[name]) for name in sorted(name for name in found if name is not None)}
    if None in found:
        named[without] = (*named.get(without, ()), *found[None])
    return named


def _hops(facts: QuestionFacts) -> str | None:
    if facts.n_gold is None:
        return None
    return "(no gold)" if facts.n_gold == 0 else "one-hop" if facts.n_gold == 1 else "multi-hop"


def _by_length(facts: Sequence[QuestionFacts]) -> dict[str, tuple[str, ...]]:
    """Three parts of as equal size as the ties allow: by words, or by signs where a script has no blanks."""
    lengths = sorted(one.n_words for one in facts if one.n_words is not None)
    if not lengths:
        return {}
    first, second = lengths[(len(lengths) - 1) // 3], lengths[2 * (len(lengths) - 1) // 3]
    names = [f"up to {first} words", f"{first + 1} to {second} words", f"{second + 1} words or more"]
    found = _by(facts, lambda one: None if one.n_words is None else
                names[0] if one.n_words <= first else names[1] if one.n_words <= second else names[2], UNKNOWN)
    return {name: found[name] for name in (*names, UNKNOWN) if name in found}


def _by_tag(facts: Sequence[QuestionFacts]) -> dict[str, tuple[str, ...]]:
    counts = Counter(tag for one in facts for tag in set(one.tags))
    found = {tag: tuple(one.id for one in facts if tag in one.tags) for tag in sorted(counts)}
    bare = tuple(one.id for one in facts if not one.tags)
    return {**found, NO_TAG: bare} if found and bare else found


def slice_differences(sides: Sequence[Side], context: Context, by: str | Sequence[str] | None) -> dict[str, Any]:
    """slicing -> slice -> {"n", metric: {variant: {difference, low, high, n}}}; no tests, since they would be many.

    `by`: only these slicings ("category", "gold", "labels", "length", "tag", "metadata.KEY"); DataError for one that
    these questions do not have.
    """
    known = of_name(sides, context.baseline).questions
    found = slicings([known[question] for question in context.questions if question in known])
    return {name: {part: _slice(sides, context, questions) for part, questions in found[name].items()}
            for name in chosen(found, by)}


def chosen(found: Mapping[str, object], by: str | Sequence[str] | None) -> list[str]:
    """The slicings that were asked for, under their full names; all of them where none was named."""
    if by is None:
        return list(found)
    asked = [part.strip() for name in ([by] if isinstance(by, str) else by) for part in name.split(",")]
    names = [slicing_name(name) for name in asked]
    for name, given in zip(names, asked, strict=True):
        if name not in found:
            told = ", ".join(found) or "none"
            raise DataError(f"--by {shown(given)}: these questions do not differ in it; they do in: {told}")
    return list(dict.fromkeys(names))


def _slice(sides: Sequence[Side], context: Context, questions: Sequence[str]) -> dict[str, Any]:
    base = of_name(sides, context.baseline)
    keys = [(metric.name, side) for metric in context.metrics for side in others(sides, context.baseline)]
    made: dict[str, Any] = {"n": len(questions), **{metric.name: {} for metric in context.metrics}}
    pairs = compare_pairs([Pair(context.values(base, metric), context.values(side, metric)) for metric, side in keys],
                          context.seed, RESAMPLES, test=False, only=frozenset(questions))
    for (metric, side), one in zip(keys, pairs, strict=True):
        made[metric][side.name] = {"difference": one.difference, "low": one.low, "high": one.high, "n": one.n}
    return made
