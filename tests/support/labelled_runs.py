"""Runs without gold, labelled by a scripted judge behind a real server: two questions, four passages, how to score."""

from __future__ import annotations

from typing import Any

from ragkit.evaluation.evaluate import score
from ragkit.evaluation.result import Evaluation
from ragkit.evaluation.table import FINAL
from ragkit.judge.settings import JudgeSettings
from ragkit.records.questions import Dataset, Question
from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory
from tests.support.openai_server import OpenAIServer, Reply, Request
from tests.support.relevance import relevance_judge

FILM, INES = Passage("film", "The film was made by Ines. [1]"), Passage("ines", "Ines was born in 1951. [3]")
DOGS, HALF = Passage("dogs", "Dogs bark."), Passage("half", "Ines. [2]")
MAKER = Question("q1", "When was the maker born?", ("The film was made by Ines. Ines was born in 1951.",))
BARE = Question("q2", "What barks?")
METRICS = ("hit@1,recall,recall@1,allhit,mrr,map,ndcg@5,precision@2,judged@5,id_context_recall,cumulative_recall,"
           "novelty,aucr@3,steps_to_evidence,survival")


def trajectory(question: Question, *steps: tuple[str, tuple[Passage, ...]], context: tuple[Passage, ...] = (),
               **more: Any) -> Trajectory:
    made = tuple(Step(i, (Retrieval("retrieve", query, found),)) for i, (query, found) in enumerate(steps))
    return Trajectory(question.id, question.text, made, Retrieval("context", "", context), **{"answer": "1951", **more})


TWO_STEPS = trajectory(MAKER, ("who made @film", (FILM, DOGS)), ("born @1951", (DOGS, INES)), context=(FILM, INES))


def judged(items: list[Trajectory], data: Dataset | tuple[Question, ...] = (MAKER, BARE), *,
           reply: Reply = relevance_judge, url: str = "", **more: Any) -> tuple[Evaluation, list[Request]]:
    """The run, and what its judge was asked."""
    dataset = data if isinstance(data, Dataset) else Dataset(data)
    settings = {"backoff": 0.01, "reasks": 0, **more.pop("settings", {})}
    given = {"metrics": METRICS, "judge": "test-model", "relevance": "judge", **more}
    with OpenAIServer(reply) as server:
        made = score(items, dataset, judge_url=url or server.url, judge_settings=JudgeSettings(**settings), **given)
    return made, server.calls


def values(evaluation: Evaluation, question: str, step: str = FINAL, labels: str = "judged") -> dict[str, Any]:
    frame = evaluation.scores
    own = frame[(frame["question_id"] == question) & (frame["step"] == step) & (frame["labels"] == labels)]
    return {row.metric: round(row.value, 6) if row.status == "scored" else f"{row.status}: {row.reason}"
            for row in own.itertuples()}
