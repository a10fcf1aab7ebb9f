"""Real comparisons that hold every part: of run files (re-ranker, k, holes, conflicts) and of searches in steps."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import ragkit
from ragkit.comparison.compare import Comparison, compare
from ragkit.evaluation.result import Evaluation
from ragkit.records.questions import Question
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory
from tests.support.variants import dataset

HOSTILE = "<img src=x onerror=alert(1)>|[x](http://y) \u202e=1+1"


def of_runs(folder: Path, count: int = 24, names: Sequence[str] = ("first", "reranked", "other")) -> Comparison:
    """A first stage, its candidates in a better order, and another search, over questions with two gold passages."""
    draw = random.Random(5)
    qrels, runs = {}, {name: {} for name in names}
    for n in range(count):
        question, passages = f"q{n}", [f"p{n}-{place}" for place in range(20)]
        gold = draw.sample(passages[:16], 2)
        qrels[question] = {**dict.fromkeys(gold, 1), passages[17]: 0}
        better = sorted(passages, key=lambda name: (name not in gold) + draw.random() * 1.2)
        for run, order in zip(names, (passages, better, [*draw.sample(passages, 12), f"z{n}"]), strict=True):
            runs[run][question] = {name: 100.0 - place for place, name in enumerate(order)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "qrels.json").write_text(json.dumps(qrels), encoding="utf-8")
    paths = {}
    for name, run in runs.items():
        paths[name] = folder / f"run{len(paths)}.json"
        paths[name].write_text(json.dumps(run), encoding="utf-8")
    return compare(paths, qrels=folder / "qrels.json", metrics="ndcg@10,recall@10,recall@5,precision@5,hit@5,mrr")


def _walk(question: Question, lists: Sequence[Sequence[str]]) -> Trajectory:
    steps = tuple(Step(place, (Retrieval("retrieve", question.text, tuple(Passage(name, f"Text of {name}.")
                                                                           for name in ids)),))
                  for place, ids in enumerate(lists))
    context = Retrieval("context", "", tuple(Passage(name, f"Text of {name}.") for ids in lists for name in ids))
    return Trajectory(question.id, question.text, steps, context, answer="This.")


def walks(short: int, out: Path | None = None, count: int = 12) -> Evaluation:
    """An agent that searches up to three times; `short` questions end after the first."""
    data = dataset(count, gold=("g", "h"), category="how-to")
    made = [_walk(question, [("g", "x1")] if n < short else [("x2", "g"), ("x3", "x4"), ("h", "x5")])
            for n, question in enumerate(data.questions)]
    return ragkit.score(made, data, metrics="recall,mrr,exact_match,steps_to_evidence", out=out)
