"""`ragkit agreement`: how far a judge, ready scores or annotators agree with the labels that people gave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ragkit.cli import common
from ragkit.cli.score import columns
from ragkit.errors import DataError, MissingPackageError
from ragkit.report.numbers import counted

if TYPE_CHECKING:
    from ragkit.judge.agreement import Comparison, Rules
    from ragkit.judge.labelled import Labelled, Ratings
    from ragkit.judge.settings import JudgeSettings

OFFLINE = "offline"
WeightsName = Literal["quadratic", "linear", "none"]


def agreement(
    context: typer.Context,
    labels: Annotated[Path, typer.Argument(help="Labelled rows: JSON Lines, CSV, TSV, JSON or Parquet.")],
    judge: Annotated[
        str | None, typer.Option("--judge", help="Who judges the rows: provider:model, or offline (word overlap).")
    ] = None,
    judge_url: common.JudgeUrl = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", help="A column of ready scores (repeatable, * is understood); or what a column "
                     "holds, as question=Frage."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("-m", "--metric", help="What the judge scores: faithfulness, relevance, … ")
    ] = None,
    human: Annotated[
        list[str] | None, typer.Option("--human", help="The label's column; several (with commas) are annotators.")
    ] = None,
    positive: Annotated[
        list[str] | None, typer.Option("--positive", help="A text of the label that is a yes (repeatable).")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="Figures by the values of this column, too.")] = None,
    weights: Annotated[
        WeightsName, typer.Option("--weights", help="How kappa weighs a disagreement between grades.")
    ] = "quadratic",
    level: Annotated[float | None, typer.Option("--level", help="A label from there on is a yes.")] = None,
    scale: Annotated[str | None, typer.Option("--scale", help="Lowest and highest label there is, as 0,3.")] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="A score from there on is a yes; without it, it is chosen.")
    ] = None,
    calibrate: Annotated[
        Path | None, typer.Option("--calibrate", help="Write the threshold to this file, for `ragkit score`.")
    ] = None,
    scored_by: Annotated[
        str | None, typer.Option("--scored-by", help="The judge that gave the scores of --column, for --calibrate.")
    ] = None,
    judge_embeddings: common.Embeddings = None,
    judge_key_variable: common.KeyVariable = None,
    judge_options: common.JudgeOption = None,
    judge_language: common.Language = None,
    store: Annotated[
        Path | None, typer.Option("--store", help="The judgement store; by default LABELS.judgements.sqlite beside "
                                  "the labels.")
    ] = None,
    price: common.Price = None,
    prices: common.Prices = None,
    budget: common.Budget = None,
    max_calls: common.MaxCalls = None,
    concurrency: common.Concurrency = None,
    timeout: common.Timeout = None,
    rpm: common.Rpm = None,
    tpm: common.Tpm = None,
    frozen: common.Frozen = False,
    seed: common.Seed = None,
    imports: common.Imports = None,
    dry_run: common.DryRun = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout, and nothing else.")] = False,
) -> None:
    """Compare a judge, ready scores, or several annotators with human labels: kappa, AUROC, balanced accuracy.

    Each figure has a 95 % interval that resamples questions. Rows: question, contexts, answer, label; or question,
    passage, grade.
    """
    common.import_modules(imports)
    from ragkit.judge.agreement import Rules, compare_all
    from ragkit.judge.labelled import read_labelled
    from ragkit.judge.ratings import RELEVANCE, usual_metric
    from ragkit.metrics.registry import parse

    names = columns([pair for pair in column or () if "=" in pair])
    rows = read_labelled(labels, names).of_metric(metric)
    humans = rows.humans([part for name in human or () for part in name.split(",") if part], positive or ())
    judges = [rows.ratings(name) for name in
              rows.matching([name for name in column or () if "=" not in name], [one.name for one in humans])]
    store = store or labels.with_name(f"{labels.name.split('.')[0]}.judgements.sqlite")
    settings = common.judge_settings(**{**common.judge_flags(context), "store": store})
    if dry_run:
        common.say(_plan(rows, judge, judge_url, metric, settings))
        return
    spent: dict[str, Any] = {}
    if judge is not None or judge_url is not None:
        metric = metric or usual_metric(rows, judge == OFFLINE)
        metric = metric if metric == RELEVANCE else parse(metric).name
        ratings, spent = _asked(rows, judge, judge_url, metric, settings, as_json)
        judges.append(ratings)
    rules = Rules(None if weights == "none" else weights, level, threshold, _pair(scale), seed or 0,
                  row_weights=rows.weights)
    slices = rows.slices(by) if by is not None else None
    found = compare_all(humans, judges, rows.groups, rules, slices)
    if calibrate is not None:
        _calibrate(calibrate, rows, (humans, judges), rules, metric, scored_by)
    _print(rows, found, by, as_json)
    if not as_json:
        common.say_spent([spent])
    if calibrate is not None and not as_json:
        common.say(f"\nThreshold: {calibrate} (use it with ragkit score --threshold {calibrate})")
    failed = sum(reason.startswith("failed") for one in judges for reason in one.reasons.values())
    if failed:
        which = ("was", "it") if failed == 1 else ("were", "them")
        common.complain(f"{counted(failed, 'row')} {which[0]} not judged; the same command asks {which[1]} again")
        raise typer.Exit(common.PARTIAL)


def _asked(rows: Labelled, judge: str | None, url: str | None, metric: str, settings: JudgeSettings,
           quiet: bool) -> tuple[Ratings, dict[str, Any]]:
    """The judge's scores of the rows, and its ledger."""
    from ragkit.judge.ratings import judge_ratings, offline_ratings

    if judge == OFFLINE:
        return offline_ratings(rows, metric), {}
    from ragkit.evaluation.evaluate import run_async
    from ragkit.judge.ledger import total
    from ragkit.judge.open import judge_at

    async def ask() -> tuple[Ratings, dict[str, Any]]:
        with await judge_at(judge, url, settings) as gateway, common.progress(quiet) as bar:
            ratings = await judge_ratings(gateway, rows, metric, bar("judging", len(rows.rows)))
            ledger = {**gateway.ledger, "all_runs": total(gateway.store.spending())}
            return ratings, {**ledger, "stored": ledger["stored"] + ratings.n_stored}

    return run_async(ask())


def _plan(rows: Labelled, judge: str | None, url: str | None, metric: str | None, settings: JudgeSettings) -> str:
    """What a judge would be asked, in one line. The store is only read."""
    if judge in {None, OFFLINE} and url is None:
        return f"{rows.name}: {counted(len(rows.rows), 'row')}; no judge is asked"
    from ragkit.evaluation.evaluate import run_async
    from ragkit.judge.open import judge_at
    from ragkit.judge.planning import planning_gateway
    from ragkit.judge.ratings import judge_ratings, missing_judgements, usual_metric

    name = metric or usual_metric(rows, offline=False)

    async def count() -> str:
        with (await judge_at(judge, url, replace(settings, store=None)) as gateway,
              planning_gateway(gateway, settings.store) as planner):
            missing, work = missing_judgements(planner, rows, name)
            told = (f"{rows.name}: {counted(len(rows.rows), 'row')}; {name} by {gateway.name}: {missing} of {work} "
                    "judgements to ask, the others are stored or need none")
            try:
                await judge_ratings(planner, rows, name)
            except MissingPackageError:  # without ragas nobody knows its prompts
                return told
            asks = planner.asks().values()
            tokens_in, tokens_out = (round(sum(getattr(one, side) for one in asks))
                                     for side in ("tokens_in", "tokens_out"))
            cost = None if gateway.account.price is None else gateway.account.cost(tokens_in, tokens_out)
            return (f"{told}: {counted(sum(one.calls for one in asks), 'call')}, {tokens_in:,} tokens in, "
                    f"{tokens_out:,} out, {common.cost(cost)}")

    return run_async(count())


def _calibrate(path: Path, rows: Labelled, raters: tuple[list[Ratings], list[Ratings]], rules: Rules,
               metric: str | None, scored_by: str | None) -> None:
    from ragkit.judge.agreement import calibrated
    from ragkit.judge.calibration import write_threshold

    humans, judges = raters
    if len(humans) != 1 or len(judges) != 1:
        raise DataError(f"--calibrate: expected one judge and one column of labels, got {len(judges)} and "
                        f"{len(humans)}: name them with --judge or --column, and --human")
    judge = judges[0]
    if metric is None:
        raise DataError("--calibrate: which metric does the column hold? expected --metric NAME with it")
    who = judge.judge or {"name": scored_by or judge.name, "endpoint": None, "fingerprint": None}
    labels = {"file": rows.name, "sha256": rows.sha256, "column": humans[0].name}
    write_threshold(path, calibrated(metric, who, (humans[0], judge), rows.groups, rules, labels))


def _print(rows: Labelled, found: list[Comparison], by: str | None, as_json: bool) -> None:
    from ragkit.judge.agreement import SCHEMA
    from ragkit.report.agreement_table import agreement_lines

    labels = {"file": rows.name, "sha256": rows.sha256, "rows": len(rows.rows),
              "questions": len(set(rows.groups)), "weighted": rows.weights is not None}
    result = {"schema": SCHEMA, "labels": labels, "by": by, "comparisons": [one.to_json() for one in found]}
    if as_json:
        common.say(json.dumps(result, ensure_ascii=True, allow_nan=False, indent=2))
    else:
        common.say("\n".join(agreement_lines(result)))


def _pair(text: str | None) -> tuple[float, float] | None:
    """--scale 0,3 as two numbers."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise DataError(f"--scale: expected two numbers such as 0,3, got {text!r}") from None
    if not low < high:
        raise DataError(f"--scale: expected the lowest label before the highest, got {text!r}")
    return low, high
