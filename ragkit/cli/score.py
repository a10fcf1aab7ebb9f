"""`ragkit score`: score trajectories that were recorded anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragkit.cli import common


def score(
    context: typer.Context,
    trajectories: Annotated[Path, typer.Argument(help="trajectories.jsonl: what the app did, a line a question.")],
    dataset: Annotated[str, typer.Option("--dataset", help="A folder in BEIR's form, a CSV or JSON Lines file, "
                                       "or sample, the built-in one.")],
    out: Annotated[Path, typer.Option("--out", help="The run folder; an existing one resumes and adds metrics.")],
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
    labels: common.Labels = None,
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
    level: Annotated[float, typer.Option("--level", help="Grade from which a document is relevant.")] = 1.0,
    limit: common.Limit = None,
    seed: common.Seed = None,
    split: Annotated[str, typer.Option("--split", help="Which qrels of a BEIR folder.")] = "test",
    column: common.Column = None,
    all_questions: Annotated[
        bool, typer.Option("--all-questions", help="Count questions without a trajectory as nothing retrieved.")
    ] = False,
    without_context: common.WithoutContext = "union",
    variant: common.Variant = None,
    imports: common.Imports = None,
    no_text: common.NoText = False,
    dry_run: common.DryRun = False,
    as_json: common.AsJson = False,
) -> None:
    """Score recorded trajectories against a data set and write the report."""
    common.import_modules(imports)
    from ragkit.evaluation.evaluate import ascore, run_async

    arguments = {"level": level, "limit": limit, "seed": seed or 0, "split": split, "columns": columns(column),
                 "all_questions": all_questions, "variant": variant, "include_text": not no_text,
                 "relevance": relevance, "per_step_query": per_step_query, "judge_steps": judge_steps,
                 "threshold": threshold, "labels": labels or (), "rejudge": rejudge, "without_context": without_context}
    flags = common.judge_flags(context)
    common.require_judge(judge or judge_url, flags)
    settings = common.judge_settings(**flags)
    data = common.data_set(dataset)
    if dry_run:
        from ragkit.cli.plan import print_plans
        from ragkit.evaluation.plan import plan_scoring

        print_plans([run_async(plan_scoring(trajectories, data, metrics=metrics, judge=judge, out=out,
                                            judge_url=judge_url, judge_settings=settings, **arguments))], as_json)
        return
    with common.progress(as_json) as bar:
        judged = bar("judging", None) if judge or judge_url else None
        evaluation = run_async(
            ascore(trajectories, data, metrics=metrics, judge=judge, out=out, judge_url=judge_url,
                   judge_settings=settings, on_judged=judged, **arguments)
        )
    common.finish(evaluation, as_json, out / "report.html")


def columns(given: list[str] | None) -> dict[str, str] | None:
    """--column question=Frage as a column map."""
    if not given:
        return None
    for pair in given:
        if "=" not in pair:
            raise typer.BadParameter(f"expected name=column, got {pair!r}", param_hint="--column")
    return dict(pair.split("=", 1) for pair in given)
