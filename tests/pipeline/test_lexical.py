"""BM25: all scripts, no zero-score hit, and the figures of a second implementation."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

from ragkit.errors import DataError
from ragkit.pipeline.lexical import LexicalRetriever, lexical_tokens
from ragkit.recording import Recorder
from ragkit.records.trajectory import Passage
from tests.support.data import data_folder


def retriever(*texts: str) -> LexicalRetriever:
    return LexicalRetriever([Passage(str(number), text) for number, text in enumerate(texts)])


def test_chinese_is_found_by_bigrams_and_zero_scores_are_not_ranked() -> None:
    found = retriever("退款需要七天", "周末不营业", "密码可以重置", "地址在河边").retrieve("重置密码", 4)  # C31
    assert [passage.id for passage in found] == ["2"] and (found[0].score or 0) > 0


@pytest.mark.parametrize(("text", "tokens"), [
    ("Straße, ÉTÉ", ["straße", "été"]),
    ("ｆｕｌｌ　ｗｉｄｔｈ", ["full", "width"]),
    ("हिन्दी में", ["हिन्दी", "में"]),
    ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
    ("東京tower2号", ["東京", "tower2", "号"]),
    ("ภาษา", ["ภา", "าษ", "ษา"]),
    ("...", []),
])
def test_tokens_of_many_scripts(text: str, tokens: list[str]) -> None:
    assert lexical_tokens(text) == tokens


def test_a_query_without_a_known_word_finds_nothing_and_says_so() -> None:
    index = retriever("fog bell", "lamp oil")
    recorder = Recorder()
    with recorder.trace("zebra") as trace:
        assert index.retrieve("zebra", 2) == []
    assert "bm25: all lexical scores are 0 for this query" in trace.trajectory.meta["warnings"]


def test_outside_of_a_trace_the_notice_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ragkit.pipeline"):
        assert retriever("fog").retrieve("zebra", 1) == []
    assert "all lexical scores are 0" in caplog.text


@pytest.mark.parametrize("texts", [(), ("", " "), ("the of",)])
def test_an_index_without_a_word_is_empty_not_an_error(texts: tuple[str, ...]) -> None:
    assert retriever(*texts).retrieve("fog", 3) == []


def test_k_above_the_count_and_k_of_zero() -> None:
    assert len(retriever("fog bell", "fog horn", "oil").retrieve("fog", 10)) == 2
    with pytest.raises(DataError, match="k: expected a whole number of at least 1, got 0"):
        retriever("fog").retrieve("fog", 0)


def test_equal_scores_keep_the_order_of_the_passages() -> None:
    assert [p.id for p in retriever("oil", "fog bell", "fog bell", "fog bell").retrieve("fog", 3)] == ["1", "2", "3"]


@pytest.mark.data
def test_cranfield_scores_as_measured_elsewhere_and_empty_documents_survive() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    folder = data_folder("cranfield")
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]
    index = LexicalRetriever([Passage(row["_id"], f"{row['title']}\n{row['text']}") for row in rows])
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        qrels.setdefault(question, {})[document] = int(grade)
    run, ids = {}, set()
    for line in (folder / "queries.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        found = [passage.id for passage in index.retrieve(row["text"], 100)]
        ids.update(found)
        run[row["_id"]] = {name: float(-rank) for rank, name in enumerate(found)}
    scores = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    assert np.mean([row["ndcg_cut_10"] for row in scores.values()]) == pytest.approx(0.337, abs=0.01)
    assert not ids & {"471", "995"}
