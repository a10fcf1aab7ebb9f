"""The one place where a metric is declared: its name, range, direction, laws. Knows no formula and does no I/O.

A metric is one decorated pure function. Its name is its full definition and parses back: parse("ndcg@10").name.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar, get_args

from ragkit.errors import DataError

Kind = Literal["ranking", "trajectory", "judged", "answer"]
Direction = Literal["higher", "lower", "none"]
Cut = Literal["required", "optional", "none"]
Against = Literal["question", "query"]
Law = Literal["in_range", "deterministic", "perfect_is_one", "swap_up", "rename", "nothing_relevant_undefined",
              "empty_is_zero", "padding", "batch_equals_single"]

LAWS: Final[Mapping[Law, str]] = {
    "in_range": "stays in its range for every input",
    "deterministic": "the same input gives the same value",
    "perfect_is_one": "a perfect ranking gives 1 (where k >= R)",
    "swap_up": "a document moved up past one of a lower grade never makes it worse",
    "rename": "other names for the ids change nothing (without ties)",
    "nothing_relevant_undefined": "nothing relevant: undefined, not 0",
    "empty_is_zero": "an empty list gives 0",
    "padding": "unjudged documents behind the last one change nothing",
    "batch_equals_single": "many lists at once give the same values as one by one",
}
"""What each law says. The law tests hold every metric to those that it declares."""

TIES: Final[Mapping[Kind, str]] = {
    "ranking": "none in a list, which is judged in the order it came in. A run with scores is sorted by score, "
               "descending, equal scores by document id, descending (as trec_eval), before any metric sees it",
    "trajectory": "none: the lists of the steps are taken in the order they came in",
    "judged": "none: one verdict a thing, in the order that the judge was shown",
    "answer": "none: one answer a question",
}

_MODULES = ("ranking", "dialects", "trajectory", "sessions", "judged", "answers", "query")  # loaded on first look-up


@dataclass(frozen=True)
class Definition:
    """What the report prints about a metric, and the function that computes it.

    kind says what the function takes: ranking (RankBatch, k) -> array with NaN where undefined; trajectory
    (EvidencePath, k) -> Score, or a list of one Score a step where `series`; judged (verdicts) -> Score; answer
    (AnswerSample) -> Score. `cut` says whether "@k" belongs to the name; `needs_order` whether a set has no value.
    `formula` is plain text, in the words of the page of definitions. A dialect, which is what another tool gives under
    the name of `dialect_of`, says in `differs` what it does otherwise, with the numbers of an example.
    """

    name: str
    kind: Kind
    function: Callable[..., Any]
    summary: str
    undefined: str
    otherwise: str = "nothing to measure"
    range: tuple[float | None, float | None] = (0.0, 1.0)
    direction: Direction = "higher"
    cut: Cut = "none"
    default_cut: int | None = None
    needs_order: bool = True
    series: bool = False
    aliases: tuple[str, ...] = ()
    laws: frozenset[str] = frozenset()
    source: str = ""
    calls: str = ""  # of a judged metric: model calls a sample, as a formula in k, the number of contexts
    formula: str = ""
    dialect_of: str = ""
    differs: str = ""
    needs_gold: bool = True  # of a trajectory metric: without labels it is undefined
    ratio: Callable[[Any], tuple[float, float]] | None = None  # a path's parts, where the mean is sum over sum
    against: Against = "question"  # of a rank metric: "query" where a step is held against its own query

    @property
    def pattern(self) -> str:
        """The name with the cut that it takes: "ndcg[@k]" where one is possible, "precision@k" where it is required."""
        return self.name + {"required": "@k", "optional": "[@k]", "none": ""}[self.cut]

    @property
    def ties(self) -> str:
        """What happens to equal scores."""
        return TIES[self.kind]


@dataclass(frozen=True)
class Metric:
    """A metric as asked for: a definition and its cut. Its name parses back to an equal one."""

    definition: Definition
    k: int | None = None

    @property
    def name(self) -> str:
        """The definition's name, and the cut behind an "@"."""
        return self.definition.name if self.k is None else f"{self.definition.name}@{self.k}"

    def __str__(self) -> str:
        return self.name


_DEFINITIONS: dict[str, Definition] = {}
_ALIASES: dict[str, str] = {}
_F = TypeVar("_F", bound=Callable[..., Any])


def metric(name: str, *, kind: Kind, undefined: str, **details: Any) -> Callable[[_F], _F]:
    """Declare a metric. `details` are the other fields of Definition; the summary is the docstring's first paragraph.

    `name` may end in "@k" (a cut is required) or "[@k]" (a cut is possible).
    """
    cut: Cut = "none"
    if name.endswith("[@k]"):
        name, cut = name.removesuffix("[@k]"), "optional"
    elif name.endswith("@k"):
        name, cut = name.removesuffix("@k"), "required"

    def declare(function: _F) -> _F:
        if not function.__module__.startswith(f"{__package__}."):
            _load()  # so that a name that is taken is told here, not when its owner is loaded
        known = _DEFINITIONS.get(name)
        reloaded = known is not None and _origin(known.function) == _origin(function)
        if (known is not None and not reloaded) or _folded(name) in _ALIASES:
            raise DataError(f"metric {name!r} is declared twice")
        summary = " ".join((function.__doc__ or "").strip().split("\n\n")[0].split())
        definition = Definition(name=name, kind=kind, function=function, summary=summary, undefined=undefined,
                                cut=cut, **details)
        _check(definition)
        _DEFINITIONS[name] = replace(definition, laws=frozenset(definition.laws))
        for alias in definition.aliases:
            _ALIASES[_folded(alias)] = name
        return function

    return declare


def _check(definition: Definition) -> None:
    """Raise DataError for a declaration that nothing could hold."""
    where, (low, high) = f"metric {definition.name!r}", definition.range
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", definition.name):
        raise DataError(f"{where}: expected a name of letters, digits and underscores")
    if definition.kind not in get_args(Kind) or definition.direction not in get_args(Direction):
        raise DataError(f"{where}: expected a kind of {', '.join(get_args(Kind))} and a direction of "
                        f"{', '.join(get_args(Direction))}; got {definition.kind!r}, {definition.direction!r}")
    if low is not None and high is not None and low > high:
        raise DataError(f"{where}: expected a range from low to high, got {definition.range}")
    unknown = sorted(set(definition.laws) - LAWS.keys())
    if unknown:
        raise DataError(f"{where}: unknown law {unknown[0]!r}; known: {', '.join(LAWS)}")


def definitions(kind: Kind | None = None) -> tuple[Definition, ...]:
    """All declared metrics (of one kind), in the order of their declaration."""
    _load()
    return tuple(d for d in _DEFINITIONS.values() if kind is None or d.kind == kind)


def parse(text: str) -> Metric:
    """The metric that a name means; aliases of the field are understood ("P@5", "nDCG@10", "Success@1").

    >>> parse("nDCG@10").name, parse("AP").name
    ('ndcg@10', 'map')
    """
    match = re.fullmatch(r"\s*([A-Za-z][A-Za-z0-9_-]*)\s*(?:@\s*(-?\d+))?\s*", text)
    if match is None:
        raise DataError(f"metric {text!r}: expected a name such as ndcg@10 or recall")
    base, digits = match.group(1), match.group(2)
    definition = _find(base)
    if definition is None:
        raise DataError(f"unknown metric {text!r}; {_nearest(base)}")
    name = definition.name
    k = definition.default_cut if digits is None else int(digits)
    if k is not None and definition.cut == "none":
        raise DataError(f"metric {text!r}: {name} takes no cut")
    if k is None and definition.cut == "required":
        raise DataError(f"metric {text!r}: a cut is needed, for example {name}@5")
    if k is not None and k < 1:
        raise DataError(f"metric {text!r}: the cut must be at least 1, got {k}")
    return Metric(definition, k)


def parse_all(texts: str | Iterable[str]) -> tuple[Metric, ...]:
    """Metrics of a list of names, each of which may hold several with commas; repeats are dropped.

    A bare number is another cut of the name before it.

    >>> [metric.name for metric in parse_all("precision@5,10, mrr")]
    ['precision@5', 'precision@10', 'mrr']
    """
    found: list[Metric] = []
    for name in [texts] if isinstance(texts, str) else list(texts):
        before = ""
        for part in filter(None, map(str.strip, name.split(","))):
            found.append(parse(f"{before}@{part}" if before and part.isdecimal() else part))
            before = part.partition("@")[0] if "@" in part else before if part.isdecimal() else ""
    if not found:
        raise DataError("metrics: expected at least one name, such as ndcg@10")
    return tuple(dict.fromkeys(found))


def _origin(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")


def _nearest(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(_folded(name), [*_DEFINITIONS, *_ALIASES], n=3)
    return f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(sorted(_DEFINITIONS))}"


def _find(name: str) -> Definition | None:
    """The metric of a name or an alias; no more modules are loaded than it takes, since small runs are timed."""
    for module in _MODULES:
        importlib.import_module(f"ragkit.metrics.{module}")
        found = _DEFINITIONS.get(name) or _DEFINITIONS.get(_ALIASES.get(_folded(name), _folded(name)))
        if found is not None:
            return found
    return None


def _load() -> None:
    for module in _MODULES:
        importlib.import_module(f"ragkit.metrics.{module}")
