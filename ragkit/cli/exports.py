"""`ragkit export`: a run folder written for other tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragkit.cli import common

if TYPE_CHECKING:
    from ragkit.evaluation.exporting import Export

FORMATS = {"openinference": "openinference.jsonl", "ragas": "ragas.jsonl", "trec": "trec",
           "annotations": "annotations.jsonl", "feedback": "feedback.jsonl"}
_TOOLS = {"annotations": "openinference", "feedback": "langsmith"}


def export(
    tool: Annotated[str, typer.Argument(metavar="FORMAT", help=f"{', '.join(FORMATS)}.")],
    run: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run folder, or a file of trajectories.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write (a folder for trec; .csv or .jsonl for ragas); by "
                                  "default in the run folder.")
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="ragas: add the scores at the end as columns.")] = False,
    no_text: common.NoText = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as JSON to stdout, and nothing else.")
    ] = False,
) -> None:
    """Write a run for another tool: spans, rows of ragas, TREC run files, or scores for where its traces came from.

    What the other form cannot hold is said on stderr.
    """
    from ragkit.errors import DataError
    from ragkit.evaluation.exporting import open_export

    if tool not in FORMATS:
        raise DataError(f"export: expected a format of {', '.join(FORMATS)}, got {tool!r}")
    if scores and tool != "ragas":
        raise DataError("export: --scores adds columns to the rows of ragas; expected `export ragas`")
    found = open_export(run, no_text)
    target = out or (run if run.is_dir() else run.parent) / FORMATS[tool]
    writers: Mapping[str, Callable[[Export, Path], tuple[dict[str, int], list[str]]]] = {
        "openinference": _spans, "trec": _trec, "ragas": lambda one, path: _ragas(one, path, scores),
    }
    if tool in _TOOLS:
        counts, notes = _scores_back(found, _new(target), tool)
    else:
        counts, notes = writers[tool](found, _new(target) if tool != "trec" else target)
    for note in notes:
        common.complain(f"note: {note}")
    if as_json:
        told = {"format": tool, "out": str(target), "counts": counts, "notes": notes}
        common.say(json.dumps(told, ensure_ascii=True, allow_nan=False, indent=2))
        return
    common.say(f"Wrote {target}: " + ", ".join(f"{count:,} {name}" for name, count in counts.items()))
    if tool == "trec" and (target / "qrels.trec").exists():
        common.say(f"Then: ragkit rank {target / 'qrels.trec'} {target / 'final.trec'}")


def _new(path: Path) -> Path:
    from ragkit.errors import DataError

    if path.exists():
        raise DataError(f"{path}: exists; name another --out, or remove it")
    return path


def _spans(run: Export, path: Path) -> tuple[dict[str, int], list[str]]:
    from ragkit.recording.formats.writers_openinference import openinference_spans
    from ragkit.records.files import write_jsonl

    spans = list(openinference_spans(run.shareable, run.variant, run.started))
    write_jsonl(path, spans)
    untimed = sum(found.started is None for one in run.trajectories for step in one.steps for found in step.retrievals)
    notes = [f"{untimed:,} lists have no time of their own: theirs only says their order"] if untimed else []
    return {"traces": len(run.trajectories), "spans": len(spans)}, notes


def _ragas(run: Export, path: Path, scores: bool) -> tuple[dict[str, int], list[str]]:
    from ragkit.evaluation.exporting import ragas_rows
    from ragkit.recording.formats.writers_ragas import write_ragas

    rows, notes = ragas_rows(run, scores)
    write_ragas(path, rows)
    return {"rows": len(rows), "contexts": sum(len(row.contexts or ()) for row in rows)}, notes


def _trec(run: Export, folder: Path) -> tuple[dict[str, int], list[str]]:
    from ragkit.evaluation.exporting import trec_labels, trec_lists
    from ragkit.recording.formats.writers_trec import qrels_lines, run_lines
    from ragkit.records.files import write_text

    files, notes = trec_lists(run)
    labels = trec_labels(run)
    texts: dict[Path, Sequence[str]] = {}
    ranks = []
    for name, lists in files.items():
        texts[_new(folder / name)], source = run_lines(lists, run.variant)
        ranks += [name] if source == "rank" else []
    if labels:
        texts[_new(folder / "qrels.trec")] = qrels_lines(labels)
    for path, lines in texts.items():
        write_text(path, "".join(f"{line}\n" for line in lines))
    if ranks:
        notes.insert(0, f"scores in {', '.join(ranks)} are ranks turned round: not every list has own scores that "
                        "fall from rank to rank")
    counts = {"run files": len(files), "lists": sum(map(len, files.values())),
              "lines": sum(map(len, texts.values())) - len(texts.get(folder / "qrels.trec", ())),
              "labels": sum(map(len, (labels or {}).values()))}
    return counts, notes


def _scores_back(run: Export, path: Path, tool: str) -> tuple[dict[str, int], list[str]]:
    from ragkit.errors import DataError
    from ragkit.recording.formats.annotations import annotation_rows, feedback_rows
    from ragkit.records.files import write_jsonl
    from ragkit.records.questions import text_id

    scores: list[dict[Any, Any]] = run.scores().to_dict("records")
    if run.no_text:  # the reason of a failure may quote a text
        scores = [{**row, "reason": text_id(row["reason"])} if row["status"] == "failed" and isinstance(
            row["reason"], str) else row for row in scores]
    rows = list((annotation_rows if tool == "annotations" else feedback_rows)(run.trajectories, scores))
    if not rows:
        raise DataError(f"{run.path}: no score belongs to a trace of {_TOOLS[tool]}; expected a run over what `ragkit "
                        f"import {_TOOLS[tool]}` wrote, with its texts")
    write_jsonl(path, rows)
    left = len(scores) - len(rows)
    return {"rows": len(rows)}, [f"{left:,} of {len(scores):,} scores belong to no known span and are left out"] \
        if left else []
