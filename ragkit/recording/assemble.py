"""The log of a trace -> its Trajectory: which lists make one step, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ragkit.recording.answers import find_answer, is_abandoned, reply_of_an_open_stream
from ragkit.recording.fold import Folder, order_stage, settled
from ragkit.recording.log import Frame
from ragkit.recording.turns import Place, number_turns, place_of
from ragkit.records.trajectory import Retrieval, Step, Trajectory

if TYPE_CHECKING:
    from ragkit.recording.trace import Trace

_OUT_OF_ORDER = (
    "two traces of one thread did not end in the order they were opened (generators read by turns?): a search may "
    "stand in the wrong one; read app.stream through recorder.bind(app.stream)"
)
_LATER_STAGES = ("rerank", "filter", "fuse")
_LATER_KINDS = ("node", "tool", "compressor", "cross-encoder")


@dataclass(eq=False)
class Draft:
    """A step in the making: its lists, outermost first, and where it ran."""

    lists: list[Retrieval]
    place: Place
    ended: float

    @property
    def outermost(self) -> Retrieval:
        return self.lists[0]


class Assembler:
    """Puts root frames into steps, in order of start."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.folder = Folder(trace.log)
        self.drafts: list[Draft] = []
        self.across: list[Retrieval] = []  # lists made out of several steps: no search, so no step
        self.n_guessed = 0
        self._searching: set[str] = set()  # nodes and tools that brought something new before
        for frame in sorted(settled(trace.log, sorted(trace.log.frames, key=lambda f: f.seq)), key=lambda f: f.seq):
            self.n_guessed += frame.guessed
            lists = self.folder.flatten(frame)
            later = frame.kind in _LATER_KINDS or (lists[0].stage in _LATER_STAGES and not frame.lists)
            if later and all(found.stage != "retrieve" for found in lists[1:]):
                self._place_later(frame, lists)
            else:
                self._add(frame, lists)

    def _add(self, frame: Frame, lists: list[Retrieval]) -> None:
        self.drafts.append(Draft(lists, place_of(self.trace.log, frame), frame.ended or frame.begun))

    def _place_later(self, frame: Frame, lists: list[Retrieval]) -> None:
        """A list that may have been made from earlier ones: re-ranked, filtered, fused, or returned by a node."""
        structural = frame.kind in ("node", "tool")
        beneath = [draft for draft in self.drafts if structural and self._is_beneath(draft, frame)]
        if structural and not beneath and (frame.kind == "tool" or frame.name in self._searching):
            self._add(frame, lists)  # a tool, or a node that has searched before, whose search nobody else saw
            return
        own, rest = lists[0], lists[1:]
        inputs = self.folder.passages(frame.inputs)
        if structural and (len(own.ids) > len(inputs) or not set(own.ids) <= {passage.id for passage in inputs}):
            inputs = ()  # the state's old list, not what this one was made from
        own = self.folder.restore(own, inputs) if inputs else own
        gathered = self._gathered(own, beneath or self.drafts) if structural and not inputs else []
        draft = None if gathered else self._source(
            frame, own, tuple(passage.id for passage in inputs), beneath or self.drafts)
        if draft is not None:
            if own.error is not None:
                draft.lists.insert(1, own)  # it failed; what the app then used is the list it had
                return
            if structural:
                if own.ids in [found.ids for found in draft.lists]:
                    return
                own = replace(own, stage=order_stage(own.ids, draft.outermost.ids, own.name))
            draft.lists = [own, *rest, *draft.lists]
            draft.ended = max(draft.ended, frame.ended or frame.begun)
        elif not self._made_from_several(frame, own, gathered) and (own.passages or not structural):
            self._add_new(frame, [own, *rest], structural)

    def _gathered(self, own: Retrieval, drafts: Sequence[Draft]) -> list[Draft]:
        """The last steps, where the list is what they returned, one after the other (a state that grows in a loop). It
        was not made from the last of them alone, though a list beneath that one may happen to hold it all."""
        ids = list(dict.fromkeys(own.ids))
        if len(ids) == len(own.ids) and any(set(ids) <= set(draft.outermost.ids) for draft in drafts):
            return []
        found = [draft for draft in drafts if draft.outermost.passages]
        return next((found[first:] for first in range(len(found) - 1) if ids == _appended(found[first:])), [])

    def _is_beneath(self, draft: Draft, frame: Frame) -> bool:
        return any(run.id == frame.run_id for run in self.trace.log.lineage(draft.place.frame.run_id))

    def _source(
        self, frame: Frame, own: Retrieval, inputs: tuple[str, ...], drafts: Sequence[Draft]
    ) -> Draft | None:
        """The step that the list was made from: the one whose list went in, or that asked the same, or the last."""

        def likely(item: tuple[int, Draft]) -> tuple[bool, bool, int]:
            same_query = bool(own.query) and item[1].outermost.query == own.query
            return (bool(inputs) and item[1].outermost.ids == inputs, same_query, item[0])

        ranked = [draft for _, draft in sorted(enumerate(drafts), key=likely, reverse=True)]
        wanted = set(own.ids)
        if ranked and inputs and ranked[0].outermost.ids == inputs:
            if lost := wanted - set(inputs):
                self.trace.warn(
                    f"{own.name or frame.kind} returned {len(lost)} passages with ids that it was not given; let it "
                    "keep their ids (Document.id, or in the metadata), or they count as passages nobody knows"
                )
            return ranked[0]
        if ranked and (own.error is not None or not wanted):
            return ranked[0]
        holding = [draft for draft in ranked if wanted <= set(draft.outermost.ids)]
        holding += [draft for draft in ranked if any(wanted <= set(found.ids) for found in draft.lists)]
        return holding[0] if holding else None

    def _made_from_several(self, frame: Frame, own: Retrieval, sources: list[Draft]) -> bool:
        """Takes a list of passages of several steps: those of one turn become its stages, in one step. Over several
        turns it is no search (a list of all that was found, say), so it is kept beside the steps."""
        rest = set[str]() if sources else set(own.ids)
        for draft in reversed(self.drafts):
            if rest & set(draft.outermost.ids):
                rest -= set(draft.outermost.ids)
                sources.insert(0, draft)
        if rest or len(sources) < 2:
            return False
        number_turns([draft.place for draft in self.drafts])
        own = replace(own, stage=frame.stage or "fuse")
        if len({draft.place.turn for draft in sources}) > 1:
            places = iter(_appended(sources))
            appended = all(one in places for one in dict.fromkeys(own.ids))
            self.across.append(replace(own, ranked=own.ranked and not appended))  # the order of steps is no rank
            return True
        first = sources[0]
        first.lists = [own, *(found for draft in sources for found in draft.lists)]
        first.ended = frame.ended or frame.begun
        self.drafts = [draft for draft in self.drafts if draft is first or draft not in sources]
        return True

    def _add_new(self, frame: Frame, lists: list[Retrieval], structural: bool) -> None:
        own = lists[0]
        if structural:
            self._searching.add(frame.name)
            seen = {found for draft in self.drafts for one in draft.lists for found in one.ids}
            fresh = tuple(passage for passage in own.passages if passage.id not in seen)
            lists = [replace(own, stage="retrieve", passages=fresh)]
        elif frame.inputs:
            # Nobody saw the search itself; what the re-ranker was given is its list.
            given = self.folder.passages(frame.inputs)
            lists = [*lists, Retrieval("retrieve", own.query, given, f"input of {own.name}", started=own.started)]
        self._add(frame, lists)

    def steps(self) -> tuple[Step, ...]:
        """The finished steps: grouped by turn, in the order of the tool calls or else of start."""
        places = [draft.place for draft in self.drafts]
        number_turns(places)
        ordered = sorted(self.drafts, key=lambda one: (one.place.turn, one.place.call, one.place.frame.seq))
        return tuple(self._step(index, draft) for index, draft in enumerate(ordered))

    def _step(self, index: int, draft: Draft) -> Step:
        frame, turn = draft.place.frame, draft.place.turn
        ms = frame.ms if len(draft.lists) == 1 or frame.ms is None else (draft.ended - frame.begun) * 1000
        lists = tuple(replace(found, turn=turn, seq=number) for number, found in enumerate(draft.lists))
        return Step(index, lists, turn, ms=ms)


def _appended(drafts: Sequence[Draft]) -> list[str]:
    """The ids of the lists one after the other, each at its first place."""
    return list(dict.fromkeys(one for draft in drafts for one in draft.outermost.ids))


def assemble(trace: Trace) -> Trajectory:
    """The trajectory of a trace that has ended."""
    from ragkit.recording.context import find_context

    assembler = Assembler(trace)
    steps = assembler.steps()
    answer, source = find_answer(trace)
    if trace.log.out_of_order:
        assembler.n_guessed = max(assembler.n_guessed, len(steps), 1)
        trace.warn(_OUT_OF_ORDER)
    abandoned = is_abandoned(trace.log, answer)
    if answer is None and (reply := reply_of_an_open_stream(trace.log)) is not None:
        answer, source, abandoned = reply, "llm", True
    if abandoned:
        trace.notices.append("a stream was left before its end; the answer is what had come by then")
    context = trace.manual_context
    if context is not None:
        context = replace(context, passages=assembler.folder.passages(context.passages))
    else:
        context = find_context(trace, steps, assembler.across, answer)
    trace.notices.extend(assembler.folder.notices)
    meta: dict[str, Any] = dict(trace.meta)
    if assembler.n_guessed:
        meta["guessed"] = assembler.n_guessed
    if abandoned:
        meta["abandoned"] = True
    if trace.log.failed_tools:
        meta["failed_tools"] = tuple(f"{name}: {error}" for name, error in trace.log.failed_tools)
    if source:
        meta["answer_source"] = source
    if assembler.across:
        meta["across_steps"] = tuple(
            {"stage": found.stage, "name": found.name, "query": found.query, "ids": list(found.ids)}
            for found in assembler.across
        )
    return Trajectory(
        trace.question.id,
        trace.question.text,
        steps,
        context,
        answer,
        trace.error,
        trace.repeat,
        trace.ms,
        dict(trace.log.usage),
        meta,
    )
