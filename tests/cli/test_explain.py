"""`ragkit explain`: definitions, the terms behind one value, dialects side by side, and errors of one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragkit.metrics.registry import definitions
from tests.support.command import Done, command

QRELS = b"q1 0 a 3\nq1 0 b 2\nq1 0 c 1\nq2 0 A 1\nq2 0 B 1\nq2 0 C 1\nq3 0 a 0\n"
RUN = b"q1 Q0 b 1 3 r\nq1 Q0 x 2 2 r\nq1 Q0 a 3 1 r\n" + b"".join(
    b"q2 Q0 %s %d %d r\n" % (name, rank, 9 - rank) for rank, name in enumerate([b"A", b"x1", b"B", b"x2", b"x3"], 1))
FILES = ("--run", "run.txt", "--qrels", "qrels.txt", "--question")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with labels and a run, which the test runs in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_bytes(QRELS)
    (tmp_path / "run.txt").write_bytes(RUN)
    return tmp_path


def words(done: Done) -> str:
    assert done.code == 0, done
    assert max(map(len, done.out.splitlines())) <= 80
    return " ".join(done.out.split())


@pytest.mark.parametrize("name", [definition.name for definition in definitions()])
def test_every_metric_is_explained_from_its_definition(name: str) -> None:
    definition = next(one for one in definitions() if one.name == name)
    text = words(command("explain", name))
    assert definition.summary in text
    assert f"undefined where {definition.undefined}" in text
    assert {"higher": "higher is better", "lower": "lower is better", "none": "neither high nor low is better"}[
        definition.direction] in text
    assert definition.formula in text and definition.source in text
    assert all(alias in text for alias in definition.aliases)
    if definition.dialect_of:
        assert f"dialect of {definition.dialect_of}" in text and " ".join(definition.differs.split()) in text
        assert f"{name}:" in words(command("explain", definition.dialect_of))
    found = json.loads(command("explain", name, "--json").out)["metrics"][name]
    assert found["range"] == list(definition.range) and found["laws"] == sorted(definition.laws)


def test_several_definitions_and_aliases() -> None:
    text = words(command("explain", "nDCG@10,MAP", "P"))
    assert all(head in text for head in ("ndcg[@k] (ranking)", "map[@k] (ranking)", "precision@k (ranking)"))
    assert "ties" in text and "document id" in text


def test_the_terms_of_a_value_add_up() -> None:
    text = words(command("explain", "ndcg@3", *FILES, "q1"))
    assert "ndcg@3 = 0.735007" in text and "question q1, run.txt" in text
    assert "1 2.000000" in text and "3 1.500000" in text and "sum 3.500000" in text
    assert "sum 4.761860" in text  # of the ideal order: 3 + 2 / log2(3) + 1 / 2
    found = json.loads(command("explain", "ndcg@3", *FILES, "q1", "--json").out)["metrics"]["ndcg@3"]
    assert found["value"] == pytest.approx(0.735007, abs=1e-6) and found["n_relevant"] == 3
    for one in found["sums"]:
        assert sum(term for _, term in one["terms"]) == pytest.approx(one["total"])
    own, ideal = (next(one["total"] for one in found["sums"] if one["ideal"] is wanted) for wanted in (False, True))
    assert own / ideal == pytest.approx(found["value"])


def test_options_change_the_list_as_they_do_for_rank() -> None:
    assert "map = 0.833333" in words(command("explain", "map", *FILES, "q1", "--level", 2))
    assert "mrr = 0.500000" in words(command("explain", "mrr", *FILES, "q1", "--level", 3, "--judged-only"))
    assert "mrr = 0.333333" in words(command("explain", "mrr", *FILES, "q1", "--level", 3))
    Path("run.txt").write_bytes(b"q1 Q0 x 1 1 r\nq1 Q0 a 2 1 r\nq1 Q0 a#1 3 0 r\n")
    assert "mrr = 0.500000" in words(command("explain", "mrr", *FILES, "q1"))
    Path("run.txt").write_bytes(b"q1 Q0 a 1 1 r\nq1 Q0 x 2 1 r\n")
    assert "mrr = 0.500000" in words(command("explain", "mrr", *FILES, "q1"))
    assert "mrr = 1.000000" in words(command("explain", "mrr", *FILES, "q1", "--ties", "rank"))
    Path("run.txt").write_bytes(b"q1 Q0 x 1 3 r\nq1 Q0 a#1 2 2 r\nq1 Q0 a#2 3 1 r\n")
    text = words(command("explain", "precision@3", *FILES, "q1", "--chunk-separator", "#"))
    assert "precision@3 = 0.333333" in text and "copy" in text


def test_an_undefined_value_has_its_reason() -> None:
    assert "0 returned" in words(command("explain", "map", *FILES, "q3"))  # the run lacks it: scored as an empty list
    Path("run.txt").write_bytes(b"q3 Q0 a 1 3 r\n")
    assert "map = undefined (no relevant document)" in words(command("explain", "map", *FILES, "q3"))
    found = json.loads(command("explain", "map", *FILES, "q3", "--json").out)["metrics"]["map"]
    assert found["value"] is None and found["reason"] == "no relevant document"


@pytest.mark.parametrize("files", [(), (*FILES, "q2")])
@pytest.mark.parametrize(
    ("metrics", "values"),
    [
        (["map@5", "ap_retrieved@5"], ["0.555556", "0.833333"]),
        (["ap_retrieved@5"], ["0.555556", "0.833333"]),
        (["ndcg@5", "ndcg_returned@5"], ["0.703918", "0.919721"]),
    ],
)
def test_dialects_stand_side_by_side(metrics: list[str], values: list[str], files: tuple[str, ...]) -> None:
    done = command("explain", "--compare", *metrics, *files)
    text = words(done)
    assert done.out.splitlines()[[line.startswith("value") for line in done.out.splitlines()].index(True)].split()[
        1:] == values
    dialect = next(one for one in definitions() if one.name == metrics[-1].partition("@")[0])
    assert " ".join(dialect.differs.split()) in text
    assert ("an example" in text) == (not files)
    found = json.loads(command("explain", "--compare", *metrics, *files, "--json").out)["metrics"]
    assert [f"{one['value']:.6f}" for one in found.values()] == values


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "METRIC"),
        (["ndgc@5"], "did you mean ndcg"),
        (["ndcg@0"], "the cut must be at least 1"),
        (["ndcg@5", "--run", "run.txt"], "--run needs --qrels and --question with it"),
        (["ndcg@5", "--qrels", "qrels.txt", "--question", "q1"], "--qrels, --question needs --run with it"),
        (["precision", *FILES, "q1"], "a cut is needed"),
        (["faithfulness", *FILES, "q1"], "this one is of the kind 'judged'"),
        (["--compare", "map@5", "aucr@5"], "this one is of the kind 'trajectory'"),
        (["--compare", "map@5"], "expected two metrics or more, got map@5 alone"),
        (["map", *FILES, "q11"], "question 'q11' has no label; did you mean q1"),
        (["map", "--run", "absent.txt", "--qrels", "qrels.txt", "--question", "q1"], "absent.txt: no such file"),
        (["map", *FILES, "q1", "--level", "0"], "level: expected a grade above 0"),
        (["map", *FILES, "q1", "--unit", "document"], "--unit document"),
    ],
)
def test_wrong_calls_are_one_line_and_exit_two(arguments: list[str], expected: str) -> None:
    assert expected in command("explain", *arguments).error
