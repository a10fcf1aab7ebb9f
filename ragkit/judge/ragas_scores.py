"""ragas' own metric classes: their prompts and reply schemas, and nothing else of it. The only file that imports ragas.

What each metric asks with them is in ragas_metrics.py. ragas' own arithmetic is not used: metrics/judged.py computes
the number from the verdicts, and tests hold prompts and numbers equal to ragas' own on the same replies.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol

from ragkit.errors import JudgeError, MissingPackageError, describe
from ragkit.judge.prompt_text import quick_prompts
from ragkit.judge.prompts import AdaptedPrompts, apply
from ragkit.judge.verdicts import PINNED_RAGAS

_TRACKING = "RAGAS_DO_NOT_TRACK"
_FITS = 'pip install "ragkit-eval[ragas]" brings the versions that fit together'
CLASSES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "context_precision": ("ContextPrecision", {"useful": "prompt"}),
    "context_precision_without_reference": ("ContextPrecisionWithoutReference", {"useful": "prompt"}),
    "context_recall": ("ContextRecall", {"attributed": "prompt"}),
    "faithfulness": ("Faithfulness", {"statements": "statement_generator_prompt",
                                      "supported": "nli_statement_prompt"}),
    "answer_relevancy": ("AnswerRelevancy", {"question": "prompt"}),
    "context_relevance": ("ContextRelevance", {"first": "judge1_prompt", "second": "judge2_prompt"}),
    "response_groundedness": ("ResponseGroundedness", {"first": "judge1_prompt", "second": "judge2_prompt"}),
    "answer_accuracy": ("AnswerAccuracy", {"first": "judge1_prompt", "second": "judge2_prompt"}),
    "factual_correctness": ("FactualCorrectness", {"claims": "prompt", "supported": "nli_prompt"}),
    "noise_sensitivity": ("NoiseSensitivity", {"statements": "statement_prompt", "supported": "faithfulness_prompt"}),
}
"""By our name of a metric: ragas' class, and by our name of a prompt the attribute of the class that holds it."""


class Asker(Protocol):
    """Whoever answers the prompts that ragas itself writes, as it does when it adapts a prompt to a language."""

    async def answer(self, prompt: str, model: Any) -> Any: ...


class Prompt:
    """One of ragas' prompts, ready to be filled in, and the JSON schema of its reply."""

    def __init__(self, own: Any) -> None:
        self._own = own
        self.schema: Mapping[str, Any] = _schema(own.output_model)

    def text(self, **inputs: Any) -> str:
        """The prompt with these inputs, byte for byte as ragas writes it."""
        return str(self._own.to_string(self._own.input_model(**inputs)))


@dataclass(frozen=True)
class Ragas:
    """ragas, loaded: its metric classes, and its base classes of prompts, models and embeddings."""

    classes: Any
    prompt: type
    llm: Any
    embedding: Any

    def metric(self, name: str, asker: Asker | None = None) -> Any:
        """ragas' metric, whose prompts remember their fixed part; it asks `asker` what it asks by itself."""
        given = {"llm": self.llm(asker)} | ({"embeddings": self.embedding()} if name == "answer_relevancy" else {})
        return quick_prompts(getattr(self.classes, CLASSES[name][0])(**given), self.prompt)

    @functools.cache  # noqa: B019 -- one of these lives as long as the process
    def _prompts(self, name: str) -> dict[str, Prompt]:
        return self._of(name, self.metric(name))

    def prompts(self, name: str, adapted: AdaptedPrompts | None = None) -> dict[str, Prompt]:
        """The prompts of a metric by our names for them; `adapted`: in another language."""
        return self._prompts(name) if adapted is None else self._of(name, apply(self.metric(name), adapted))

    def _of(self, name: str, metric: Any) -> dict[str, Prompt]:
        return {ours: Prompt(getattr(metric, theirs)) for ours, theirs in CLASSES[name][1].items()}


@functools.cache
def _schema(model: Any) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = model.model_json_schema()
    return schema


@functools.cache
def load_ragas() -> Ragas:
    """ragas, with its telemetry off. Missing: MissingPackageError. Broken by other versions: JudgeError, one line."""
    before = os.environ.get(_TRACKING)
    os.environ[_TRACKING] = "true"  # only this word counts; it is read once and remembered, also by us below
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from ragas import _analytics
            from ragas.embeddings.base import BaseRagasEmbedding
            from ragas.llms.base import InstructorBaseRagasLLM
            from ragas.metrics import collections
            from ragas.prompt.metrics.base_prompt import BasePrompt
        _analytics.do_not_track.cache_clear()
        off = _analytics.do_not_track()
    except Exception as error:  # of the other packages that ragas imports, which raise what they like
        if isinstance(error, ModuleNotFoundError) and error.name == "ragas":
            raise MissingPackageError("ragas", "ragas", "judging with the RAGAS metrics") from error
        raise JudgeError(f"ragas is installed and cannot be imported ({describe(error)[:300]}): {_FITS}") from error
    finally:
        if before is None:
            os.environ.pop(_TRACKING, None)
        else:
            os.environ[_TRACKING] = before
    if not off:
        raise JudgeError(f"ragas: its telemetry could not be turned off; expected ragas {PINNED_RAGAS}")

    class GatewayLLM(InstructorBaseRagasLLM):
        is_async = True

        def __init__(self, asker: Asker | None) -> None:
            self._asker = asker

        def generate(self, prompt: str, response_model: Any) -> Any:
            raise NotImplementedError("the judge is asked with agenerate")

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            if self._asker is None:
                raise NotImplementedError("the judge is asked by ragkit, with ragas' prompts")
            return await self._asker.answer(prompt, response_model)

    class NoEmbedding(BaseRagasEmbedding):
        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            raise NotImplementedError("texts are embedded by ragkit")

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            raise NotImplementedError("texts are embedded by ragkit")

    loaded = Ragas(collections, BasePrompt, GatewayLLM, NoEmbedding)
    try:
        for name in CLASSES:
            loaded.prompts(name)
    except Exception as error:  # a class, an attribute or an argument that another version does not have
        version = metadata.version("ragas")
        raise JudgeError(f"ragas {version} does not have what {name} needs ({describe(error)[:300]}); expected ragas "
                         f"{PINNED_RAGAS}: {_FITS}") from error
    return loaded
