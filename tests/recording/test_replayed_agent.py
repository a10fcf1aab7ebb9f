"""An agent as a user has it, over a Chroma index on disk, asking the searches of real traces: what the recorder says is
what the agent's own messages say, whichever way it is run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("langchain.agents.middleware")
pytest.importorskip("langchain_chroma")
pytest.importorskip("sentence_transformers")

from langchain_core.messages.utils import count_tokens_approximately

from ragkit import load_dataset
from ragkit.recording import Recorder
from ragkit.records.files import read_trajectories
from ragkit.records.questions import Question
from ragkit.records.trajectory import Trajectory
from tests.support.command import command
from tests.support.data import data_folder

replayed = pytest.importorskip("experiments.hotpotqa_langgraph.app")
pytestmark = [pytest.mark.data, pytest.mark.slow]

EXPERIMENT = Path(replayed.__file__).with_name("experiment.yaml")
CHOSEN = (
    "5ac532335542994611c8b41c",  # one search
    "5adf2fa35542993344016c11",  # two names that both stand in the question
    "5a87b2fc5542996e4f3088d0",  # the same search three times
    "5a8e27d45542995a26add46a",
    "5ac557975542993e66e8231c",  # six searches, and no answer
)
FORMS: dict[str, dict[str, Any]] = {
    "retriever-tool": {}, "plain-tool": {"tool": "plain"}, "tool-node": {"tool": "artifact", "by_hand": True},
    "parallel": {"parallel": True}, "one-paragraph": {"k": 1}, "cleared-prompt": {"keep": 1},
}


class Told(NamedTuple):
    """What happened to one question, in words that a recorder and the agent's own messages share."""

    searches: list[tuple[int, str, list[str]]]  # turn, query, ids in the order of the list
    context: set[str]
    ranked: bool
    answer: str


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A few of the questions with their gold and some other paragraphs, in a folder of their own."""
    source, here = data_folder("hotpotqa_react_traces"), tmp_path_factory.mktemp("data")
    (here / "hotpotqa_react_traces").mkdir()
    labels = (source / "qrels.tsv").read_text(encoding="utf-8").splitlines()
    kept = [labels[0], *(row for row in labels if row.split("\t")[0] in CHOSEN)]
    gold = {row.split("\t")[1] for row in kept}
    (here / "hotpotqa_react_traces/qrels.tsv").write_text("\n".join(kept), encoding="utf-8")
    for name, keep in (
        ("queries", lambda row, n: row["_id"] in CHOSEN),
        ("corpus", lambda row, n: row["_id"] in gold or n % 40 == 0),
        ("traces.react", lambda row, n: row["question_id"] in CHOSEN),
    ):
        rows = [row for n, row in enumerate(replayed.read(source / f"{name}.jsonl")) if keep(row, n)]
        text = "\n".join(json.dumps(row) for row in rows)
        (here / f"hotpotqa_react_traces/{name}.jsonl").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGKIT_DATA", str(here))
        patch.chdir(here)
        yield load_dataset(str(here / "hotpotqa_react_traces")).questions


def asked(question: Question) -> dict[str, Any]:
    return {"messages": [("user", question.text)]}


def said_by_messages(app: Any, question: Question, keep: int | None) -> Told:
    """Read from the messages of the app itself, which nobody watches here."""
    rows = replayed.read(replayed.data_folder() / "corpus.jsonl")
    texts = {row["_id"]: f"{row['title']}\n{row['text']}" for row in rows}
    messages = app.invoke(asked(question))["messages"]
    shown = {one.tool_call_id: one.content for one in messages if one.type == "tool"}

    def ids(content: str) -> list[str]:
        held = (name for name, text in texts.items() if text in content)
        return sorted(held, key=lambda name: content.index(texts[name]))

    turns = [message.tool_calls for message in messages if message.type == "ai" and message.tool_calls]
    calls = [(turn, call) for turn, together in enumerate(turns) for call in together]
    results = [shown[call["id"]] for _, call in calls]
    cleared = keep is not None and count_tokens_approximately(messages[:-1]) > 1000
    left = results[-keep:] if keep is not None and cleared else results
    return Told([(turn, call["args"]["query"], ids(shown[call["id"]])) for turn, call in calls],
                {one for result in left for one in ids(result)}, len(left) == 1, messages[-1].content)


def said_by(trajectory: Trajectory) -> Told:
    assert trajectory.error is None and trajectory.context is not None and trajectory.answer is not None
    assert all(len(step.retrievals) == 1 for step in trajectory.steps)
    assert not set(trajectory.meta) - {"answer_source"}
    searches = [(step.turn, step.outermost.query, list(step.outermost.ids)) for step in trajectory.steps]
    return Told(searches, set(trajectory.context.ids), trajectory.context.ranked, trajectory.answer)


def one_by_one(app: Any, questions: Any) -> Recorder:
    recorder = Recorder()
    for question in questions:
        with recorder.trace(question):
            app.invoke(asked(question))
    return recorder


def batch(app: Any, questions: Any) -> Recorder:
    recorder = Recorder()
    with recorder.traces(questions):
        app.batch([asked(question) for question in questions], {"max_concurrency": 4})
    return recorder


def abatch(app: Any, questions: Any) -> Recorder:
    async def run() -> Recorder:
        recorder = Recorder()
        with recorder.traces(questions):
            await app.abatch([asked(question) for question in questions], {"max_concurrency": 4})
        return recorder

    return asyncio.run(run())


@pytest.fixture(scope="module")
def experiment(questions: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the runs that the experiment file makes."""
    out = tmp_path_factory.mktemp("runs")
    done = command("run", EXPERIMENT, "--out", out)
    assert done.code == 0, done.err
    return out


@pytest.mark.parametrize("form", FORMS)
def test_every_way_to_run_it_says_what_the_messages_say(form: str, questions: Any, experiment: Path) -> None:
    app = replayed.build(**FORMS[form])
    expected = {one.id: said_by_messages(app, one, FORMS[form].get("keep")) for one in questions}
    assert len(expected) == len(CHOSEN)
    if form == "parallel":
        assert [turn for turn, _, _ in expected[CHOSEN[1]].searches] == [0, 0]
    for way in (one_by_one, batch, abatch):
        recorder = way(app, questions)
        assert recorder.orphans == 0
        assert {one.question_id: said_by(one) for one in recorder.trajectories} == expected, way.__name__
    recorded = read_trajectories(experiment / form / "trajectories.jsonl")
    assert {one.question_id: said_by(one) for one in recorded} == expected


def test_only_what_is_asked_for_scores_has_them(questions: Any, experiment: Path) -> None:
    kinds = {form: {step.outermost.score_kind for one in read_trajectories(experiment / form / "trajectories.jsonl")
                    for step in one.steps} for form in ("retriever-tool", "plain-tool")}
    assert kinds == {"retriever-tool": {"unknown"}, "plain-tool": {"distance"}}
