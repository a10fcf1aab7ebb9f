"""Names of metrics: they parse back, aliases are understood, and a wrong one is answered in one line."""

from __future__ import annotations

import pytest

from ragkit.errors import DataError
from ragkit.metrics.registry import Metric, definitions, metric, parse, parse_all

EVERY = definitions()


@pytest.mark.parametrize("definition", EVERY, ids=lambda d: d.name)
def test_every_name_parses_back(definition) -> None:  # type: ignore[no-untyped-def]
    cuts = {"required": (1, 10), "optional": (definition.default_cut, 1, 10), "none": (None,)}[definition.cut]
    for k in cuts:
        asked = Metric(definition, k)
        assert parse(asked.name) == asked
        assert parse(f" {asked.name.upper()} ") == asked
        assert str(asked) == asked.name


@pytest.mark.parametrize("definition", EVERY, ids=lambda d: d.name)
def test_every_metric_says_what_it_means(definition) -> None:  # type: ignore[no-untyped-def]
    assert definition.summary and definition.summary[-1] in ".:", definition.summary
    assert definition.undefined and definition.otherwise
    assert definition.direction in ("higher", "lower", "none")
    assert len(definition.range) == 2
    assert "in_range" in definition.laws
    assert definition.source or definition.kind == "trajectory"
    assert definition.formula and definition.ties
    assert definition.formula.isascii(), "every console can show it"
    if definition.dialect_of:
        assert definition.dialect_of in {other.name for other in EVERY}
        assert not definition.differs.endswith("."), "it goes on in a sentence"


@pytest.mark.parametrize(("alias", "name"), [
    ("Success@5", "hit@5"), ("hit_rate@3", "hit@3"), ("hit-rate@3", "hit@3"),
    ("P@5", "precision@5"), ("R@5", "recall@5"),
    ("R", "recall"), ("Full@2", "allhit@2"), ("RR@10", "mrr@10"), ("AP@5", "map@5"), ("MAP", "map"),
    ("nDCG@10", "ndcg@10"), ("nDCG", "ndcg"), ("Success@1", "hit@1"), ("MRR@10", "mrr@10"), ("RR", "mrr"),
    ("recip_rank", "mrr"), ("Full@5", "allhit@5"), ("Judged@10", "judged@10"), ("ndcg_exp@5", "ndcg_exp@5"),
    ("MAP@100", "map@100"), ("Recall@100", "recall@100"), ("Precision@5", "precision@5"), ("aucr", "aucr@5"),
    ("ndcg @ 3", "ndcg@3")])
def test_aliases(alias: str, name: str) -> None:
    assert parse(alias).name == name


@pytest.mark.parametrize(("text", "message"), [
    ("ndgc@10", "unknown metric 'ndgc@10'; did you mean ndcg"), ("ndcg@0", "the cut must be at least 1, got 0"),
    ("recall@-1", "the cut must be at least 1, got -1"), ("precision", "a cut is needed, for example precision@5"),
    ("precision_set@5", "precision_set takes no cut"), ("faithfulness@3", "takes no cut"),
    ("ndcg@ten", "expected a name such as ndcg@10"), ("", "expected a name such as"), ("@5", "expected a name such as"),
    ("qqqqqqqq", "known: allhit")])
def test_bad_names(text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lists_of_names() -> None:
    assert [m.name for m in parse_all("ndcg@5, P@5,mrr")] == ["ndcg@5", "precision@5", "mrr"]
    assert [m.name for m in parse_all(["ndcg@5,recall", "nDCG@5"])] == ["ndcg@5", "recall"]
    with pytest.raises(DataError, match="at least one name"):
        parse_all(" , ")


def test_a_name_is_declared_once() -> None:
    with pytest.raises(DataError, match="'ndcg' is declared twice"):
        metric("ndcg[@k]", kind="ranking", undefined="never")(lambda batch, k: None)
    with pytest.raises(DataError, match="'AP' is declared twice"):
        metric("AP", kind="ranking", undefined="never")(lambda batch, k: None)
    assert parse("ndcg").definition.source.startswith("trec_eval")


def test_the_metrics_that_the_docs_promise() -> None:
    names = {d.name for d in EVERY}
    assert {"hit", "precision", "precision_set", "recall", "allhit", "mrr", "map", "dcg", "ndcg", "ndcg_exp", "judged",
            "first_relevant_rank", "ap_retrieved", "ndcg_returned", "precision_returned", "id_context_precision",
            "id_context_recall", "cumulative_recall", "marginal_recall", "novelty", "aucr", "steps_to_evidence",
            "step_efficiency", "redundancy", "survival", "rerank_lift", "rerank_lift_mrr", "context_precision",
            "context_recall", "faithfulness", "answer_relevancy", "lexical_support", "lexical_coverage", "answer_f1",
            "exact_match"} <= names
