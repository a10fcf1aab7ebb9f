"""The rank metrics against trec_eval itself, through pytrec_eval, on random runs."""

from __future__ import annotations

import random

import pytest

from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays
from ragkit.metrics.registry import parse

pytrec_eval = pytest.importorskip("pytrec_eval", reason="the oracle pytrec_eval-terrier is not installed")

CUTS = (1, 2, 3, 5, 10, 100)
SAME = {"map": "map", "ndcg": "ndcg", "mrr": "recip_rank", "precision_set": "set_P", "recall": "set_recall"} | {
    f"{ours}@{k}": f"{theirs}_{k}" for k in CUTS for ours, theirs in (
        ("map", "map_cut"), ("ndcg", "ndcg_cut"), ("precision", "P"), ("recall", "recall"), ("hit", "success"))}
ALPHABET = "abz09é知识😀ß-_"


def random_case(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    rng = random.Random(seed)
    ids = sorted({"".join(rng.choices(ALPHABET, k=rng.randint(1, 4))) for _ in range(60)})
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for number in range(4):
        grades = {i: rng.choice([-2, -1, 0, 0, 1, 1, 2, 3]) for i in rng.sample(ids, rng.randint(1, 15))}
        grades[rng.choice(ids)] = 3
        qrels[f"問{number}"] = grades
        length = rng.choice([0, 1, 2, 5, 20, 40])
        # Few distinct scores, so that ties decide; multiples of 1/8 are exact also in the float32 of pytrec_eval.
        run[f"問{number}"] = {i: rng.randint(-4, 12) / 8 for i in rng.sample(ids, length)}
    return qrels, run


def trec_order(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda i: (scores[i], i.encode()), reverse=True)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_equal_to_trec_eval(level: int) -> None:
    metrics = [parse(name) for name in SAME]
    theirs_by_name = {name.rsplit("_", 1)[0] for name in SAME.values() if name[-1].isdigit()} | {
        "map", "ndcg", "recip_rank", "set_P", "set_recall"}
    compared = 0
    for seed in range(120):
        qrels, run = random_case(seed)
        measures = {f"{name}.{','.join(map(str, CUTS))}" if name in ("map_cut", "ndcg_cut", "P", "recall", "success")
                    else name for name in theirs_by_name}
        oracle = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=level).evaluate(run)
        rankings = [RankedIds(question, trec_order(scores)) for question, scores in run.items()]
        ours = score_arrays(build_batch(rankings, qrels, level=level), metrics)
        for ranking, row in zip(rankings, ours, strict=True):
            if not ranking.ids:  # trec_eval leaves the question out; ours are 0
                assert row.tolist() == [0.0] * len(metrics)
                continue
            for metric, value in zip(metrics, row, strict=True):
                expected = oracle[ranking.question_id][SAME[metric.name]]
                assert value == pytest.approx(expected, abs=1e-9), (seed, ranking, metric.name)
                compared += 1
    assert compared > 10_000
