"""The experiment file: YAML -> checked settings. Unknown keys are errors; what a key means stands in `ragkit init`."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ragkit.errors import DataError


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DatasetSection(_Section):
    """Where the questions lie: a folder in BEIR's form, a CSV, TSV, JSON Lines file, or "irds:ID"."""

    path: str
    split: str = "test"
    columns: dict[str, str] = Field(default_factory=dict)

    @field_validator("path")
    @classmethod
    def _with_environment(cls, value: str) -> str:
        """${NAME} and ${NAME:-default} stand for environment variables, so that one file serves several machines."""

        def known(match: re.Match[str]) -> str:
            found = os.environ.get(match.group(1)) or match.group(2)
            if found is None:
                raise ValueError(f"the environment variable {match.group(1)} is not set")
            return found

        return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", known, value)


class ChunkingSection(_Section):
    """Cut documents into chunks of about `size` characters; without it a document is one passage."""

    size: int | None = Field(default=None, ge=50)
    overlap: int = Field(default=0, ge=0)


class ChromaSection(_Section):
    """Where the vectors lie: a folder (path) or a server (url); `attach` uses an existing collection read-only."""

    path: str | None = None
    url: str | None = None
    collection: str | None = None
    attach: bool = False


class AgentSection(_Section):
    """none: one search. iterative: searches again with what was found. tools: a LangGraph agent with a search tool."""

    kind: Literal["none", "iterative", "tools"] = "none"
    max_steps: int = Field(default=3, ge=1)


class PipelineSection(_Section):
    """A pipeline of ragkit's own."""

    chunking: ChunkingSection = ChunkingSection()
    embedding: str = "minilm"
    retriever: Literal["dense", "lexical", "hybrid"] = "hybrid"
    k: int = Field(default=10, ge=1)
    candidates: int = Field(default=50, ge=1)
    rrf_k: int = Field(default=60, ge=1)
    reranker: str | None = None
    rerank_threshold: float | None = None
    context_k: int | None = Field(default=None, ge=1)
    generator: str | None = "extractive"
    agent: AgentSection = AgentSection()
    chroma: ChromaSection = ChromaSection()


class AppSection(_Section):
    """The user's own app: `call` names a function that builds it; the result is called with each question's text."""

    call: str
    args: dict[str, Any] = Field(default_factory=dict)
    to_input: str | None = None
    to_answer: str | None = None
    retries: int = Field(default=0, ge=0)

    @field_validator("call", "to_input", "to_answer")
    @classmethod
    def _module_and_name(cls, value: str | None) -> str | None:
        if value is not None and value.count(":") != 1:
            raise ValueError(f"expected package.module:name, got {value!r}")
        return value


class JudgeSection(_Section):
    """Who judges, and the limits on asking."""

    model: str | None = None
    url: str | None = None
    embeddings: str = "minilm"
    concurrency: int = Field(default=16, ge=1)
    timeout: float = Field(default=60.0, gt=0)
    rpm: int | None = Field(default=None, ge=1)
    tpm: int | None = Field(default=None, ge=1)
    max_calls: int | None = Field(default=None, ge=0)
    budget: float | None = Field(default=None, ge=0)
    frozen: bool = False


class Experiment(_Section):
    """One experiment: a data set, one app or pipeline, what its variants change, and what is measured."""

    name: str = "experiment"
    dataset: DatasetSection
    out: str | None = None
    pipeline: PipelineSection | None = None
    app: AppSection | None = None
    variants: dict[str, dict[str, Any] | None] = Field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    k_values: tuple[int, ...] = ()
    judge: JudgeSection = JudgeSection()
    level: float = 1.0
    answer_threshold: float = Field(default=0.5, gt=0, le=1)
    repeats: int = Field(default=1, ge=1)
    concurrency: int = Field(default=4, ge=1)
    timeout: float = Field(default=120.0, gt=0)
    limit: int | None = Field(default=None, ge=1)
    seed: int = 0

    @field_validator("dataset", mode="before")
    @classmethod
    def _path_alone(cls, value: object) -> object:
        return {"path": value} if isinstance(value, str) else value

    @field_validator("metrics", mode="before")
    @classmethod
    def _comma_list(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value

    @field_validator("k_values")
    @classmethod
    def _cuts(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(k < 1 for k in value):
            raise ValueError(f"a cut must be at least 1, got {min(value)}")
        return value

    @model_validator(mode="after")
    def _one_system(self) -> Experiment:
        if self.pipeline is not None and self.app is not None:
            raise ValueError("expected either pipeline or app, got both; put the second one under variants")
        return self


class _UniqueKeys(yaml.SafeLoader):
    """A safe loader that refuses a key that stands twice, instead of keeping the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen and name != "<<":
                raise yaml.YAMLError(f"the key {name!r} stands twice, again in line {key.start_mark.line + 1}")
            seen.add(name)
        return super().construct_mapping(node, deep)


def load_experiment(path: str | Path) -> Experiment:
    """Read an experiment file. Errors name the file and the key."""
    path = Path(path)
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)  # noqa: S506 -- a SafeLoader
    except FileNotFoundError:
        raise DataError(f"{path}: no such experiment file; `ragkit init {path}` writes one to start from") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict):
        raise DataError(f"{path}: expected a mapping with the key dataset, got {type(raw).__name__}")
    experiment = _checked(raw, str(path))
    for name in experiment.variants:
        resolve_variant(experiment, name, str(path))
    if not experiment.variants and experiment.pipeline is None and experiment.app is None:
        raise DataError(f"{path}: expected one of the keys pipeline, app, variants")
    return experiment


def resolve_variant(experiment: Experiment, name: str | None, where: str = "experiment") -> Experiment:
    """The experiment with the changes of one variant laid over its base; `name` None is the base itself."""
    if name is None:
        return experiment
    changes = experiment.variants[name] or {}
    allowed = ("pipeline", "app")
    for key in changes:
        if key not in allowed:
            raise DataError(f"{where}: variants.{name}: unknown key {key!r}, expected {' or '.join(allowed)}")
    base = experiment.model_dump(mode="python", exclude_unset=True)
    base["variants"] = {}
    for key, other in (("pipeline", "app"), ("app", "pipeline")):
        if key in changes:
            if other not in changes:
                base.pop(other, None)
            if not isinstance(changes[key] or {}, Mapping):
                raise DataError(f"{where}: variants.{name}.{key}: expected a mapping, got {changes[key]!r}")
            base[key] = _merged(base.get(key) or {}, changes[key] or {})
    resolved = _checked(base, f"{where}: variants.{name}")
    if resolved.pipeline is None and resolved.app is None:
        raise DataError(f"{where}: variants.{name}: expected pipeline or app, here or in the base")
    return resolved


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(dict(base))
    for key, value in changes.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def _checked(raw: Mapping[str, Any], where: str) -> Experiment:
    try:
        return Experiment.model_validate(raw)
    except ValidationError as error:
        raise DataError(f"{where}: {_first_problem(error)}") from None


def _first_problem(error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    place = ".".join(str(part) for part in first["loc"]) or "experiment"
    if first["type"] == "extra_forbidden":
        text = f"unknown key {place!r}; {_known_keys(first['loc'])}"
    elif first["type"] == "missing":
        text = f"the key {place!r} is missing"
    else:
        value = first.get("input")
        shown = "" if isinstance(value, Mapping) else f", got {value!r}"
        text = f"{place}: {first['msg'].removeprefix('Value error, ')}{shown}"
    return text + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else "")


def _known_keys(location: tuple[int | str, ...]) -> str:
    import difflib

    section: Any = Experiment
    for part in location[:-1]:
        annotation = section.model_fields[str(part)].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        section = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), Experiment)
    known = list(section.model_fields)
    near = difflib.get_close_matches(str(location[-1]), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
