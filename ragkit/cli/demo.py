"""`ragkit demo`: the built-in sample, a pipeline of embedded models, and the report; no key, no network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragkit.cli import common

METRICS_NOTE = "an iterative agent over hybrid search with a re-ranker, answers by extraction, no key needed"


def demo(
    out: Annotated[Path, typer.Option("--out", help="The run folder; an existing one resumes.")] = Path("ragkit-demo"),
    metrics: common.Metrics = None,
    judge: common.Judge = None,
    judge_url: common.JudgeUrl = None,
    max_calls: common.MaxCalls = None,
    as_json: common.AsJson = False,
) -> None:
    """Evaluate a small RAG agent on the built-in sample and write the report."""
    from ragkit.cli.experiment import build_own_pipeline
    from ragkit.evaluation.evaluate import aevaluate, run_async
    from ragkit.records.readers import load_dataset
    from ragkit.sample import sample_folder
    from ragkit.sections import AgentSection, PipelineSection

    section = PipelineSection(
        retriever="hybrid", k=5, candidates=12, reranker="maxsim", context_k=5, generator="extractive",
        agent=AgentSection(kind="iterative", max_steps=3),
    )
    common.complain(f"demo: {METRICS_NOTE}") if not as_json else None
    data = load_dataset(sample_folder())
    pipeline = build_own_pipeline(section, data.corpus, out / "index")
    with common.progress(as_json) as bar:
        asked = bar("asking", len(data.questions))
        judged = bar("judging", None) if judge or judge_url else None
        evaluation = run_async(
            aevaluate(pipeline, sample_folder(), metrics=metrics, judge=judge, out=out, variant="demo",
                      judge_url=judge_url, judge_settings=common.judge_settings(max_calls=max_calls),
                      config={"system": {"pipeline": section.model_dump(mode="json")}}, on_recorded=asked,
                      on_judged=judged)
        )
    pipeline.close()
    common.finish(evaluation, as_json, out / "report.html")
