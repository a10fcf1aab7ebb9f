"""What may be held against what: other questions, texts, labels, levels, judges and corpora are refused or named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ragkit
from ragkit.comparison.fitting import fit
from ragkit.comparison.sides import Side, side_of_evaluation, side_of_folder
from ragkit.errors import DataError
from ragkit.evaluation.result import Evaluation
from ragkit.records.judgements import Score
from ragkit.records.questions import Dataset, GoldText
from tests.support.variants import at_rank, dataset, variant

LISTS = {f"q{n}": [at_rank(1)] for n in range(4)}


def sides(**made: Evaluation) -> list[Side]:
    return [side_of_evaluation(name, evaluation) for name, evaluation in made.items()]


def changed(data: Dataset, **more: Any) -> Dataset:
    """The data set with its last question changed."""
    return replace(data, questions=(*data.questions[:-1], replace(data.questions[-1], **more)))


def judged_by(side: Side, **judge: Any) -> Side:
    return replace(side, run={**side.run, "judge": {"name": "m", "fingerprint": "1", "embeddings": "e", **judge}})


def test_a_subset_of_the_questions_is_compared_on_those_that_all_have() -> None:
    few = {name: lists for name, lists in LISTS.items() if name != "q1"}
    found = fit(sides(all=variant(LISTS, dataset(4)), few=variant(few, dataset(4))))
    assert found.questions == ("q0", "q2", "q3")
    assert found.warnings == ("not the same questions were asked (all 4, few 3): compared on the 3 that all have; left "
                              "out: q1",)
    made = ragkit.compare({"all": variant({**LISTS, "q1": [at_rank(4)]}, dataset(4)), "few": variant(few, dataset(4))})
    mean = made.data["means"]["mrr"]["all"]
    assert (mean["mean"], mean["n_asked"]) == (1, 3), "the mean, too, is of the questions that are compared"
    assert made.data["variants"]["all"]["n_asked"] == 4


@pytest.mark.parametrize(("data", "said"), [
    (lambda: changed(dataset(4), text="Another?"), "questions: 'q3' is another one in one ('What is number 3?') than "
                                                   "in two ('Another?')"),
    (lambda: replace(dataset(4), qrels={**dataset(4).qrels, "q2": {"x2": 1.0}}),
     "labels: not the same in one and two for 1 question, such as 'q2'"),
    (lambda: changed(dataset(4), gold_texts=(GoldText("Text of x2"),)),
     "labels: not the same in one and two for 1 question, such as 'q3'"),
    (lambda: replace(dataset(4), qrels={**dataset(4).qrels, "q2": {"g": 2.0}}), "labels: not the same in one and two"),
])
def test_another_text_or_other_labels_are_refused(data: Callable[[], Dataset], said: str) -> None:
    with pytest.raises(DataError) as caught:
        fit(sides(one=variant(LISTS, dataset(4)), two=variant(LISTS, data())))
    assert said in str(caught.value) and "expected" in str(caught.value)


def test_no_common_question_and_another_level_are_refused() -> None:
    other = Dataset(tuple(replace(q, id=f"other{q.id}") for q in dataset(4).questions))
    lists = {f"other{question}": found for question, found in LISTS.items()}
    with pytest.raises(DataError, match=r"one and two have none in common \(the first are 'q0' and 'otherq0'"):
        fit(sides(one=variant(LISTS, dataset(4)), two=variant(lists, other)))
    with pytest.raises(DataError, match=r"relevant: from grade 1 in one, from 0\.5 in two"):
        fit(sides(one=variant(LISTS, dataset(4)), two=variant(LISTS, dataset(4), level=0.5)))


def test_another_reference_answer_leaves_answer_metrics_out_or_refuses_those_named() -> None:
    two = sides(one=variant(LISTS, dataset(4)), two=variant(LISTS, changed(dataset(4), answers=("That.",))))
    found = fit(two)
    assert [metric.name for metric in found.metrics] == ["mrr", "recall@5"]
    assert any(told.startswith("left out: exact_match, since 1 question with another reference answer, such as q3")
               for told in found.warnings)
    with pytest.raises(DataError, match="metric exact_match: cannot be compared, since 1 question with another"):
        fit(two, "mrr,exact_match")
    assert [metric.name for metric in fit(two, "mrr").metrics] == ["mrr"]


def test_another_judge_leaves_judged_metrics_out_or_refuses_those_named() -> None:
    rows = {"faithfulness": {"q0": {0: Score.scored(1)}}}
    plain = [replace(side, scores={**side.scores, **rows}) for side in
             sides(one=variant(LISTS, dataset(4)), two=variant(LISTS, dataset(4)))]
    same = fit([judged_by(side) for side in plain])
    assert "faithfulness" in [metric.name for metric in same.metrics] and not same.warnings
    for judge, said in (({"fingerprint": "2", "name": "n"}, "one was judged by m, two by n"),
                        ({"fingerprint": "2"}, "one was judged by m, two by m with other settings"),
                        ({"language": "german"}, "one was judged by m, two by m in german")):
        pair = [judged_by(plain[0]), judged_by(plain[1], **judge)]
        found = fit(pair)
        assert "faithfulness" not in [metric.name for metric in found.metrics]
        assert f"left out: faithfulness, since {said}" in found.warnings
        with pytest.raises(DataError, match="metric faithfulness: cannot be compared"):
            fit(pair, ["faithfulness"])
    embedded = fit([judged_by(plain[0]), judged_by(plain[1], embeddings="f")])
    assert "faithfulness" in [metric.name for metric in embedded.metrics], "embeddings decide answer_relevancy alone"


def test_another_corpus_and_metrics_that_only_one_has_are_named() -> None:
    first, second = sides(one=variant(LISTS, dataset(4)), two=variant(LISTS, dataset(4), metrics="mrr,hit@1"))
    second = replace(second, run={**second.run, "data": {**second.run["data"], "corpus": "another"}})
    found = fit([first, second])
    assert [metric.name for metric in found.metrics] == ["mrr"]
    assert "not in all variants, and left out: exact_match, hit@1, recall@5" in found.warnings
    assert any(told.startswith("one and two searched another corpus") for told in found.warnings)


def test_a_metric_of_ones_own_that_is_not_loaded_is_named() -> None:
    pair = [replace(side, scores={**side.scores, "mine@3": side.scores["mrr"]}) for side in
            sides(one=variant(LISTS, dataset(4)), two=variant(LISTS, dataset(4)))]
    found = fit(pair)
    assert [metric.name for metric in found.metrics] == ["mrr", "recall@5", "exact_match"]
    assert found.warnings == ("unknown here, and left out: mine@3 (--import MODULE loads your own)",)


def test_folders_without_texts_compare_by_their_fingerprints(tmp_path: Path) -> None:
    variant(LISTS, dataset(4), tmp_path / "one", include_text=False)
    variant(LISTS, dataset(4), tmp_path / "two", include_text=False)
    both = [side_of_folder(tmp_path / "one"), side_of_folder(tmp_path / "two")]
    assert fit(both).warnings == () and both[0].past is None and "--no-text" in str(both[0].why_closed)
    variant(LISTS, replace(dataset(4), qrels={**dataset(4).qrels, "q2": {"x2": 1.0}}), tmp_path / "other",
            include_text=False)
    with pytest.raises(DataError, match="labels: not the same in one and other; expected one set of labels"):
        fit([both[0], side_of_folder(tmp_path / "other")])


def test_gold_that_chunks_of_another_size_make_another_number_of_is_named() -> None:
    """One passage that carries both gold texts is one thing to find; two passages are two."""
    data = changed(dataset(1, gold=()), gold_texts=(GoldText("Ines was born."), GoldText("Ines made films.")))

    def cut(*texts: str) -> Evaluation:
        def app(question: str) -> str:
            trace = ragkit.current_trace()
            assert trace is not None
            trace.step(question, [(f"p{n}", text) for n, text in enumerate(texts)])
            trace.context([(f"p{n}", text) for n, text in enumerate(texts)])
            return "This."

        return ragkit.evaluate(app, data, metrics="recall,mrr")

    found = fit(sides(whole=cut("Ines was born. Ines made films."), parts=cut("Ines was born.", "Ines made films.")))
    assert any("the same gold makes another number of relevant units in whole than in parts for 1 question" in told
               for told in found.warnings), found.warnings
