"""The command `ragkit`: gathers the verbs and turns errors into one line and an exit code.

Most verbs are typer's. Those of which the whole process is timed (cli/rank.py, cli/explain.py) parse their own
arguments: typer and pydantic take longer to load than a small run takes to score.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

from ragkit.cli.console import INTERNAL, INTERRUPTED, WRONG_INPUT, complain
from ragkit.errors import RagkitError

if TYPE_CHECKING:
    import typer

_LIGHT = {
    "rank": "Score run files against qrels: one table for all runs.",
    "explain": "What a metric is, the terms behind one value, why another tool differs.",
}


def typer_app() -> typer.Typer:
    """All verbs; the light ones stand in it for the help."""
    import typer

    from ragkit.cli import (
        agreement,
        compare,
        demo,
        doctor,
        exports,
        gate,
        history,
        imports,
        init,
        judgements,
        labels,
        record,
        report,
        run,
    )
    from ragkit.cli.score import score

    app = typer.Typer(
        name="ragkit",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help="Tells where a RAG app fails: rank metrics of every step beside judge metrics, in one report.",
    )
    app.command("demo")(demo.demo)
    app.command("init")(init.init)
    app.command("doctor")(doctor.doctor)
    app.command("run")(run.run)
    app.command("record")(record.record)
    app.command("import")(imports.import_traces)
    app.command("export")(exports.export)
    app.command("score")(score)
    for verb, text in _LIGHT.items():
        app.command(verb, help=text)(lambda: None)
    app.command("compare")(compare.compare)
    app.command("gate")(gate.gate)
    app.command("history")(history.history)
    app.command("report")(report.report)
    app.command("agreement")(agreement.agreement)
    app.add_typer(labels.app, name="labels")
    app.add_typer(judgements.app, name="judgements")
    return app


def main() -> None:
    """The console script. Exit codes: 0 fine, 1 a gate fails, 2 wrong input, 3 failed in part, 4 a gate cannot decide,
    70 internal error, 130 Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console that cannot show a sign must not cost the run
    try:
        code = _run(sys.argv[1:])
    except RagkitError as error:
        complain(str(error))
        sys.exit(WRONG_INPUT)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        if hasattr(error, "format_message"):  # the call itself is wrong: an unknown option, a missing argument
            complain(f"{error.format_message()} (see ragkit {' '.join(sys.argv[1:2])} --help)")
            sys.exit(WRONG_INPUT)
        if isinstance(error, OSError) and error.strerror:
            complain(f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror)
            sys.exit(WRONG_INPUT)
        import traceback

        traceback.print_exc()
        complain("internal error: this is a fault of ragkit; please report it with the lines above")
        sys.exit(INTERNAL)
    if code == INTERRUPTED:  # typer turns Ctrl-C into this code by itself, and says nothing
        complain("interrupted; what was finished is kept, the same command goes on from there")
    if isinstance(code, int):
        sys.exit(code)


def _run(arguments: list[str]) -> object:
    if arguments and arguments[0] in _LIGHT:
        try:
            importlib.import_module(f"ragkit.cli.{arguments[0]}").run(arguments[1:])
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the pipe (head) has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return None
    import typer

    try:
        return typer_app()(standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
