"""What recorded agents did, as tables: by variant and repeat, and by how the trace ended where it says so.

    python experiments/hotpotqa_agents/traces_table.py RUN_FOLDER...        # of `ragkit score` or `ragkit run`

Intervals are 95 %, over questions; the median step is of those that reached complete evidence, counted from 1.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import pandas as pd

from ragkit import Trajectory
from ragkit.evaluation.table import read_scores
from ragkit.evaluation.trajectory_summary import repeats
from ragkit.metrics.statistics import summarize
from ragkit.records.files import read_trajectories
from ragkit.records.judgements import Score

HEAD = ("", "traces", "searches", "complete evidence", "median step", "wasted", "repeated", "found nothing", "recall",
        "survival", "exact match")


@dataclass(frozen=True)
class Trace:
    """A trajectory, the variant that it is of, and its scores: at the end by metric, and of each step."""

    variant: str
    trajectory: Trajectory
    end: dict[str, float | None]
    gains: tuple[float | None, ...]

    @property
    def complete(self) -> float | None:
        return self.end["steps_to_evidence"]


def traces(folder: Path) -> list[Trace]:
    table = read_scores(folder / "scores.parquet")
    variant = str(table.variant.iloc[0])
    ends, gains = {}, {}
    for key, rows in table.groupby(["question_id", "repeat"], observed=True):
        final = rows[rows.step == "final"]
        ends[key] = {name: None if pd.isna(value) else float(value)
                     for name, value in zip(final.metric, final.value, strict=True)}
        own = rows[(rows.metric == "marginal_recall") & (rows.step != "final")].sort_values("step")
        gains[key] = tuple(None if pd.isna(value) else float(value) for value in own.value)
    found = read_trajectories(folder / "trajectories.jsonl")
    return [Trace(variant, one, ends[one.key], gains.get(one.key, ())) for one in found]


def share(found: list[Trace], value: Callable[[Trace], float | bool | None]) -> str:
    scores = [(one.trajectory.question_id, Score.undefined("none") if value(one) is None else Score.scored(value(one)))
              for one in found]
    made = summarize(scores, (0, 1))
    if made.mean is None:
        return "–"
    return f"{made.mean:.3f}" if made.low is None else f"{made.mean:.3f} [{made.low:.3f}, {made.high:.3f}]"


def part(count: int, of: int) -> str:
    return f"{count} of {of} ({count / of:.0%})" if of else "–"


def line(name: str, found: list[Trace]) -> str:
    reached = [one.complete for one in found if one.complete is not None]
    steps = [step for one in found for step in one.trajectory.steps]
    gains = [gain for one in found for gain in one.gains]
    cells = (
        name, str(len(found)), f"{fmean(len(one.trajectory.steps) for one in found):.2f}",
        share(found, lambda one: one.complete is not None), f"{median(reached):g}" if reached else "–",
        part(sum(not gain for gain in gains), len(gains)),
        part(sum(sum(repeats(one.trajectory.steps)) for one in found), len(steps)),
        part(sum(not step.outermost.passages for step in steps), len(steps)),
        *(share(found, lambda one, metric=metric: one.end[metric]) for metric in ("recall", "survival", "exact_match")),
    )
    return f"| {' | '.join(cells)} |"


def table(groups: dict[str, list[Trace]]) -> None:
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name, found in groups.items():
        print(line(name, found))
    print()


def grouped(found: list[Trace], name: Callable[[Trace], str]) -> dict[str, list[Trace]]:
    groups: dict[str, list[Trace]] = {}
    for one in sorted(found, key=name):
        groups.setdefault(name(one), []).append(one)
    return groups


def ended(found: list[Trace]) -> None:
    """How the end that a trace names goes with its evidence: the step at which it was complete."""
    every = sorted({int(one.complete) for one in found if one.complete is not None})
    print(f"| status | {' | '.join(f'step {step}' for step in every)} | never | nothing found |")
    print(f"|{'---|' * (len(every) + 3)}")
    for status, own in grouped(found, lambda one: str(one.trajectory.meta["status"])).items():
        at = Counter(one.complete for one in own)
        nothing = sum(not any(one.gains) for one in own)
        cells = [str(at[step]) for step in every] + [str(at[None] - nothing), str(nothing)]
        print(f"| {status} | {' | '.join(cells)} |")
    print()


def main(folders: list[Path]) -> None:
    found = [one for folder in folders for one in traces(folder)]
    repeated = len({one.trajectory.repeat for one in found}) > 1
    table(grouped(found, lambda one: one.variant + (f", trial {one.trajectory.repeat}" if repeated else "")))
    if all("status" in one.trajectory.meta for one in found):
        table(grouped(found, lambda one: str(one.trajectory.meta["status"])))
        ended(found)


if __name__ == "__main__":
    main(list(map(Path, sys.argv[1:])))
