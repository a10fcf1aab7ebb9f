"""`ragkit run`: ask every variant of an experiment, judge, score, report."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragkit.cli import common
from ragkit.errors import DataError

if TYPE_CHECKING:
    from ragkit.cli.experiment import ExperimentRun, Variant
    from ragkit.evaluation.plan import RunPlan
    from ragkit.evaluation.result import Evaluation
    from ragkit.judge.gateway import Reply


def run(
    context: typer.Context,
    experiment: Annotated[Path, typer.Argument(metavar="EXPERIMENT.yaml", help="Written by `ragkit init`.")],
    out: common.Out = None,
    only: Annotated[str | None, typer.Option("--variant", help="Run this variant alone.")] = None,
    metrics: common.Metrics = None,
    judge: common.Judge = None,
    judge_url: common.JudgeUrl = None,
    judge_embeddings: common.Embeddings = None,
    judge_key_variable: common.KeyVariable = None,
    judge_options: common.JudgeOption = None,
    judge_language: common.Language = None,
    relevance: common.Relevance = None,
    per_step_query: common.PerStepQuery = False,
    judge_steps: common.JudgeSteps = False,
    threshold: common.Threshold = None,
    rejudge: common.Rejudge = None,
    store: common.Store = None,
    price: common.Price = None,
    prices: common.Prices = None,
    budget: common.Budget = None,
    max_calls: common.MaxCalls = None,
    concurrency: common.Concurrency = None,
    timeout: common.Timeout = None,
    rpm: common.Rpm = None,
    tpm: common.Tpm = None,
    frozen: common.Frozen = False,
    limit: common.Limit = None,
    seed: common.Seed = None,
    no_text: common.NoText = False,
    dry_run: common.DryRun = False,
    as_json: common.AsJson = False,
) -> None:
    """Run an experiment: record the app or pipeline of every variant, score it, and write a report each.

    The same command again goes on where it stopped: only what is missing or failed is asked.
    """
    from ragkit.cli.experiment import ExperimentRun

    opened = ExperimentRun(experiment, out, limit, seed)
    variants = opened.variants(only)
    flags = common.judge_flags(context)
    work = []
    for variant in variants:
        keywords = opened.judge(variant, judge, judge_url, flags) | {
            "include_text": not no_text, "relevance": relevance or variant.experiment.relevance,
            "per_step_query": per_step_query or variant.experiment.per_step_query,
            "judge_steps": judge_steps or variant.experiment.judge_steps,
            "threshold": threshold or opened.thresholds, "rejudge": rejudge}
        work.append((variant, metrics or list(variant.experiment.metrics) or None, keywords))
    if dry_run:
        from ragkit.cli.plan import print_plans

        made: dict[str, Reply] = {}
        print_plans([_plan(opened, *one, made) for one in work], as_json)
        return
    from ragkit.pipeline.build import PartCache

    cache = PartCache()
    done = [_run_one(opened, *one, cache, as_json) for one in work]
    done = _on_one_pool(done, variants, not no_text)
    if only is not None:
        _tell_older_pools(done[0], [variant for variant in opened.variants() if variant.name != only])
    from ragkit.cli.compare import write_comparison

    _finish(done, variants, as_json, write_comparison(opened, done))


def _on_one_pool(done: list[Evaluation], variants: list[Variant], include_text: bool) -> list[Evaluation]:
    """Judged labels of later variants count in the earlier ones, too: their folders are written again."""
    if len(done) < 2:
        return done
    from ragkit.evaluation.evaluate import run_async
    from ragkit.evaluation.pooling import on_one_pool, save_pooled
    from ragkit.evaluation.runfolder import RunFolder

    pooled = run_async(on_one_pool(done))
    for before, evaluation, variant in zip(done, pooled, variants, strict=True):
        if evaluation is not before:
            try:
                save_pooled(evaluation, RunFolder(variant.out), include_text)
            except DataError as error:  # all is judged and shown; the other run must not lose its folder for it
                common.complain(f"{error}; the labels that later variants added are not in it yet, the same command "
                                "puts them there")
    return pooled


def _tell_older_pools(evaluation: Evaluation, others: list[Variant]) -> None:
    """One variant alone was run: those that ran before may lack the labels that it added."""
    from ragkit.evaluation.pooling import of_another_pool
    from ragkit.evaluation.runfolder import RunFolder

    found = of_another_pool(evaluation, {variant.name: RunFolder(variant.out) for variant in others})
    if found:
        common.complain(f"note: {', '.join(found)}: scored on an older pool of judged labels; the same command without "
                        "--variant scores all on one, and asks only for what is not judged")


def _run_one(opened: ExperimentRun, variant: Variant, metrics: list[str] | None, keywords: dict[str, object],
             cache: object, quiet: bool) -> Evaluation:
    from ragkit.evaluation.evaluate import aevaluate, run_async

    options = opened.options(variant) | keywords
    questions = variant.experiment.limit or len(opened.data.questions)
    aside = redirect_stdout(sys.stderr) if quiet else nullcontext()  # an app that prints must not spoil the JSON
    with opened.app(variant, cache) as app, common.progress(quiet) as bar, aside:  # type: ignore[arg-type]
        asked = bar(f"{variant.name}: asking", questions * variant.experiment.repeats)
        judged = bar(f"{variant.name}: judging", None) if options["judge"] or options["judge_url"] else None
        return run_async(aevaluate(app, opened.source, metrics=metrics, out=variant.out, on_recorded=asked,
                                   on_judged=judged, **options))


def _finish(done: list[Evaluation], variants: list[Variant], as_json: bool, concluded: list[str]) -> None:
    if len(done) == 1:
        common.finish(done[0], as_json, variants[0].out / "report.html")
        return
    if as_json:
        import json

        common.say(json.dumps([evaluation.summary for evaluation in done], allow_nan=False, indent=2))
    else:
        from rich.console import Console

        from ragkit.report.terminal import print_side_by_side

        print_side_by_side([evaluation.summary for evaluation in done], Console())
        common.say_spent([evaluation.summary["judge"] for evaluation in done])
        for evaluation, variant in zip(done, variants, strict=True):
            common.say(f"{variant.name}: {evaluation.data.fix_first}")
            common.say(f"Report: {variant.out / 'report.html'}")
        for sentence in concluded:
            common.say(sentence)
    for evaluation, variant in zip(done, variants, strict=True):
        why = common.missing_judgements(evaluation)
        if why is None and evaluation.partial and evaluation.data.failures:
            why = common.first_failure(evaluation)
        if why:
            common.complain(f"{variant.name}: {why}")
    partial = [variant.name for evaluation, variant in zip(done, variants, strict=True) if evaluation.partial]
    if partial:
        common.complain(f"failed in part: {', '.join(partial)}; the reports say where, the same command asks again")
        raise typer.Exit(common.PARTIAL)


def _plan(opened: ExperimentRun, variant: Variant, metrics: list[str] | None, keywords: dict[str, object],
          made: dict[str, Reply]) -> RunPlan:
    from ragkit.evaluation.evaluate import run_async
    from ragkit.evaluation.plan import plan_run
    from ragkit.evaluation.standins import Shape

    options = opened.options(variant) | keywords
    found = variant.experiment.pipeline
    shape = Shape()
    if found is not None:
        lists = 2 if found.retriever == "hybrid" else 1
        deep = lists == 2 or found.reranker is not None  # else one list of k is all that is retrieved
        shape = Shape(found.k, 1 if found.agent.kind == "none" else found.agent.max_steps, found.context_k,
                      found.chunking.size, known=True, beneath=lists * max(found.candidates, found.k) if deep else 0)
    plan = run_async(plan_run(opened.source, shape, metrics=metrics, out=variant.out, made=made, **options))
    documents = {"documents to index": len(opened.data.corpus or {})} if found is not None else {}
    return replace(plan, counts={**plan.counts, **documents})
