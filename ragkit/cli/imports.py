"""`ragkit import`: traces and results of other tools -> trajectories.jsonl, and a dataset folder for their gold."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragkit.cli import common
from ragkit.cli.score import columns

if TYPE_CHECKING:
    from ragkit.recording.formats.imported import Holdings, Imported
    from ragkit.recording.formats.matching import Matched
    from ragkit.records.questions import Dataset

_MOST_LISTED = 5


def import_traces(
    tool: Annotated[
        str, typer.Argument(metavar="FORMAT", help="openinference, langsmith, ragas, deepeval or autorag.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What the other tool wrote.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("trajectories.jsonl"),
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="The questions that the traces belong to: a folder in BEIR's form, "
                                 "or a CSV or JSON Lines file.")
    ] = None,
    match: Annotated[
        str | None, typer.Option("--match", metavar="id|text|metadata:KEY", help="What joins a trace to its question; "
                                 "by default its id, question_id or id in its metadata, then its text.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which qrels of a BEIR folder.")] = "test",
    column: common.Column = None,
    no_text: common.NoText = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as JSON to stdout, and nothing else.")
    ] = False,
) -> None:
    """Read traces or results of another tool, join them to your questions, and write trajectories to score."""
    from ragkit.errors import DataError
    from ragkit.recording.formats import FORMATS
    from ragkit.recording.formats.imported import holdings
    from ragkit.recording.formats.matching import match as match_questions
    from ragkit.records.files import write_trajectories

    if tool not in FORMATS:
        raise DataError(f"import: expected a format of {', '.join(FORMATS)}, got {tool!r}")
    if match is not None and dataset is None:
        raise DataError("import: --match joins traces to the questions of a --dataset; expected one")
    folder = out.with_name(f"{out.stem}-dataset")
    for path in (out, folder):
        if path.exists():
            raise DataError(f"{path}: exists; name another --out, or remove it")
    found = FORMATS[tool](file)
    matched, gold = None, found.dataset
    if dataset is not None:
        from ragkit.records.readers import load_dataset

        matched = match_questions(found.trajectories, load_dataset(dataset, columns(column), split), match)
        gold = None  # under other ids than the trajectories now have
    trajectories = found.trajectories if matched is None else matched.trajectories
    if trajectories:  # questions alone are a dataset, no run of an app
        write_trajectories(out, trajectories, include_text=not no_text)
    written = _write_gold(folder, gold, no_text)
    held = holdings(trajectories)
    if as_json:
        told: dict[str, Any] = {
            "format": tool, "out": str(out) if trajectories else None,
            "dataset": None if written is None else str(written), "counts": asdict(held), "notes": list(found.notes),
            "matched": None if matched is None else {"by": dict(matched.counts), "ambiguous": list(matched.ambiguous),
                                                     "unmatched": list(matched.unmatched)}}
        common.say(json.dumps(told, ensure_ascii=True, allow_nan=False, indent=2))
        return
    for line in _lines(held, found, matched):
        common.say(line)
    files = [str(path) for path in (out if trajectories else None, written) if path is not None]
    common.say(f"Wrote {' and '.join(files) or 'nothing: there is no trajectory'}")
    if trajectories:
        common.say(f"Then: ragkit score {out} --dataset {written or dataset or 'QUESTIONS'} --out runs/{out.stem}")


def _write_gold(folder: Path, gold: Dataset | None, no_text: bool) -> Path | None:
    """The folder that the file's own questions and gold were written to, if any; they are texts."""
    if gold is None or no_text:
        return None
    from ragkit.records.readers.beir import write_folder

    write_folder(folder, gold)
    return folder


def _lines(held: Holdings, found: Imported, matched: Matched | None) -> list[str]:
    """The counts in words."""
    from ragkit.report.numbers import counted

    lines = [] if not held.trajectories else [
        f"{counted(held.trajectories, 'trace')} of {counted(held.questions, 'question')}; {held.without_search:,} "
        f"without a search, {held.with_context:,} with a known context",
        f"{counted(held.searches, 'search', 'searches')}, {held.failed_searches:,} failed; "
        f"{counted(held.passages, 'passage')}, "
        f"{held.without_id:,} without an id, {held.without_score:,} without a score, "
        f"{held.without_text:,} without a text",
    ]
    if matched is not None:
        lines.append("joined by " + ", ".join(f"{way}: {count:,}" for way, count in matched.counts.items()))
        lines += _listed(matched.ambiguous, "several questions")
        lines += _listed(matched.unmatched, "no question")
    if found.dataset is not None and not held.trajectories:
        states = list(found.dataset.label_states().values())
        lines.append(f"{counted(len(states), 'question')}, {states.count('labelled'):,} with gold; no trace of an app")
    return lines + [f"note: {note}" for note in found.notes]


def _listed(items: tuple[str, ...], matching: str) -> list[str]:
    if not items:
        return []
    more = len(items) - _MOST_LISTED
    who = f"1 trace matches {matching} and was" if len(items) == 1 else (
        f"{len(items):,} traces match {matching} and were")
    return [f"{who} left out:", *(f"  {item}" for item in items[:_MOST_LISTED]),
            *([f"  and {more:,} more (--json lists all)"] if more > 0 else [])]
