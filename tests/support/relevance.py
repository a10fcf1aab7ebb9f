"""A scripted judge of relevance: what a passage carries and how good it is stands in words that the tests choose."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.openai_server import Request, lexical_judge, ragas_input, sentences


def relevance_judge(request: Request) -> str:
    """Grades by the mark "[0]" to "[3]" in a passage (0 without one); what a passage holds word for word, it carries.

    Statements are the sentences of the reference answer. A query with a mark of its own ("@rome") is graded 3 where the
    passage has the word behind it. Only the input JSON is read.
    """
    data = ragas_input(request.first_prompt)
    if "passage" in data:
        return json.dumps(relevance_reply(data))
    if "answer" in data and "question" in data and "context" not in data:
        return json.dumps({"statements": sentences(data["answer"])})
    return lexical_judge(request)


def relevance_reply(data: dict[str, Any]) -> dict[str, Any]:
    passage = data["passage"]
    wanted = re.search(r"@(\w+)", data["question"])
    marked = re.search(r"\[([0-3])\]", passage)
    grade = int(marked.group(1)) if marked else 0
    if wanted is not None:
        grade = 3 if wanted.group(1) in passage else 0
    carries = [number for number, text in enumerate(data["statements"], 1)
               if text.partition(". ")[2].rstrip(".") in passage]
    return {"reason": "as marked", "grade": grade, "carries": carries}
