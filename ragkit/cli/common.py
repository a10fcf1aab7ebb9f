"""What the verbs of typer share: the judge's flags, progress on stderr, the summary at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragkit.cli.console import PARTIAL, complain, import_modules, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragkit.evaluation.result import Evaluation
    from ragkit.judge.settings import JudgeSettings

__all__ = ["PARTIAL", "complain", "finish", "import_modules", "judge_flags", "judge_settings", "progress", "say",
           "show"]

Metrics = Annotated[
    list[str] | None,
    typer.Option("-m", "--metrics", help="Metrics, such as ndcg@10,recall (repeatable, or with commas)."),
]
Out = Annotated[Path | None, typer.Option("--out", help="The run folder; an existing one resumes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print summary.json to stdout, and nothing else.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="A seeded sample of so many questions.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of the sample and of the intervals.")]
Relevance = Annotated[
    str | None, typer.Option("--relevance", metavar="judge", help="\"judge\": the judge grades every passage for its "
                             "question, so that no gold is needed; each pair is asked once.")
]
PerStepQuery = Annotated[
    bool, typer.Option("--per-step-query", help="Judge each step's passages against the step's own query, too.")
]
JudgeSteps = Annotated[
    bool, typer.Option("--judge-steps", help="Ask context_precision, context_recall and the like of each step's list, "
                       "too, not only at the end.")
]
WithoutContext = Annotated[
    str, typer.Option("--without-context", help="What stands at the end where the app shows no final context: union "
                      "(of its steps' lists, uncut) or rrf (one ranking of them, by reciprocal rank fusion).")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and do nothing.")]
Judge = Annotated[str | None, typer.Option("--judge", help="Who judges, as provider:model, such as openai:gpt-5-mini.")]
JudgeUrl = Annotated[
    str | None, typer.Option("--judge-url", help="An OpenAI-compatible server (http://host/v1); the key comes from the "
                             "environment.")
]
Embeddings = Annotated[str | None, typer.Option("--judge-embeddings", help="Embeddings for answer relevancy.")]
KeyVariable = Annotated[
    str | None, typer.Option("--judge-key-variable", help="The environment variable that holds the judge's key.")
]
JudgeOption = Annotated[
    list[str] | None,
    typer.Option("--judge-option", metavar="NAME=VALUE", help="How the judge is asked: temperature, max_tokens, "
                 "reasoning_effort, attempts, headers.NAME, extra_body.NAME ... (repeatable)."),
]
Language = Annotated[
    str | None, typer.Option("--judge-language", help="The language of the judge's prompts: its name or code, or auto "
                             "for each question's own. By default English, as ragas writes them.")
]
Threshold = Annotated[
    list[Path] | None,
    typer.Option("--threshold", help="A file of `ragkit agreement --calibrate`: adds the share above it (repeatable)."),
]
Labels = Annotated[
    Path | None, typer.Option("--labels", help="What people said of a part of the answers (from `ragkit labels "
                              "import`): means corrected by it stand beside the judge's own.")
]
Rejudge = Annotated[
    int | None, typer.Option("--rejudge", metavar="N", min=1, help="Go on in a folder that another judge judged: "
                             "first so many questions are asked of both, and the offset is told.")
]
Store = Annotated[
    Path | None, typer.Option("--store", path_type=Path, help="The judgement store; by default in the run folder.")
]
Price = Annotated[
    str | None, typer.Option("--price", metavar="IN,OUT", help="What the judge costs per million tokens, such as "
                             "0.25,2. By default as far as a small table knows.")
]
Prices = Annotated[
    Path | None, typer.Option("--prices", path_type=Path, help="A file of prices that goes before that table.")
]
Budget = Annotated[float | None, typer.Option("--budget", min=0, help="Most money the judge may cost.")]
MaxCalls = Annotated[int | None, typer.Option("--max-calls", min=0, help="Most calls of the judge.")]
Concurrency = Annotated[int | None, typer.Option("--concurrency", min=1, help="Judge calls at a time (16).")]
Timeout = Annotated[float | None, typer.Option("--timeout", help="Seconds a judge call may take (60), then retried.")]
Rpm = Annotated[float | None, typer.Option("--rpm", help="Judge requests a minute.")]
Tpm = Annotated[float | None, typer.Option("--tpm", help="Judge tokens a minute.")]
Frozen = Annotated[bool, typer.Option("--frozen", help="Allow no new judge call: use what is in the store.")]
Column = Annotated[list[str] | None, typer.Option("--column", help="A column of the file, as question=Frage.")]
NoText = Annotated[bool, typer.Option("--no-text", help="Write hashes instead of texts in all that can be shared.")]
Imports = Annotated[
    list[str] | None, typer.Option("--import", help="A module of yours that declares metrics (repeatable).")
]
Variant = Annotated[str | None, typer.Option("--variant", help="Name of the variant; by default the folder's name.")]


def judge_flags(context: typer.Context) -> dict[str, Any]:
    """What the flags of a verb say about its judge, as `judge_settings` takes it.

    They are the verb's parameters of the settings' names, with or without judge_ before it; nothing else reads them.
    """
    from dataclasses import fields

    from ragkit.judge.settings import JudgeSettings

    known = {"options", *(entry.name for entry in fields(JudgeSettings))}
    given = {name.removeprefix("judge_"): value for name, value in context.params.items()}
    return {name: value for name, value in given.items() if name in known}


def require_judge(judge: str | None, flags: Mapping[str, Any]) -> None:
    """Refuse what limits or changes a judge where none is named: it would be ignored in silence."""
    given = next((name for name in ("budget", "max_calls", "rpm", "tpm", "price", "prices", "language")
                  if flags.get(name) is not None), None)
    if judge is None and given is not None:
        from ragkit.errors import DataError

        flag = "judge-language" if given == "language" else given.replace("_", "-")
        raise DataError(f"--{flag} is about a judge, and none is named: add --judge openai:gpt-5-mini (any "
                        "provider:model), or --judge-url http://host/v1")


def judge_settings(base: JudgeSettings | None = None, options: list[str] | None = None, **flags: Any) -> JudgeSettings:
    """The settings with the flags that were given laid over them; `options` are the words of --judge-option."""
    from dataclasses import replace

    from ragkit.judge.settings import JudgeSettings

    given = {name: value for name, value in flags.items() if value is not None and value is not False}
    base = base or JudgeSettings()
    if "price" in given:
        from ragkit.judge.prices import parse_price

        given["price"] = parse_price(given["price"])
    if options:
        from ragkit.config import judge_options

        named = judge_options(options)
        for name in ("headers", "extra_body"):
            named.update({name: {**getattr(base, name), **named[name]}} if name in named else {})
        given = {**named, **given}
    return replace(base, **given)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Callable[[str, int | None], Callable[..., None]]]:
    """Bars on stderr, none where it is no terminal. Yields a function (text, total) -> advance."""
    if quiet or not sys.stderr.isatty():
        yield lambda _text, _total: lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:

        def start(text: str, total: int | None) -> Callable[..., None]:
            task = bars.add_task(text, total=total)
            return lambda *_: bars.advance(task)

        yield start


def data_set(name: str) -> str | Path:
    """What a data set is opened by: "sample" is the built-in one (./sample a folder of that name), all else a path."""
    if name != "sample":
        return name
    from ragkit.sample import sample_folder

    return sample_folder()


def finish(evaluation: Evaluation, as_json: bool, page: Path | None) -> None:
    """Print the summary (or its JSON) and leave with 3 where something failed in part."""
    if as_json:
        say(json.dumps(evaluation.summary, ensure_ascii=True, allow_nan=False, indent=2))
    else:
        show(evaluation, page)
    stopped = missing_judgements(evaluation)
    if stopped:
        complain(stopped)
        raise typer.Exit(PARTIAL)
    if evaluation.partial:
        complain(first_failure(evaluation) + (f"; see {page}" if page else ""))
        raise typer.Exit(PARTIAL)


def first_failure(evaluation: Evaluation) -> str:
    """How many judgements and answers failed, and the first of them with its reason."""
    from ragkit.report.numbers import counted

    question, what, why = evaluation.data.failures[0]
    return f"{counted(len(evaluation.data.failures), 'failure')}, first: question {question}, {what}: {why}"


def columns_of(rows: Sequence[Sequence[object]], words: int = 1) -> list[str]:
    """Rows as lines with aligned columns: the first `words` to the left, the others (numbers) to the right.

    >>> columns_of([("metric", "calls"), ("recall", 1200)])
    ['metric  calls', 'recall  1,200']
    """
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) if place < words else cell.rjust(width)
                      for place, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in cells]


def missing_judgements(evaluation: Evaluation) -> str | None:
    """Why the judge was stopped, and what is missing for it; None where it was not."""
    judge = evaluation.summary["judge"]
    if not judge.get("stopped"):
        return None
    each = ", ".join(f"{name} {entry['missing']} of {entry['of']}" for name, entry in judge["not_judged"].items())
    return f"{judge['stopped']}; not judged: {each or 'nothing'}"


def say_spent(all_ledgers: Sequence[Mapping[str, Any]]) -> None:
    """What judging cost: now, and in all runs on the same store. An empty ledger is of a run that nobody judged."""
    from ragkit.report.numbers import counted

    ledgers = [ledger for ledger in all_ledgers if ledger]
    if not ledgers:
        return
    now = {name: sum(ledger[name] for ledger in ledgers) for name in ("calls", "stored", "pooled")}
    costs = [ledger["cost"] for ledger in ledgers if ledger["calls"]]
    say(f"Judge: {counted(now['calls'], 'call')}, {counted(now['stored'], 'answer')} from the store, "
        f"{now['pooled']:,} shared, "
        + cost(None if None in costs else sum(costs)))
    past = ledgers[-1]["all_runs"]
    if past["calls"] > now["calls"]:
        part = past["unpriced_calls"] and past["unpriced_calls"] < past["calls"]
        say(f"All runs on this store: {counted(past['calls'], 'call')}, {cost(past['cost'])}"
            + (f" ({past['unpriced_calls']:,} of them without a price)" if part else ""))


def cost(amount: float | None, most: str = "") -> str:
    """What something of the judge costs, as it stands in a line; without a currency, which prices do not have.

    `most` stands before a known amount.

    >>> cost(0.0454), cost(1.5), cost(None)
    ('cost 0.0454', 'cost 1.50', 'cost unknown (see --price)')
    """
    from ragkit.report.numbers import money

    return "cost unknown (see --price)" if amount is None else f"cost {most}{money(amount, '')}"


def show(evaluation: Evaluation, page: Path | None) -> None:
    from rich.console import Console

    from ragkit.report.terminal import print_summary

    print_summary(evaluation.data, Console())
    say_spent([evaluation.summary["judge"]])
    if page is not None:
        say(f"Report: {page}")
