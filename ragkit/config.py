"""The experiment file: YAML -> checked settings. Unknown keys are errors; what a key means stands in `ragkit init`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from ragkit.errors import DataError
from ragkit.sections import AppSection, DatasetSection, JudgeSection, PipelineSection, Section


class Experiment(Section):
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
    relevance: Literal["judge"] | None = None
    per_step_query: bool = False
    judge_steps: bool = False
    threshold: tuple[str, ...] = ()
    without_context: Literal["union", "rrf"] = "union"
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

    @field_validator("threshold", mode="before")
    @classmethod
    def _one_file(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

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


def judge_options(pairs: Sequence[str]) -> dict[str, Any]:
    """The words of --judge-option as settings: NAME=VALUE, the value in YAML, the name one of the file's under judge.

    >>> judge_options(["temperature=null", "max_tokens=4096", "extra_body.top_k=1"])
    {'temperature': None, 'max_tokens': 4096, 'extra_body': {'top_k': 1}}
    """
    raw: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise DataError(f"--judge-option {pair!r}: expected NAME=VALUE")
        section, dot, inner = name.partition(".")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = text
        if section == "headers":
            value = text
        if dot:
            raw.setdefault(section, {})[inner] = value
        else:
            raw[name] = value
    own = [name for name in ("model", "url") if name in raw]
    if own:
        raise DataError(f"--judge-option {own[0]}: expected --judge and --judge-url for this")
    try:
        return JudgeSection.model_validate(raw).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise DataError(f"--judge-option: {_first_problem(error, JudgeSection)}") from None


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


def _first_problem(error: ValidationError, root: type[BaseModel] = Experiment) -> str:
    problems = error.errors(include_url=False)
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    place = ".".join(str(part) for part in first["loc"]) or "experiment"
    if first["type"] == "extra_forbidden":
        text = f"unknown key {place!r}; {_known_keys(first['loc'], root)}"
    elif first["type"] == "missing":
        text = f"the key {place!r} is missing"
    else:
        value = first.get("input")
        shown = "" if isinstance(value, Mapping) else f", got {value!r}"
        text = f"{place}: {first['msg'].removeprefix('Value error, ')}{shown}"
    return text + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else "")


def _known_keys(location: tuple[int | str, ...], root: type[BaseModel]) -> str:
    import difflib

    section: Any = root
    for part in location[:-1]:
        annotation = section.model_fields[str(part)].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        section = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), root)
    known = list(section.model_fields)
    near = difflib.get_close_matches(str(location[-1]), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
