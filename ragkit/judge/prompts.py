"""ragas' prompts in other languages: adapted once by ragas' own method, checked, kept as files, and used from there.

Only the examples are put into the language, as ragas does; instruction and JSON stay as they are. The files lie in the
folder `prompts` beside the judgement store and may be edited: their content is part of the key of each verdict.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit.errors import JudgeError, describe
from ragkit.judge.calls import CallError, UnusableReplyError
from ragkit.judge.gateway import Gateway
from ragkit.judge.keys import digest
from ragkit.judge.language import AUTO, ENGLISH, detect_language
from ragkit.judge.once import ask_once
from ragkit.records.files import write_text

SCHEMA = "ragkit.prompts/1"
LEDGER_NAME = "adapting prompts"
FIXED = ("noise_sensitivity",)
"""Metrics whose examples stand inside ragas' text, where its method does not reach them: they stay English."""
_LABEL = re.compile(r"[a-z_]+")  # an example's "low" or "high" is no text: it stays what it is
_TEXTS = "Statements to translate:\n"


class AdaptedPrompts:
    """The prompts of one metric in one language: by the metric's own name for each, instruction and examples."""

    def __init__(self, language: str, prompts: Mapping[str, Mapping[str, Any]], where: str = "memory") -> None:
        self.language, self.prompts, self.where = language, prompts, where
        self.digest = digest(prompts)
        self._built: dict[str, Any] = {}

    def prompt(self, name: str, original: Any) -> Any:
        """ragas' prompt object with these examples; built once, so that its text is made once too."""
        if name not in self._built:
            self._built[name] = self._build(name, original)
        return self._built[name]

    def _build(self, name: str, original: Any) -> Any:
        given, made = self.prompts[name], copy.copy(original)
        try:
            made.instruction, made.language = str(given["instruction"]), self.language
            if "example_sets" in given:
                made._all_examples = {tuple(key.split("/")): _examples(made, rows)
                                      for key, rows in given["example_sets"].items()}
            made.examples = _examples(made, given["examples"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # pydantic's errors are ValueErrors
            raise JudgeError(f"{self.where}: the prompt {name!r} does not fit ragas' form any more "
                             f"({' '.join(str(error).split())[:200]}); mend the file, or delete it to have the prompt "
                             "adapted again") from error
        return made


def apply(metric: Any, prompts: AdaptedPrompts) -> Any:
    """The metric of ragas with its prompts replaced; JudgeError where the file has one that the metric has not."""
    for name in prompts.prompts:
        original = getattr(metric, name, None)
        if original is None:
            names = ", ".join(_names(metric))
            raise JudgeError(f"{prompts.where}: the metric has no prompt {name!r}; expected one of {names}")
        setattr(metric, name, prompts.prompt(name, original))
    return metric


class PromptBook:
    """Which prompts a question gets: of what language, from which file, adapted where there is none yet."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.setting = gateway.settings.language
        self._languages: dict[str, str | None] = {}
        self._known: dict[tuple[str, str], AdaptedPrompts] = {}
        self._adapting: dict[tuple[str, str], asyncio.Task[AdaptedPrompts]] = {}

    def language(self, question: str) -> str | None:
        """The language of the prompts for a question; None: English, also where the question does not tell."""
        if self.setting != AUTO:
            return self.setting
        if question not in self._languages:
            found = detect_language(question)
            self._languages[question] = None if found == ENGLISH else found
        return self._languages[question]

    def languages(self, questions: Iterable[str]) -> dict[str, int]:
        """How many of the questions get prompts in which language; empty where no language was asked for."""
        if self.setting is None:
            return {}
        return dict(Counter(self.language(question) or ENGLISH for question in questions).most_common())

    def mark(self, metric: str, question: str) -> list[str]:
        """What the key of a verdict has to say about the prompts: nothing for ragas' own, else language and content."""
        language = self._adaptable(metric, question)
        if language is None:
            return []
        known = self.known(metric, language)
        return [language, "not adapted yet" if known is None else known.digest]

    def known(self, metric: str, language: str) -> AdaptedPrompts | None:
        """The adapted prompts, where they are; reads the file once. Needs neither ragas nor a call."""
        found = self._known.get((metric, language))
        path = self.path(metric, language)
        if found is None and path is not None and path.is_file():
            found = self._known[metric, language] = _read(path, metric, language)
        return found

    def path(self, metric: str, language: str) -> Path | None:
        """The file of a metric's prompts in a language by this judge; None where nothing is kept on disk."""
        store = self.gateway.settings.store
        if store is None:
            return None
        judge = re.sub(r"[^\w.-]+", "-", self.gateway.name).strip("-.") or "judge"
        folder = f"{judge}-{self.gateway.fingerprint[:8]}"
        return store.parent / "prompts" / language.replace(" ", "-") / folder / f"{metric}.json"

    async def ready(self, metric: str, question: str, build: Callable[[Any], Any]) -> AdaptedPrompts | None:
        """The prompts for a question, adapted now where they are not known; None: ragas' own.

        `build` makes ragas' metric over an Asker (ragas_scores.py). Each language is adapted once, however many wait.
        Raises CallError where the judge could not adapt them; then it is not asked again in this run.
        """
        language = self._adaptable(metric, question)
        if language is None:
            return None
        found = self.known(metric, language)
        if found is not None:
            return found
        task = self._adapting.get((metric, language))
        if task is None:
            task = self._adapting[metric, language] = asyncio.create_task(self._adapt(metric, language, build))
        return await asyncio.shield(task)

    def _adaptable(self, metric: str, question: str) -> str | None:
        return None if metric in FIXED else self.language(question)

    async def _adapt(self, metric: str, language: str, build: Callable[[Any], Any]) -> AdaptedPrompts:
        try:
            prompts = await adapted(build(_Translator(self.gateway, language)), language)
        except CallError as error:
            raise CallError(f"prompts not adapted to {language}: {error.reason}", error.raw) from error
        path = self.path(metric, language)
        made = AdaptedPrompts(language, prompts, str(path or "memory"))
        if path is not None:
            content = {"schema": SCHEMA, "metric": metric, "language": language, "judge": self.gateway.name,
                       "prompts": prompts}
            if not _write_once(path, content):  # another process was first: one text for all
                made = _read(path, metric, language)
        self._known[metric, language] = made
        return made


async def adapted(metric: Any, language: str) -> dict[str, dict[str, Any]]:
    """A metric's prompts put into a language by ragas' own method, as plain data.

    Checked afterwards: as many examples, the same structure, each number (the verdicts too) and label as before.
    Raises CallError where something else than a text came out changed.
    """
    prompts: dict[str, dict[str, Any]] = {}
    for name in _names(metric):
        prompt = getattr(metric, name)
        before = _plain(prompt)
        try:
            after = _plain(await prompt.adapt(language, metric.llm))
        except ValueError as error:
            raise CallError(f"ragas could not adapt the prompt {name!r}: {describe(error)[:300]}") from error
        prompts[name] = _restored(before, after, name)
    return prompts


class _Translator:
    """The model that ragas sees while it adapts a prompt."""

    def __init__(self, gateway: Gateway, language: str) -> None:
        self._gateway, self._language = gateway, language

    async def answer(self, prompt: str, model: Any) -> Any:
        def check(data: Any) -> None:
            self._check(prompt, data["statements"])

        reply = await ask_once(self._gateway, prompt, model.model_json_schema(), metric=LEDGER_NAME, check=check)
        return model.model_validate(reply.data)

    def _check(self, prompt: str, texts: Sequence[str]) -> None:
        """A known weakness of adapting: texts dropped, joined, obeyed instead of translated, or left as they were."""
        try:
            asked = json.loads(prompt.rpartition(_TEXTS)[2])
        except ValueError:
            asked = None
        if asked is not None and len(texts) != len(asked):
            raise UnusableReplyError(f"expected {len(asked)} texts, each translated, got {len(texts)}")
        if any(not text.strip() for text in texts):
            raise UnusableReplyError("expected a translation of each text, got an empty one")
        if detect_language(" ".join(texts)) == ENGLISH:
            raise UnusableReplyError(f"expected texts in {self._language}, got English ones")


def _names(metric: Any) -> list[str]:
    """The metric's attributes that are prompts."""
    return [name for name, value in vars(metric).items() if hasattr(value, "adapt") and hasattr(value, "instruction")]


def _plain(prompt: Any) -> dict[str, Any]:
    sets = getattr(prompt, "_all_examples", None)
    more = {"example_sets": {"/".join(key): _rows(rows) for key, rows in sets.items()}} if sets else {}
    return {"instruction": prompt.instruction, "examples": _rows(prompt.examples), **more}


def _rows(examples: Sequence[tuple[Any, Any]]) -> list[dict[str, Any]]:
    return [{"input": given.model_dump(mode="json"), "output": reply.model_dump(mode="json")}
            for given, reply in examples]


def _examples(prompt: Any, rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    return [(prompt.input_model.model_validate(row["input"]), prompt.output_model.model_validate(row["output"]))
            for row in rows]


def _restored(before: Any, after: Any, place: str) -> Any:
    """`after`, where it differs from `before` in texts alone; labels are put back."""
    if isinstance(before, str) and isinstance(after, str):
        return before if _LABEL.fullmatch(before) else after
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return {key: _restored(value, after[key], f"{place}.{key}") for key, value in before.items()}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [_restored(*pair, f"{place}[{n}]") for n, pair in enumerate(zip(before, after, strict=True))]
    if type(before) is type(after) and before == after:
        return before
    raise CallError(f"adapting changed more than texts at {place}: expected {str(before)[:80]!r}, got "
                    f"{str(after)[:80]!r}")


def _read(path: Path, metric: str, language: str) -> AdaptedPrompts:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        prompts = data["prompts"]
        fine = data["schema"] == SCHEMA and data["metric"] == metric and all(
            isinstance(prompt["instruction"], str) and isinstance(prompt["examples"], list)
            for prompt in prompts.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise JudgeError(f"{path}: expected prompts of ragkit as JSON, got: {' '.join(str(error).split())[:200]}; mend "
                         "the file, or delete it to have the prompt adapted again") from error
    if not fine:
        raise JudgeError(f"{path}: expected {SCHEMA} prompts of {metric} with instruction and examples; mend the file, "
                         "or delete it to have the prompt adapted again")
    return AdaptedPrompts(language, prompts, str(path))


def _write_once(path: Path, content: Mapping[str, Any]) -> bool:
    """Whether the file is ours; one that is there already stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    own = path.with_name(f"{path.stem}.{os.getpid()}.json")
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2)  # to be read and edited by people
    write_text(own, text.encode("utf-8", "replace").decode("utf-8") + "\n")
    try:
        os.link(own, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        own.replace(path)
        return True
    finally:
        own.unlink(missing_ok=True)
    return True
