"""A small RAG app in plain Python that records itself, and its questions: quick, and real enough to be scored."""

from __future__ import annotations

from typing import Any

from ragkit import current_trace

PASSAGES = {
    "d1": "The lighthouse of Arvo was built in 1871 by the engineer Mina Holt.",
    "d2": "Mina Holt was born in Karsund, a town of rope makers.",
    "d3": "The ferry to Arvo leaves at nine and at four from the stone pier.",
    "d4": "Rope makers of Karsund sold their goods in every harbour of the coast.",
}
ROWS: list[dict[str, Any]] = [
    {
        "id": "q1",
        "question": "When was the lighthouse of Arvo built?",
        "reference": "The lighthouse of Arvo was built in 1871.",
        "gold_ids": "d1",
        "category": "factual",
    },
    {
        "id": "q2",
        "question": "Which town does the engineer of the lighthouse of Arvo come from?",
        "reference": "Mina Holt was born in Karsund.",
        "gold_ids": "d1;d2",
        "category": "multi-hop",
    },
    {"id": "q3", "question": "What does a ticket to the moon cost?", "unanswerable": True, "category": "out of scope"},
    {"id": "q4", "question": "When does the ferry leave?", "category": "factual"},
]


def search(query: str, k: int = 2) -> list[tuple[str, str]]:
    words = set(query.lower().strip("?").split())
    scored = sorted(PASSAGES.items(), key=lambda item: -len(words & set(item[1].lower().strip(".").split())))
    return scored[:k]


def app(question: str) -> str:
    """Two searches, the second with what was found; the context is what both found; the answer is its last passage."""
    first = search(question)
    second = search(first[0][1])
    trace = current_trace()
    if trace is not None:
        trace.step(question, first)
        trace.step(first[0][1], second)
        trace.context(list(dict([*first, *second]).items()), ranked=False)
    return "I don't know." if "moon" in question else second[-1][1]
