"""Times ragkit's rank metrics and its peers in one go, checks that their values agree, and prints the ratios.

    python experiments/benchmarks/rank_metrics/run.py                     all parts at full size
    python experiments/benchmarks/rank_metrics/run.py --questions 698     a quick try
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common import METRICS, TREC_MEASURES, Values
from process import Measured, differences, here, installed, measure, measure_all, read_ours, read_trec_eval

sys.path.append(str(Path(__file__).parents[1]))
from tables import table

TOLERANCE = 1e-6
PARTS = ("files", "variants", "double", "lists")
PEERS = {"pytrec_eval": "peer_pytrec_eval.py", "ir_measures": "peer_ir_measures.py", "ranx": "peer_ranx.py"}
PARSERS = ("polars", "pyarrow")
LISTS = {"ragkit": "ours.py", "pytrec_eval": "peer_pytrec_eval.py", "ir_measures": "peer_ir_measures.py",
         "ranx": "peer_ranx.py", "sklearn": "peer_sklearn.py", "pandas": "peer_plain_python.py"}


Peer = tuple[list[str], Callable[[str], Values], float]  # its command, what reads its output, how exact that is


@dataclass(frozen=True)
class Options:
    folder: Path
    repeats: int
    trec_eval: str | None
    peers: frozenset[str]
    count: int
    list_rounds: int


def ours(options: Options, qrels: str, run: str) -> list[str]:
    return [str(Path(sys.executable).with_name("ragkit")), "rank", str(options.folder / qrels),
            str(options.folder / run), "-m", ",".join(METRICS), "--per-question", "--json"]


def parse_only(options: Options, tool: str, run: str) -> list[str]:
    return [sys.executable, here("parse_only.py"), tool, str(options.folder / run)]


def peers_of_files(options: Options, qrels: str, run: str) -> dict[str, Peer]:
    paths = [str(options.folder / qrels), str(options.folder / run)]
    commands: dict[str, Peer] = {}
    if options.trec_eval is not None and "trec_eval" in options.peers:
        asked = [part for name in TREC_MEASURES for part in ("-m", name)]
        commands["trec_eval"] = ([options.trec_eval, "-q", "-c", "-n", *asked, *paths], read_trec_eval, 0.500001e-4)
    for name, script in PEERS.items():
        if name in options.peers and installed(name):
            commands[name] = ([sys.executable, here(script), "files", *paths], json.loads, TOLERANCE)
    return commands


def part_files(options: Options) -> str:
    """The sorted run against sparse and dense labels, each tool a whole process."""
    parts = []
    for qrels in ("qrels.sparse", "qrels.dense"):
        peers = peers_of_files(options, qrels, "run.sorted")
        found = measure_all({"ragkit rank": ours(options, qrels, "run.sorted"),
                             **{f"parse only, {tool}": parse_only(options, tool, "run.sorted") for tool in PARSERS},
                             **{name: peer[0] for name, peer in peers.items()}}, options.repeats)
        mine, floor = _right(found["ragkit rank"]), _right(found[f"parse only, {PARSERS[0]}"])
        values = read_ours(mine.output)
        rows = [["process", "seconds", "x ours", "x parse", "CPU s", "peak GiB", "values that differ"]]
        for name, one in found.items():
            rows.append([name, f"{one.seconds:.2f}", f"{one.seconds / mine.seconds:.2f}",
                         f"{one.seconds / floor.seconds:.2f}", f"{one.cpu:.2f}", f"{one.peak:.2f}",
                         _agreement(values, one, peers[name]) if name in peers else ""])
        size = (options.folder / "run.sorted").stat().st_size / 1e6
        parts.append(f"run.sorted ({size:.0f} MB), {qrels}\n\n{table(rows)}")
    return "\n\n".join(parts)


def part_variants(options: Options) -> str:
    """The shuffled run, and the one with every score equal, against the sorted one; values against pytrec_eval's."""
    rows = [["run", "seconds", "x sorted", "CPU s", "peak GiB", "values that differ from pytrec_eval"]]
    runs = ("run.sorted", "run.shuffled", "run.equal")
    found = measure_all({run: ours(options, "qrels.sparse", run) for run in runs}, options.repeats)
    for run, one in found.items():
        peer = peers_of_files(options, "qrels.sparse", run).get("pytrec_eval")
        note = _agreement(read_ours(_right(one).output), measure(peer[0]), peer) if peer else "pytrec_eval is absent"
        rows.append([run, f"{one.seconds:.2f}", f"{one.seconds / found['run.sorted'].seconds:.2f}", f"{one.cpu:.2f}",
                     f"{one.peak:.2f}", note])
    return table(rows)


def part_double(options: Options) -> str:
    """Twice the questions in a file, and twice the lists in memory."""
    runs = ("run.half", "run.sorted")
    found = measure_all({run: ours(options, "qrels.sparse", run) for run in runs}, options.repeats)
    half, full = (_right(one).seconds for one in found.values())
    rows = [["work", "seconds", "seconds for twice", "ratio"],
            ["ragkit rank", f"{half:.2f}", f"{full:.2f}", f"{full / half:.2f}"]]
    ways = _lists(options, [("ours.py", options.count), ("ours.py", 2 * options.count)])
    for small, large in zip(ways[:len(ways) // 2], ways[len(ways) // 2:], strict=True):
        rows.append([f"{small['label']}, {options.count:,} lists", f"{small['seconds']:.4f}", f"{large['seconds']:.4f}",
                     f"{large['seconds'] / small['seconds']:.2f}"])
    return table(rows)


def part_lists(options: Options) -> str:
    """Lists in memory, in one process a tool, after its imports and one call. Ratios are taken within each round: the
    median, and the least and the most."""
    rows = [["way", "milliseconds", "x ours, from lists to a frame", "x ours, arrays alone", "values that differ"]]
    scripts = [script for package, script in LISTS.items()
               if package in options.peers | {"ragkit", "pandas"} and installed(package)]
    ways = _lists(options, [(script, options.count) for script in scripts])
    for way in ways:
        compared, off = differences(ways[0]["values"], way["values"], TOLERANCE)
        rows.append([way["label"], f"{1000 * way['seconds']:.2f}", _ratios(way, ways[0]), _ratios(way, ways[1]),
                     f"{off} of {compared:,}"])
    return f"{options.count:,} lists of 3 to 20 ids\n\n{table(rows)}"


def _ratios(way: dict, other: dict) -> str:
    found = [one / two for one, two in zip(way["rounds"], other["rounds"], strict=True)]
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"


def _lists(options: Options, work: list[tuple[str, int]]) -> list[dict]:
    """The ways of some (script, number of lists), with the best time of each round, and of all rounds."""
    ways: dict[tuple[int, str], dict] = {}
    for _ in range(options.list_rounds):
        for place, (script, count) in enumerate(work):
            found = measure([sys.executable, here(script), "lists", str(count), "10"])
            for way in json.loads(_right(found).output):
                ways.setdefault((place, way["label"]), {**way, "rounds": []})["rounds"].append(way["seconds"])
    for way in ways.values():
        way["seconds"] = min(way["rounds"])
    return [ways[key] for key in sorted(ways, key=lambda key: key[0])]


def _right(found: Measured) -> Measured:
    if found.error:
        raise SystemExit(found.error)
    return found


def _agreement(values: Values, found: Measured, peer: Peer) -> str:
    if found.error:
        return f"failed: {found.error.splitlines()[-1][:80]}"
    compared, off = differences(values, peer[1](found.output), peer[2])
    return f"{off} of {compared:,}"


def make_files(folder: Path, questions: int) -> None:
    """Once a folder: a mark tells that they are there."""
    mark = folder / f"made.{questions}"
    if not mark.exists():
        _right(measure([sys.executable, here("data.py"), str(folder), "--questions", str(questions)]))
        mark.touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--questions", type=int, default=6980, help="questions in the files, 1,000 results each")
    parser.add_argument("--lists", type=int, default=5000, help="lists in memory")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each process, the best counts")
    parser.add_argument("--list-rounds", type=int, default=9, help="rounds of all tools on lists in memory")
    parser.add_argument("--peers", nargs="+", default=["trec_eval", *PEERS, "sklearn"], help="peers to run")
    parser.add_argument("--trec-eval", default=shutil.which("trec_eval"), help="the trec_eval binary")
    parser.add_argument("--folder", type=Path, help="where the files are made and kept; by default removed afterwards")
    given = parser.parse_args()
    absent = [name for name in given.peers if name != "trec_eval" and not installed(name)]
    absent += ["trec_eval"] if given.trec_eval is None else []
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}; absent: {', '.join(absent) or 'none'}")
    parts = {"files": part_files, "variants": part_variants, "double": part_double, "lists": part_lists}
    with tempfile.TemporaryDirectory() as temporary:
        options = Options(given.folder or Path(temporary), given.repeats, given.trec_eval, frozenset(given.peers),
                          given.lists, given.list_rounds)
        if set(given.parts) != {"lists"}:
            make_files(options.folder, given.questions)
        for name in given.parts:
            print(f"\n## {name}\n{parts[name].__doc__}\n\n{parts[name](options)}", flush=True)


if __name__ == "__main__":
    main()
