"""A judge asked about labelled rows: word overlap, a RAGAS metric, or the relevance of each passage.

The rows are read in labelled.py; what their agreement with people is stands in agreement.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError, JudgeError
from ragkit.judge.labelled import Labelled, Ratings, Value
from ragkit.judge.offline import OFFLINE_JUDGE, judge_offline
from ragkit.metrics.registry import Metric, parse
from ragkit.records.judgements import Judgement, Score
from ragkit.records.questions import text_id

if TYPE_CHECKING:
    from ragkit.judge.gateway import Gateway
    from ragkit.judge.relevance import Asked
    from ragkit.judge.samples import JudgeSample

RELEVANCE = "relevance"
"""What a judge is asked of rows with a passage each, where no metric is named: a grade from 0 to 3."""

OFFLINE_METRIC = "lexical_support"


def usual_metric(labelled: Labelled, offline: bool) -> str:
    """What a judge is asked where nobody says it: faithfulness of answers, relevance of passages.

    >>> usual_metric(Labelled([("1", {"question": "?", "passage": "p", "grade": 2})]), offline=False)
    'relevance'
    """
    named = labelled.metric
    if offline:
        return named if named is not None and parse(named).definition.kind == "answer" else OFFLINE_METRIC
    if named is not None:
        return named
    return "faithfulness" if "answer" in labelled.fields or "passage" not in labelled.fields else RELEVANCE


def offline_ratings(labelled: Labelled, metric: str = OFFLINE_METRIC) -> Ratings:
    """The embedded judge's scores of each row; asks no model.

    >>> rows = [("1", {"question": "Where?", "contexts": ["It is in Rome."], "answer": "In Rome.", "faithful": 1})]
    >>> offline_ratings(Labelled(rows)).values
    (1.0,)
    """
    asked = parse(metric)
    samples = labelled.samples(any_question="?")
    judged = judge_offline([sample for sample in samples if sample is not None], [asked])
    found = [None if sample is None else judged[sample.key, asked.name] for sample in samples]
    return _ratings(labelled, found, asked, {"name": OFFLINE_JUDGE, "endpoint": None, "fingerprint": None})


async def judge_ratings(gateway: Gateway, labelled: Labelled, metric: str,
                        on_done: Callable[[], None] | None = None) -> Ratings:
    """The scores of each row by a judge; what its store holds is not asked again.

    `metric` is a judged metric, or "relevance". A row that the judge did not deliver has no rating, and its reason.
    Raises JudgeError where the judge cannot be asked.
    """
    judge = {"name": gateway.name, "endpoint": gateway.backend.where, "fingerprint": gateway.fingerprint}
    if metric == RELEVANCE:
        return await _relevance_ratings(gateway, labelled, judge, on_done)
    from ragkit.judge.judging import judge_work
    from ragkit.judge.verdicts import count_missing

    samples, work = _work(labelled, metric)
    if count_missing(gateway, work):
        await gateway.check()
    judged: dict[tuple[Any, ...], Judgement] = {}
    asked = parse(metric)
    try:
        await judge_work(gateway, work, on_done, judged)
    except JudgeError as error:  # asking ends here; what was delivered is kept and compared
        unjudged = Judgement(asked.name, gateway.name, Score.failed(f"not judged: {error}"))
        judged.update({(sample.key, asked.name): unjudged for sample, _ in work
                       if (sample.key, asked.name) not in judged})
    found = [None if sample is None else judged[sample.key, asked.name] for sample in samples]
    stored = sum(judgement.n_stored for judgement in judged.values() if judgement.n_calls == 0)
    return replace(_ratings(labelled, found, asked, judge), n_stored=stored)


def missing_judgements(gateway: Gateway, labelled: Labelled, metric: str) -> tuple[int, int]:
    """How many judgements the judge would have to be asked for, and of how many; asks nothing."""
    if metric == RELEVANCE:
        from ragkit.judge.relevance import missing_calls

        wanted = _pairs(labelled)
        return missing_calls(gateway, wanted)["relevance"], sum(len(asked.passages) for asked in wanted)
    from ragkit.judge.verdicts import count_missing

    work = _work(labelled, metric)[1]
    return count_missing(gateway, work), len(work)


def _work(labelled: Labelled, metric: str) -> tuple[list[JudgeSample | None], list[tuple[JudgeSample, Metric]]]:
    """What is asked of each row, None where it has no question; and the rows that can be asked, with the metric."""
    asked = parse(metric)
    if asked.definition.kind != "judged":
        raise DataError(f"metric {metric!r}: expected one that a judge scores, such as faithfulness; word overlap is "
                        "asked with --judge offline")
    samples = labelled.samples()
    return samples, [(sample, asked) for sample in samples if sample is not None]


def _pairs(labelled: Labelled) -> list[Asked]:
    """Each question with its passages, each once."""
    from ragkit.judge.relevance import Asked

    samples = labelled.samples()
    ids = labelled.cells(labelled.fields["passage_id"]) if "passage_id" in labelled.fields else [None] * len(samples)
    passages: dict[str, dict[str, list[str]]] = {}
    names: dict[str, str] = {}
    for place, sample in enumerate(samples):
        if sample is not None and sample.contexts:
            names.setdefault(sample.question, labelled.groups[place])
            text = sample.contexts[0]
            passages.setdefault(sample.question, {}).setdefault(text, []).append(str(ids[place] or text_id(text)))
    return [Asked(names[question], question, found) for question, found in passages.items()]


async def _relevance_ratings(gateway: Gateway, labelled: Labelled, judge: Mapping[str, str | None],
                             on_done: Callable[[], None] | None) -> Ratings:
    from ragkit.judge.relevance import judge_relevance

    pools = {pool.asked.text: pool for pool in await judge_relevance(gateway, _pairs(labelled), on_done)}
    values: list[Value] = []
    reasons: dict[int, str] = {}
    for place, sample in enumerate(labelled.samples()):
        if sample is None or not sample.contexts:
            values.append(None)
            reasons[place] = "no question" if sample is None else "no passage"
            continue
        pool, text = pools[sample.question], text_id(sample.contexts[0])
        reason = pool.reason(text)
        values.append(float(pool.grades[text].grade) if reason is None else None)
        if reason is not None:
            reasons[place] = f"failed: {reason}"
    return Ratings(f"{gateway.name} {RELEVANCE}", tuple(values), reasons, judge)


def _ratings(labelled: Labelled, judged: list[Judgement | None], metric: Metric,
             judge: Mapping[str, str | None]) -> Ratings:
    """Scores by row; what is undefined or failed has no rating, and says why."""
    reasons = {}
    for place, judgement in enumerate(judged):
        if judgement is None:
            reasons[place] = "no question"
        elif judgement.score.value is None:
            reasons[place] = f"{judgement.score.status}: {judgement.score.reason}"
    values = tuple(None if judgement is None else judgement.score.value for judgement in judged)
    return Ratings(f"{judge['name']} {metric.name}", values, reasons, judge)
