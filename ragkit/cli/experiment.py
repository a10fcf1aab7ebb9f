"""From an experiment file to apps and options, a variant at a time. What `run` and `record` share; no verb itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.cli import common
from ragkit.config import Experiment, load_experiment, resolve_variant
from ragkit.errors import DataError
from ragkit.evaluation.apps import load_app, load_object
from ragkit.evaluation.runfolder import safe_name
from ragkit.records.questions import Dataset, Document
from ragkit.records.readers import load_dataset
from ragkit.sections import AppSection, PipelineSection

if TYPE_CHECKING:
    from ragkit.judge.calls import CallError
    from ragkit.judge.ledger import Allowance
    from ragkit.pipeline.build import PartCache


@dataclass(frozen=True)
class Variant:
    """One variant of an experiment, and the folder that its run is written to."""

    name: str
    experiment: Experiment
    out: Path


class ExperimentRun:
    """An opened experiment: its data set, its variants, and the parts that they share (models, indexes)."""

    def __init__(self, path: Path, out: Path | None, limit: int | None, seed: int | None) -> None:
        experiment = load_experiment(path)
        changes = {"limit": limit, "seed": seed}
        self.experiment = experiment.model_copy(update={k: v for k, v in changes.items() if v is not None})
        self.source = _dataset(path, experiment.dataset.path)
        self.out = out or Path(experiment.out or f"runs/{safe_name(experiment.name)}")
        self.data: Dataset = load_dataset(
            self.source, columns=experiment.dataset.columns or None, split=experiment.dataset.split
        )
        self.thresholds = [_beside(path, name) for name in experiment.threshold]
        self._where = str(path)
        self._allowance: Allowance | None = None
        self._lost: dict[str, CallError] = {}

    def variants(self, only: str | None = None) -> list[Variant]:
        """The variants in their order; an experiment without any is one run in the out folder itself."""
        if not self.experiment.variants:
            if only is not None:
                raise DataError(f"{self._where}: --variant {only}: the experiment has no variants")
            return [Variant(self.out.resolve().name, self.experiment, self.out)]
        found = [
            Variant(name, resolve_variant(self.experiment, name, self._where), self.out / safe_name(name))
            for name in self.experiment.variants
            if only in (None, name)
        ]
        if not found:
            known = ", ".join(self.experiment.variants)
            raise DataError(f"{self._where}: --variant {only}: expected one of {known}")
        if len({variant.out for variant in found}) != len(found):
            raise DataError(f"{self._where}: two variants would share one folder; name them apart")
        return found

    def options(self, variant: Variant) -> dict[str, Any]:
        """The keywords of `aevaluate` for a variant; the configuration that identifies it is among them."""
        experiment = variant.experiment
        system = experiment.app or experiment.pipeline
        config: dict[str, Any] = {
            "system": {"app" if experiment.app else "pipeline": system.model_dump(mode="json") if system else None}
        }
        options: dict[str, Any] = {
            "variant": variant.name,
            "k_values": experiment.k_values,
            "repeats": experiment.repeats,
            "concurrency": experiment.concurrency,
            "timeout": experiment.timeout,
            "limit": experiment.limit,
            "seed": experiment.seed,
            "level": experiment.level,
            "without_context": experiment.without_context,
            "answer_threshold": experiment.answer_threshold,
            "columns": experiment.dataset.columns or None,
            "split": experiment.dataset.split,
            "config": config,
        }
        if experiment.app is not None:
            options["retries"] = experiment.app.retries
            for name in ("to_input", "to_answer"):
                call = getattr(experiment.app, name)
                options[name] = load_object(call) if call is not None else None
        return options

    def judge(self, variant: Variant, judge: str | None, url: str | None, flags: Mapping[str, Any]) -> dict[str, Any]:
        """Who judges: the flags go before the file. All variants share a store in the out folder, limits and losses."""
        from ragkit.judge.ledger import Allowance
        from ragkit.judge.settings import JudgeSettings

        section = variant.experiment.judge
        own = section.model_dump(exclude_unset=True, exclude={"model", "url"})
        settings = common.judge_settings(JudgeSettings(**{"store": self.out / "judgements.sqlite", **own}), **flags)
        self._allowance = self._allowance or Allowance(settings.max_calls, settings.budget)
        settings = replace(settings, allowance=self._allowance, lost=self._lost)
        chosen = judge if judge or url else section.model
        common.require_judge(chosen or url or section.url, flags)
        return {"judge": chosen, "judge_url": url if judge or url else section.url, "judge_settings": settings}

    @contextmanager
    def app(self, variant: Variant, cache: PartCache | None = None) -> Iterator[Any]:
        """The app of a variant, built; a pipeline is closed at the end."""
        experiment = variant.experiment
        if experiment.app is not None:
            yield build_app(experiment.app)
            return
        if experiment.pipeline is None:
            raise DataError(f"{self._where}: {variant.name}: expected pipeline or app")
        pipeline = build_own_pipeline(experiment.pipeline, self.data.corpus, self.out / "index", cache)
        try:
            yield pipeline
        finally:
            pipeline.close()


def build_app(section: AppSection) -> Any:
    return load_app(section.call, section.args)


def build_own_pipeline(
    section: PipelineSection, corpus: Mapping[str, Document] | None, index: Path, cache: PartCache | None = None
) -> Any:
    """A pipeline from its section of the file."""
    from ragkit.pipeline.build import build_pipeline
    from ragkit.pipeline.settings import ChromaSettings, PipelineConfig

    if corpus is None and not section.chroma.attach:
        raise DataError("pipeline: the data set has no corpus (corpus.jsonl) to index, and chroma.attach is not set")
    config = PipelineConfig(
        chunk_size=section.chunking.size,
        chunk_overlap=section.chunking.overlap,
        embedding=section.embedding,
        retriever=section.retriever,
        k=section.k,
        candidates=section.candidates,
        reranker=section.reranker,
        rerank_threshold=section.rerank_threshold,
        context_k=section.context_k,
        generator=section.generator,
        agent=section.agent.kind,
        max_steps=section.agent.max_steps,
        chroma=ChromaSettings(**section.chroma.model_dump()),
        rrf_k=section.rrf_k,
    )
    return build_pipeline(config, corpus, index, cache)


def _dataset(experiment_file: Path, dataset: str) -> str | Path:
    """The path of the data set: the built-in one, or as it is named, or beside the experiment file."""
    found = common.data_set(dataset)
    return found if isinstance(found, Path) else _beside(experiment_file, found)


def _beside(experiment_file: Path, name: str) -> str | Path:
    """A file that an experiment names: as it is named, else beside the experiment file."""
    beside = experiment_file.parent / name
    return beside if not Path(name).exists() and beside.exists() else name
