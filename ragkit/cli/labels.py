"""`ragkit labels`: do gold labels fit the data (check); answers for people to label (sample), read back (import)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragkit.cli import common
from ragkit.cli.score import columns
from ragkit.report.numbers import counted

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None,
                  help="Gold labels of a data set, and people's labels of a run's answers.")


@app.command("check")
def check(
    dataset: Annotated[str, typer.Argument(help="A folder in BEIR's form, a CSV, TSV or JSON Lines file, or "
                                           "sample, the built-in one.")],
    trajectories: Annotated[
        Path | None, typer.Option("--trajectories", help="Match gold texts on the passages seen in this file.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which qrels of a BEIR folder.")] = "test",
    column: common.Column = None,
) -> None:
    """Print the label states, the gold ids that resolve, and the gold texts that match."""
    from ragkit.records.labels import check_labels
    from ragkit.records.readers import load_dataset

    data = load_dataset(common.data_set(dataset), columns=columns(column), split=split)
    passages = None
    if trajectories is not None:
        from ragkit.evaluation.units import seen_passages
        from ragkit.records.files import read_trajectories

        passages = list(seen_passages(read_trajectories(trajectories)).values())
    ids = data.corpus.keys() if data.corpus is not None else None
    common.say(str(check_labels(data, ids, passages)))


@app.command("sample")
def sample(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A folder that ragkit run or score wrote.")],
    count: Annotated[int, typer.Option("--n", min=1, help="How many answers to label.")] = 60,
    metric: Annotated[
        str | None, typer.Option("--metric", help="What is labelled; by default faithfulness, or what was judged.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Groups that are all to be seen: category (the default), none, or a "
                                 "field of the questions' metadata.")
    ] = None,
    like: Annotated[
        Path | None, typer.Option("--like", help="Labels of another run: the same questions, for a paired difference.")
    ] = None,
    seed: common.Seed = None,
    out: Annotated[Path | None, typer.Option("--out", help="The sheet; by default labels-METRIC.csv here.")] = None,
) -> None:
    """Draw answers of a run for people to label, as a CSV sheet: fill in the column label, leave the rest.

    As many answers that the judge scored low are drawn as others, on purpose; each row keeps the number of questions
    that it stands for. What the judge said is not in the sheet.
    """
    from ragkit.errors import DataError
    from ragkit.evaluation.label_report import read_labels
    from ragkit.evaluation.label_sample import how_to_label, same_questions, sample_labels
    from ragkit.evaluation.label_sheets import write_sheet
    from ragkit.evaluation.reopen import reopen
    from ragkit.metrics.registry import parse

    past = reopen(run_folder)
    if like is not None:
        others = read_labels(like)
        wanted = metric or others[0].metric
        labels, missing = same_questions(past, [one for one in others if one.metric == wanted])
        if not labels:
            raise DataError(f"{like}: no label for {wanted} of a question that {run_folder} answered")
        measured = parse(wanted)
        told = f"the questions of {like}" + (f", {missing} of them are missing here" if missing else "")
    else:
        drawn = sample_labels(past, metric, count, by, seed or 0)
        measured, labels = drawn.metric, drawn.labels
        told = f"of {counted(drawn.pool, 'question')}, low scores of {drawn.drawn_by.name} on purpose among them"
    path = out or Path(f"labels-{measured.name}.csv")
    if path.exists():
        raise DataError(f"{path}: exists, and may hold labels; name another --out")
    write_sheet(path, labels, how_to_label(measured))
    common.say(f"{path}: {counted(len(labels), 'answer')} to label ({told})")
    common.say(f"Column label: {how_to_label(measured)}. Leave it empty where you cannot tell.")
    common.say(f"Then: ragkit labels import {path} {run_folder}")


@app.command("import")
def import_sheet(
    sheet: Annotated[Path, typer.Argument(metavar="SHEET.csv", help="A filled-in sheet of ragkit labels sample; with "
                                          "--qrels one of ragkit compare --holes.")],
    run_folder: Annotated[
        Path | None, typer.Argument(metavar="RUN_DIR", help="The run that it was drawn from: its report is made "
                                    "again.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A JSON Lines file to add the labels to instead; with "
                                             "--qrels the labels to write.")] = None,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", help="Grades of passages: the labels that --out is to hold, too.")
    ] = None,
    annotator: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Keep the labels as those of a further person, to be "
                                 "compared with the first one's; they correct nothing.")
    ] = None,
    skip_changed: Annotated[
        bool, typer.Option("--skip-changed", help="Leave out rows whose texts were changed, instead of refusing all.")
    ] = False,
) -> None:
    """Read labels back, check that nobody changed the texts, and show the corrected means."""
    from ragkit.errors import DataError
    from ragkit.evaluation.label_import import in_a_file, in_a_run
    from ragkit.evaluation.label_sheets import checked_sheet

    if (run_folder is None) == (out is None):
        raise DataError("labels import: expected either the run folder or --out LABELS.jsonl")
    if qrels is not None:
        _import_grades(sheet, qrels, out)
        return
    labels, changed = checked_sheet(sheet, skip_changed)
    if run_folder is not None:
        done = in_a_run(run_folder, labels, annotator)
    else:
        done = in_a_file(Path(str(out)), labels, annotator)
    common.say(done.line(changed))
    if done.evaluation is not None:
        common.show(done.evaluation, done.page)


def _import_grades(sheet: Path, qrels: Path, out: Path | None) -> None:
    from ragkit.comparison.holes_sheet import grades_into_qrels
    from ragkit.errors import DataError

    if out is None:
        raise DataError("labels import --qrels: expected --out NEW_QRELS, which then holds the old and the new grades")
    done = grades_into_qrels(sheet, qrels, out)
    other = f", {counted(done.changed, 'earlier grade')} replaced" if done.changed else ""
    left = f", {counted(done.empty, 'row')} left empty" if done.empty else ""
    common.say(f"{out}: {counted(done.grades, 'grade')} beside those of {qrels}{other}{left}")
