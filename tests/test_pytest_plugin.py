"""The pytest plugin: rules as tests, JUnit as pytest writes it, the same under xdist, and nothing for other suites."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from tests.support.variants import at_rank, dataset, ranked, variant

ROOT = Path(__file__).parents[1]
QUALITY = """\
import pytest

@pytest.mark.ragkit_gate("mrr>=0.7", "mrr[category=hard]>=0.9", "exact_match==1", run="runs/now")
def test_quality():
    print("its own body runs, too")

@pytest.mark.ragkit_gate("mrr>=0.1", run="runs/thin")
def test_thin():
    raise AssertionError("the body of an undecided test does not count")

@pytest.mark.ragkit_gate(run="runs/now", baseline="runs/before", metrics=["mrr", "recall@5"], margin="0.05,mrr=0.6")
def test_against_before():
    pass
"""


class Result(NamedTuple):
    code: int
    out: str
    cases: dict[str, str]  # of the JUnit file: test -> passed, failed, skipped, or error
    junit: str


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with run folders: the mean of mrr is .75; one category of two is worse; one run is thin."""
    folder = tmp_path_factory.mktemp("suite")
    data = dataset(4)
    hard = dataset(4, category="hard")
    mixed = type(data)((*data.questions[:2], *hard.questions[2:]), data.qrels)
    ranked(1, 1, 2, 2, data=mixed, out=folder / "runs" / "now")
    ranked(1, 1, 1, 1, data=mixed, out=folder / "runs" / "before")
    variant({"q0": [at_rank(1)], "q1": None}, dataset(2), out=folder / "runs" / "thin")
    (folder / "test_quality.py").write_text(QUALITY, encoding="utf-8")
    return folder


def suite_run(folder: Path, *words: str) -> Result:
    installed = any(point.value == "ragkit.pytest_plugin" for point in entry_points(group="pytest11"))
    loaded = () if installed else ("-p", "ragkit.pytest_plugin")
    junit = folder / "junit.xml"
    done = subprocess.run([sys.executable, "-m", "pytest", *loaded, "-p", "no:cacheprovider", "--strict-markers", "-rA",
                           f"--junitxml={junit}", *words], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "COLUMNS": "200"})
    text = junit.read_text(encoding="utf-8") if junit.exists() else ""
    junit.unlink(missing_ok=True)
    cases = {case.attrib["name"]: case[-1].tag if len(case) and case[-1].tag != "properties" else "passed"
             for case in ElementTree.fromstring(text).iter("testcase")} if text else {}
    return Result(done.returncode, done.stdout + done.stderr, cases, text)


EXPECTED = {
    "test_quality[mrr>=0.7]": "passed", "test_quality[mrr[category=hard]>=0.9]": "failure",
    "test_quality[exact_match==1]": "passed", "test_thin[mrr>=0.1]": "skipped",
    "test_against_before[mrr against the baseline]": "passed",
    "test_against_before[recall@5 against the baseline]": "passed"}


def test_each_rule_is_a_test_of_its_own_and_junit_is_pytests(suite: Path) -> None:
    done = suite_run(suite, "--ragkit-undecided=skip")
    assert (done.code, done.cases) == (1, EXPECTED), done.out
    assert "mrr[category=hard]>=0.9  0.500 (0.500–0.500), scored 2 / 2: mrr[category=hard] is 0.500" in done.junit \
        or "mrr[category=hard]&gt;=0.9  0.500" in done.junit
    assert 'name="ragkit mrr&gt;=0.7" value="pass: 0.750' in done.junit
    assert "its own body runs, too" in done.out
    assert "Traceback" not in done.out and "def _check" not in done.out
    assert "SKIPPED" in done.out and "scored on 1 of 2 questions" in done.out


def test_it_is_the_same_under_xdist(suite: Path) -> None:
    done = suite_run(suite, "--ragkit-undecided=skip", "-n", "2")
    assert (done.code, done.cases) == (1, EXPECTED), done.out


@pytest.mark.parametrize(("flag", "code", "thin"), [
    ("", 1, "failure"), ("xfail", 0, "skipped"), ("pass", 1, "failure"), ("warn", 1, "failure")])
def test_an_undecided_rule_is_what_the_option_says(suite: Path, flag: str, code: int, thin: str) -> None:
    words = [f"--ragkit-undecided={flag}"] if flag else []
    done = suite_run(suite, *words, "-k", "thin")
    assert (done.code, done.cases) == (code, {"test_thin[mrr>=0.1]": thin}), done.out
    own = "the body of an undecided test does not count" in done.out.split("short test summary")[-1]
    assert own == (flag in ("pass", "warn")), "only where the rule lets it, the body is run"
    assert ("PytestWarning" in done.out) == (flag == "warn")
    assert ("XFAIL" in done.out) == (flag == "xfail")


def test_the_fixture_checks_inside_a_test_and_options_name_run_and_baseline(suite: Path, tmp_path: Path) -> None:
    (tmp_path / "test_inside.py").write_text("""\
import pytest

def test_returns(ragkit_gate):
    found = ragkit_gate("mrr>=0.7", baseline=RUNS + "/before", margin=0.6)
    assert [check["kind"] for check in found.checks] == ["rule", "baseline"]

def test_fails(ragkit_gate):
    ragkit_gate("mrr>=0.8")

def test_usual(ragkit_gate):
    ragkit_gate(targets="usual")

def test_wrong(ragkit_gate):
    ragkit_gate("mmr>=0.8")

@pytest.mark.ragkit_gate("map>=0.5")
class TestOfAClass:
    @pytest.mark.parametrize("n", [1, 2])
    def test_other(self, n):
        pass
""".replace("RUNS", repr(str(suite / "runs"))), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nragkit_run = {suite / 'runs' / 'now'}\n", encoding="utf-8")
    done = suite_run(tmp_path)
    assert done.cases == {"test_returns": "passed", "test_fails": "failure", "test_usual": "failure",
                          "test_wrong": "failure", "test_other[map>=0.5-1]": "failure",
                          "test_other[map>=0.5-2]": "failure"}, done.out
    assert "rule 'mmr>=0.8': unknown metric 'mmr'; did you mean" in done.junit.replace("&gt;", ">")
    assert "precision@5 was not measured in now" in done.junit
    assert "during handling" not in done.out.lower()


@pytest.mark.parametrize(("mark", "said"), [
    ("ragkit_gate('mrr>0', rum='x')", "unknown argument rum"),
    ("ragkit_gate(targets='best')", "targets: expected usual, got best")])
def test_a_mark_that_says_nothing_is_a_wrong_call(tmp_path: Path, mark: str, said: str) -> None:
    (tmp_path / "test_it.py").write_text(f"import pytest\n\n@pytest.mark.{mark}\ndef test_it():\n    pass\n",
                                         encoding="utf-8")
    done = suite_run(tmp_path)
    assert done.code != 0 and said in done.out


def test_an_unrelated_suite_imports_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("""\
import json, sys

def test_other():
    pass

def teardown_module():
    heavy = ("numpy", "pandas", "scipy", "pyarrow", "pydantic", "typer", "rich")
    with open("modules.json", "w") as file:
        json.dump([name for name in sys.modules if name.partition(".")[0] in ("ragkit", *heavy)], file)
""", encoding="utf-8")
    done = suite_run(tmp_path, "-p", "no:hypothesispytest", "-p", "no:langsmith_plugin", "-p", "no:anyio")
    assert done.code == 0, done.out
    loaded = json.loads((tmp_path / "modules.json").read_text(encoding="utf-8"))
    assert sorted(loaded) == ["ragkit", "ragkit.pytest_plugin"]
