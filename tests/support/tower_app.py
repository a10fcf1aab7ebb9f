"""A run of 120 answers with known truth: every fourth answer holds a claim that no passage supports.

The judge notices the half of it (a score of .5), so its mean is off by a known amount.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ragkit
from ragkit import current_trace
from ragkit.evaluation.result import Evaluation
from tests.support.openai_server import OpenAIServer

TOWERS: list[dict[str, Any]] = [
    {"id": f"{i:03d}", "question": f"Where does tower {i} stand?", "reference": f"Tower {i} stands in town {i}.",
     "category": ("north", "south", "west")[i % 3]} for i in range(120)]
BAD = 30  # of 120 answers
TRUTH = 0.75


def towers(question: str) -> str:
    place = int(question.split()[3])
    passages = [(f"d{place}", f"Tower {place} stands in town {place}."), ("x", "=1+1 Ferries leave at nine.")]
    trace = current_trace()
    if trace is not None:
        trace.step(question, passages)
        trace.context(passages)
    answer = f"Tower {place} stands in town {place}."
    return answer if place % 4 else f"Tower {place} was painted by monks. {answer}"


def is_right(question_id: str) -> float:
    """What a person would say of the answer."""
    return float(int(question_id) % 4 != 0)


def tower_run(out: Path, server: OpenAIServer, judge: str = "m", **options: Any) -> Evaluation:
    return ragkit.evaluate(towers, TOWERS, metrics="faithfulness,lexical_support", judge=judge, judge_url=server.url,
                           out=out, **options)
