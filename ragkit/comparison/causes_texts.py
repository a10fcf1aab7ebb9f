"""What the passages of a variant say, by question and by the id that its labels know them under. Judges nothing."""

from __future__ import annotations

from functools import cached_property

from ragkit.comparison.sides import Side
from ragkit.evaluation.scoring import all_lists, passage_text
from ragkit.records.questions import Dataset


class Texts:
    """The texts behind one variant's lists, where they are known."""

    def __init__(self, side: Side) -> None:
        self._side = side

    def of(self, question: str, name: str) -> str | None:
        """The text of a passage as this variant showed it; several passages of one document are joined."""
        shown = self._shown.get(question, {}).get(name)
        if shown:
            return "\n".join(shown)
        corpus = self._side.corpus
        if corpus is None and self._dataset is not None:
            corpus = self._dataset.corpus
        return corpus[name].content if corpus is not None and name in corpus else None

    @property
    def _dataset(self) -> Dataset | None:
        return None if self._side.past is None else self._side.past.plan.dataset

    @cached_property
    def _shown(self) -> dict[str, dict[str, dict[str, None]]]:
        """question -> name -> the texts that stand for it in some list, in order."""
        found: dict[str, dict[str, dict[str, None]]] = {}
        past = self._side.past
        if past is None:
            return found
        for trajectory in past.scoring().trajectories:
            own = found.setdefault(trajectory.question_id, {})
            for listed in all_lists(trajectory):
                for passage in listed.passages:
                    text = passage_text(passage, past.plan.dataset)
                    if text is not None:
                        own.setdefault(past.gold.name(trajectory.question_id, passage), {})[text] = None
        return found
