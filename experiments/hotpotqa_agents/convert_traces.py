"""Real ReAct and Reflexion traces -> trajectories that `ragkit score` reads.

    python experiments/hotpotqa_agents/convert_traces.py DATA_FOLDER OUT_FOLDER

A Search is a step; what it found is one passage, named by the paragraph of the corpus whose title it is, else by
its own title. A search that found nothing is an empty step. Lookup (a sentence of the page at hand) and Finish retrieve
nothing new. The prompt of such an agent holds all observations, so its context is a set. The variant is the agent, the
repeat its trial.
"""

import json
import sys
from pathlib import Path

from ragkit import Passage, Retrieval, Step, Trajectory, write_trajectories


def read(path: Path) -> list[dict]:
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def passage(step: dict, ids: dict[str, str]) -> Passage:
    title = step["gold_title"] or step["tool_input"]
    name = ids.get(title.casefold(), f"wiki:{title.casefold()}")
    return Passage(name, step["observation"], metadata={"title": title})


def trajectory(trace: dict, ids: dict[str, str]) -> Trajectory:
    steps, seen = [], {}
    for step in trace["steps"]:
        if step["tool"] != "Search":
            continue
        found = (passage(step, ids),) if step["found"] else ()
        seen.update({p.id: p for p in found})
        retrieval = Retrieval("retrieve", step["tool_input"], found, "wikipedia search", turn=len(steps))
        steps.append(Step(len(steps), (retrieval,), turn=len(steps)))
    context = Retrieval("context", passages=tuple(seen.values()), ranked=False, source="prompt")
    return Trajectory(
        trace["question_id"], trace["question"], tuple(steps), context, trace["final_answer"], repeat=trace["trial"],
        meta={"status": trace["status"]},
    )


def main(data: Path, out: Path) -> None:
    ids = {row["title"].casefold(): row["_id"] for row in read(data / "corpus.jsonl")}
    for agent in ("react", "reflexion"):
        rows = [trajectory(trace, ids) for trace in read(data / f"traces.{agent}.jsonl")]
        write_trajectories(out / f"{agent}.jsonl", rows)
        print(f"{out / f'{agent}.jsonl'}: {len(rows)} trajectories")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
