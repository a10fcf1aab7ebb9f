"""What is measured, and the result: scores, summary and report of one variant, and the files of its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.evaluation import funnel
from ragkit.evaluation.label_bridge import EarlierJudge
from ragkit.evaluation.privacy import without_texts
from ragkit.evaluation.runfolder import RunFolder
from ragkit.evaluation.scoring import Scoring
from ragkit.evaluation.table import write_scores
from ragkit.evaluation.units import Projection
from ragkit.judge.calibration import Threshold
from ragkit.metrics.registry import Metric
from ragkit.records.files import write_json, write_text, write_trajectories
from ragkit.records.human_labels import HumanLabel
from ragkit.records.questions import Dataset
from ragkit.records.trajectory import Trajectory
from ragkit.report.data import ReportData
from ragkit.report.labels import OUTCOMES
from ragkit.report.numbers import number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Plan:
    """What is measured, on what, and by which rules."""

    dataset: Dataset
    metrics: tuple[Metric, ...]
    variant: str = "run"
    level: float = 1.0
    rule: funnel.RightRule = field(default_factory=funnel.RightRule)
    seed: int = 0
    all_questions: bool = False
    thresholds: tuple[Threshold, ...] = ()
    labels: tuple[HumanLabel, ...] = ()  # what people said of a part of the answers
    earlier: EarlierJudge | None = None  # who judged before, to be compared on a sample
    relevance: bool = False  # whether a judge labels the passages
    judge_steps: bool = False  # whether a judge reads the list of each step, too
    shown: int = 50  # how many questions the page shows in full, the worst first
    stores: tuple[Path, ...] = ()  # judgement stores that judged labels are pooled from, besides the judge's own

    def scoring(self, trajectories: tuple[Trajectory, ...], gold: Projection) -> Scoring:
        """The scoring of these trajectories, which are of questions of the data set."""
        return Scoring(self.variant, self.dataset, trajectories, gold, self.metrics, self.level, self.rule,
                       self.judge_steps)


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Scores, summary and report of one variant.

    `scores` is the tidy DataFrame (a row a question, step and metric), `summary` is summary.json, `data` is what the
    report shows. `partial` says that the app or the judge failed on something.
    """

    plan: Plan
    trajectories: tuple[Trajectory, ...]
    scores: pd.DataFrame
    summary: dict[str, Any]
    data: ReportData
    run: dict[str, Any]
    outcomes: Mapping[tuple[str, int], str] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        return bool(self.data.failures)

    def __repr__(self) -> str:
        metrics = self.summary["metrics"].items()
        means = ", ".join(f"{name} {number(entry['mean'])}" for name, entry in metrics if entry["n_scored"])
        return f"<Evaluation {self.plan.variant!r}: {len(self.trajectories)} trajectories; {means}>"

    def failures(self) -> pd.DataFrame:
        """The questions to look at: a wrong answer, incomplete evidence, or something that failed; worst first."""
        import pandas as pd

        fine = {"complete_right", "complete_unchecked", "unanswerable_refused", "unanswerable_unchecked",
                "unlabelled_right", "unlabelled_unchecked", "not_asked"}
        failed = {question_id for question_id, _, _ in self.data.failures}
        rows = [
            {"question_id": t.question_id, "repeat": t.repeat, "outcome": OUTCOMES[self.outcomes[t.key]].title,
             "question": t.question, "answer": t.answer, "error": t.error}
            for t in self.trajectories
            if self.outcomes[t.key] not in fine or t.question_id in failed
        ]
        columns = ["question_id", "repeat", "outcome", "question", "answer", "error"]
        return pd.DataFrame(rows, columns=columns)

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the report; Markdown where the name ends in .md, else one self-contained HTML page."""
        path = Path(path)
        if path.suffix == ".md":
            from ragkit.report.markdown import render_markdown

            write_text(path, render_markdown(self.data))
        else:
            from ragkit.report.html import render_html

            write_text(path, render_html(self.data))
        return path

    def with_summary(self, summary: dict[str, Any]) -> Evaluation:
        """The same with another summary, in its report, too."""
        return replace(self, summary=summary, data=replace(self.data, summary=summary))

    def save(self, folder: RunFolder, include_text: bool = True) -> None:
        """Write all files of the run folder; run.json last, since it is what says that the run is whole."""
        folder.path.mkdir(parents=True, exist_ok=True)
        write_trajectories(folder.trajectories, self.trajectories, include_text=include_text)
        write_scores(folder.scores, self.scores)
        write_json(folder.summary, self.summary)
        shown = self if include_text else replace(self, data=without_texts(self.data))
        shown.report(folder.html)
        shown.report(folder.markdown)
        folder.write_run(self.run)
