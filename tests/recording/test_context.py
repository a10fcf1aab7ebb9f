"""What the answer was written from, found in the last prompt: order, sets, cuts, copies, and what is not it."""

from __future__ import annotations

import json
import time
from typing import Any
from uuid import uuid4

import pytest

from ragkit.recording import Recorder
from ragkit.recording.log import Prompt
from ragkit.records.trajectory import Retrieval, Trajectory

LONG = "The lighthouse at Norrby was built by Ada Lund in 1881, and it was repaired twice since then by her heirs."
OTHER = 'He said: "The harbour\nfreezes over", and so it does.'
PASSAGES = [("a", LONG), ("b", OTHER), ("c", "Vik is known for its cheese.")]


def context_of(*messages: tuple[str, str], steps: Any = (PASSAGES,)) -> tuple[Retrieval | None, Trajectory]:
    """The context that is found when the last prompt held these (role, text) messages."""
    with Recorder().trace("q") as trace:
        for number, passages in enumerate(steps):
            trace.step(f"query {number}", passages)
        trace.log.prompts.append(Prompt(uuid4(), list(messages), "the answer"))
    return trace.trajectory.context, trace.trajectory


def found(*messages: tuple[str, str], steps: Any = (PASSAGES,)) -> tuple[tuple[str, ...], bool]:
    context, _ = context_of(*messages, steps=steps)
    assert context is not None and context.source == "prompt" and context.stage == "context"
    return context.ids, context.ranked


def test_one_list_in_its_order_is_a_ranking() -> None:
    assert found(("human", f"[1] {LONG}\n[2] {OTHER}\nq")) == (("a", "b"), True)
    assert found(("system", "Answer."), ("human", f"{OTHER}\n{PASSAGES[2][1]}")) == (("b", "c"), True)


def test_another_order_than_any_list_is_no_ranking() -> None:
    assert found(("human", f"{OTHER}\n{LONG}")) == (("b", "a"), False)


@pytest.mark.parametrize(
    "write", [str, repr, json.dumps, lambda text: json.dumps({"docs": [text]}, ensure_ascii=False), str.split]
)
def test_however_the_text_is_written_down(write: Any) -> None:
    written = write(OTHER)
    text = "  \n ".join(written) if isinstance(written, list) else written
    assert found(("tool", f"result: {text}")) == (("b",), True)


def test_several_tool_messages_are_a_set() -> None:
    steps = ([PASSAGES[0]], [PASSAGES[1], PASSAGES[0]])
    assert found(("tool", LONG), ("tool", f"{OTHER} {LONG}"), steps=steps) == (("a", "b"), False)
    # also where one list happens to hold all of them in that order
    assert found(("tool", LONG), ("tool", OTHER), steps=(PASSAGES, [PASSAGES[1]])) == (("a", "b"), False)


def test_several_lists_in_one_message_are_a_set_and_one_fused_list_is_a_ranking() -> None:
    steps = ([PASSAGES[0]], [PASSAGES[1]])
    assert found(("human", f"{LONG} {OTHER}"), steps=steps) == (("a", "b"), False)
    with Recorder().trace("q") as trace:
        trace.step("x", [PASSAGES[0]])
        trace.step("y", [PASSAGES[1]])
        trace.step("", [PASSAGES[1], PASSAGES[0]], stage="fuse")
        trace.log.prompts.append(Prompt(uuid4(), [("human", f"{OTHER} {LONG}")], "x"))
    assert trace.trajectory.context is not None
    assert (trace.trajectory.context.ids, trace.trajectory.context.ranked) == (("b", "a"), True)


def test_what_two_searches_found_again_is_a_set() -> None:
    steps = (PASSAGES, PASSAGES[::-1])
    assert found(("tool", f"{LONG} {OTHER}"), ("tool", f"{OTHER} {LONG}"), steps=steps) == (("a", "b"), False)
    printed = f"Tool: {LONG} {OTHER}\nTool: {OTHER} {LONG}"  # a whole conversation as one text
    assert found(("human", printed), steps=steps) == (("a", "b"), False)
    # a name that stands in the question, too, and a list that holds its copies itself, are one list
    assert found(("human", f"{LONG} Vik\nWhere is Vik?"), steps=([PASSAGES[0], ("v", "Vik")],)) == (("a", "v"), True)
    assert found(("human", f"{LONG} {LONG}"), steps=([PASSAGES[0]] * 2,)) == (("a",), True)


def test_tool_messages_of_an_earlier_turn_make_no_set_of_a_ranking() -> None:
    earlier = [("human", "before"), ("tool", OTHER), ("ai", "so it is"), ("human", "q")]
    assert found(*earlier, ("tool", f"{LONG} {OTHER}")) == (("a", "b"), True)
    assert found(*earlier, ("tool", LONG)) == (("b", "a"), False)  # b stands only there


def test_a_cut_text_is_found_and_flagged() -> None:
    context, trajectory = context_of(("human", f"{LONG[:80]}...\n{OTHER}"))
    assert context is not None and context.ids == ("a", "b") and context.ranked
    assert context.passages[0].metadata == {"truncated": True} and "truncated" not in context.passages[1].metadata
    assert trajectory.meta["notices"] == ("cut off in the prompt: a",)
    assert context_of(("human", f"{LONG[:40]}...\n{OTHER}"))[0].ids == ("b",)  # type: ignore[union-attr]


def test_a_part_of_a_longer_passage_or_word_is_not_a_passage() -> None:
    passages = [("long", "All art is quite useless, he wrote."), ("short", "art"), ("part", "All art is quite useless")]
    assert found(("human", "party! All art is quite useless, he wrote."), steps=(passages,)) == (("long",), True)
    assert found(("human", "All art is quite useless, he wrote.\nart"), steps=(passages,))[0] == ("long", "short")


def test_texts_without_blanks_between_words() -> None:
    passages = [("one", "重置密码"), ("two", "联系客服")]
    assert found(("human", "资料:重置密码。联系客服谢谢"), steps=(passages,)) == (("one", "two"), True)


def test_what_the_model_said_itself_was_not_given_to_it() -> None:
    with pytest.warns(UserWarning, match="not found in the last prompt"):
        assert context_of(("human", "q"), ("ai", LONG))[0] is None


def test_two_ids_of_one_text_count_as_often_as_it_stands_there() -> None:
    passages = [("one", LONG), ("two", LONG)]
    assert found(("human", LONG), steps=(passages,)) == (("one",), True)
    assert found(("human", f"{LONG}\n{LONG}"), steps=(passages,)) == (("one", "two"), True)


def test_passages_without_text_cannot_be_found() -> None:
    with pytest.warns(UserWarning, match="not found in the last prompt"):
        assert context_of(("human", "a b"), steps=([("a", None), ("b", "")],))[0] is None


def test_an_own_word_wins_over_the_prompt() -> None:
    with Recorder().trace("q") as trace:
        trace.step("s", PASSAGES)
        trace.context([PASSAGES[2]])
        trace.log.prompts.append(Prompt(uuid4(), [("human", LONG)], "x"))
    assert trace.trajectory.context is not None
    assert (trace.trajectory.context.ids, trace.trajectory.context.source) == (("c",), "manual")


def test_a_thousand_passages_in_a_long_prompt_are_found_at_once() -> None:
    passages = [(f"d{number}", f"Passage {number} says something of its own: {number * 7}.") for number in range(1000)]
    begun = time.perf_counter()
    ids, ranked = found(("human", "\n".join(text for _, text in passages)), steps=(passages,))
    assert len(ids) == 1000 and ranked
    assert time.perf_counter() - begun < 5


def test_advice_points_at_the_line_of_the_app() -> None:
    """Python prints the file and the line of a warning: not the recorder's own, which nobody can mend."""
    with pytest.warns(UserWarning, match="no model call was seen") as caught, Recorder().trace("Who?") as trace:
        trace.step("lighthouse", ["It was built by Ada Lund."])
        trace.answer("Ada Lund.")
    assert [one.filename for one in caught] == [__file__]
