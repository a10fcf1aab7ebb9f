"""`ragkit labels check`: do the labels fit the data, before anything is run?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragkit.cli import common
from ragkit.cli.score import columns

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look after the labels of a data set.")


@app.callback()
def _group() -> None:
    """Keeps `check` a verb of its own while it is the only one."""


@app.command("check")
def check(
    dataset: Annotated[str, typer.Argument(help="A folder in BEIR's form, or a CSV, TSV or JSON Lines file.")],
    trajectories: Annotated[
        Path | None, typer.Option("--trajectories", help="Match gold texts on the passages seen in this file.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which qrels of a BEIR folder.")] = "test",
    column: common.Column = None,
) -> None:
    """Print the label states, the gold ids that resolve, and the gold texts that match."""
    from ragkit.records.labels import check_labels
    from ragkit.records.readers import load_dataset

    data = load_dataset(dataset, columns=columns(column), split=split)
    passages = None
    if trajectories is not None:
        from ragkit.evaluation.units import seen_passages
        from ragkit.records.files import read_trajectories

        passages = list(seen_passages(read_trajectories(trajectories)).values())
    ids = data.corpus.keys() if data.corpus is not None else None
    common.say(str(check_labels(data, ids, passages)))
