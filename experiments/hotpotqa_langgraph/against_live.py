"""The same searches, asked of Wikipedia by the real agent and of the Chroma index by the replayed one: what each found.

    python -m experiments.hotpotqa_langgraph.against_live RUNS_FOLDER        # after `ragkit run …/experiment.yaml`

The page that the real agent read counts as a gold paragraph by its title (what the traces say) or, where the title was
another one (a redirect), by its text: more than half of the paragraph's words of four letters and more stand in it.
"""

import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import ragkit
from experiments.hotpotqa_agents.convert_traces import trajectory
from experiments.hotpotqa_langgraph.app import data_folder, read
from ragkit.records.files import read_trajectories

VARIANTS = ("one-paragraph", "retriever-tool", "cleared-prompt")


def words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.casefold()))


def live(by_text: bool) -> list[ragkit.Trajectory]:
    """The traces of the first trial as trajectories."""
    rows = {row["_id"]: row for row in read(data_folder() / "corpus.jsonl")}
    ids = {row["title"].casefold(): name for name, row in rows.items()}
    found = []
    for trace in read(data_folder() / "traces.react.jsonl"):
        if trace["trial"] != 1:
            continue
        for step in trace["steps"]:
            if by_text and step.get("found") and step["tool_input"].casefold() not in ids:
                seen = words(step["observation"])
                for title in trace["gold_titles"]:
                    wanted = words(rows[ids[title.casefold()]]["text"])
                    if len(wanted & seen) > len(wanted) / 2:
                        step["gold_title"] = title
        found.append(replace(trajectory(trace, ids), repeat=0))
    return found


def line(name: str, trajectories: list[ragkit.Trajectory]) -> tuple[str, Any]:
    """What the trajectories are worth, as a line of the table, and the scores table itself."""
    names = "recall,allhit,steps_to_evidence,survival,cumulative_recall,marginal_recall"
    result = ragkit.score(trajectories, str(data_folder()), metrics=names.split(","))
    metrics, table = result.summary["metrics"], result.scores

    def shown(one: Any) -> str:
        return f"{one['mean']:.2f} [{one['low']:.2f}, {one['high']:.2f}]"

    gains = table[(table.metric == "marginal_recall") & (table.step != "final")]
    carried = [f"{entry['cumulative_recall']['mean']:.2f}" for entry in result.summary["per_step"].values()]
    reaching = metrics["steps_to_evidence"]
    cells = (name, shown(reaching["share"]), f"{reaching['median']:g}", f"{(gains.value == 0).sum()} of {len(gains)}",
             shown(metrics["allhit"]), shown(metrics["survival"]), " ".join(carried))
    return "| " + " | ".join(cells) + " |", table


def reached(table: Any) -> dict[str, float]:
    """Per question the share of the gold that all steps together found."""
    return table[table.metric == "cumulative_recall"].groupby("question_id", observed=True).value.max().to_dict()


def main(runs: Path) -> None:
    sides = {"Wikipedia, by title": live(False), "Wikipedia, by title or text": live(True)}
    sides |= {name: read_trajectories(runs / name / "trajectories.jsonl") for name in VARIANTS}
    print("| searches answered by | evidence complete | median step | wasted steps | complete in the context "
          "| survival | recall up to step 0, 1, … |\n|---|---|---|---|---|---|---|")
    shares = {}
    for name, trajectories in sides.items():
        text, table = line(name, trajectories)
        shares[name] = reached(table)
        print(text)
    print()
    for side in ("Wikipedia, by title", "Wikipedia, by title or text"):
        for name in VARIANTS[:2]:
            pairs = [(shares[side][one], shares[name][one]) for one in shares[side]]
            counts = Counter("more" if b > a else "less" if b < a else "the same" for a, b in pairs)
            print(f"gold found, {name} against {side}: " + ", ".join(f"{counts[one]} {one}" for one in
                                                                  ("more", "the same", "less")))
    gold = ragkit.load_dataset(str(data_folder())).qrels
    quoted = [(one.question_id, step.outermost) for one in sides["retriever-tool"] for step in one.steps
              if '"' in step.outermost.query]
    pages = sum(bool(step.outermost.passages) for one in sides["Wikipedia, by title"] for step in one.steps
                if '"' in step.outermost.query)
    hits = sum(bool(gold[question_id].keys() & set(found.ids)) for question_id, found in quoted)
    print(f"searches with quotation marks: {len(quoted)}; Wikipedia answered {pages}, {hits} lists of retriever-tool "
          "hold gold")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
