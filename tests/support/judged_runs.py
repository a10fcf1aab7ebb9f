"""Whole runs of `ragkit score` over recorded rows, in processes of their own: to be judged, killed and compared."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
CHILDREN = """
import json, os, sys
from ragkit.cli.main import main
from ragkit.judge.ragas_scores import load_ragas
import ragkit.evaluation.evaluate, ragkit.report.html
load_ragas()
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = 70
        try:
            sys.argv = ["ragkit", *json.loads(line)]
            sys.stdout = sys.stderr
            main()
            code = 0
        except SystemExit as error:
            code = error.code or 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.write(1, f"{child}\\n".encode())
    os.write(1, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\\n".encode())
"""


class Commands:
    """Runs `ragkit` in children of one process that has imported everything, so that a start costs little."""

    def __init__(self) -> None:
        self._parent = subprocess.Popen([sys.executable, "-c", CHILDREN], text=True, cwd=ROOT, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def start(self, *words: str) -> int:
        """The process id of the child."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(words) + "\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())

    def wait(self) -> int:
        assert self._parent.stdout is not None
        return int(self._parent.stdout.readline())

    def close(self) -> None:
        self._parent.communicate()


def recorded(folder: Path, rows: int) -> tuple[str, str]:
    """A data set and trajectories: row n speaks of place n alone, finds its gold at rank 1 of 2, and every third answer
    is not supported by what was found."""
    data, trajectories = folder / "data", folder / "trajectories.jsonl"
    asked, done, gold = [], [], ["query-id\tcorpus-id\tscore"]
    for n in range(rows):
        question, truth = f"Where does place {n} lie?", f"Place {n} lies at river {n}."
        said = truth if n % 3 else f"Castle {n} burns tonight."
        passages = [{"id": f"d{n}a", "text": truth}, {"id": f"d{n}b", "text": f"Mill {n} grinds corn."}]
        asked.append({"_id": f"q{n}", "text": question, "answers": [truth]})
        gold.append(f"q{n}\td{n}a\t1")
        done.append({"schema": "ragkit.trajectory/1", "question_id": f"q{n}", "question": question,
                     "steps": [{"retrievals": [{"query": question, "passages": passages}]}],
                     "context": {"passages": passages, "stage": "context"}, "answer": said})
    (data / "qrels").mkdir(parents=True, exist_ok=True)
    (data / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    (data / "qrels" / "test.tsv").write_text("\n".join(gold) + "\n", encoding="utf-8")
    trajectories.write_text("".join(json.dumps(row) + "\n" for row in done), encoding="utf-8")
    return str(data), str(trajectories)


def score_command(made: tuple[str, str], url: str, out: Path, metrics: Sequence[str], *more: str) -> list[str]:
    """The words of `ragkit score` for what `recorded` made."""
    data, trajectories = made
    return ["score", trajectories, "--dataset", data, "--out", str(out), "-m", ",".join(metrics),
            "--judge", "test-model", "--judge-url", url, "--json", *more]


def final_scores(folder: Path, metrics: Sequence[str]) -> pd.DataFrame:
    """The rows of a run folder at the end of each question, in a fixed order."""
    found = pd.read_parquet(folder / "scores.parquet")
    found = found[found["metric"].astype(str).isin(metrics) & (found["step"].astype(str) == "final")]
    kept = found[["question_id", "metric", "value", "status", "reason"]].astype({"question_id": str, "metric": str})
    return kept.sort_values(["question_id", "metric"]).reset_index(drop=True)
