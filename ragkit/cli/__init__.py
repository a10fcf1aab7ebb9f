"""The command line: a file a verb. Everything heavy is imported inside the verb that needs it."""

from ragkit.cli.main import main

__all__ = ["main"]
