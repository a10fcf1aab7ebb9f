"""Times ragkit's judge and its peers on the same work, each in a process of its own, and prints the tables.

    python experiments/benchmarks/judge/run.py                        all, about 15 minutes
    python experiments/benchmarks/judge/run.py --parts plain --rounds 1 --only ragkit,aiohttp
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import TIMEOUT, WORKS, Values, calls_one_by_one, calls_pooled

sys.path.append(str(Path(__file__).parents[1]))
from tables import table

HERE = Path(__file__).parent
LATENCY = 0.2
PEERS = {"ragkit": "ours.py", "ragas.evaluate": "peer_evaluate.py",
         "ragas collections + instructor": "peer_collections.py", "aiohttp": "peer_aiohttp.py"}
PARTS = ("plain", "plain at 16", "flaky", "variants", "steps", "warm")


@dataclass(frozen=True)
class Measured:
    """One run of one contender: its own times, what the server saw, and the values."""

    seconds: float
    cpu: float
    values: Values
    server: dict[str, int]
    ragas: bool

    @property
    def calls(self) -> int:
        return self.server.get("calls", 0)

    @property
    def lost(self) -> int:
        return sum(value is None for value in self.values.values())


@contextmanager
def server(*, flaky: bool) -> Iterator[str]:
    """The fake server in a process of its own; its URL."""
    command = [sys.executable, str(HERE / "server.py"), "--latency", str(LATENCY), *(["--flaky"] if flaky else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def counts(url: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{url}/stats") as answer:
        found: dict[str, int] = json.load(answer)
    return found


def measure(script: str, work: str, in_flight: int) -> Measured:
    """One process of a contender, with a server of its own."""
    with server(flaky=work == "flaky") as url:
        return measure_at(url, script, work, in_flight)


def measure_at(url: str, script: str, work: str, in_flight: int, store: str | None = None) -> Measured:
    """One process of a contender; the server's counts are those of this process."""
    before = counts(url)
    command = [sys.executable, str(HERE / script), work, "--url", f"{url}/v1", "--in-flight", str(in_flight)]
    done = subprocess.run([*command, *(["--store", store] if store else [])], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise SystemExit(f"{script} {work}: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    seen = {name: count - before.get(name, 0) for name, count in counts(url).items()}
    return Measured(found["seconds"], found["cpu"], found["values"], seen, found["ragas"])


def rounds(names: list[str], work: str, in_flight: int, count: int) -> dict[str, list[Measured]]:
    """Interleaved, so that a busy minute of the machine falls on all alike."""
    found: dict[str, list[Measured]] = {name: [] for name in names}
    for _ in range(count):
        for name in names:
            found[name].append(measure(PEERS[name], work, in_flight))
            print(f"  {work} {name}: {found[name][-1].seconds:.2f} s", file=sys.stderr)
    return found


def middle(runs: list[Measured]) -> Measured:
    """The run with the median wall time (the lower one of two)."""
    return sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]


def ratio_within_rounds(runs: list[Measured], ours: list[Measured]) -> str:
    found = [one.seconds / mine.seconds for one, mine in zip(runs, ours, strict=True)]
    return f"{statistics.median(found):.1f}"


def differ(ours: Values, theirs: Values) -> str:
    """Values further apart than 1e-6; those that either lost are not compared."""
    both = [(ours[key], value) for key, value in theirs.items()]
    pairs = [(mine, value) for mine, value in both if mine is not None and value is not None]
    off = sum(abs(mine - value) > 1e-6 for mine, value in pairs)
    return f"{off} of {len(pairs)}" if pairs else ""


def part_plain(options: argparse.Namespace, in_flight: int) -> str:
    found = rounds(options.only, "plain", in_flight, options.rounds)
    rows = [["client", "calls", "wall s", "x ideal", "CPU ms a call", "x ours", "lost", "values that differ"]]
    mine = found.get("ragkit", [])
    for name, runs in found.items():
        one = middle(runs)
        ideal = one.calls * LATENCY / in_flight
        cpu = statistics.median(run.cpu for run in runs) / one.calls * 1000
        rows.append([name, f"{one.calls:,}", f"{one.seconds:.2f}", f"{one.seconds / ideal:.2f}", f"{cpu:.2f}",
                     ratio_within_rounds(runs, mine) if mine else "", f"{one.lost} of {len(one.values)}",
                     differ(middle(mine).values, one.values) if mine and name != "ragkit" else ""])
    return f"Clean server, {in_flight} calls in flight\n\n{table(rows)}"


def part_flaky(options: argparse.Namespace) -> str:
    names = [name for name in options.only if name != "aiohttp"]
    found = rounds(names, "flaky", 64, options.rounds)
    clean = rounds(["ragkit"], "plain", 64, options.rounds)["ragkit"] if "ragkit" in names else []
    rows = [["client", "requests", "wall s", "beside the clean run", "CPU ms a call", "lost"]]
    for name, runs in found.items():
        one = middle(runs)
        beside = ""
        if name == "ragkit":
            base = middle(clean).seconds
            beside = (f"{one.seconds / base:.2f} x {base:.2f} s, or 1 x and {(one.seconds - base) / TIMEOUT:.2f} "
                      "time-outs")
        rows.append([name, f"{one.calls:,}", f"{one.seconds:.2f}", beside, f"{one.cpu / one.calls * 1000:.2f}",
                     f"{one.lost} of {len(one.values)}"])
    return f"5 % 500s, 2 % broken JSON, 2 % hangs; a call has {TIMEOUT:g} s, 64 in flight\n\n{table(rows)}"


def part_shared(options: argparse.Namespace, work: str, title: str) -> str:
    rows = [["client", "calls", "fewer than one by one", "what pooling permits", "wall s", "CPU s", "lost"]]
    made = WORKS[work]()
    naive, least = calls_one_by_one(made), calls_pooled(made)
    for name in options.only:
        if name in ("ragkit", "ragas collections + instructor"):
            one = measure(PEERS[name], work, 64)
            rows.append([name, f"{one.calls:,}", f"{100 * (1 - one.calls / naive):.1f} %", f"{least:,} of {naive:,}",
                         f"{one.seconds:.2f}", f"{one.cpu:.2f}", f"{one.lost} of {len(one.values)}"])
    return f"{title}\n\n{table(rows)}"


def part_warm(options: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/judgements.sqlite"
        with server(flaky=False) as url:  # the same for both: another address is another judge
            cold = measure_at(url, PEERS["ragkit"], "plain", 64, store)
            warm = [measure_at(url, PEERS["ragkit"], "warm", 64, store) for _ in range(max(3, options.rounds))]
    one = middle(warm)
    rows = [["store", "scores", "calls", "wall s", "CPU s", "ragas imported", "values that differ"],
            ["empty", str(len(cold.values)), f"{cold.calls:,}", f"{cold.seconds:.2f}", f"{cold.cpu:.2f}",
             _yes(cold.ragas), ""],
            ["full", str(len(one.values)), f"{one.calls:,}", f"{one.seconds:.3f}", f"{one.cpu:.3f}", _yes(one.ragas),
             differ(cold.values, one.values)]]
    return f"The same work again, from the store\n\n{table(rows)}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default=",".join(PARTS), help="some of: " + ", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(PEERS), help="some of: " + ", ".join(PEERS))
    options = parser.parse_args()
    options.only = [name.strip() for name in options.only.split(",")]
    made = {
        "plain": lambda: part_plain(options, 64),
        "plain at 16": lambda: part_plain(options, 16),
        "flaky": lambda: part_flaky(options),
        "variants": lambda: part_shared(options, "variants",
                                        "Four variants with 3 of 5 passages in common, both context metrics"),
        "steps": lambda: part_shared(options, "steps",
                                     "Three steps that find half of the last one's passages again, and the end"),
        "warm": lambda: part_warm(options),
    }
    for part in options.parts.split(","):
        print(made[part.strip()](), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
