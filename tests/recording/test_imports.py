"""The recorder goes into other people's environments: it brings nothing along, and works without LangChain."""

from __future__ import annotations

import subprocess
import sys

VENDORS = ("langchain_core", "langgraph", "chromadb", "sentence_transformers", "torch", "pandas", "numpy", "ragas")

PLAIN = """
import sys
sys.modules["langchain_core"] = None  # as if it were not installed
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "langchain_core" else find(name, package)
from ragkit.recording import Recorder
recorder = Recorder()
search = recorder.retriever(lambda query: [("a", "text")])
with recorder.trace("q") as trace:
    search("s")
print(trace.trajectory.steps[0].outermost.ids)
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_recorder_loads_no_vendor() -> None:
    loaded = run(
        "import sys, ragkit.recording as r; r.Recorder; r.Trace; r.as_passage; import ragkit.recording.langchain; "
        f"print([name for name in {VENDORS!r} if name in sys.modules])"
    )
    assert loaded == "[]"


def test_without_langchain_the_rest_works() -> None:
    assert run(PLAIN) == "('a',)"
