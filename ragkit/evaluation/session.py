"""One run in the making: its data, its folder, its judge. Opens and checks them before any work, writes at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError
from ragkit.evaluation.assemble import assemble
from ragkit.evaluation.defaults import PER_STEP_QUERY, wanted_metrics
from ragkit.evaluation.funnel import RightRule
from ragkit.evaluation.label_bridge import EarlierJudge
from ragkit.evaluation.label_report import read_labels
from ragkit.evaluation.notes import label_notes
from ragkit.evaluation.options import Options
from ragkit.evaluation.privacy import without_messages, without_secrets
from ragkit.evaluation.record import RecordSettings
from ragkit.evaluation.result import Evaluation, Plan
from ragkit.evaluation.runfolder import COMPLETE, RUNNING, RunFolder, environment
from ragkit.evaluation.scoring import FUSED, UNION, fused_ends
from ragkit.evaluation.thresholds import require_judge, run_thresholds
from ragkit.evaluation.units import Projection
from ragkit.judge.verdicts import CONTEXT_METRICS
from ragkit.metrics.batch import check_level
from ragkit.metrics.registry import Metric, parse_all
from ragkit.records.human_labels import HumanLabel, merged, read_human_labels, write_human_labels
from ragkit.records.questions import Dataset, text_id
from ragkit.records.readers import load_dataset
from ragkit.records.readers.beir import write_folder
from ragkit.records.trajectory import Passage, Trajectory

if TYPE_CHECKING:
    from ragkit.judge.calibration import Threshold
    from ragkit.judge.gateway import Gateway


class Session:
    """What `evaluate`, `score` and `report` share.

    `identity` is what else makes the run what it is (the app, say): together with the data and the rules it must not
    change in one folder.
    """

    def __init__(self, source: Any, out: str | Path | None, options: Options, identity: Mapping[str, Any]) -> None:
        self.options = options
        check_level(options.level)
        self.data = open_dataset(source, options)
        label_notes(self.data)  # raises where the labels cannot be right
        self.folder = RunFolder(Path(out)) if out is not None else None
        self.config = without_secrets({
            "corpus": self.data.fingerprints()["corpus"],
            "level": options.level, "answer_threshold": options.answer_threshold,
            "limit": options.limit, "seed": options.seed, **identity, **options.config,
            **({"without_context": options.without_context} if options.without_context != UNION else {}),
        })
        self.known = self.folder.known(self.config) if self.folder is not None else {}
        self.labels = self._labels()
        self._earlier: EarlierJudge | None = None
        self.thresholds: tuple[Threshold, ...] = ()
        self._source = source
        self._written = False
        self._environment = {**environment(), **({"started": self.known["started"]} if "started" in self.known else {})}

    @classmethod
    def for_app(cls, app: Any, source: Any, out: str | Path | None, options: Options) -> Session:
        """The session of a run that asks an app: what is asked how often is part of what the run is."""
        named = {} if "system" in options.config else {"app": _described(app)}
        return cls(source, out, options, {**named, "repeats": options.repeats})

    def _labels(self) -> tuple[HumanLabel, ...]:
        """What people said: the labels that the folder holds, and those that were given, which count before them."""
        kept = self.folder.labels if self.folder is not None else None
        old = read_human_labels(kept) if kept is not None and kept.exists() else []
        given = self.options.labels
        new = read_labels(given) if isinstance(given, (str, Path)) else given
        return tuple(merged(old, new)[0])

    def record_settings(self) -> RecordSettings:
        o = self.options
        return RecordSettings(o.repeats, o.concurrency, o.timeout, o.retries, o.include_text)

    @contextmanager
    def working(self, asks: bool = False) -> Iterator[None]:
        """From here on the folder is no finished run until `finish` says so, and no second run may write into it.

        `asks`: the app is asked, and what it does is written at once. Where nothing was written (the judge does not
        answer, say) run.json is in the end what it was before.
        """
        if self.folder is None:
            yield
            return
        with self.folder.locked():
            before = self.folder.known(self.config)
            self._written = asks
            self.folder.write_run({**self._environment, **self.known, "config": self.config, "state": RUNNING})
            try:
                yield
            finally:
                if not self._written and before:
                    self.folder.write_run(before)
                elif not self._written:
                    self.folder.run.unlink()

    def ended(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        """The trajectories, with what stands for the context of those that show none."""
        return fused_ends(trajectories) if self.options.without_context == FUSED else list(trajectories)

    def plan(self, data: Dataset, metrics: str | Sequence[str] | None) -> Plan:
        """What to measure: what was asked for, after what the folder holds already."""
        wanted = wanted_metrics(metrics, self.options.k_values)
        if self.known.get("metrics"):
            wanted = tuple(dict.fromkeys([*parse_all(self.known["metrics"]), *wanted]))
        if self.options.per_step_query and not any(metric.definition.against == "query" for metric in wanted):
            wanted = (*wanted, *parse_all(PER_STEP_QUERY))
        own = self.folder.path.resolve().name if self.folder is not None else "run"
        variant = self.options.variant or self.known.get("variant") or own
        self.thresholds = run_thresholds(self.options.threshold, self.known, wanted)
        return Plan(data, wanted, variant, self.options.level, RightRule(self.options.answer_threshold),
                    self.options.seed, self.options.all_questions, self.thresholds, self.labels,
                    judge_steps=self._steps(wanted),
                    relevance=self.options.relevance == "judge" or bool(self.known.get("relevance")))

    def _steps(self, wanted: Sequence[Metric]) -> bool:
        """Whether the steps are judged: once asked for, a folder keeps them."""
        if self.options.judge_steps and not any(metric.name in CONTEXT_METRICS for metric in wanted):
            raise DataError("--judge-steps: no metric that judges a list is asked for; add -m context_precision or -m "
                            "context_recall")
        return self.options.judge_steps or bool(self.known.get("judge_steps"))

    @asynccontextmanager
    async def judging(self, judge: Any) -> AsyncIterator[Gateway | None]:
        """The judge, opened; None where nobody is to be asked. Closed whatever happens."""
        if judge is None and self.options.judge_url is None:
            for wanted, flag in ((self.options.relevance, "--relevance judge"),
                                 (self.options.per_step_query, "--per-step-query"),
                                 (self.options.judge_steps, "--judge-steps"),
                                 (self.options.rejudge, "--rejudge")):
                if wanted:
                    raise DataError(f"{flag}: needs a judge: add --judge provider:model, or --judge-url http://host/v1")
            require_judge(self.thresholds if self.options.threshold else (), None, None)
            yield None
            return
        from ragkit.judge.open import judge_at

        settings = self.options.judge_settings
        if settings.store is None and self.folder is not None:
            settings = replace(settings, store=self.folder.store)
        if settings.lost is None:
            settings = replace(settings, lost={})
        with await judge_at(judge, self.options.judge_url, settings) as gateway:
            self._same_judge(gateway)
            require_judge(self.thresholds, gateway.name, gateway.fingerprint)
            yield gateway

    @property
    def judged_before(self) -> dict[str, str] | None:
        """Whose scores the folder holds; None also where that judge gave none (a wrong key or address, a refusal)."""
        before: dict[str, str] | None = self.known.get("judge")
        return before if before is not None and self.folder is not None and self.folder.holds_judged_scores else None

    def _same_judge(self, gateway: Gateway) -> None:
        before = self.judged_before
        if before is None:
            return
        if before["fingerprint"] == gateway.fingerprint:
            was, now = before.get("language"), gateway.settings.language
            if was != now:
                raise DataError(f"{self.folder and self.folder.path}: was judged with prompts in {was or 'english'}, "
                                f"now in {now or 'english'}; add --judge-language {was or 'english'}, or choose "
                                "another --out")
            return
        if self.options.rejudge is None:
            raise DataError(f"{self.folder and self.folder.path}: was judged by {before['name']} at "
                            f"{before['endpoint']}, now by {gateway.name} at {gateway.backend.where} (or with other "
                            "parameters); choose another --out, or ask both about a part first: --rejudge 60")
        self._earlier = self.earlier_judge(gateway)

    def earlier_judge(self, gateway: Gateway) -> EarlierJudge | None:
        """Who judged the folder before, where another one is to go on after a bridge between the two; else None."""
        before, count = self.judged_before, self.options.rejudge
        if before is None or count is None or before["fingerprint"] == gateway.fingerprint:
            return None
        return EarlierJudge(before, Path(self.known["store"]), count)

    async def finish(
        self,
        plan: Plan,
        trajectories: Sequence[Trajectory],
        gateway: Gateway | None,
        gold: Projection | Sequence[Passage] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> Evaluation:
        """Judge, score, and write the run folder."""
        run = {
            **self._environment,
            "config": self.config,
            "state": COMPLETE,
            "dataset": self.data.name,
            "include_text": self.options.include_text,
            "source": self._source_record(),
            "data": self.data.fingerprints(),
            "judge": _judge_record(gateway) if gateway is not None else self.known.get("judge"),
            "store": str(gateway.store.path) if gateway is not None else self.known.get("store"),
            "thresholds": [one.to_json() for one in plan.thresholds],
            **({"bridge": self.known["bridge"]} if "bridge" in self.known else {}),
            **(more or {}),
        }
        if not self.options.include_text:
            trajectories = [without_messages(trajectory) for trajectory in trajectories]
        plan = replace(plan, earlier=self._earlier)
        evaluation = await assemble(plan, trajectories, gateway, run, gold, self.options.on_judged)
        if self.folder is not None:
            self._written = True
            if self._keeps_data:
                write_folder(self.folder.path / "dataset", self.data)
            if self.labels:
                write_human_labels(self.folder.labels, self.labels, self.options.include_text)
            evaluation.save(self.folder, self.options.include_text)
        return evaluation

    def _source_record(self) -> dict[str, Any] | None:
        """Where a later `ragkit report` finds the data set; one that came from memory is kept in the folder."""
        where: dict[str, Any] = {"name": self.data.name, "split": self.options.split,
                                 "columns": dict(self.options.columns or {})}
        if isinstance(self._source, (str, Path)):
            path = Path(self._source)
            return {**where, "path": str(path.resolve()) if path.exists() else str(path)}
        return {**where, "path": "dataset", "columns": {}} if self._keeps_data else None

    @property
    def _keeps_data(self) -> bool:
        in_memory = not isinstance(self._source, (str, Path))
        return in_memory and self.folder is not None and self.options.include_text


def open_dataset(source: Any, options: Options) -> Dataset:
    """The data set, read; one without a question is a DataError."""
    data = load_dataset(source, columns=options.columns, split=options.split)
    if not data.questions:
        raise DataError(f"{data.name}: no question in it; expected at least one")
    return data


def _described(app: Any) -> Any:
    """What tells one app from another in run.json, where no exact configuration is given as `config["system"]`.

    Its name, and what was set on it; a lambda has no name, so its code stands for it. The code of a named function may
    change: to mend it and go on is what resuming is for.
    """
    name = getattr(app, "__qualname__", None) or type(app).__qualname__
    described = {"name": f"{getattr(app, '__module__', type(app).__module__)}:{name}"}
    code = getattr(app, "__code__", None)
    if code is not None and name.endswith("<lambda>"):
        content = repr((code.co_code, [c for c in code.co_consts if not hasattr(c, "co_code")], code.co_names))
        described["code"] = text_id(content)
    simple = {key: value for key, value in getattr(app, "__dict__", {}).items()
              if code is None and not key.startswith("_") and isinstance(value, str | int | float | bool | None)}
    return {**described, **({"set": simple} if simple else {})}


def _judge_record(gateway: Gateway) -> dict[str, str]:
    """Who judged, for run.json: what finds the stored verdicts again, and no key."""
    spec = gateway.settings.embeddings
    return {"name": gateway.name, "endpoint": gateway.backend.where, "fingerprint": gateway.fingerprint,
            "embeddings": spec if isinstance(spec, str) else type(spec).__qualname__,
            **({"language": gateway.settings.language} if gateway.settings.language else {})}
