"""What all contenders share: the samples of each kind of work, the embedding, and how a contender is called.

A contender is a script: `CONTENDER.py WORK --url URL --in-flight N` judges that work in a process of its own and prints
JSON: wall and CPU seconds, taken after imports and one sample that is not counted, and the value of each score.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

FOUR = ("context_precision", "context_recall", "faithfulness", "answer_relevancy")
CONTEXT = ("context_precision", "context_recall")
TIMEOUT = 2.0  # of one call to the flaky server
USEFUL = "lighthouse"  # the server calls a passage useful that holds this word
MODEL = "m"
WARM_UP = 9999  # the number of a sample that no work holds, and that no figures count

WORDS = ("harbour", "granite", "keeper", "signal", "storm", "lantern", "village", "staircase", "engineer", "coastline",
         "foundation", "century", "restored", "visitors", "lens", "reef", "winter", "supply", "copper", "railing")


@dataclass(frozen=True)
class Sample:
    """One thing to judge by all metrics of its work. `key` is its name in the result."""

    key: str
    question: str
    answer: str
    contexts: tuple[str, ...]
    reference: str


@dataclass(frozen=True)
class Work:
    """Samples, and the metrics that judge each of them."""

    samples: tuple[Sample, ...]
    metrics: tuple[str, ...]


def _sample(number: int, passages: Sequence[int], key: str = "") -> Sample:
    contexts = tuple(_passage(number, place) for place in passages)
    return Sample(key or f"q{number}", f"Who built tower-{number}, and when?",
                  f"It was built by an engineer in 18{number % 90 + 10}. It is tall. People visit tower-{number}.",
                  contexts, f"An engineer built it in 18{number % 90 + 10}. That was tower-{number}.")


def _passage(number: int, place: int) -> str:
    """About a hundred tokens."""
    dice = random.Random(1000 * number + place)
    text = " ".join(dice.choice(WORDS) for _ in range(60))
    return f"Passage {place}{' with a ' + USEFUL if dice.random() < 0.5 else ''}: {text}, of tower-{number}."


def plain(count: int = 100) -> Work:
    """Samples x four metrics x 5 contexts: 11 calls a sample."""
    return Work(tuple(_sample(n, range(5)) for n in range(count)), FOUR)


def variants(count: int = 100) -> Work:
    """Four variants of a retriever that have 3 of 5 passages in common, judged by both context metrics."""
    return Work(tuple(_sample(n, (0, 1, 2, 10 * v + 3, 10 * v + 4), f"q{n} v{v}")
                      for v in range(4) for n in range(count)), CONTEXT)


def steps(count: int = 100) -> Work:
    """Three steps that find half of their passages again, and the end, which is judged on what the last step found."""
    made = []
    for n in range(count):
        second = (0, 1, 10, 11, 12) if n % 2 else (0, 1, 2, 10, 11)
        third = (*second[-2:], 20, 21, 22) if n % 2 else (*second[-3:], 20, 21)
        lists = (tuple(range(5)), second, third, third)
        made += [_sample(n, found, f"q{n} {step}") for step, found in zip(("0", "1", "2", "end"), lists, strict=True)]
    return Work(tuple(made), CONTEXT)


WORKS: dict[str, Callable[[], Work]] = {"plain": plain, "flaky": plain, "warm": plain, "variants": variants,
                                        "steps": steps}


def warm_up() -> Sample:
    """A sample that no work holds: what is made once a process is not counted for anybody."""
    return replace(_sample(WARM_UP, range(5)), key="warm-up")


def calls_one_by_one(work: Work) -> int:
    """The calls that ragas makes for the work: each score by itself."""
    each = {"context_precision": None, "context_recall": 1, "faithfulness": 2, "answer_relevancy": 3}
    return sum(each[metric] or len(sample.contexts) for sample in work.samples for metric in work.metrics)


def calls_pooled(work: Work) -> int:
    """The different calls among them: what is asked at least, without a change to a prompt."""
    asked: set[tuple[object, ...]] = set()
    for sample in work.samples:
        for metric in work.metrics:
            if metric == "context_precision":
                asked |= {(metric, sample.question, text, sample.reference) for text in sample.contexts}
            elif metric == "context_recall":
                asked.add((metric, sample.question, sample.contexts, sample.reference))
            elif metric == "faithfulness":
                asked |= {(metric, part, sample.question, sample.answer, sample.contexts) for part in range(2)}
            else:
                asked |= {(metric, part, sample.answer) for part in range(3)}
    return len(asked)


def embed(text: str, dimension: int = 32) -> list[float]:
    """A bag of words as a vector, for all contenders the same, so that only the model's calls are compared."""
    values = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()):
        values[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=2).digest(), "big") % dimension] += 1.0
    return values


Values = dict[str, float | None]
Judge = Callable[[Sequence[Sample], tuple[str, ...]], Values]
"""Judges samples by metrics: "KEY METRIC" -> the value, or None where the judgement was lost."""


def contender(make: Callable[[argparse.Namespace], Judge]) -> None:
    """The command line of a contender."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=tuple(WORKS))
    parser.add_argument("--url", required=True)
    parser.add_argument("--in-flight", type=int, required=True)
    parser.add_argument("--store", help="the file of judgements; only ours keeps one")
    given = parser.parse_args()
    work = WORKS[given.work]()
    judge = make(given)
    if given.work != "warm":  # there the first look at a store is what is timed
        judge([warm_up()], work.metrics)
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    values = judge(work.samples, work.metrics)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    json.dump({"seconds": seconds, "cpu": cpu, "values": values, "ragas": "ragas" in sys.modules}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # connections that a peer left open are not waited for
