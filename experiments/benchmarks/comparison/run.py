"""Times comparing variants as whole processes: our compare() and the same tests by scipy; prints the table.

    python experiments/benchmarks/comparison/run.py                          all, some 5 minutes
    python experiments/benchmarks/comparison/run.py --questions 1000 --rounds 1
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from tables import table

HERE = Path(__file__).parent
LIMIT = 10.0  # seconds for the whole comparison of 3 variants x 10,000 questions x 15 metrics


def measure(*words: str) -> Any:
    """One process; what it printed."""
    done = subprocess.run([sys.executable, str(HERE / "worker.py"), *words], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    names = ("compare", "compare, no lists", "compare_pairs", "scipy permutation_test", "scipy bootstrap")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(options.rounds):  # interleaved, so that a busy minute of the machine falls on all alike
        for name in names:
            found[name].append(measure(name, str(options.questions)))
            print(f"  {name}: {found[name][-1]}  load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    rows = [["what", "differences", "seconds", "CPU s", "CPU s a difference", "x ours, a difference", "must"]]
    ours = statistics.median(one["cpu"] / one["differences"] for one in found["compare_pairs"])
    for name in names:
        seconds, cpu = ([one[key] for one in found[name]] for key in ("seconds", "cpu"))
        each = statistics.median(one["cpu"] / one["differences"] for one in found[name])
        rows.append([name, f"{found[name][0]['differences']:g}", f"{min(seconds):.2f} to {max(seconds):.2f}",
                     f"{min(cpu):.2f} to {max(cpu):.2f}", f"{each:.3f}", f"{each / ours:.1f}",
                     f"<= {LIMIT:g} s" if name.startswith("compare,") or name == "compare" else ""])
    apart = [one["p_apart"] for one in found["scipy permutation_test"]]
    print(f"3 variants x {options.questions:,} questions x 15 metrics, 10,000 resamples; the machine's load was "
          f"{os.getloadavg()[1]:.1f} on {os.cpu_count()} cores\n\n{table(rows)}\n\n"
          f"p of scipy and ours differ by at most {max(apart):.4f}.")


if __name__ == "__main__":
    main()
