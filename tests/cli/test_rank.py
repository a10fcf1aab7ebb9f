"""`ragkit rank` as a user meets it: the table, the lines, the JSON, the options, and errors of one line."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import command, files, process, ranked
from tests.support.data import data_folder

QRELS = b"q1 0 a 2\nq1 0 b 1\nq2 0 c 1\nq3 0 d 0\n"
RUN = b"q1 Q0 b 1 3 r\nq1 Q0 x 2 2 r\nq1 Q0 a 3 1 r\nq2 Q0 x 1 2 r\nq2 Q0 c 2 1 r\nq9 Q0 c 1 1 r\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with labels and two runs, which the test runs in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_bytes(QRELS)
    (tmp_path / "run.bm25.trec.gz").write_bytes(gzip.compress(RUN))
    (tmp_path / "dense.json").write_text(json.dumps({"q1": {"a": 2, "b": 1}, "q2": ["c"]}), encoding="utf-8")
    return tmp_path


def test_json_has_the_promised_form(folder: Path) -> None:
    done = command("rank", "qrels.txt", "run.bm25.trec.gz", "dense.json", "-m", "nDCG@10,RR", "-m", "P@1", "--json")
    assert done.code == 0 and done.err == ""
    found = json.loads(done.out)
    assert list(found) == ["runs", "notes"]
    assert list(found["runs"]) == ["run.bm25", "dense"]
    assert list(found["runs"]["run.bm25"]) == ["ndcg@10", "mrr", "precision@1"]
    assert found["runs"]["run.bm25"]["mrr"] == {"mean": 0.75, "n_scored": 2, "n_asked": 3, "n_undefined": 1}
    assert found["notes"][0] == {"kind": "nothing_relevant", "count": 1, "examples": ["q3"]}
    assert {"kind": "unknown_questions", "count": 1, "examples": ["q9"], "run": "run.bm25"} in found["notes"]
    assert all(set(note) <= {"kind", "count", "examples", "run"} for note in found["notes"])


def test_json_holds_every_question_only_when_asked(folder: Path) -> None:
    arguments = ("rank", "qrels.txt", "dense.json", "-m", "mrr,judged@2", "--json")
    assert "per_question" not in command(*arguments).out
    done = command(*arguments, "--per-question")
    found = json.loads(done.out)["runs"]["dense"]
    assert found["mrr"]["per_question"] == {"q1": 1.0, "q2": 1.0, "q3": None}
    assert found["judged@2"]["per_question"] == {"q1": 1.0, "q2": 1.0, "q3": None}
    assert done.out.count("\n") == 1


def test_lines_can_be_piped(folder: Path) -> None:
    done = command("rank", "qrels.txt", "dense.json", "run.bm25.trec.gz", "-m", "mrr", "--per-question")
    assert [line.split("\t") for line in done.out.splitlines()] == [
        ["dense", "q1", "mrr", "1.0"], ["dense", "q2", "mrr", "1.0"], ["dense", "q3", "mrr", "undefined"],
        ["run.bm25", "q1", "mrr", "1.0"], ["run.bm25", "q2", "mrr", "0.5"], ["run.bm25", "q3", "mrr", "undefined"],
    ]
    assert "ragkit: note: run.bm25: 1 question of the run without a row in the qrels (ignored): q9" in done.err


def test_a_table_for_all_runs_says_its_rules_and_fits(folder: Path) -> None:
    done = command("rank", "qrels.txt", "run.bm25.trec.gz", "dense.json", "-m", "mrr,judged@2", "--level", 2)
    assert max(map(len, done.out.splitlines())) <= 80
    text = " ".join(done.out.split())
    assert "unit: chunk (ids as they stand); relevant: grade >= 2; equal scores: by document id, descending" in text
    assert "metric run.bm25 dense scored" in text
    assert "mrr 0.3333 1.0000 1/3" in text
    assert "no document of 2 questions reaches grade 2 (undefined, and in no mean): q2, q3" in text
    assert "run.bm25: no results for 1 question of the qrels (scored 0): q3" in text
    # Different runs have different questions for judged@2 only where a list is empty.
    (folder / "less.json").write_text('{"q1": ["a"]}', encoding="utf-8")
    shown = " ".join(command("rank", "qrels.txt", "dense.json", "less.json", "-m", "judged@2").out.split())
    assert "judged@2 scored: dense 2/3, less 1/3" in shown


@pytest.mark.parametrize(("count", "length"), [(3, 60), (12, 8)])
def test_many_runs_and_long_names_fit_too(folder: Path, count: int, length: int) -> None:
    names = [f"{'n' * length}{place}.json" for place in range(count)]
    for name in names:
        (folder / name).write_text('{"q1": ["a"], "q2": ["c"], "q3": ["d"]}', encoding="utf-8")
    done = command("rank", "qrels.txt", *names, "-m", "mrr")
    assert max(map(len, done.out.splitlines())) <= 80
    assert all(name.removesuffix(".json") in done.out for name in names)
    assert done.out.count("1.0000") == count


def test_runs_of_one_name_are_called_by_their_paths(folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "run.txt").write_bytes(RUN)
    done = command("rank", "qrels.txt", "one/run.txt", "two/run.txt", "dense.json", "-m", "mrr", "--json")
    assert list(json.loads(done.out)["runs"]) == ["one/run.txt", "two/run.txt", "dense"]
    assert "given twice" in command("rank", "qrels.txt", "dense.json", "dense.json").error


def test_there_is_a_sensible_choice_of_metrics(folder: Path) -> None:
    found = json.loads(command("rank", "qrels.txt", "dense.json", "--json").out)["runs"]["dense"]
    assert list(found) == ["ndcg@10", "mrr@10", "map", "precision@5", "recall@10", "recall@100", "judged@10"]


def test_trec_counts_everything(tmp_path: Path) -> None:
    metrics = "mrr,judged@2,first_relevant_rank"
    plain = ranked(tmp_path, QRELS, {"q1": ["x", "a"]}, metrics).metrics
    trec = ranked(tmp_path, QRELS, {"q1": ["x", "a"]}, metrics, "--trec").metrics
    assert plain["mrr"]["per_question"] == {"q1": 0.5, "q2": 0.0, "q3": None}
    assert trec["mrr"]["per_question"] == {"q1": 0.5, "q2": 0.0, "q3": 0.0}
    assert (plain["mrr"]["mean"], trec["mrr"]["mean"]) == (0.25, pytest.approx(0.5 / 3))
    # 0 is no value of this one: it stays undefined.
    assert trec["first_relevant_rank"]["per_question"] == {"q1": 2.0, "q2": None, "q3": None}


def test_level_leaves_the_gains_alone(tmp_path: Path) -> None:
    qrels = b"q 0 a 3\nq 0 b 2\nq 0 c 1\n"
    run = {"q": ["b", "x", "a"]}
    assert ranked(tmp_path, qrels, run, "map,ndcg@3", "--level", 2).means == pytest.approx(
        {"map": 0.833333, "ndcg@3": 0.735007}, abs=1e-6)
    assert ranked(tmp_path, qrels, run, "map", "--level", 3).means == pytest.approx({"map": 1 / 3})


def test_scores_are_compared_in_single_precision_when_asked(tmp_path: Path) -> None:
    run = b"q Q0 a 1 .92226214537526 r\nq Q0 b 2 .92226214537525 r\n"
    assert ranked(tmp_path, b"q 0 a 1\n", run, "map").means == {"map": 1.0}
    assert ranked(tmp_path, b"q 0 a 1\n", run, "map", "--float32").means == {"map": 0.5}


def test_judged_only_closes_the_ranks(tmp_path: Path) -> None:
    run = {"q": ["x", "n", "y", "a"]}
    assert ranked(tmp_path, b"q 0 a 1\nq 0 n 0\n", run, "mrr").means == {"mrr": 0.25}
    found = ranked(tmp_path, b"q 0 a 1\nq 0 n 0\n", run, "mrr,judged@5", "--judged-only")
    assert found.means == {"mrr": 0.5, "judged@5": 1.0}


CHUNKS = {"q": ["a#2#1", "a#2#2", "b", "c#1"]}
CHUNK_GOLD = {"q": {"a#2": 1, "b": 1, "c": 1}}


@pytest.mark.parametrize("form", ["separator", "table", "object"])
def test_chunks_are_credited_at_their_document(folder: Path, form: str) -> None:
    documents = {"a#2#1": "a#2", "a#2#2": "a#2", "c#1": "c"}
    (folder / "map.tsv").write_text("".join(f"{k}\t{v}\r\n" for k, v in documents.items()), encoding="utf-8")
    (folder / "map.json").write_text(json.dumps(documents), encoding="utf-8")
    options = {"separator": ("--chunk-separator", "#"), "table": ("--doc-map", "map.tsv"),
               "object": ("--unit", "document", "--doc-map", "map.json")}[form]
    metrics = "recall@4,precision@4,map,judged@4"
    found = ranked(folder, CHUNK_GOLD, CHUNKS, metrics, *options)
    assert found.means == pytest.approx(
        {"recall@4": 1, "precision@4": 0.75, "map": (1 + 2 / 3 + 3 / 4) / 3, "judged@4": 1})
    assert ("unmapped" in found.notes) == (form != "separator")
    if form != "separator":
        assert found.notes["unmapped"] == {"kind": "unmapped", "count": 1, "examples": ["b"]}
    shown = command("rank", *files(folder, CHUNK_GOLD, CHUNKS), "-m", "map", *options).out
    assert "unit: document (at its best chunk)" in shown


def test_nothing_in_common_is_said_loudly(folder: Path) -> None:
    others = {"Q1": ["a"], "Q2": ["c"]}
    done = command("rank", *files(folder, QRELS, others), "-m", "mrr", "--json")
    assert done.code == 0
    assert json.loads(done.out)["runs"]["run"]["mrr"]["mean"] == 0.0
    line = next(line for line in done.err.splitlines() if "WARNING" in line)
    assert "questions of the qrels: q1, q2, q3; questions of the run: Q1, Q2" in line
    done = command("rank", *files(folder, QRELS, {"q1": ["A", "B"]}), "-m", "mrr", "--json")
    assert "documents of the qrels for q1: a, b; documents of the run for q1: A, B" in done.err
    assert done.out.index('"no_overlap"') < done.out.index('"missing"')
    other = files(folder, QRELS, {"q1": [], "q2": ["C"]})
    assert "for q2: C" in " ".join(command("rank", *other, "-m", "mrr", "--judged-only").out.split())
    assert "WARNING" not in command("rank", *files(folder, QRELS, {"q1": [], "q2": []}), "-m", "mrr").out
    assert "WARNING" not in command("rank", *files(folder, QRELS, {"q1": ["a"]}), "-m", "mrr", "--json").err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["qrels.txt"], "RUN"),
        (["absent.txt", "dense.json"], "absent.txt: no such file"),
        (["qrels.txt", "absent.txt"], "absent.txt: no such file"),
        (["qrels.txt", "dense.json", "-m", "ndgc@5"], "did you mean ndcg"),
        (["qrels.txt", "dense.json", "-m", "ndcg@0"], "the cut must be at least 1"),
        (["qrels.txt", "dense.json", "-m", "precision"], "a cut is needed"),
        (["qrels.txt", "dense.json", "-m", ","], "expected at least one name"),
        (["qrels.txt", "dense.json", "-m", "faithfulness"], "this one is of the kind 'judged'"),
        (["qrels.txt", "dense.json", "-m", "aucr@5"], "this one is of the kind 'trajectory'"),
        (["qrels.txt", "dense.json", "--level", "0"], "level: expected a grade above 0"),
        (["qrels.txt", "dense.json", "--level", "nan"], "level: expected a grade above 0"),
        (["qrels.txt", "dense.json", "--level", "high"], "--level"),
        (["qrels.txt", "dense.json", "--ties", "random"], "--ties"),
        (["qrels.txt", "dense.json", "--duplicates", "last"], "--duplicates"),
        (["qrels.txt", "dense.json", "--nope"], "--nope"),
        (["qrels.txt", "dense.json", "--unit", "document"], "--unit document: expected --doc-map FILE or"),
        (["qrels.txt", "dense.json", "--unit", "chunk", "--doc-map", "m"], "--doc-map: contradicts --unit chunk"),
        (["qrels.txt", "dense.json", "--unit", "chunk", "--chunk-separator", "#"], "contradicts --unit chunk"),
        (["qrels.txt", "dense.json", "--doc-map", "m", "--chunk-separator", "#"], "expected one of them, got both"),
        (["qrels.txt", "dense.json", "--chunk-separator", ""], "expected at least one character"),
        (["qrels.txt", "dense.json", "--doc-map", "absent.tsv"], "absent.tsv: no such file"),
        (["qrels.txt", "dense.json", "--doc-map", "qrels.txt"], "qrels.txt:1: expected chunk, tab, document"),
        (["qrels.txt", "dense.json", "--doc-map", "two.tsv"], "two.tsv:2: chunk 'a' belongs to 'd1' already"),
        (["qrels.txt", "dense.json", "--doc-map", "list.json"], "chunk 'a': expected the id of a document"),
        (["qrels.txt", "dense.json", "--import", "no_such_metrics"], "--import no_such_metrics: importing it failed"),
        (["qrels.txt", "dense.json", "--import", "broken_metrics"], "ZeroDivisionError"),
    ],
)
def test_wrong_calls_are_one_line_and_exit_two(folder: Path, arguments: list[str], expected: str) -> None:
    (folder / "two.tsv").write_text("a\td1\na\td2\n", encoding="utf-8")
    (folder / "list.json").write_text('{"a": ["d1"]}', encoding="utf-8")
    (folder / "broken_metrics.py").write_text("1 / 0\n", encoding="utf-8")
    assert expected in command("rank", *arguments).error


def test_a_metric_of_the_users_own(folder: Path) -> None:
    (folder / "my_metrics.py").write_text(
        "from ragkit import metric\n\n"
        "@metric('hits_in_top@k', kind='ranking', undefined='no relevant document', range=(0.0, None))\n"
        "def hits_in_top(batch, k):\n    '''Relevant passages in the top k.'''\n    return batch.hits(k)\n",
        encoding="utf-8")
    done = process("rank", "qrels.txt", "run.bm25.trec.gz", "--import", "my_metrics", "-m", "hits_in_top@3",
                   "--json", "--per-question")
    assert done.code == 0, done.err
    values = json.loads(done.out)["runs"]["run.bm25"]["hits_in_top@3"]["per_question"]
    assert values == {"q1": 2.0, "q2": 1.0, "q3": 0.0}
    done = process("explain", "--import", "my_metrics", "hits_in_top@3")
    assert "Relevant passages in the top k." in done.out and "from 0;" in done.out
    done = process("explain", "hits_in_top@3", "--import", "my_metrics", "--run", "run.bm25.trec.gz", "--qrels",
                   "qrels.txt", "--question", "q1")
    assert "hits_in_top@3 = 2.000000" in done.out


def test_the_metric_of_the_readme(folder: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    code = readme.partition("# my_metrics.py\n")[2].partition("```")[0]
    (folder / "my_metrics.py").write_text(code, encoding="utf-8")
    asked = ("--import", "my_metrics", "last_relevant_rank")
    done = process("rank", "qrels.txt", "run.bm25.trec.gz", *asked[:2], "-m", asked[2], "--json", "--per-question")
    assert done.code == 0, done.err
    values = json.loads(done.out)["runs"]["run.bm25"]["last_relevant_rank"]["per_question"]
    assert values == {"q1": 3.0, "q2": 2.0, "q3": None}
    done = process("explain", *asked)
    assert "how deep a reader must go" in " ".join(done.out.split()) and "from 1; lower is better" in done.out


def test_a_name_that_is_taken_is_told(folder: Path) -> None:
    (folder / "my_metrics.py").write_text(
        "from ragkit import metric\n\n@metric('aucr@k', kind='ranking', undefined='never')\n"
        "def aucr(batch, k):\n    return batch.hits(k)\n", encoding="utf-8")
    done = process("rank", "qrels.txt", "dense.json", "--import", "my_metrics", "-m", "map")
    assert "--import my_metrics" in done.error and "'aucr' is declared twice" in done.error


def test_nothing_heavy_is_imported(folder: Path) -> None:
    after = ("import sys; print(sorted({m.split('.')[0] for m in sys.modules}), "
             "[m for m in sys.modules if m.startswith('ragkit.')], file=sys.stderr)")
    for options in (["--json"], ["--per-question"], []):
        done = process("rank", "qrels.txt", "run.bm25.trec.gz", "-m", "ndcg@10", *options, after=after)
        assert done.code == 0 and "'numpy'" in done.err
        for module in ("pandas", "scipy", "pyarrow", "polars", "rich", "typer", "click", "pydantic", "yaml", "jinja2",
                       "plotly", "aiohttp", "asyncio", "ragkit.evaluation.evaluate", "ragkit.recording"):
            assert f"'{module}'" not in done.err, module


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    (folder / "many.json").write_text(json.dumps({f"q{n}": {"a": 1} for n in range(30000)}), encoding="utf-8")
    shell = f"{sys.executable} -c 'from ragkit.cli import main; main()' rank many.json many.json -m mrr --per-question"
    root = str(Path(__file__).parents[2])
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {shell} | head -1"], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": root})
    assert done.stdout == "many\tq0\tmrr\t1.0\n" and "Traceback" not in done.stderr


@pytest.mark.data
def test_published_numbers() -> None:
    """Full@5, Any@5 and MRR@10 of three published runs, in rank order; trec_eval's rule for ties gives another MRR."""
    folder = data_folder("hotpotqa_val500_runs")
    runs = [folder / f"run.{name}.trec.gz" for name in ("bm25", "dense", "rerank")]
    asked = ("rank", folder / "qrels.trec", *runs, "-m", "allhit@5,hit@5,mrr@10", "--json")
    found = json.loads(command(*asked, "--ties", "rank").out)
    assert {name: [round(one["mean"], 3) for one in run.values()] for name, run in found["runs"].items()} == {
        "run.bm25": [0.302, 0.874, 0.751], "run.dense": [0.502, 0.962, 0.869], "run.rerank": [0.654, 0.994, 0.948]}
    assert [(note["run"], note["count"]) for note in found["notes"] if note["kind"] == "ties"] == [("run.dense", 45)]
    by_id = json.loads(command(*asked).out)["runs"]
    assert round(by_id["run.dense"]["mrr@10"]["mean"], 3) == 0.868
    assert by_id["run.bm25"] == found["runs"]["run.bm25"]
