"""Which searches ran in parallel: the turn of each step, from tool calls, graph supersteps and overlap in time."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from ragkit.recording.log import Frame, Log, Prompt, Run

_GRAPH_KEYS = ("langgraph_node", "langgraph_step", "langgraph_checkpoint_ns")


@dataclass
class Place:
    """Where a search ran: the model call that asked for it, and groups of parallel work as {group: member}."""

    frame: Frame
    model: UUID | None = None
    call: int = 0  # which of the model's tool calls: threads start in any order
    groups: dict[tuple[object, ...], object] = field(default_factory=dict)
    turn: int = 0


def place_of(log: Log, frame: Frame) -> Place:
    """Reads the runs above the frame. A superstep is known by its graph's own run, because `langgraph_step` restarts
    in every sub-graph."""
    place = Place(frame)
    below: Run | None = None
    for run in log.lineage(frame.run_id):
        if run.kind == "tool" and (issuer := _issuer(log, run)) is not None:
            place.groups.setdefault(("calls", issuer.run_id), run.id)
            if place.model is None:
                place.model = issuer.run_id
                place.call = next((n for n, (call_id, _) in enumerate(issuer.calls) if call_id == run.call_id), 0)
        if run.name.startswith("RunnableParallel"):
            place.groups.setdefault(("parallel", run.id), frame if below is None else below.id)
        if is_node(log, run):
            place.groups.setdefault(("graph", run.parent, run.metadata["langgraph_step"]), run.id)
        below = run
    return place


def number_turns(places: list[Place]) -> None:
    """Sets `turn` of each, given in order of start, counting from 0: after all that it had to wait for, and otherwise
    as early as what ran beside it (the second search of one branch is not the first one's turn in another)."""
    done: list[Place] = []
    for place in places:
        if place.frame.turn is not None:
            place.turn = place.frame.turn
        else:
            beside: set[int] = set()
            waited = -1
            for other in done:
                if _together(other, place):
                    beside.add(other.turn)
                else:
                    waited = max(waited, other.turn)
            place.turn = min((turn for turn in beside if turn > waited), default=waited + 1)
        done.append(place)


def _together(one: Place, other: Place) -> bool:
    if one.frame.turn is not None:
        return False
    if one.model is not None and one.model == other.model:
        return True
    for group, member in other.groups.items():
        if group in one.groups and one.groups[group] != member:
            return True
    if one.model is not None or other.model is not None:
        return False
    return _overlap(one.frame, other.frame)


def _overlap(one: Frame, other: Frame) -> bool:
    if one.kind == "step" or other.kind == "step" or one.ended is None:
        return False
    return other.begun < one.ended and (other.ended is None or one.begun < other.ended)


def _issuer(log: Log, run: Run) -> Prompt | None:
    for prompt in reversed(log.prompts):
        if run.call_id is not None and any(call_id == run.call_id for call_id, _ in prompt.calls):
            return prompt
    if run.call_id is not None:
        return None
    for prompt in reversed(log.prompts):  # older langchain_core does not say which call the tool answers
        if prompt.seq < run.seq and any(name == run.name for _, name in prompt.calls):
            return prompt
    return None


def is_node(log: Log, run: Run) -> bool:
    """Whether this is the run of a LangGraph node: what is beneath it only inherits its metadata."""
    if "langgraph_step" not in run.metadata:
        return False
    above = log.runs.get(run.parent) if run.parent is not None else None
    return above is None or any(run.metadata.get(key) != above.metadata.get(key) for key in _GRAPH_KEYS)
