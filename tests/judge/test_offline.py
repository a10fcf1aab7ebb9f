"""The embedded judge: overlap under its own names, deterministic, and silent about what it cannot know."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ragkit.errors import DataError
from ragkit.judge.offline import AGREEMENT, OFFLINE_JUDGE, judge_offline
from ragkit.judge.samples import JudgeSample
from ragkit.metrics.registry import parse_all

METRICS = parse_all("lexical_support,lexical_coverage,answer_f1,exact_match")


def test_support_of_each_statement_with_what_no_passage_holds() -> None:
    sample = JudgeSample(("q1", 0), "When?", "The mill opened in 1911. It was moved to Tarn in 1950.",
                         ("The mill opened in 1911.",), reference="In 1911")
    judged = judge_offline([sample], METRICS)
    support = judged[("q1", 0), "lexical_support"]
    assert support.judge == OFFLINE_JUDGE
    assert 0 < (support.score.value or 0) < 1
    sentences = ["The mill opened in 1911.", "It was moved to Tarn in 1950."]
    assert [verdict.subject for verdict in support.verdicts] == sentences
    assert support.verdicts[0].value == 1.0
    assert support.verdicts[0].flags == ()
    assert set(support.verdicts[1].flags) == {"number 1950", "name Tarn"}
    assert judged[("q1", 0), "exact_match"].score.value == 0.0


def test_the_best_of_all_references_counts() -> None:
    sample = JudgeSample(("q",), "Who?", "Curie", (), reference="Marie Curie")
    one = judge_offline([sample], METRICS)[("q",), "exact_match"]
    both = judge_offline([sample], METRICS, [["Marie Curie", "Curie"]])[("q",), "exact_match"]
    assert (one.score.value, both.score.value) == (0.0, 1.0)
    with pytest.raises(DataError, match="one list a sample"):
        judge_offline([sample], METRICS, [])


@pytest.mark.parametrize(("sample", "metric"), [
    (JudgeSample(("q",), "Who?", None, ("c",)), "lexical_support"),
    (JudgeSample(("q",), "Who?", "Ann", ()), "lexical_support"),
    (JudgeSample(("q",), "Who?", "I don't know.", ("c",)), "lexical_coverage"),
    (JudgeSample(("q",), "Who?", "Ann", ("c",)), "answer_f1"),
])
def test_undefined_where_there_is_nothing_to_compare(sample: JudgeSample, metric: str) -> None:
    judgement = judge_offline([sample], parse_all(metric))[("q",), metric]
    assert judgement.score.status == "undefined"
    assert judgement.score.reason


def test_it_does_not_pretend_to_be_another_judge() -> None:
    sample = JudgeSample(("q",), "Who?", "Ann", ("Ann",))
    for name in ("faithfulness", "recall@5"):
        with pytest.raises(DataError, match="word overlap only"):
            judge_offline([sample], parse_all(name))


def test_its_agreement_is_stated_for_each_signal() -> None:
    assert [row["signal"] for row in AGREEMENT] == ["lexical_support", "lexical_coverage"]
    for row in AGREEMENT:
        figures = [value for name, value in row.items() if name != "signal"]
        assert len(figures) == 4
        assert all(isinstance(value, float) and 0.5 < value < 1 for value in figures)


def test_it_loads_no_vendor_and_no_network() -> None:
    code = ("import sys; from ragkit.judge.offline import judge_offline; "
            "print([m for m in ('aiohttp', 'ragas', 'torch', 'langchain_core', 'pandas') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
