"""`ragkit judgements`: what a judgement file holds, several made into one, and written out for other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ragkit.cli import common
from ragkit.report.numbers import counted

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look after judgement files.")
Where = Annotated[Path, typer.Argument(metavar="STORE", help="A judgement file, or a run folder that was judged.")]


@app.command("stats")
def stats(
    store: Where,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Print what a judgement file holds, by judge and metric, and what all runs on it spent."""
    from ragkit.judge.archive import stats as count
    from ragkit.judge.archive import store_of

    found = count(store_of(store))
    if as_json:
        common.say(json.dumps(found, indent=2, allow_nan=False))
        return
    heads = ("judge", "metric", "judgements", "calls", "tokens in", "tokens out", "failures")
    rows = [(e["judge"], e["metric"], "in relevance" if e["judgements"] is None else e["judgements"], e["calls"],
             e["tokens"]["input"], e["tokens"]["output"], e["failures"]) for e in found["content"]]
    when = f"judged {found['first']} to {found['last']}" if rows else "nothing judged"
    common.say(f"{found['file']}: {found['bytes'] / 1024:,.0f} KiB, {when}")
    for line in common.columns_of([heads, *rows], words=2) if rows else ():
        common.say(line)
    spent = found["spent"]
    unpriced = f" ({counted(spent['unpriced_calls'], 'request')} without a price)" if spent["unpriced_calls"] else ""
    common.say(f"all runs: {spent['runs']}, requests {spent['calls']:,}, tokens {spent['tokens']['input']:,} in, "
               f"{spent['tokens']['output']:,} out, {common.cost(spent['cost'])}{unpriced}")


@app.command("merge")
def merge(
    into: Annotated[Path, typer.Argument(metavar="INTO", help="The judgement file to add to; it may be new.")],
    sources: Annotated[list[Path], typer.Argument(metavar="FROM...", help="Judgement files or run folders.")],
) -> None:
    """Add the judgements of other files to one. What stood first stays; the others are only read."""
    from ragkit.judge.archive import merge as join
    from ragkit.judge.archive import store_of

    target = store_of(into) if into.is_dir() else into
    for table, done in join(target, [store_of(source) for source in sources]).items():
        common.say(f"{table}: {done.added} added, {done.known} known, {done.conflicts} of another content left out")


@app.command("export")
def export(
    store: Where,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.jsonl", help="A judgement a line; - for stdout.")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", metavar="FILE", help="The relevance grades as qrels: BEIR's form where "
                                  "the name ends in .tsv, else TREC's.")
    ] = None,
    calls: Annotated[bool, typer.Option("--calls", help="Write the raw replies, too.")] = False,
    judge: Annotated[
        str | None, typer.Option("--judge", help="Whose grades; needed where several judges graded.")
    ] = None,
) -> None:
    """Write judgements as JSON Lines, or relevance grades as qrels for any other tool."""
    from ragkit.judge.archive import records, store_of
    from ragkit.records.files import write_jsonl

    if out is None and qrels is None:
        raise typer.BadParameter("expected --out FILE.jsonl or --qrels FILE")
    path = store_of(store)
    if out is not None:
        rows = list(records(path, calls))
        if str(out) == "-":
            for row in rows:
                common.say(json.dumps(row, allow_nan=False))
        else:
            write_jsonl(out, rows)
            common.say(f"{out}: {counted(len(rows), 'record')}")
    if qrels is not None:
        from ragkit.judge.qrels import write_qrels

        done = write_qrels(path, qrels, judge)
        common.say(f"{qrels}: {counted(done.grades, 'grade')} of {counted(done.questions, 'question')} by {done.judge}")
