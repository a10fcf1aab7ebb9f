"""What a run would cost before it is made: judgements, judge calls, tokens, money. Asks nobody and writes nothing.

The judge's part is counted by the way of asking itself (judge/planning.py), so that it knows what is stored and shared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from ragkit.errors import JudgeError, MissingPackageError
from ragkit.evaluation.evaluate import prepare_scoring
from ragkit.evaluation.join import join
from ragkit.evaluation.judged_rows import judge_work_of
from ragkit.evaluation.label_bridge import BridgeSample, bridge_sample
from ragkit.evaluation.label_sets import label_run
from ragkit.evaluation.options import options_of
from ragkit.evaluation.record import recorded_before
from ragkit.evaluation.result import Plan
from ragkit.evaluation.scoring import Scoring
from ragkit.evaluation.session import Session
from ragkit.evaluation.standins import Shape, stand_in_trajectories
from ragkit.evaluation.units import project
from ragkit.judge.estimate import estimate
from ragkit.judge.gateway import Gateway, Reply
from ragkit.judge.judging import judge_work
from ragkit.judge.open import PastJudge, judge_at
from ragkit.judge.planning import BYTES_PER_TOKEN, Asks, PlanningGateway, planning_gateway
from ragkit.judge.samples import JudgeSample
from ragkit.judge.verdicts import JudgementBook, judgeable
from ragkit.metrics.registry import Metric
from ragkit.records.trajectory import Trajectory
from ragkit.report.numbers import counted, money

SCHEMA = "ragkit.plan/1"
COUNTED = "tokens: of the prompts that would be sent, "
TABLE = ("tokens: from a table of what ragas' prompts measure, calls before any is stored or shared, since ragas is "
         "not at hand")


@dataclass
class MetricPlan(Asks):
    """What one metric takes, with its judgements: those wanted, of them `stored` whole or `undefined`."""

    judgements: float = 0
    undefined: float = 0
    stored: float = 0

    def plus(self, other: Asks, times: float = 1.0) -> Self:
        return replace(self, **{name: getattr(self, name) + times * value for name, value in vars(other).items()})

    def as_dict(self, cost: Callable[[float, float], float | None]) -> dict[str, Any]:
        counts = ("judgements", "undefined", "stored", "calls", "calls_stored", "calls_shared")
        whole = {name: round(getattr(self, name)) for name in counts}
        money = cost(self.tokens_in, self.tokens_out)
        return {**whole, "tokens": {"input": round(self.tokens_in), "output": round(self.tokens_out)},
                "cost": None if money is None else round(money, 4)}


@dataclass
class Bridge(MetricPlan):
    """What both judges are asked about first (--rejudge), of all metrics: a part of the run's total.

    `questions` are drawn of the `judged` ones that the earlier judge judged.
    """

    questions: int = 0
    judged: int = 0

    def as_dict(self, cost: Callable[[float, float], float | None]) -> dict[str, Any]:
        return {"questions": self.questions, "of": self.judged, **super().as_dict(cost)}


@dataclass(frozen=True)
class RunPlan:
    """What one run would do. `upper_bound`: nothing is recorded yet, so what variants share is not known.

    `bridge` is a part of the metrics' total: what another judge is asked first, to be compared with the earlier one.
    """

    variant: str
    counts: Mapping[str, int]
    judge: str | None = None
    endpoint: str | None = None
    price: tuple[float, float] | None = None
    metrics: Mapping[str, MetricPlan] = field(default_factory=dict)
    upper_bound: bool = False
    basis: str = ""
    notes: tuple[str, ...] = ()
    bridge: Bridge | None = None

    @property
    def total(self) -> MetricPlan:
        found = MetricPlan()
        for one in self.metrics.values():
            found = found.plus(one)
        return found

    def cost(self, tokens_in: float, tokens_out: float) -> float | None:
        """Money for so many tokens; None where no price is known. Nothing costs nothing at any price."""
        if not tokens_in and not tokens_out:
            return 0.0
        return None if self.price is None else (tokens_in * self.price[0] + tokens_out * self.price[1]) / 1e6

    def as_dict(self) -> dict[str, Any]:
        """Plain data for --json. An unknown price is null."""
        price = None if self.price is None else {"input": self.price[0], "output": self.price[1]}
        return {"schema": SCHEMA, "variant": self.variant, "counts": dict(self.counts), "judge": self.judge,
                "endpoint": self.endpoint, "price": price, "upper_bound": self.upper_bound, "basis": self.basis,
                "metrics": {name: one.as_dict(self.cost) for name, one in self.metrics.items()},
                "total": self.total.as_dict(self.cost), "notes": list(self.notes),
                **({"bridge": self.bridge.as_dict(self.cost)} if self.bridge is not None else {})}


async def plan_scoring(trajectories: str | Path | Sequence[Trajectory], dataset: Any, *,
                       metrics: str | Sequence[str] | None = None, judge: Any = None, out: str | Path | None = None,
                       **options: Any) -> RunPlan:
    """What `ascore` with these arguments would ask a judge. Nobody is asked, and nothing is written."""
    session, plan, given = prepare_scoring(trajectories, dataset, metrics, out, options_of(options))
    questions = {trajectory.question_id for trajectory in given}
    counts = {"trajectories": len(given), "questions": len(questions), "metrics": len(plan.metrics)}
    return await _Planner(session, plan, judge).run(counts, [(given, 1.0)])


async def plan_run(dataset: Any, shape: Shape, *, metrics: str | Sequence[str] | None = None, judge: Any = None,
                   out: str | Path | None = None, made: dict[str, Reply] | None = None, **options: Any) -> RunPlan:
    """What `aevaluate` with these arguments would ask of app and judge.

    What `out` holds already is counted exactly; what the app will find is not known, so trajectories of `shape` with
    passages that nobody shares stand in for it: an upper bound, unless the app finds more than that. The plans of
    variants that have one store have `made` in common: a dict, empty at first, by which they know what they share.
    """
    chosen = options_of(options)
    session = Session.for_app(None, dataset, out, chosen)
    asked = session.data.limit(chosen.limit, chosen.seed)
    plan = session.plan(asked, metrics)
    done = recorded_before(session.folder.trajectories if session.folder is not None else None, asked.questions)
    missing = [(question, repeat) for question in asked.questions for repeat in range(chosen.repeats)
               if (question.id, repeat) not in done]
    unknown, times = stand_in_trajectories(missing, shape, session.data)
    counts = {"questions": len(asked.questions), "app calls": len(missing), "recorded": len(done)}
    planner = _Planner(session, plan, judge, made)
    found = await planner.run(counts, [(list(done.values()), 1.0), (unknown, times)])
    if not unknown or not found.metrics:
        return found
    return replace(found, upper_bound=True, notes=(*found.notes, shape.note))


class _Planner:
    """Plans one run: opens the judge without asking it, and adds up what each part of the trajectories takes."""

    def __init__(self, session: Session, plan: Plan, judge: Any, made: dict[str, Reply] | None = None) -> None:
        self.session, self.plan, self.judge, self.made = session, plan, judge, made
        self.found: dict[str, MetricPlan] = {}
        self.bridge: Bridge | None = None
        self.notes: list[str] = []
        self.basis = ""

    async def run(self, counts: Mapping[str, int], parts: Sequence[tuple[Sequence[Trajectory], float]]) -> RunPlan:
        options = self.session.options
        if self.judge is None and options.judge_url is None:
            return RunPlan(self.plan.variant, counts)
        settings = options.judge_settings
        store = settings.store or (self.session.folder.store if self.session.folder is not None else None)
        with await self._opened() as gateway:
            earlier = self.session.earlier_judge(gateway)
            for place, (trajectories, times) in enumerate(parts):
                if not trajectories:
                    continue
                scoring = self._scoring(trajectories)
                shared = self.made if place == 0 else None  # what stands in for the unknown is shared by nobody
                with planning_gateway(gateway, store, shared) as planner:
                    await self._add(planner, scoring, times)
                if earlier is not None and self.bridge is None:  # what was judged before comes first
                    with planning_gateway(gateway, store) as planner:
                        self.bridge = await _bridge(planner, bridge_sample(scoring, earlier, self.plan.seed), scoring)
            price = gateway.account.price
            plan = RunPlan(self.plan.variant, counts, gateway.name, gateway.backend.where, price, self.found,
                           basis=self.basis, bridge=self.bridge)
        return replace(plan, notes=(*self.notes, *_limits(plan, settings.max_calls, settings.budget, settings.frozen)))

    async def _opened(self) -> Gateway:
        options = self.session.options
        settings = replace(options.judge_settings, store=None)  # the real one would be made on the spot
        try:
            gateway = await judge_at(self.judge, options.judge_url, settings)
        except (JudgeError, MissingPackageError) as error:
            self.notes.append(f"the judge could not be opened, so that what is stored is not counted: {error}")
            name = self.judge if isinstance(self.judge, str) else type(self.judge).__name__
            return Gateway(PastJudge(name, options.judge_url or ""), replace(settings, budget=None))
        before = self.session.judged_before
        if before is not None and before["fingerprint"] != gateway.fingerprint and options.rejudge is None:
            self.notes.append(f"the folder was judged by {before['name']} at {before['endpoint']}: this run would be "
                              "refused; choose another --out, or add --rejudge N")
        return gateway

    def _scoring(self, trajectories: Sequence[Trajectory]) -> Scoring:
        joined = join(self.plan.dataset, trajectories, False)
        return self.plan.scoring(joined.trajectories, project(self.plan.dataset, joined.trajectories))

    async def _add(self, planner: PlanningGateway, scoring: Scoring, times: float) -> None:
        plan = self.plan
        work = judgeable(judge_work_of(scoring))
        found, missing = _ready(planner, work)
        try:
            await judge_work(planner, work)
            await label_run(scoring, plan.relevance, planner, None, plan.stores)
            measured = "measured" if planner.is_measured else "as usual, not measured yet"
            self.basis = f"{COUNTED}{planner.bytes_per_token:.1f} bytes a token ({measured})"
            asked, ready = planner.asks(), planner.account.by_metric
            for name in dict.fromkeys([*asked, *(name for name in ready if ready[name]["stored"])]):
                asks, labels = asked.get(name, Asks()), ready.get(name, Counter())["stored"]  # labels: stored whole
                if name not in found:
                    found[name] = MetricPlan(stored=labels, judgements=(
                        asks.calls + asks.calls_stored + asks.calls_shared + labels))
                found[name] = found[name].plus(asks)
        except MissingPackageError:
            self.basis = f"{TABLE} ({BYTES_PER_TOKEN:g} bytes a token)"
            for sample, metric in missing:
                found[metric.name] = found[metric.name].plus(estimate(metric, sample))
        for name, one in found.items():
            self.found[name] = self.found.get(name, MetricPlan()).plus(one, times)


def _ready(planner: PlanningGateway, work: Sequence[tuple[JudgeSample, Metric]]
           ) -> tuple[dict[str, MetricPlan], list[tuple[JudgeSample, Metric]]]:
    """The judgements by metric, with those that are stored or have nothing to judge; and the others."""
    book, found, missing = JudgementBook(planner), dict[str, MetricPlan](), []
    for sample, metric in work:
        ready = book.ready(metric, sample)
        undefined = ready is not None and ready.n_stored == 0 and ready.score.status == "undefined"
        if ready is None:
            missing.append((sample, metric))
        one = MetricPlan(judgements=1, undefined=int(undefined), stored=int(ready is not None and not undefined))
        found[metric.name] = found.get(metric.name, MetricPlan()).plus(one)
    return found, missing


async def _bridge(planner: PlanningGateway, chosen: BridgeSample, scoring: Scoring) -> Bridge:
    """What the sample takes, as if nothing else was asked before it."""
    work = judgeable((sample, metric) for sample in chosen.samples for metric in scoring.of_kind("judged"))
    ready, missing = _ready(planner, work)
    parts: list[Asks] = list(ready.values())
    try:
        await judge_work(planner, work)
        parts += planner.asks().values()
    except MissingPackageError:
        parts += [estimate(metric, sample) for sample, metric in missing]
    found = Bridge(questions=len(chosen.drawn), judged=chosen.judged)
    for part in parts:
        found = found.plus(part)
    return found


def _limits(plan: RunPlan, max_calls: int | None, budget: float | None, frozen: bool) -> list[str]:
    """What the limits would make of it."""
    need, notes = plan.total, []
    if frozen and need.calls:
        notes.append(f"--frozen allows no call: what needs one of {counted(need.calls, 'call')} would be missing")
    if max_calls is not None and need.calls > max_calls:
        notes.append(f"--max-calls {max_calls} is less than the {counted(need.calls, 'call')} needed: the run would "
                     "stop there")
    expected = plan.cost(need.tokens_in, need.tokens_out)
    if budget is not None and expected is not None and expected > budget:
        notes.append(f"--budget {budget:g} is less than the {money(expected, '')} expected: the run would stop there")
    return notes
