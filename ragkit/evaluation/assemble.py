"""From trajectories, gold and judgements to an Evaluation: joined, judged, scored, summed up, ready to be shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from ragkit.errors import JudgeError
from ragkit.evaluation import funnel, views
from ragkit.evaluation.join import join
from ragkit.evaluation.judged_rows import NO_JUDGE, judge_work_of
from ragkit.evaluation.label_bridge import ask_bridge
from ragkit.evaluation.label_report import corrected_entries, require_fitting
from ragkit.evaluation.label_sets import label_run, score_labels
from ragkit.evaluation.notes import label_notes, run_notes
from ragkit.evaluation.result import Evaluation, Plan
from ragkit.evaluation.score import Scorer
from ragkit.evaluation.scoring import Scoring
from ragkit.evaluation.summary import app_entry, build_summary
from ragkit.evaluation.table import FINAL, ScoreRow, to_frame
from ragkit.evaluation.thresholds import add_shares
from ragkit.evaluation.trajectory_summary import Watched, add_ratios, trajectory_summary
from ragkit.evaluation.units import Projection, project, projection_to_json
from ragkit.judge.judging import judge_work
from ragkit.judge.ledger import total
from ragkit.judge.offline import AGREEMENT
from ragkit.judge.prompts import PromptBook
from ragkit.judge.verdicts import count_missing
from ragkit.metrics.trajectory import EvidencePath
from ragkit.records.aliases import alias_run
from ragkit.records.judgements import Judgement, Score
from ragkit.records.trajectory import Passage, Trajectory
from ragkit.report.data import ReportData
from ragkit.report.labels import OUTCOMES

if TYPE_CHECKING:
    from ragkit.judge.gateway import Gateway

UNJUDGED = "not judged"
HOW_TO_JUDGE = "needs a judge: add --judge openai:gpt-5-mini (any provider:model), or --judge-url http://host/v1"


async def assemble(
    plan: Plan,
    trajectories: Sequence[Trajectory],
    gateway: Gateway | None = None,
    run: Mapping[str, Any] | None = None,
    gold: Projection | Sequence[Passage] | None = None,
    on_judged: Callable[[], None] | None = None,
) -> Evaluation:
    """Join, project, judge and score. `gold` is a kept projection, or all passages of the index where it is known."""
    joined = join(plan.dataset, trajectories, plan.all_questions)
    indexed = None if isinstance(gold, Projection) else gold
    corpus = (Passage(document.id, document.content) for document in (plan.dataset.corpus or {}).values())
    named = tuple(alias_run(joined.trajectories, chain(indexed or (), corpus)))
    labels = label_notes(plan.dataset)
    kept = gold if isinstance(gold, Projection) else None
    projection = kept or project(plan.dataset, named, indexed)
    scoring = plan.scoring(named, projection)
    require_fitting(scoring, plan.labels)
    bridge = (run or {}).get("bridge")
    if plan.earlier is not None and gateway is not None:
        bridge = await ask_bridge(scoring, gateway, plan.earlier, plan.seed)
    judgements = await _judge(scoring, gateway, on_judged)
    labelled = await label_run(scoring, plan.relevance, gateway, on_judged, plan.stores)
    found = score_labels(scoring, judgements, labelled)
    scorer, rows, shown = found.scorer, found.rows, found.shown
    outcomes = {
        t.key: funnel.outcome(scorer.paths[t.key], t) for t in scoring.trajectories
    }
    states = plan.dataset.label_states()
    summary = build_summary(plan.variant, rows, plan.metrics, states, found.stopped, plan.seed)
    add_shares(summary, rows, plan.thresholds, plan.seed)
    watched = Watched([t for t in scoring.trajectories if outcomes[t.key] != "not_asked"], scorer.paths,
                      {question.id: question.category for question in plan.dataset.questions}, found.only_judged,
                      scorer.unsure)
    summary |= trajectory_summary(watched, plan.seed)
    add_ratios(summary["metrics"], watched, plan.metrics, plan.seed)
    for category, entries in summary["categories"].items():
        add_ratios(entries, watched.of_category(category), plan.metrics, plan.seed)
    counted = Counter(outcomes.values())
    summary["outcomes"] = {key: counted[key] for key in OUTCOMES if counted[key]}
    summary["app"] = app_entry(scoring.trajectories)
    summary["judge"] = _ledger(gateway, judgements, found.not_judged) if gateway is not None else {}
    if gateway is not None and gateway.settings.language:
        asked = {trajectory.question_id for trajectory in scoring.trajectories}
        texts = [question.text for question in plan.dataset.questions if question.id in asked]
        summary["judge"]["prompt_languages"] = PromptBook(gateway).languages(texts)
    by_judge = found.entry(plan.seed)
    summary |= {"judged_labels": by_judge} if by_judge else {}
    if plan.labels:
        summary["corrected"] = corrected_entries(scoring, rows, plan.labels, plan.seed)
    summary |= {"bridge": bridge} if bridge else {}
    notes = [*labels, *joined.notes, *run_notes(scoring, rows), *found.notes]
    record = {**(run or {}), "variant": plan.variant, "metrics": [metric.name for metric in plan.metrics],
              "judge_steps": plan.judge_steps,
              **({"bridge": bridge} if bridge else {}),
              "projection": projection_to_json(projection), "relevance": by_judge and by_judge["pool"]}
    data = ReportData(
        summary=summary,
        run=_header(record),
        fix_first=funnel.fix_first(_findings(scorer, shown, outcomes, found.only_judged)),
        rule=plan.rule.describe(any(name == "answer_accuracy" for _, name in judgements or ())) + found.rule,
        unit=projection.unit,
        metrics=views.metric_infos(plan.metrics),
        rank_histogram=views.rank_histogram(shown),
        hit_curve={name: entry["mean"] for name, entry in summary["metrics"].items()
                   if name.startswith("hit@") and entry["mean"] is not None},
        step_reach=views.step_reach(scoring.trajectories),
        rerank=views.rerank_counts(found.graded),
        worst=found.with_statements(views.QuestionViews(shown, scorer, rows, outcomes, judgements)
                                     .worst(plan.shown)),
        failures=(*_failures(scoring, rows), *found.failures),
        notes=tuple(notes),
        lost_stages=_lost(scorer, outcomes, ("incomplete_wrong",)),
        worst_rule=views.WORST_RULE.format(shown=min(plan.shown, len(outcomes)), all=len(outcomes)),
        agreement=tuple(AGREEMENT),
        needs_judge=HOW_TO_JUDGE if any(row.reason == NO_JUDGE for row in rows) else "",
    )
    return Evaluation(plan, scoring.trajectories, to_frame([*rows, *found.beside]), summary, data, record, outcomes)


async def _judge(
    scoring: Scoring, gateway: Gateway | None, on_judged: Callable[[], None] | None
) -> dict[tuple[tuple[Any, ...], str], Judgement] | None:
    if gateway is None or not scoring.of_kind("judged"):
        return None
    work, found = judge_work_of(scoring), dict[tuple[tuple[Any, ...], str], Judgement]()
    if not gateway.ledger["calls"] and count_missing(gateway, work):
        await gateway.check()
    try:
        await judge_work(gateway, work, on_judged, found)
    except JudgeError as error:  # the run ends here for the judge; what it delivered is kept and shown
        unjudged = Score.failed(f"{UNJUDGED}: {error}")
        for sample, metric in work:
            found.setdefault((sample.key, metric.name), Judgement(metric.name, gateway.name, unjudged))
    return found


def _is_unjudged(score: Score) -> bool:
    """Whether nobody judged because the judge was stopped: by a limit, or for good."""
    return score.status == "failed" and (score.reason or "").startswith(UNJUDGED)


def _ledger(
    gateway: Gateway, judgements: Mapping[tuple[tuple[Any, ...], str], Judgement] | None,
    unlabelled: dict[str, dict[str, int]],
) -> dict[str, Any]:
    """What judging cost, this time and in all, and what is missing where the judge was stopped.

    Replies behind verdicts that were stored whole count as stored, too.
    """
    ledger = {**gateway.ledger, "all_runs": total(gateway.store.spending())}
    asked = Counter(name for _, name in judgements or {})
    lost = Counter(name for (_, name), found in (judgements or {}).items() if _is_unjudged(found.score))
    ledger["not_judged"] = {name: {"missing": count, "of": asked[name]} for name, count in lost.items()} | unlabelled
    ledger["stored"] += sum(judgement.n_stored for judgement in (judgements or {}).values() if judgement.n_calls == 0)
    return ledger


def _findings(
    scorer: Scorer, scoring: Scoring, outcomes: Mapping[tuple[str, int], str], by_judge: bool
) -> funnel.Findings:
    labelled = [path for path in scorer.paths.values() if path.label_state == "labelled" and path.steps]
    gold = {(i, name) for i, path in enumerate(labelled) for name in path.relevant}
    matched = sum(len(path.relevant & _occurring(path)) for path in labelled)
    known = sum(trajectory.context is not None for trajectory in scoring.trajectories)
    lost = _lost(scorer, outcomes, ("incomplete_wrong", "incomplete_unchecked"))
    repeated = len(outcomes) > len({question_id for question_id, _ in outcomes})
    known_enough, noun = 2 * known >= len(scoring.trajectories), "trajectories" if repeated else "questions"
    made = funnel.Findings(Counter(outcomes.values()), lost, known_enough, matched, len(gold), noun)
    return replace(made, labels="judged", matched=len(gold)) if by_judge else made  # a judge's labels have no ids


def _occurring(path: EvidencePath) -> set[str]:
    """All ids in any list of the trajectory, also those that a later stage dropped."""
    lists = [listed.ids for step in range(len(path.steps)) for listed in path.lists(step)]
    return set(path.context or ()).union(*lists)


def _lost(scorer: Scorer, outcomes: Mapping[tuple[str, int], str], cells: tuple[str, ...]) -> dict[str, int]:
    """Where the gold of the trajectories in these cells was lost; what reached the context is left out."""
    counts = funnel.funnel(path for key, path in scorer.paths.items() if outcomes[key] in cells)
    return {stage: count for stage, count in counts.items() if not stage.startswith("in_context")}


def _header(record: Mapping[str, Any]) -> dict[str, Any]:
    """run.json as the report's header shows it: what was run, on what, by whom judged; the rest behind a fold."""
    config, judge = record.get("config") or {}, record.get("judge")
    system = config.get("system") or {}
    app = (system.get("app") or {}).get("call") or ("pipeline" if "pipeline" in system else config.get("app"))
    shown = {"app": app, "judge": judge and judge["name"], "embedder": judge and judge["embeddings"]}
    return {**record, **{name: value for name, value in shown.items() if value}} | ({} if judge else {"judge": None})


def _failures(scoring: Scoring, rows: Sequence[ScoreRow]) -> tuple[tuple[str, str, str], ...]:
    """What failed: the app once a trajectory, and every step or judgement that failed on its own account."""
    failed = [(t.question_id, "app", t.error) for t in scoring.trajectories if t.error is not None]
    steps = [(t.question_id, f"step {s.index}", s.outermost.error) for t in scoring.trajectories for s in t.steps
             if s.outermost.error is not None]
    judged = [(r.question_id, r.metric if r.step == FINAL else f"{r.metric}, step {r.step}", r.reason or "")
              for r in rows if (r.step == FINAL or r.judge) and r.status == "failed"
              and r.labels != "judged" and not (r.reason or "").startswith("app failed")]
    return (*failed, *steps, *judged)
