"""Golden prompts and formulas of the pinned ragas: a version that changes one is seen here, before its scores are.

After an upgrade on purpose: read the difference, mend ragas_metrics.py where a metric asks something else now, raise
PINNED_RAGAS and the pin, and write the files again: `RAGKIT_WRITE_GOLDEN=1 pytest tests/judge/test_ragas_golden.py`.
Verdicts of the old version stay what they are: their keys hold its number.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from ragkit.judge.ragas_scores import CLASSES, Ragas, load_ragas
from ragkit.judge.verdicts import PINNED_RAGAS, RAGAS_METRICS, READS
from ragkit.metrics.judged import FROM_ANSWER, FROM_REFERENCE
from ragkit.metrics.registry import parse
from ragkit.records.judgements import Verdict

pytest.importorskip("ragas")
GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("RAGKIT_WRITE_GOLDEN") == "1"
HOW = f"ragas {metadata.version('ragas')} is not what the files of ragas {PINNED_RAGAS} say; see the head of this file"
INPUTS: dict[str, Any] = {
    "question": 'Who built "it"?', "context": "A passage.\nIn two lines, 中文.", "answer": "Ann did.",
    "text": "Ann did.", "statements": ["Ann built it.", "It is tall."], "response": "Ann did.",
    "user_input": 'Who built "it"?', "query": 'Who built "it"?', "user_answer": "Ann did.",
    "reference_answer": "Ann.", "atomicity": "low", "coverage": "low"}
PROMPTS = [(metric, prompt) for metric, (_, prompts) in CLASSES.items() for prompt in prompts]


@pytest.fixture(scope="module")
def ragas() -> Ragas:
    return load_ragas()


def fields(ragas: Ragas, metric: str, prompt: str) -> list[str]:
    return list(getattr(ragas.metric(metric), CLASSES[metric][1][prompt]).input_model.model_fields)


@pytest.mark.parametrize(("metric", "prompt"), PROMPTS)
def test_prompts_and_schemas(ragas: Ragas, metric: str, prompt: str) -> None:
    made = ragas.prompts(metric)[prompt]
    text = made.text(**{name: INPUTS[name] for name in fields(ragas, metric, prompt)})
    schema = json.dumps(made.schema, indent=1)
    compare(GOLDEN / f"{metric}.{prompt}.txt", f"{text}\n\n=== schema of the reply\n{schema}\n")


def compare(path: Path, text: str) -> None:
    if WRITE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    kept = path.read_text(encoding="utf-8")
    shown = "\n".join(difflib.unified_diff(kept.splitlines(), text.splitlines(), path.name, "now", lineterm="", n=1))
    assert text == kept, f"{HOW}\n{shown}"


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in GOLDEN.glob("*.txt")} == {f"{m}.{p}.txt" for m, p in PROMPTS}
    assert set(CLASSES) == set(RAGAS_METRICS) == set(READS)


def test_the_version_that_the_files_are_of() -> None:
    assert metadata.version("ragas") == PINNED_RAGAS, HOW


def nli(*verdicts: int) -> dict[str, Any]:
    return {"statements": [{"statement": f"s{n}", "reason": "", "verdict": v} for n, v in enumerate(verdicts)]}


def statements(count: int) -> dict[str, Any]:
    return {"statements": [f"s{n}" for n in range(count)]}


def claims(count: int) -> dict[str, Any]:
    return {"claims": [f"s{n}" for n in range(count)]}


def useful(verdict: int) -> dict[str, Any]:
    return {"reason": "", "verdict": verdict}


def asked(question: str, noncommittal: int = 0) -> dict[str, Any]:
    return {"question": question, "noncommittal": noncommittal}


TABLE = {"classifications": [{"statement": "s", "reason": "", "attributed": v} for v in (1, 0, 1)]}
# metric, ragas' replies in the order in which it asks, ragas' value, and the verdicts that are the same for us
FORMULAS: list[tuple[str, list[dict[str, Any]], float, list[tuple[float, str]]]] = [
    ("context_precision", [useful(1), useful(0), useful(1)], 0.833333, [(1, ""), (0, ""), (1, "")]),
    ("context_precision", [useful(0), useful(0), useful(0)], 0.0, [(0, ""), (0, ""), (0, "")]),
    ("context_precision_without_reference", [useful(0), useful(1), useful(1)], 0.583333, [(0, ""), (1, ""), (1, "")]),
    ("context_recall", [TABLE], 0.666667, [(1, ""), (0, ""), (1, "")]),
    ("faithfulness", [statements(4), nli(1, 1, 0, 1)], 0.75, [(1, ""), (1, ""), (0, ""), (1, "")]),
    ("answer_relevancy", [asked("x"), asked("y"), asked("x", 1)], 0.866667, [(1, ""), (0.6, ""), (1, "noncommittal")]),
    ("answer_relevancy", [asked("x", 1)] * 3, 0.0, [(1, "noncommittal")] * 3),
    ("context_relevance", [{"rating": 2}, {"rating": 1}], 0.75, [(2, ""), (1, "")]),
    ("response_groundedness", [{"rating": 0}, {"rating": 1}], 0.25, [(0, ""), (1, "")]),
    ("answer_accuracy", [{"rating": 4}, {"rating": 2}], 0.75, [(4, ""), (2, "")]),
    ("factual_correctness", [claims(3), nli(1, 1, 0), claims(2), nli(0, 0)], 0.57,
     [(1, FROM_ANSWER), (1, FROM_ANSWER), (0, FROM_ANSWER), (0, FROM_REFERENCE), (0, FROM_REFERENCE)]),
    # two statements in the reference, four in the answer; three contexts, each against both; then the reference
    ("noise_sensitivity", [statements(2), statements(4), nli(0, 1), nli(1, 0, 0, 1), nli(0, 0), nli(1, 1, 0, 0),
                           nli(1, 0), nli(0, 0, 0, 1), nli(0, 0, 1, 1)], 0.25,
     [(1, "wrong"), (0, "wrong"), (0, "right"), (0, "right")]),
]


@pytest.mark.parametrize(("metric", "replies", "value", "verdicts"), FORMULAS, ids=[f[0] for f in FORMULAS])
def test_formulas(ragas: Ragas, metric: str, replies: list[dict[str, Any]], value: float,
                  verdicts: list[tuple[float, str]]) -> None:
    left = list(replies)

    class Script:
        async def answer(self, prompt: str, model: Any) -> Any:
            return model.model_validate(left.pop(0))

    own = ragas.metric(metric, Script())
    if metric == "answer_relevancy":
        own.embeddings.aembed_text, own.embeddings.embed_text = later, vector
    given = {"user_input": "What?", "response": "This.", "reference": "That.", "retrieved_contexts": ["a", "b", "c"]}
    names = {"question": "user_input", "answer": "response", "reference": "reference", "contexts": "retrieved_contexts"}
    result = asyncio.run(own.ascore(**{names[name]: given[names[name]] for name in READS[metric]}))
    assert float(result.value) == pytest.approx(value, abs=1e-5), HOW
    assert not left, f"{HOW}: {metric} asks less"
    ours = parse(metric).definition.function([Verdict(v, flags=(flag,) if flag else ()) for v, flag in verdicts])
    assert ours.value == pytest.approx(value, abs=0.005 if metric == "factual_correctness" else 1e-5)


def vector(text: str) -> list[float]:
    return [0.6, 0.8] if text == "y" else [1.0, 0.0]


async def later(text: str) -> list[float]:
    return vector(text)
