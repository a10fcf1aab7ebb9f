"""Frames -> lists: ids aliased, what is nested flattened outermost first, stages told by structure. No steps here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ragkit.recording.log import Frame, Log
from ragkit.records.aliases import is_generated
from ragkit.records.trajectory import Passage, Retrieval, Stage

_LONG_ENOUGH = 20  # characters: a shorter extract says too little about where it came from


class Folder:
    """Folds the frames of one trace. `notices` collects what a reader of the trajectory should know."""

    def __init__(self, log: Log) -> None:
        self.notices: list[str] = []
        self._given: dict[str, Passage] = {}
        for passage in _all_passages(log.frames):
            if passage.text and passage.text.strip() and not is_generated(passage):
                self._given.setdefault(passage.text, passage)

    def passages(self, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        """A generated id becomes the given one of the same text, if any; two given ids are never merged."""
        return tuple(self._alias(passage) for passage in passages)

    def flatten(self, frame: Frame) -> list[Retrieval]:
        """The frame's lists, outermost first."""
        if frame.kind in ("search", "step") and (frame.lists or frame.result or frame.kind == "step"):
            return self._by_hand(frame)
        groups = in_order([group for child in sorted(frame.children, key=_seq) if (group := self.flatten(child))])
        if frame.kind == "search" and frame.error is None and groups:
            return [found for group in groups for found in group]
        own = self._own(frame)
        if frame.inputs and frame.stage is None and frame.kind != "node" and own.error is None:
            own = self.restore(own, frame.inputs)
            own = replace(own, stage=_stage_after(own, self.passages(frame.inputs), frame.kind == "compressor"))
        if own.error is not None or not groups:
            return [own, *(found for group in groups for found in group)]
        own = self._restore(own, [passage for group in groups for found in group for passage in found.passages])
        first, others = groups[0], groups[1:]
        n_retrieved = sum(group[0].stage == "retrieve" for group in groups)
        same = _texts(own) == _texts(first[0]) and first[0].error is None
        if same and (own.passages or not others) and (first[0].stage != "retrieve" or n_retrieved == 1):
            if not own.query or not first[0].query or own.query == first[0].query:
                own, first = _merge(own, first[0], frame.stage), first[1:]  # else: the query was put in other words
        elif frame.stage is None and own.stage == "retrieve":
            own = replace(own, stage=_stage_above(own, groups))
        if own.stage == "fuse":
            self._notice_merged(own, groups)
        return [own, *first, *(found for group in others for found in group)]

    def _by_hand(self, frame: Frame) -> list[Retrieval]:
        beneath = [replace(found, passages=self.passages(found.passages)) for found in frame.lists]
        if frame.error is not None or frame.kind == "step":
            outermost = self._own(frame)
        elif frame.result is not None:
            outermost = replace(frame.result, passages=self.passages(frame.result.passages))
        else:
            outermost = beneath.pop()
        if frame.kind == "step":
            return [outermost, *beneath]  # given outermost first already
        return [outermost, *(found for group in in_order([[found] for found in beneath]) for found in group)]

    def _own(self, frame: Frame) -> Retrieval:
        unfinished = frame.ended is None and frame.error is None
        scored = frame.kind != "compressor" or any(passage.score is not None for passage in frame.passages)
        return Retrieval(
            frame.stage or "retrieve",
            frame.query,
            self.passages(frame.passages),
            frame.name,
            seq=frame.seq,
            started=frame.started,
            ms=frame.ms,
            score_kind=frame.score_kind if scored else "unknown",
            ranked=frame.ranked,
            error="did not finish" if unfinished else frame.error,
        )

    def _alias(self, passage: Passage) -> Passage:
        given = self._given.get(passage.text or "")
        if given is None or given.id == passage.id or not is_generated(passage):
            return passage
        return replace(passage, id=given.id, doc_id=passage.doc_id or given.doc_id)

    def _restore(self, own: Retrieval, beneath: Sequence[Passage]) -> Retrieval:
        """An extract that lost its id gets that of the one passage beneath that holds its text; one that was rewritten,
        too, that of the one whose metadata it still carries."""
        known = {passage.id for passage in beneath}

        def restored(passage: Passage) -> Passage:
            if passage.id in known or not is_generated(passage):
                return passage
            text = (passage.text or "").strip()
            holders = {other.id: other for other in beneath if text in (other.text or "")}
            if len(holders) != 1 or len(text) < _LONG_ENOUGH:
                holders = {other.id: other for other in beneath if _carries_metadata(passage, other)}
                rivals = [one for one in own.passages for other in holders.values() if _carries_metadata(one, other)]
                if len(rivals) != 1:  # chunks of one document share what they carry
                    return passage
            if len(holders) != 1:
                return passage
            (holder,) = holders.values()
            return replace(passage, id=holder.id, doc_id=passage.doc_id or holder.doc_id)

        return replace(own, passages=tuple(restored(passage) for passage in own.passages))

    def restore(self, own: Retrieval, inputs: Sequence[Passage]) -> Retrieval:
        """The same against the list that a re-ranker was given."""
        return self._restore(own, self.passages(inputs))

    def _notice_merged(self, own: Retrieval, groups: Sequence[list[Retrieval]]) -> None:
        kept = {passage.text: passage.id for passage in own.passages if passage.text}
        for group in groups:
            for passage in group[0].passages:
                into = kept.get(passage.text or "")
                if into is not None and into != passage.id and passage.id not in own.ids:
                    notice = f"{passage.id} merged into {into} (same text)"
                    if notice not in self.notices:
                        self.notices.append(notice)


def _texts(found: Retrieval) -> list[tuple[str, str | None]]:
    return [(passage.id, passage.text) for passage in found.passages]


def _carries_metadata(passage: Passage, other: Passage) -> bool:
    try:
        return bool(other.metadata) and all(
            key in passage.metadata and bool(passage.metadata[key] == value) for key, value in other.metadata.items())
    except Exception:  # of a foreign type: whatever its comparison raises
        return False


def in_order(groups: Sequence[list[Retrieval]]) -> list[list[Retrieval]]:
    """Siblings as they stand beneath a list: what worked on others first, the last of them in front; then the
    searches in the order they began."""
    later = [group for group in groups if group[0].stage != "retrieve"]
    return [*reversed(later), *(group for group in groups if group[0].stage == "retrieve")]


def order_stage(after: Sequence[str], before: Sequence[str], name: str = "") -> Stage:
    """filter where the old order was kept, else rerank; what is called a re-ranker is one, whatever it did here."""
    if "rank" in name.lower():
        return "rerank"
    places = iter(before)
    return "filter" if all(any(other == one for other in places) for one in after) else "rerank"


def settled(log: Log, frames: Sequence[Frame]) -> Iterator[Frame]:
    """The root frames. A frame that never ended (cancelled) keeps only what its own runs began: what merely came
    after it in the same task stands for itself."""
    for frame in frames:
        if frame.ended is None:
            mine = [child for child in frame.children if frame in (run.frame for run in log.lineage(child.run_id))]
            others = [child for child in frame.children if child not in mine]
            frame.children = mine
            yield frame
            yield from settled(log, others)
        else:
            yield frame


def _stage_after(own: Retrieval, inputs: Sequence[Passage], reranks: bool) -> Stage:
    """The stage of a function by what it was given; "retrieve" where its list is not made of that."""
    given = [passage.id for passage in inputs]
    if reranks:
        kept = order_stage(own.ids, given, own.name) == "filter" and len(own.ids) < len(given)
        return "filter" if kept else "rerank"
    return order_stage(own.ids, given, own.name) if set(own.ids) <= set(given) else "retrieve"


def _merge(own: Retrieval, child: Retrieval, stage: Stage | None) -> Retrieval:
    """One list seen twice, from outside and from inside (a store beneath its retriever): scores from where they are."""
    scored = any(passage.score is not None for passage in own.passages)
    return replace(
        own,
        stage=stage or child.stage,
        name=child.name if child.stage != "retrieve" and stage is None else own.name,
        query=own.query or child.query,
        passages=own.passages if scored else child.passages,
        score_kind=own.score_kind if scored else child.score_kind,
    )


def _stage_above(own: Retrieval, groups: Sequence[list[Retrieval]]) -> Stage:
    mine = set(own.ids)
    first = groups[0][0]
    if mine and mine <= set(first.ids) and (first.stage != "retrieve" or len(groups) == 1):
        return order_stage(own.ids, first.ids, own.name)
    if mine and len(groups) > 1 and mine <= {found for group in groups for found in group[0].ids}:
        return "fuse"
    if not mine and len(groups) == 1 and first.ids:
        return "filter"
    return "retrieve"


def _all_passages(frames: Sequence[Frame]) -> Iterator[Passage]:
    for frame in frames:
        yield from _all_passages(frame.children)
        for found in frame.lists:
            yield from found.passages
        if frame.result is not None:
            yield from frame.result.passages
        yield from frame.inputs
        yield from frame.passages


def _seq(frame: Frame) -> int:
    return frame.seq
