"""ragas' prompts as text, quickly: what is the same in each of them is written once. Imports no ragas, changes no byte.

ragas writes the JSON schema and the examples anew for each prompt, which costs more than all else about a call.
"""

from __future__ import annotations

import functools
from typing import Any

_HOLE = "\0the input\0"


def quick_prompts(metric: Any, base: Any) -> Any:
    """The same metric; its prompts, which are ragas' `base` class, remember their fixed part.

    A prompt whose instruction or examples are replaced afterwards is written anew. Where a prompt does not put its
    input in as JSON, nothing is remembered and ragas' own method writes it.
    """
    for prompt in list(vars(metric).values()):
        if isinstance(prompt, base):
            kind: Any = type(prompt)
            prompt.__class__ = _quick_class(base, kind)
    return metric


@functools.cache
def _quick_class(base: Any, kind: Any) -> Any:
    """`kind` with our method between it and ragas' base class, so that a method of its own still comes first."""
    return kind if issubclass(kind, _remembering(base)) else type(kind.__name__, (kind, _remembering(base)), {})


@functools.cache
def _remembering(base: Any) -> type:
    @functools.lru_cache(maxsize=256)
    def parts(state: _State) -> tuple[str, str, dict[str, Any]] | None:
        hole = _Hole()
        found = base.to_string(state.prompt, hole).split(_HOLE)
        return None if len(found) != 2 else (found[0], found[1], hole.how)

    class Remembering(base):  # type: ignore[misc]
        def to_string(self, data: Any) -> str:
            found = parts(_State(self))
            if found is None:
                return str(super().to_string(data))
            return f"{found[0]}{data.model_dump_json(**found[2])}{found[1]}"

    return Remembering


class _Hole:
    """Stands for the input; notes how its JSON was asked for."""

    def __init__(self) -> None:
        self.how: dict[str, Any] = {}

    def model_dump_json(self, **how: Any) -> str:
        self.how = how
        return _HOLE


class _State:
    """What the fixed part depends on. The examples count as the same while they are the same list."""

    def __init__(self, prompt: Any) -> None:
        self.prompt, self.examples = prompt, prompt.examples
        self.content = (prompt.output_model, prompt.instruction, prompt.language)

    def __hash__(self) -> int:
        return hash((id(self.examples), self.content))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _State) and self.examples is other.examples and self.content == other.content
