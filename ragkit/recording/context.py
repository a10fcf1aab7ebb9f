"""What the answer was written from: the recorded passages whose texts stand in the last prompt of the trace."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragkit.recording.log import Prompt
from ragkit.records.trajectory import Passage, Retrieval, Step

if TYPE_CHECKING:
    from ragkit.recording.trace import Trace

_MEND = (
    "it is unknown which passages the answer was written from: {why}. Say it inside the trace: "
    "ragkit.recording.current_trace().context(passages)"
)
_NOT_FOUND = _MEND.format(why="their texts were not found in the last prompt")
_NO_PROMPT = _MEND.format(why="no model call was seen")
_NO_STEP = (
    "no search was seen; if the app searches, show it: recorder.instrument(vector_store), "
    "@recorder.retriever on the function that searches, or trace.step(query, passages)"
)
ADVICE = frozenset({_NOT_FOUND, _NO_PROMPT, _NO_STEP})
"""What to change in the app so that more of it is seen; said to nobody where a trace was recorded by another tool."""
_PREFIX = 60  # characters that must be there of a text that was cut off
_BY_CHANCE = 40  # characters; a shorter text may stand in a prompt twice without having been put there twice
_TOOLS = ("tool", "function")
_OWN_WORDS = ("ai", "assistant", "AIMessageChunk")  # a model quoting a passage was not given it


@dataclass(frozen=True)
class Place:
    """Where a passage's text begins: in which message, at which character."""

    message: int
    start: int
    passage: Passage
    truncated: bool = False
    by_tool: bool = False  # the message is a tool's


def find_context(
    trace: Trace, steps: Sequence[Step], across: Sequence[Retrieval], answer: str | None
) -> Retrieval | None:
    """The context list (source "prompt"), or None, said once, where it is not known."""
    log = trace.log
    # What a retriever asks a model (other words for the query, a grade of each passage) is not the answer's prompt.
    prompts = [one for one in log.prompts if not any(run.frame is not None for run in log.lineage(one.run_id))]
    prompt = _last_prompt(prompts, answer)
    answered = trace.error is None and (prompt is not None or answer is not None)
    if not steps or prompt is None:
        if answered:
            trace.warn(_NO_PROMPT if steps else _NO_STEP)
        return None
    lists = [*reversed(across), *(found for step in reversed(steps) for found in step.retrievals)]
    if not any(found.passages for found in lists):
        return Retrieval("context", trace.question.text, (), source="prompt")
    found = _locate(prompt, lists)
    places = _first_of_each(found)
    if not places:
        if answered:
            trace.warn(_NOT_FOUND)
        return None
    ranked = not _of_several_lists(found, lists) and _is_ranking(places, lists)
    cut = [place.passage.id for place in places if place.truncated]
    if cut:
        trace.notices.append(f"cut off in the prompt: {', '.join(cut)}")
    passages = tuple(
        replace(place.passage, metadata={**place.passage.metadata, "truncated": True}) if place.truncated
        else place.passage
        for place in places
    )
    return Retrieval("context", trace.question.text, passages, name="prompt", ranked=ranked, source="prompt")


def _last_prompt(prompts: Sequence[Prompt], answer: str | None) -> Prompt | None:
    """The prompt whose reply became the answer (a check of the answer may have come after it), else the last one."""
    wanted = (answer or "").strip()
    if wanted:
        for prompt in reversed(prompts):
            reply = (prompt.output or "").strip()
            if reply and (reply == wanted or (len(reply) > 20 and (wanted in reply or reply in wanted))):
                return prompt
    return prompts[-1] if prompts else None


def _is_ranking(places: Sequence[Place], lists: Sequence[Retrieval]) -> bool:
    """True where one recorded list holds all of them in this order. Several searches put one after the other into
    the prompt are a set: the order of the steps is no rank."""
    ids = [place.passage.id for place in places]
    for found in lists:
        rank = {passage_id: number for number, passage_id in reversed(list(enumerate(found.ids)))}
        if found.ranked and all(one in rank for one in ids):
            numbers = [rank[one] for one in ids]
            if numbers == sorted(numbers):
                # Two tool messages stay a set, even where their passages happen to stand in one list in this order.
                return len({place.message for place in places}) == 1
    return False


def _of_several_lists(found: Sequence[Place], lists: Sequence[Retrieval]) -> bool:
    """Whether the prompt holds what several searches brought, each in an order of its own, though it may be the same
    passages: in several tool messages, or more copies in one message than any one list has."""
    if len({place.message for place in found if place.by_tool}) > 1:
        return True
    copies = Counter((place.message, place.passage.id) for place in found if len(place.passage.text or "") > _BY_CHANCE)
    return any(count > max(one.ids.count(passage_id) for one in lists) for (_, passage_id), count in copies.items())


def _locate(prompt: Prompt, lists: Sequence[Retrieval]) -> list[Place]:
    """Each place of a passage's text in the messages that the model was given, in the order of the prompt."""
    given = [(role, text) for role, text in prompt.messages if role not in _OWN_WORDS]
    roles, messages = [role for role, _ in given], [_Text(text) for _, text in given]
    by_text: dict[str, list[Passage]] = {}
    for found in lists:
        for passage in found.passages:
            text = _squeeze(passage.text or "")
            same = by_text.setdefault(text, []) if text else []
            if text and all(passage.id != other.id for other in same):
                same.append(passage)
    places: list[Place] = []
    missing: list[str] = []
    for text in sorted(by_text, key=len, reverse=True):  # the longest first: a short text may be part of a longer one
        spots = [(number, start) for number, message in enumerate(messages) for start in message.take(text)]
        same = by_text[text]
        for copy, spot in enumerate(spots):
            # Two ids of one text: as many of them as there are copies in the prompt, those of the last lists first.
            places.append(Place(*spot, same[copy % len(same)]))
        if not spots:
            missing.append(text)
    for text in missing:
        for number, message in enumerate(messages):
            if (start := message.take_cut(text)) is not None:
                places.append(Place(number, start, by_text[text][0], truncated=True))
                break
    current = [replace(place, by_tool=roles[place.message] in _TOOLS) for place in _of_this_turn(places, roles)]
    return sorted(current, key=lambda place: (place.message, place.start))


def _first_of_each(places: Sequence[Place]) -> list[Place]:
    seen: set[str] = set()
    return [place for place in places if not (place.passage.id in seen or seen.add(place.passage.id))]  # type: ignore[func-returns-value]


def _of_this_turn(places: Sequence[Place], roles: Sequence[str]) -> Sequence[Place]:
    """Without the tool messages of earlier turns of a conversation, where those say nothing that the rest does not."""
    asked = max((number for number, role in enumerate(roles) if role in ("human", "user")), default=0)
    current = [place for place in places if place.message >= asked or roles[place.message] not in _TOOLS]
    everything = {place.passage.id for place in places}
    return current if {place.passage.id for place in current} == everything else places


class _Text:
    """A message's text with white space squeezed, and the spans of it that are taken by passages."""

    def __init__(self, text: str) -> None:
        self.text = _squeeze(text)
        self.spans: list[tuple[int, int]] = []

    def take(self, text: str) -> list[int]:
        for form in _forms(text):
            starts = [start for start in self._find(form) if self._free(start, start + len(form))]
            if starts:
                self.spans = sorted([*self.spans, *((start, start + len(form)) for start in starts)])
                return starts
        return []

    def take_cut(self, text: str) -> int | None:
        if len(text) <= _PREFIX:
            return None
        for form in _forms(text):
            start = self.text.find(form[:_PREFIX])
            if start < 0 or not self._free(start, start + _PREFIX):
                continue
            end = start + _PREFIX
            while end < len(self.text) and end - start < len(form) and self.text[end] == form[end - start]:
                end += 1
            self.spans = sorted([*self.spans, (start, end)])
            return start
        return None

    def _find(self, form: str) -> Iterator[int]:
        start = self.text.find(form)
        while start >= 0:
            if _whole(self.text, start, start + len(form)):
                yield start
            start = self.text.find(form, start + max(1, len(form)))

    def _free(self, start: int, end: int) -> bool:
        at = bisect_right(self.spans, (start, len(self.text) + 1))
        before = at > 0 and self.spans[at - 1][1] > start
        return not before and not (at < len(self.spans) and self.spans[at][0] < end)


def _forms(text: str) -> list[str]:
    """The text as it may stand in a prompt: bare, inside JSON (escaped or not), inside a printed Python value."""
    forms = [text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1], repr(text)[1:-1]]
    return list(dict.fromkeys(forms))


def _squeeze(text: str) -> str:
    """White space runs become one blank, also those written as \\n inside JSON."""
    return re.sub(r"(?:\s|\\n|\\r|\\t)+", " ", text).strip()


def _whole(text: str, start: int, end: int) -> bool:
    """Not the inside of a longer word ("art" in "party"); scripts without blanks have no such edge."""
    return not (_joins(text, start - 1, start) or _joins(text, end - 1, end))


def _joins(text: str, left: int, right: int) -> bool:
    if left < 0 or right >= len(text):
        return False
    pair = text[left] + text[right]
    return pair.isalnum() and pair.isascii()
