"""An agent's searches as one session: discounted gain over steps, steps too many, drift of the queries, and cost."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum, log

from ragkit.metrics.ranking import NO_RELEVANT
from ragkit.metrics.registry import metric
from ragkit.metrics.text import tokens
from ragkit.metrics.trajectory import EvidencePath, steps_to_evidence
from ragkit.records.judgements import Score

_LAWS = frozenset({"in_range", "deterministic", "rename"})
_WITH_GOLD = _LAWS | {"nothing_relevant_undefined"}
_NO_GRADE = "nothing has a grade above 0"
_STEP_BASE = 4  # bq of Järvelin et al.: how fast patience ends from search to search
_SOURCE = "Järvelin et al., ECIR 2008 (b = 2, bq = 4)"


@metric("overrun", kind="trajectory", undefined="the evidence was never complete", range=(0.0, None),
        direction="lower", laws=_WITH_GOLD, formula="number of steps - steps_to_evidence")
def overrun(path: EvidencePath, k: None = None) -> Score:
    """Steps that were taken after all gold had been seen. Read it with the share of questions that reached it."""
    reached = steps_to_evidence(path)
    return reached if reached.value is None else Score.scored(len(path.steps) - reached.value)


@metric("sdcg@k", kind="trajectory", undefined=_NO_GRADE, range=(0.0, None), default_cut=10, laws=_LAWS,
        source=_SOURCE, formula="sum over steps t of dcg@k of the step's list / (1 + log4 t)")
def sdcg(path: EvidencePath, k: int) -> Score:
    """Session DCG: the dcg of every step's list, a later step's worth less.

    What is found again gains again; nsdcg counts it once and is comparable between questions. No steps: 0.
    """
    if not _has_grades(path):
        return Score.undefined(NO_RELEVANT)
    return Score.scored(fsum(gain for gain in _gains(path, k, once=False)))


@metric("nsdcg@k", kind="trajectory", undefined=_NO_GRADE, default_cut=10, laws=_LAWS, source=_SOURCE,
        formula="sdcg@k with gain at first sight only / the same with the best documents in the best of all T*k places")
def nsdcg(path: EvidencePath, k: int) -> Score:
    """Session DCG in 0..1: a document gains where it first stands in a top k, out of what T steps could have gained.

    The ideal puts the highest grades on the least discounted of the T * k places. No steps: 0.
    """
    if not _has_grades(path):
        return Score.undefined(NO_RELEVANT)
    grades = sorted((grade for grade in path.gold.values() if grade > 0), reverse=True)
    places = sorted((_discount(rank, step) for step in range(1, len(path.steps) + 1) for rank in range(1, k + 1)),
                    reverse=True)
    ideal = fsum(grade * place for grade, place in zip(grades, places, strict=False))
    found = fsum(gain for gain in _gains(path, k, once=True))
    return Score.scored(min(1.0, found / ideal) if ideal else 0.0)


@metric("query_drift", kind="trajectory", undefined="the step shows no query", direction="none", series=True,
        needs_gold=False, laws=_LAWS, formula="1 - |words of both| / |words of either|, of question and step's query")
def query_drift(path: EvidencePath, k: None = None) -> list[Score]:
    """Per step: how far the words of its query are from those of the question; 0 is the same words.

    A diagnosis without a good direction: a decomposition has to drift, a rephrasing has not. Needs no labels.
    """
    queries = path.queries or ("",) * len(path.steps)
    question = set(tokens(path.question))
    drifts = []
    for query in queries:
        words = set(tokens(query))
        drifts.append(Score.scored(1 - len(words & question) / len(words | question)) if words and question
                      else Score.undefined("no query"))
    return drifts


def _cost_and_found(path: EvidencePath) -> tuple[float, float]:
    return path.cost or 0.0, float(len(path.everything & path.relevant))


@metric("cost_per_evidence", kind="trajectory", undefined="no cost was recorded, or no evidence was found",
        range=(0.0, None), direction="lower", laws=_WITH_GOLD, ratio=_cost_and_found,
        formula="cost of all steps / gold ids seen; the mean is the sum of costs over the sum of gold seen")
def cost_per_evidence(path: EvidencePath, k: None = None) -> Score:
    """What one piece of evidence cost, in the unit in which the app recorded its cost.

    The mean over questions is the sum of all costs, also of those that found nothing, over all evidence found.
    """
    if path.cost is None:
        return Score.undefined("no cost recorded")
    cost, found = _cost_and_found(path)
    return Score.scored(cost / found) if found else Score.undefined("no evidence found")


def _has_grades(path: EvidencePath) -> bool:
    return any(grade > 0 for grade in path.gold.values())


def _discount(rank: int, step: int) -> float:
    return 1 / (log(rank + 1, 2) * (1 + log(step, _STEP_BASE)))


def _gains(path: EvidencePath, k: int, once: bool) -> Iterator[float]:
    """The discounted gain of each graded document at its places in the top k of the steps."""
    gained: set[str] = set()
    for step, ids in enumerate(path.steps, 1):
        here: set[str] = set()
        for rank, name in enumerate(ids[:k], 1):
            grade = path.gold.get(name, 0.0)
            if grade > 0 and name not in here and not (once and name in gained):
                yield grade * _discount(rank, step)
            here.add(name)
        gained |= here
