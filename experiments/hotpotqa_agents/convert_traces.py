"""Real ReAct and Reflexion traces -> trajectories that `ragkit score` reads.

    python experiments/hotpotqa_agents/convert_traces.py DATA_FOLDER OUT_FOLDER

A Search is a step; what it found is one passage, named by the paragraph of the corpus whose title it is, else by
its own title. A search that found nothing is an empty step. Lookup (a sentence of the page at hand) and Finish retrieve
nothing new. The prompt of such an agent holds all observations, so its context is a set. The variant is the agent, the
repeat its trial.
"""

import json
import re
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


def failures(traces: list[dict]) -> str:
    """How many searches found nothing, and why, as far as the reply tells: its suggestions may hold the very title."""
    searches = [step for trace in traces for step in trace["steps"] if step["tool"] == "Search"]
    failed = [step for step in searches if not step["found"]]
    offered = 0
    for step in failed:
        pairs = re.findall(r"'([^']*)'|\"([^\"]*)\"", step["observation"].partition("Similar: ")[2])
        suggested = {(single or double).casefold() for single, double in pairs}
        offered += step["tool_input"].strip('"').casefold() in suggested
    quoted = sum('"' in step["tool_input"] for step in searches)
    failed_quoted = sum('"' in step["tool_input"] for step in failed)
    return (f"{len(failed)} of {len(searches)} searches found nothing (with quotation marks {failed_quoted} of "
            f"{quoted}); in {offered} of them the title stands among the reply's suggestions")


def main(data: Path, out: Path) -> None:
    ids = {row["title"].casefold(): row["_id"] for row in read(data / "corpus.jsonl")}
    for agent in ("react", "reflexion"):
        traces = read(data / f"traces.{agent}.jsonl")
        rows = [trajectory(trace, ids) for trace in traces]
        write_trajectories(out / f"{agent}.jsonl", rows)
        print(f"{out / f'{agent}.jsonl'}: {len(rows)} trajectories; {failures(traces)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
