"""Times watching an app, each contender in a process of its own, and prints the tables.

    python experiments/benchmarks/recording/run.py                       all, about 6 minutes
    python experiments/benchmarks/recording/run.py --parts callback,store --rounds 3
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from tables import table

HERE = Path(__file__).parent
CONTENDERS = ("plain", "ragkit, no trace", "ragkit", "OpenInference")
LIMITS = {("callback", "ragkit"): 100.0, ("store", "ragkit"): 150.0, ("callback", "ragkit, no trace"): 3.0,
          ("store", "ragkit, no trace"): 3.0}
TITLES = {
    "callback": "A retriever's call that gives 10 passages, seen by callback",
    "store": "A store's call that gives 10 passages with scores, seen by the patch",
    "app": "One question to a chain over 1,000 passages, with everything: trace, file",
}


def measure(contender: str, part: str, *more: str) -> Any:
    """One process; what it printed."""
    done = subprocess.run([sys.executable, str(HERE / "worker.py"), contender, part, *more], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{contender} {part}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def part_times(part: str, rounds: int) -> str:
    """Interleaved, so that a busy minute of the machine falls on all alike; differences are taken within a round."""
    names = [name for name in CONTENDERS if (part, name) != ("store", "OpenInference")]  # it sees callbacks alone
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(measure(name, part) * 1e6)
            print(f"  {part} {name}: {found[name][-1]:.1f} us", file=sys.stderr)
    rows = [["contender", "CPU us a call", "more than plain", "of these rounds", "must", "x plain"]]
    for name in names:
        more = [one - bare for one, bare in zip(found[name], found["plain"], strict=True)]
        times = [one / bare for one, bare in zip(found[name], found["plain"], strict=True)]
        limit = LIMITS.get((part, name))
        rows.append([name, f"{statistics.median(found[name]):,.1f}",
                     "" if name == "plain" else f"{statistics.median(more):,.1f}",
                     "" if name == "plain" else f"{min(more):,.1f} to {max(more):,.1f}",
                     "" if limit is None else f"<= {limit:g}",
                     "" if part == "store" or name == "plain" else f"{statistics.median(times):.2f}"])
    return f"{TITLES[part]}\n\n{table(rows)}"


def part_memory(traces: int) -> str:
    rows = [["what", "value"]]
    rows += [[what, f"{value:,.1f}"] for what, value in measure("ragkit", "memory", str(traces)).items()]
    return f"Memory over {traces:,} traces, Recorder(path=...), after the first tenth\n\n{table(rows)}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default="callback,store,app,memory", help="some of: callback, store, app, memory")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--traces", type=int, default=10_000)
    options = parser.parse_args()
    for part in options.parts.split(","):
        made = part_memory(options.traces) if part == "memory" else part_times(part.strip(), options.rounds)
        print(made, end="\n\n", flush=True)


if __name__ == "__main__":
    main()
