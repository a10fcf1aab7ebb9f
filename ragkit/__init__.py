"""ragkit: you have a RAG app; ragkit tells you where it fails.

The public names, loaded when they are first used: `import ragkit` itself pulls in no other package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragkit.comparison.compare import Comparison, compare
    from ragkit.errors import BudgetExceeded, DataError, JudgeError, MissingPackageError, RagkitError
    from ragkit.evaluation.evaluate import aevaluate, areport, ascore, evaluate, score
    from ragkit.evaluation.rankings import score_rankings
    from ragkit.evaluation.result import Evaluation
    from ragkit.metrics.registry import definitions, metric, parse
    from ragkit.recording import Recorder, current_trace
    from ragkit.records.files import read_trajectories, write_trajectories
    from ragkit.records.questions import Dataset, Document, GoldText, Question
    from ragkit.records.readers import load_dataset
    from ragkit.records.trajectory import Passage, Retrieval, Step, Trajectory

__version__ = "0.1.0"

_PLACES = {
    "ragkit.comparison.compare": ("Comparison", "compare"),
    "ragkit.errors": ("BudgetExceeded", "DataError", "JudgeError", "MissingPackageError", "RagkitError"),
    "ragkit.evaluation.evaluate": ("aevaluate", "areport", "ascore", "evaluate", "score"),
    "ragkit.evaluation.rankings": ("score_rankings",),
    "ragkit.evaluation.result": ("Evaluation",),
    "ragkit.metrics.registry": ("definitions", "metric", "parse"),
    "ragkit.recording": ("Recorder", "current_trace"),
    "ragkit.records.files": ("read_trajectories", "write_trajectories"),
    "ragkit.records.questions": ("Dataset", "Document", "GoldText", "Question"),
    "ragkit.records.readers": ("load_dataset",),
    "ragkit.records.trajectory": ("Passage", "Retrieval", "Step", "Trajectory"),
}
_HOME = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "BudgetExceeded", "Comparison", "DataError", "Dataset", "Document", "Evaluation", "GoldText", "JudgeError",
    "MissingPackageError", "Passage", "Question", "RagkitError", "Recorder", "Retrieval", "Step", "Trajectory",
    "__version__", "aevaluate", "areport", "ascore", "compare", "current_trace", "definitions", "evaluate",
    "load_dataset", "metric", "parse", "read_trajectories", "score", "score_rankings", "write_trajectories",
]


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'ragkit' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
