"""`ragkit report`: write the page of a run folder again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragkit.cli import common


def report(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A folder that ragkit run or score wrote.")],
    questions: Annotated[int | None, typer.Option(min=0, metavar="N", help="Show N questions in full, worst first "
                                                  "(default 50).")] = None,
    as_json: common.AsJson = False,
) -> None:
    """Write report.html and report.md of a run folder again; asks neither the app nor the judge."""
    from ragkit.evaluation.evaluate import areport, run_async
    from ragkit.evaluation.runfolder import RunFolder

    folder = RunFolder(run_folder)
    evaluation = run_async(areport(run_folder, questions))
    evaluation.report(folder.html)
    evaluation.report(folder.markdown)
    common.finish(evaluation, as_json, folder.html)
