"""Texts of a run that read like instructions to a model: named at their question and counted. Changes no score."""

from __future__ import annotations

from collections.abc import Iterator

from ragkit.evaluation.join import listed
from ragkit.evaluation.scoring import Scoring, final_list, passage_text
from ragkit.judge.hostile import Hint, instruction_like
from ragkit.records.questions import Dataset
from ragkit.records.trajectory import Trajectory


def suspect_warnings(trajectory: Trajectory, dataset: Dataset) -> tuple[str, ...]:
    """A sentence for each passage that was found, and for the answer, that reads like an instruction."""
    found = dict.fromkeys((where, hint) for where, text in _texts(trajectory, dataset)
                          for hint in instruction_like(text))
    return tuple(f"{where} reads like an instruction to a model: it {hint}" for where, hint in found)


def suspect_notes(scoring: Scoring) -> list[str]:
    """How many texts read like instructions, and in which questions; nothing where none does."""
    known: dict[str, tuple[Hint, ...]] = {}
    questions, texts = list[str](), set[str]()
    for trajectory in scoring.trajectories:
        for _, text in _texts(trajectory, scoring.dataset):
            if text not in known:
                known[text] = instruction_like(text)
            if known[text]:
                questions.append(trajectory.question_id)
                texts.add(text)
    if not texts:
        return []
    one = len(texts) == 1
    return [f"{len(texts)} text{'' if one else 's'} (passages or answers) read{'s' if one else ''} like "
            f"{'an instruction' if one else 'instructions'} to a model, in questions "
            f"{listed(list(dict.fromkeys(questions)))}; a judge is told that texts are data, the app's own model may "
            "have obeyed"]


def passage_hint(text: str | None) -> str:
    """What makes a passage read like an instruction, in words and without its text; "" where nothing does."""
    return "; ".join(hint.kind for hint in instruction_like(text or ""))


def _texts(trajectory: Trajectory, dataset: Dataset) -> Iterator[tuple[str, str]]:
    """What the judge and the app's model may have read: the passages of all steps and of the end, and the answer."""
    passages = [passage for step in trajectory.steps for passage in step.outermost.passages]
    for passage in (*passages, *final_list(trajectory).passages):
        text = passage_text(passage, dataset)
        if text:
            yield f"passage {passage.id}", text
    if trajectory.answer:
        yield "the answer", trajectory.answer
