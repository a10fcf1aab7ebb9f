"""Evidence x answer, the rule for "right", and the sentence of what to fix first."""

import pytest

from ragkit.evaluation.funnel import Findings, RightRule, answer_right, evidence_complete, fix_first, funnel, outcome
from ragkit.metrics.trajectory import EvidencePath
from ragkit.records.judgements import Score
from ragkit.records.trajectory import Trajectory
from ragkit.report.labels import OUTCOMES

RULE = RightRule()
S, U, F = Score.scored, Score.undefined("no reference answer"), Score.failed("judge timed out")


@pytest.mark.parametrize(
    ("scores", "right"),
    [
        ({"answer_accuracy": S(0.5), "exact_match": S(0), "answer_f1": S(0)}, True),
        ({"answer_accuracy": S(0.25), "exact_match": S(1), "answer_f1": S(1)}, False),
        ({"answer_accuracy": F, "exact_match": S(1), "answer_f1": S(0.4)}, True),
        ({"exact_match": S(0), "answer_f1": S(0.5)}, True),
        ({"exact_match": S(0), "answer_f1": S(0.49)}, False),
        ({"exact_match": U, "answer_f1": U}, None),
        ({}, None),
    ],
)
def test_the_judge_goes_first_then_the_reference(scores: dict[str, Score], right: bool | None) -> None:
    assert answer_right(scores, RULE) is right


def path(context: tuple[str, ...] | None, right: bool | None = None, state: str = "labelled") -> EvidencePath:
    return EvidencePath(
        steps=(("a", "x"),), gold={"a": 1.0, "b": 1.0}, context=context, answer_right=right, label_state=state
    )  # type: ignore[arg-type]


ANSWERED, SILENT = Trajectory("q", "q", answer="x"), Trajectory("q", "q", answer="I don't know.")


@pytest.mark.parametrize(
    ("found", "trajectory", "expected"),
    [
        (path(("a", "b"), True), ANSWERED, "complete_right"),
        (path(("b", "a", "x"), False), ANSWERED, "complete_wrong"),
        (path(("a",), False), ANSWERED, "incomplete_wrong"),
        (path(("a",), True), ANSWERED, "incomplete_right"),
        (path(("a", "b")), ANSWERED, "complete_unchecked"),
        (path(None), ANSWERED, "incomplete_unchecked"),
        (path(("a",), None, "unanswerable"), SILENT, "unanswerable_refused"),
        (path(("a",), None, "unanswerable"), Trajectory("q", "q", answer=" "), "unanswerable_refused"),
        (path(("a",), None, "unanswerable"), ANSWERED, "unanswerable_answered"),
        (path(("a",), None, "unanswerable"), Trajectory("q", "q"), "unanswerable_unchecked"),
        (path(("a",), True, "unlabelled"), ANSWERED, "unlabelled_right"),
        (path(("a", "b"), True), Trajectory("q", "q", error="E"), "failed"),
        (path(("a", "b")), Trajectory("q", "q", meta={"not_asked": True}), "not_asked"),
        (EvidencePath(steps=(), gold={"a": 1.0}, level=2.0, answer_right=True), ANSWERED, "unlabelled_right"),
    ],
)
def test_every_trajectory_has_one_cell(found: EvidencePath, trajectory: Trajectory, expected: str) -> None:
    assert outcome(found, trajectory) == expected
    assert expected in OUTCOMES


def test_evidence_counts_grades_from_the_level_on() -> None:
    graded = EvidencePath(steps=(), gold={"a": 2.0, "b": 1.0}, context=("a",), level=2.0)
    assert evidence_complete(graded)
    assert not evidence_complete(EvidencePath(steps=(), gold={"a": 0.0}, context=("a",)))


def test_the_funnel_adds_up_to_all_gold() -> None:
    paths = [path(("a",), False), path(("a", "b"), True), path(None), path(("a",), None, "unanswerable")]
    assert sum(funnel(paths).values()) == 6


@pytest.mark.parametrize(
    ("outcomes", "lost", "expected"),
    [
        ({"complete_wrong": 5, "incomplete_wrong": 2, "complete_right": 3}, {}, "Fix the generator first: on 5 of 10"),
        (
            {"complete_wrong": 2, "incomplete_wrong": 5, "complete_right": 3},
            {"never_retrieved": 4, "lost_at_cut": 2, "in_context_wrong": 9},
            "Fix retrieval first: on 5 of 10 labelled questions the evidence in the context is incomplete and the "
            "answer is wrong; 4 of 6 missing passages were never retrieved.",
        ),
        (
            {"incomplete_unchecked": 5, "complete_unchecked": 5},
            {"lost_at_rerank": 5},
            "(answers were not checked); 5 of 5 missing passages were lost at re-ranking.",
        ),
        (
            {"unanswerable_answered": 3, "unanswerable_refused": 1, "complete_right": 9},
            {},
            "Fix the refusals first: 3 of 4",
        ),
        ({"failed": 6, "complete_right": 4}, {}, "Fix the app itself first: it failed on 6 of 10 questions"),
        ({"complete_right": 4}, {}, "Nothing stands out"),
        ({"complete_unchecked": 3}, {}, "so retrieval is fine there; 3 answers were not checked"),
        (
            {"complete_right": 4, "incomplete_right": 2},
            {},
            "Look at the labels first: 2 of 6 answers are right without",
        ),
        ({"unlabelled_right": 4}, {}, "No question has relevance labels"),
    ],
)
def test_the_sentence_names_the_largest_fault(outcomes: dict[str, int], lost: dict[str, int], expected: str) -> None:
    assert expected in fix_first(Findings(outcomes, lost))


def test_the_sentence_speaks_of_the_context_only_where_it_is_known() -> None:
    cells = {"complete_wrong": 2}
    assert "stood in the context and the answer still does not match" in fix_first(Findings(cells, {}))
    assert "stood in what was retrieved and" in fix_first(Findings(cells, {}, context_known=False))


def test_ids_that_never_occur_come_before_everything_else() -> None:
    sentence = fix_first(Findings({"incomplete_wrong": 4}, {"never_retrieved": 5}, matched=0, gold=5))
    assert sentence.startswith("Check the ids first: none of the 5 gold ids occurs")


def test_the_sentence_says_how_many_of_the_answers_nobody_checked() -> None:
    both = fix_first(Findings({"incomplete_wrong": 1, "incomplete_unchecked": 2}, {"never_retrieved": 3}))
    assert "on 3 of 3 labelled questions" in both and "(on 2 of them nobody checked it)" in both
    assert "nobody" not in fix_first(Findings({"incomplete_wrong": 3}, {"never_retrieved": 3}))


def test_the_rule_names_the_judge_only_where_one_scored() -> None:
    assert "answer_accuracy" in RULE.describe(judged=True)
    assert "answer_accuracy" not in RULE.describe(judged=False) and "No judge checked it" in RULE.describe(judged=False)
