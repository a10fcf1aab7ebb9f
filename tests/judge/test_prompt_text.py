"""ragas' prompts written quickly are the same text, also after their examples were replaced."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ragkit.judge.prompt_text import quick_prompts

collections = pytest.importorskip("ragas.metrics.collections")


def metrics() -> dict[str, Any]:
    from ragas.llms.base import InstructorBaseRagasLLM

    class Model(InstructorBaseRagasLLM):  # type: ignore[misc]
        def generate(self, prompt: str, response_model: Any) -> Any: ...
        async def agenerate(self, prompt: str, response_model: Any) -> Any: ...

    names = ("ContextPrecision", "ContextRecall", "Faithfulness", "FactualCorrectness", "NoiseSensitivity",
             "ContextRelevance", "ResponseGroundedness", "AnswerAccuracy")
    return {name: getattr(collections, name)(llm=Model()) for name in names}


def prompts(metric: Any) -> dict[str, Any]:
    from ragas.prompt.metrics.base_prompt import BasePrompt

    return {name: value for name, value in vars(metric).items() if isinstance(value, BasePrompt)}


def an_input(prompt: Any) -> Any:
    """Some input with all that JSON has to escape."""
    text = 'A "quoted" \\ text,\n\tünïcode 中文 \u2028 \0 {brace} </input>.'
    values = {name: [text, "b"] if "List" in str(field.annotation) or "list" in str(field.annotation) else text
              for name, field in prompt.input_model.model_fields.items()}
    return prompt.input_model(**{**values, **{name: "high" for name in ("atomicity", "coverage") if name in values}})


def quick(metric: Any) -> Any:
    from ragas.prompt.metrics.base_prompt import BasePrompt

    return quick_prompts(metric, BasePrompt)


def test_the_text_is_ragas_own_byte_for_byte() -> None:
    seen = 0
    for name, metric in metrics().items():
        for attribute, prompt in prompts(metric).items():
            data = an_input(prompt)
            expected = prompt.to_string(data)
            made = getattr(quick(metric), attribute)
            assert [made.to_string(data), made.to_string(data)] == [expected, expected], (name, attribute)
            seen += 1
    assert seen >= 12


def test_replaced_examples_and_instructions_are_seen() -> None:
    from ragas.metrics.collections.context_precision.util import ContextPrecisionPrompt

    class Holder:
        def __init__(self) -> None:
            self.prompt = ContextPrecisionPrompt()

    plain, fast = ContextPrecisionPrompt(), quick(Holder()).prompt
    data = an_input(plain)
    for change in ("examples", "instruction"):
        before = fast.to_string(data)
        copied = copy.deepcopy(fast)
        for prompt in (plain, fast, copied):
            setattr(prompt, change, plain.examples[:1] if change == "examples" else "Weigh the passage.")
        assert plain.to_string(data) == fast.to_string(data) == copied.to_string(data) != before


def test_the_fixed_part_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from ragas.metrics.collections.context_recall.util import ContextRecallOutput

    class Holder:
        def __init__(self) -> None:
            from ragas.metrics.collections.context_recall.util import ContextRecallPrompt

            self.prompt = ContextRecallPrompt()

    data = an_input(quick(Holder()).prompt)
    quick(Holder()).prompt.to_string(data)
    monkeypatch.setattr(ContextRecallOutput, "model_json_schema", classmethod(lambda cls: pytest.fail("made again")))
    assert "schema" in quick(Holder()).prompt.to_string(data)
