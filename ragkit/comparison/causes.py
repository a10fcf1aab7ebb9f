"""Why signals may disagree on a question: what the data say of one variant there, each as yes, no, or cannot be told.

Which causes belong to which conflict is decided in conflicts.py, whether one is commoner there than elsewhere in
causes_weighing.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from ragkit.comparison.causes_texts import Texts
from ragkit.comparison.sides import Side
from ragkit.evaluation.funnel import RightRule, answer_right
from ragkit.evaluation.score import evidence_path
from ragkit.metrics.fates import fates
from ragkit.metrics.text import is_refusal, normalized_tokens, tokens
from ragkit.records.trajectory import Trajectory

_SAME = 0.8  # shared words of all words of two passages, from which they say the same
_FEWEST_WORDS = 5
_GUESSED = (["yes"], ["no"], ["true"], ["false"])


class SideFacts:
    """What is known of one variant's lists, answers and steps, question by question, of the first repeat.

    `judged_zeros`: whether the labels tell what is not relevant, so that a passage without a grade is a hole, not the
    rule.
    """

    def __init__(self, side: Side, judged_zeros: bool) -> None:
        self.side, self._zeros = side, judged_zeros
        self._texts = Texts(side)
        level = side.run.get("level", (side.run.get("config") or {}).get("level", 1.0))
        self._level = float(level)
        self._words: dict[tuple[str, str], frozenset[str] | None] = {}

    def top(self, question: str, k: int | None) -> tuple[str, ...] | None:
        """The ids at the end of a question, down to k; None where nobody knows the list."""
        lists = self.side.lists
        return None if lists is None else tuple(lists.get(question, ()))[:k]

    def relevant(self, question: str) -> frozenset[str]:
        """The gold of a question."""
        facts = self.side.questions.get(question)
        grades: Mapping[str, float] = (facts.grades if facts is not None else None) or {}
        return frozenset(name for name, grade in grades.items() if grade >= self._level)

    def without_gold(self, question: str) -> bool | None:
        """Whether no gold stands in the list at the end; None without gold or list."""
        found, gold = self.top(question, None), self.relevant(question)
        return None if found is None or not gold else not gold & set(found)

    def right(self, question: str) -> bool | None:
        """Whether the answer is right, by the rule of the run."""
        scores = {}
        for metric in ("answer_accuracy", "exact_match", "answer_f1"):
            repeats = self.side.scores.get(metric, {}).get(question, {})
            if repeats:
                scores[metric] = repeats[min(repeats)]
        threshold = (self.side.run.get("config") or {}).get("answer_threshold", RightRule.threshold)
        return answer_right(scores, RightRule(threshold))

    # --- causes --------------------------------------------------------------------------------------------------

    def label_hole(self, question: str, k: int | None) -> bool | None:
        """Whether an unjudged passage in the top k holds the reference answer; where there is no answer to look for and
        the labels tell what is not relevant: whether an unjudged one stands there at all."""
        found = self.top(question, k)
        facts = self.side.questions.get(question)
        if found is None or facts is None or facts.grades is None:
            return None
        holes = [name for name in dict.fromkeys(found) if name not in facts.grades]
        answers = self._answers(question)
        if not answers:
            return bool(holes) if self._zeros and not facts.answers else None
        texts = [self._texts.of(question, name) for name in holes]
        if any(text is not None and _holds(text, answers) for text in texts):
            return True
        return None if None in texts else False

    def redundant(self, question: str, k: int | None) -> bool | None:
        """Whether a passage in the top k says what another one there says already (four fifths of their words)."""
        found = self.top(question, k)
        if found is None:
            return None
        words = [self._bag(question, name) for name in dict.fromkeys(found)]
        known = [bag for bag in words if bag is not None]
        if len(set(found)) < len(found):
            return True
        if any(len(bag & other) >= _SAME * len(bag | other) for place, bag in enumerate(known)
               for other in known[:place] if min(len(bag), len(other)) >= _FEWEST_WORDS):
            return True
        return None if len(known) < len(words) else False

    def lost(self, question: str) -> bool | None:
        """Whether a step found gold that did not come into the context."""
        path = self._trajectories.get(question)
        if path is None or path.context is None or not self.relevant(question):
            return None
        return any(fate.startswith("lost_at") for fate in self._fates(question).values())

    def below(self, question: str, k: int) -> bool | None:
        """Whether gold stands in the list, but below k alone."""
        found, gold = self.top(question, None), self.relevant(question)
        if found is None or not gold:
            return None
        return not gold & set(found[:k]) and bool(gold & set(found[k:]))

    def refused(self, question: str) -> bool | None:
        """Whether the answer only says that it cannot be given."""
        trajectory = self._trajectories.get(question)
        if trajectory is None or trajectory.answer is None:
            return None
        return is_refusal(trajectory.answer)

    def longer(self, question: str, other: SideFacts) -> bool | None:
        """Whether more passages came back than in the other variant."""
        own, its = self.top(question, None), other.top(question, None)
        return None if own is None or its is None else len(own) > len(its)

    def unsupported(self, question: str) -> bool | None:
        """Whether no passage in the list at the end holds the reference answer: it came from elsewhere."""
        found, answers = self.top(question, None), self._answers(question)
        if found is None or not answers:
            return None
        texts = [self._texts.of(question, name) for name in dict.fromkeys(found)]
        if any(text is not None and _holds(text, answers) for text in texts):
            return False
        return None if None in texts else True

    def guessable(self, question: str) -> bool | None:
        """Whether the reference answer is yes or no, which is right by chance half of the time."""
        facts = self.side.questions.get(question)
        if facts is None or not facts.answers:
            return None
        return all(normalized_tokens(answer) in _GUESSED for answer in facts.answers)

    # --- what they look at -----------------------------------------------------------------------------------------

    def _answers(self, question: str) -> list[list[str]]:
        """The reference answers that can be looked for in a text: not yes or no, and more than a sign."""
        facts = self.side.questions.get(question)
        made = [normalized_tokens(answer) for answer in (facts.answers if facts is not None else None) or ()]
        return [words for words in made if words not in _GUESSED and len("".join(words)) > 1]

    def _bag(self, question: str, name: str) -> frozenset[str] | None:
        key = (question, name)
        if key not in self._words:
            text = self._texts.of(question, name)
            self._words[key] = None if text is None else frozenset(tokens(text))
        return self._words[key]

    @cached_property
    def _trajectories(self) -> dict[str, Trajectory]:
        past = self.side.past
        found: dict[str, Trajectory] = {}
        for trajectory in sorted(past.scoring().trajectories, key=lambda t: t.repeat) if past is not None else ():
            found.setdefault(trajectory.question_id, trajectory)
        return found

    def _fates(self, question: str) -> dict[str, str]:
        past = self.side.past
        assert past is not None, "a trajectory comes from a run"
        return fates(evidence_path(self._trajectories[question], lambda passages: past.gold.names(question, passages),
                                   past.gold.qrels.get(question, {}), level=self._level))


def _holds(text: str, answers: Sequence[Sequence[str]]) -> bool:
    """Whether one of the answers stands in the text, word by word."""
    words = f" {' '.join(normalized_tokens(text))} "
    return any(f" {' '.join(answer)} " in words for answer in answers)
