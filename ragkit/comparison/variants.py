"""What is to be compared, as a user names it, becomes sides with names of their own. Compares nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragkit.comparison.sides import Side, side_of_evaluation, side_of_folder
from ragkit.errors import DataError, shown
from ragkit.evaluation.result import Evaluation
from ragkit.evaluation.runfolder import read_run
from ragkit.records.files import read_object

FILE, PAGE = "comparison.json", "comparison.html"


def open_sides(variants: Mapping[str, Any] | Iterable[Any]) -> list[Side]:
    """A side for each variant: a run folder, an Evaluation, or a side; a mapping names them.

    One folder of an experiment stands for all variants in it. Variants of equal names are told apart by their folders.
    Raises DataError for fewer than two.
    """
    if isinstance(variants, (str, Path)):
        variants = [variants]
    if isinstance(variants, Mapping):
        sides = [_side(value, str(name)) for name, value in variants.items()]
    else:
        given = list(variants)
        if len(given) == 1 and isinstance(given[0], (str, Path)):
            given = [*_experiment(Path(given[0]))]
        sides = _named_apart([_side(value) for value in given])
    if len(sides) < 2:
        raise DataError(f"variants: expected at least two to compare, got {len(sides)}; name run folders that `ragkit "
                        "run` or `ragkit score` wrote, or the folder of an experiment with variants")
    return sides


def baseline_of(sides: Sequence[Side], wanted: str | None) -> str:
    """The name of the baseline: the first variant, unless one is named, by its name or its folder."""
    if wanted is None:
        return sides[0].name
    for side in sides:
        if wanted == side.name:
            return side.name
    for side in sides:
        if side.folder is not None and Path(wanted).resolve() == side.folder.resolve():
            return side.name
    raise DataError(f"--baseline {shown(wanted)}: expected one of {', '.join(side.name for side in sides)}")


def _side(value: Any, name: str | None = None) -> Side:
    if isinstance(value, Side):
        return value if name is None else value.named(name)
    if isinstance(value, Evaluation):
        return side_of_evaluation(name or value.plan.variant, value)
    if isinstance(value, (str, Path)):
        if Path(value).is_file():
            raise DataError(f"{value}: expected a run folder, found a file; run files are compared with their labels: "
                            "add --qrels QRELS (in Python: qrels=…)")
        return side_of_folder(value, name)
    raise DataError(f"variants: expected run folders or results of ragkit.evaluate, got {type(value).__name__}")


def _experiment(folder: Path) -> list[Path]:
    """The run folders in the folder of an experiment, in the order of its variants."""
    if (folder / "run.json").exists():
        return [folder]
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; expected run folders, or the folder of an experiment")
    found = sorted(path for path in folder.iterdir() if (path / "run.json").exists())
    if not found:
        raise DataError(f"{folder}: no run.json in it or in a folder in it; expected the folder of an experiment that "
                        "`ragkit run` wrote")
    runs = {path: read_run(path) for path in found}
    known = list(read_object(folder / FILE)["variants"]) if (folder / FILE).exists() else []

    def place(path: Path) -> tuple[int, str, str]:
        name = runs[path].get("variant", path.name)
        return known.index(name) if name in known else len(known), runs[path].get("started", ""), path.name

    return sorted(found, key=place)


def _named_apart(sides: Sequence[Side]) -> list[Side]:
    """Equal names become the folders' names, and where those are equal, too, their paths as given."""
    found = list(sides)
    for rename in (lambda side: side.folder.name, lambda side: str(side.folder)):
        counts = Counter(side.name for side in found)
        found = [replace(side, name=rename(side)) if counts[side.name] > 1 and side.folder is not None else side
                 for side in found]
    twice = [name for name, count in Counter(side.name for side in found).items() if count > 1]
    if twice:
        raise DataError(f"variants: {twice[0]!r} is given twice; expected each under a name of its own, as "
                        "ragkit.compare({\"name\": …})")
    return found
