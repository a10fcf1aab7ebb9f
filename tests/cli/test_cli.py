"""The command line as a user meets it: verbs, files, exit codes, and errors of one line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ragkit
from ragkit.cli.main import main
from tests.support.command import process
from tests.support.openai_server import OpenAIServer, error
from tests.support.small_app import PASSAGES, ROWS, app


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def ragkit_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["ragkit", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as left:
            code = int(left.code or 0)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a data set, recorded trajectories and an app, which the test runs in."""
    rows = [
        {
            "_id": r["id"],
            "text": r["question"],
            "answers": [r["reference"]] if "reference" in r else [],
            "category": r.get("category"),
            "unanswerable": r.get("unanswerable", False),
        }
        for r in ROWS
    ]
    data = tmp_path / "data"
    data.mkdir()
    lines = {"queries.jsonl": rows, "corpus.jsonl": [{"_id": k, "text": v} for k, v in PASSAGES.items()]}
    for name, objects in lines.items():
        (data / name).write_text("".join(json.dumps(o) + "\n" for o in objects), encoding="utf-8")
    (data / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1\nq2\td2\t1\n", encoding="utf-8")
    recorder = ragkit.Recorder()
    for row in ROWS:
        with recorder.trace(ragkit.Question(row["id"], row["question"])) as trace:
            trace.answer(app(row["question"]))
    recorder.save(tmp_path / "trajectories.jsonl")
    (tmp_path / "shop_app.py").write_text(
        "from tests.support.small_app import app\n"
        "def build(fail=''):\n"
        "    def answer(question):\n"
        "        if fail and fail in question:\n"
        "            raise ValueError('no pier')\n"
        "        return app(question)\n"
        "    return answer\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def experiment(folder: Path, text: str) -> Path:
    path = folder / "experiment.yaml"
    path.write_text("dataset: data\nout: runs\nconcurrency: 2\n" + text, encoding="utf-8")
    return path


def one_line(done: Done, code: int = 2) -> str:
    assert done.code == code, done
    lines = [line for line in done.err.splitlines() if line.startswith("ragkit: ")]
    assert len(lines) == 1, done.err
    assert "Traceback" not in done.err
    return lines[0]


def test_score_writes_the_folder_and_prints_json_alone(ragkit_command: Any, folder: Path) -> None:
    done = ragkit_command("score", "trajectories.jsonl", "--dataset", "data", "--out", "run", "--json")
    assert done.code == 0
    summary = json.loads(done.out)
    assert summary == json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))
    assert summary["variant"] == "run"
    assert summary["metrics"]["recall"]["mean"] == 1.0
    assert summary["metrics"]["faithfulness"]["reasons"] == {"needs a judge": 4}
    assert (folder / "run" / "report.html").stat().st_size > 1_000_000  # plotly is inside


def test_score_adds_metrics_to_an_existing_folder(ragkit_command: Any, folder: Path) -> None:
    ragkit_command("score", "trajectories.jsonl", "--dataset", "data", "--out", "run", "-m", "recall")
    done = ragkit_command(
        "score", "trajectories.jsonl", "--dataset", "data", "--out", "run", "-m", "aucr,allhit", "--json"
    )
    assert list(json.loads(done.out)["metrics"]) == ["recall", "aucr@5", "allhit"]


def test_score_computes_a_metric_of_the_users_own(folder: Path) -> None:
    (folder / "my_metrics.py").write_text(
        "from ragkit import metric\n\n@metric('hits_in_top@k', kind='ranking', undefined='never', range=(0, None))\n"
        "def hits_in_top(batch, k):\n    \"\"\"Relevant passages in the top k.\"\"\"\n    return batch.hits(k)\n",
        encoding="utf-8",
    )
    arguments = ("trajectories.jsonl", "--dataset", "data", "--out", "run", "--import", "my_metrics")
    done = process("score", *arguments, "-m", "hits_in_top@5,recall", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["metrics"]["recall"]["mean"] == 1.0
    assert "hits_in_top@5" in (folder / "run" / "report.md").read_text(encoding="utf-8")


def test_report_is_written_again(ragkit_command: Any, folder: Path) -> None:
    ragkit_command("score", "trajectories.jsonl", "--dataset", "data", "--out", "run")
    page = folder / "run" / "report.html"
    before = page.read_text(encoding="utf-8")
    page.unlink()
    done = ragkit_command("report", "run")
    assert done.code == 0 and "Report: run/report.html" in done.out
    assert page.read_text(encoding="utf-8") == before
    assert ragkit_command("report", "run", "--questions", "1").code == 0
    few = page.read_text(encoding="utf-8")
    assert before.count('<details class="question"') > few.count('<details class="question"') == 1
    assert "1 of " in few


def test_the_summary_fits_eighty_columns(ragkit_command: Any, folder: Path) -> None:
    done = ragkit_command("score", "trajectories.jsonl", "--dataset", "data", "--out", "run")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "needs a judge" in done.out


def test_run_asks_each_variant_once(ragkit_command: Any, folder: Path) -> None:
    path = experiment(
        folder,
        "variants:\n  mine: {app: {call: 'shop_app:build'}}\n"
        "  bm25: {pipeline: {retriever: lexical, k: 2}}\nmetrics: [recall, hit@1]\n",
    )
    done = ragkit_command("run", path)
    assert done.code == 0, done.err
    assert "mine" in done.out and "bm25" in done.out
    for variant in ("mine", "bm25"):
        assert (
            json.loads((folder / "runs" / variant / "summary.json").read_text(encoding="utf-8"))["variant"] == variant
        )
    only = ragkit_command("run", path, "--variant", "bm25", "--json")
    assert json.loads(only.out)["variant"] == "bm25"


def test_run_resumes_after_a_failure(ragkit_command: Any, folder: Path) -> None:
    path = experiment(folder, "app: {call: 'shop_app:build', args: {fail: ferry}}\n")
    done = ragkit_command("run", path)
    assert "ragkit: 1 failure, first: question q4, app: ValueError: no pier" in one_line(done, 3)
    assert json.loads((folder / "runs" / "summary.json").read_text(encoding="utf-8"))["outcomes"]["failed"] == 1
    (folder / "shop_app.py").write_text(
        "from tests.support.small_app import app\ndef build(fail=''):\n    return app\n", encoding="utf-8"
    )
    sys.modules.pop("shop_app")
    assert ragkit_command("run", path).code == 0


def test_record_is_the_first_half_of_run(ragkit_command: Any, folder: Path) -> None:
    path = experiment(folder, "app: {call: 'shop_app:build'}\n")
    done = ragkit_command("record", path)
    assert done.code == 0 and "4 trajectories, 0 failed" in done.out
    assert len(ragkit.read_trajectories(folder / "runs" / "trajectories.jsonl")) == 4
    assert "was not finished" in one_line(ragkit_command("report", "runs"))
    (folder / "shop_app.py").write_text("def build():\n    raise AssertionError\n", encoding="utf-8")
    scored = ragkit_command("score", folder / "runs" / "trajectories.jsonl", "--dataset", "data", "--out", "scored")
    assert scored.code == 0


def test_limit_takes_a_seeded_sample(ragkit_command: Any, folder: Path) -> None:
    path = experiment(folder, "app: {call: 'shop_app:build'}\n")
    done = ragkit_command("run", path, "--limit", 2, "--seed", 1, "--json")
    assert json.loads(done.out)["questions"]["asked"] == 2


def test_dry_runs_say_what_it_would_cost_and_do_nothing(ragkit_command: Any, folder: Path) -> None:
    path = experiment(folder, "pipeline: {retriever: lexical, k: 3}\n")
    done = ragkit_command("run", path, "--dry-run", "--judge", "openai:m")
    assert "app calls: 4" in done.out and "documents to index: 4" in done.out
    rows = [line.split() for line in done.out.splitlines()]
    assert ["context_precision", "4", "0", "2"] in [row[:4] for row in rows], "two have no reference answer"
    assert "judge calls: at most 28, cost unknown" in done.out
    assert not (folder / "runs").exists()
    done = ragkit_command("score", "trajectories.jsonl", "--dataset", "data", "--out", "x", "--dry-run")
    assert "trajectories: 4" in done.out and "judge calls: 0 (no judge" in done.out
    assert not (folder / "x").exists()


def test_the_starter_runs_as_it_is(ragkit_command: Any, folder: Path) -> None:
    assert ragkit_command("init", "mine.yaml").code == 0
    assert ragkit_command("run", "mine.yaml", "--dry-run").code == 0
    assert "exists already" in one_line(ragkit_command("init", "mine.yaml"))
    assert ragkit_command("init", "mine.yaml", "--force").code == 0


def test_labels_check(ragkit_command: Any, folder: Path) -> None:
    (folder / "data" / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1\nq2\tD2\t1\n", encoding="utf-8"
    )
    done = ragkit_command("labels", "check", "data")
    assert "2 labelled, 1 unanswerable, 1 unlabelled" in done.out
    assert "'D2'" in done.out and "'d2'" in done.out


def test_doctor_shows_what_is_seen_of_an_app(
    ragkit_command: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-doctor-secret")
    with OpenAIServer() as server:
        done = ragkit_command(
            "doctor",
            "--app",
            "shop_app:build",
            "--dataset",
            "data",
            "--n",
            2,
            "--judge",
            "m",
            "--judge-url",
            server.url,
        )
    assert done.code == 0, done.err
    assert "OPENAI_API_KEY         set" in done.out and "sk-doctor-secret" not in done.out
    assert "2 passages, 0 with a score (unknown)" in done.out
    assert "a set without order, source manual" in done.out
    assert "tokens in" in done.out and "cost unknown (see --price)" in done.out
    assert "2 questions of data\n" in done.out and "gold ids matched" in done.out
    sample = ragkit_command("doctor", "--app", "shop_app:build", "--n", 1).out
    assert "the built-in sample; --dataset FILE asks your own" in sample
    assert "gold ids matched" not in sample, "the sample's gold is none of this app's"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["score", "absent.jsonl", "--dataset", "data", "--out", "x"], "absent.jsonl"),
        (["score", "trajectories.jsonl", "--dataset", "absent.csv", "--out", "x"], "absent.csv: no such file"),
        (["score", "trajectories.jsonl", "--dataset", "data", "--out", "x", "-m", "ndgc@5"], "did you mean ndcg"),
        (
            ["score", "trajectories.jsonl", "--dataset", "data", "--out", "x", "-m", "ndcg@0"],
            "the cut must be at least 1",
        ),
        (["score", "trajectories.jsonl", "--dataset", "table.csv", "--out", "x"], "table.csv"),
        (
            ["score", "trajectories.jsonl", "--dataset", "table.csv", "--out", "x", "--column", "question=Frage"],
            "Frage",
        ),
        (["score", "trajectories.jsonl", "--dataset", "empty.csv", "--out", "x"], "empty.csv"),
        (["score", "broken.jsonl", "--dataset", "data", "--out", "x"], "broken.jsonl:2"),
        (
            [
                "score",
                "trajectories.jsonl",
                "--dataset",
                "data",
                "--out",
                "x",
                "--judge",
                "m",
                "--judge-url",
                "http://127.0.0.1:9/v1",
            ],
            "127.0.0.1:9",
        ),
        (["report", "absent"], "no run.json"),
        (["run", "absent.yaml"], "no such experiment file"),
    ],
)
def test_wrong_input_is_one_line_and_exit_two(
    ragkit_command: Any, folder: Path, arguments: list[str], expected: str
) -> None:
    (folder / "table.csv").write_text("fragen,antwort\nWas?,Das\n", encoding="utf-8")
    (folder / "empty.csv").write_text("question,reference\n", encoding="utf-8")
    first = (folder / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (folder / "broken.jsonl").write_text(first + "\n{oops\n" + first + "\n", encoding="utf-8")
    assert expected in one_line(ragkit_command(*arguments))
    assert not (folder / "x" / "summary.json").exists()


def test_a_wrong_key_is_said_before_any_work(ragkit_command: Any, folder: Path) -> None:
    with OpenAIServer(reply=lambda _: error(401, "invalid_api_key", "Incorrect API key provided")) as server:
        done = ragkit_command(
            "score", "trajectories.jsonl", "--dataset", "data", "--out", "x", "--judge", "m", "--judge-url", server.url
        )
    assert "key" in one_line(done).lower()


def test_no_judge_key_names_the_variable(ragkit_command: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    done = ragkit_command(
        "score", "trajectories.jsonl", "--dataset", "data", "--out", "x", "--judge", "openai:gpt-5-mini"
    )
    assert "OPENAI_API_KEY" in one_line(done)


def test_a_missing_extra_names_what_to_install(folder: Path) -> None:
    """Each heavy package is hidden from a fresh process, as if its extra had not been installed."""
    script = (
        "import sys\nsys.modules.update({name: None for name in sys.argv[1].split(',')})\n"
        "sys.argv = ['ragkit', 'run', 'e.yaml']\nfrom ragkit.cli.main import main\nmain()\n"
    )
    for hidden, pipeline, extra in (
        ("chromadb", "{retriever: dense}", "chroma"),
        ("sentence_transformers", "{retriever: dense}", "local"),
        ("langchain", "{retriever: lexical, generator: 'openai:m'}", "langchain"),
    ):
        (folder / "e.yaml").write_text(f"dataset: data\nout: o-{hidden}\npipeline: {pipeline}\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script, hidden],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert done.returncode == 2, (hidden, done.stdout, done.stderr)
        assert f'pip install "ragkit-eval[{extra}]"' in done.stderr


def test_importing_ragkit_loads_no_vendor_package() -> None:
    script = "import sys, ragkit; print([m for m in sys.modules if m.split('.')[0] in set(sys.argv[1:])])"
    vendors = [
        "numpy",
        "pandas",
        "scipy",
        "ragas",
        "langchain_core",
        "chromadb",
        "torch",
        "plotly",
        "typer",
        "pydantic",
    ]
    done = subprocess.run(
        [sys.executable, "-c", script, *vendors],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.stdout.strip() == "[]"


def test_help_loads_no_heavy_package() -> None:
    script = (
        "import sys\nsys.argv = ['ragkit', '--help']\nfrom ragkit.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'pandas', 'pydantic', 'plotly', 'langchain_core') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"
    for verb in ("demo", "init", "doctor", "run", "record", "score", "report", "labels"):
        assert verb in done.stdout


def test_json_stays_json_when_the_app_prints(ragkit_command: Any, folder: Path) -> None:
    (folder / "shop_app.py").write_text(
        "def build():\n    def answer(question):\n        print('HELLO')\n        return 'x'\n    return answer\n",
        encoding="utf-8",
    )
    sys.modules.pop("shop_app", None)
    done = ragkit_command("run", experiment(folder, "app: {call: 'shop_app:build'}\n"), "--json")
    assert json.loads(done.out)["questions"]["asked"] == 4
    assert "HELLO" in done.err


def test_escape_sequences_do_not_reach_the_terminal(ragkit_command: Any, folder: Path) -> None:
    (folder / "shop_app.py").write_text(
        "def build():\n    def answer(question):\n"
        "        raise ValueError('\\x1b[31m\\x1b]0;title\\x07')\n    return answer\n",
        encoding="utf-8",
    )
    sys.modules.pop("shop_app", None)
    path = experiment(folder, "app: {call: 'shop_app:build'}\n")
    for verb in ("run", "record"):
        done = ragkit_command(verb, path, "--out", folder / verb)
        assert done.code == 3 and "\x1b[31m" not in done.out + done.err and "\\x1b[31m" in done.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["score", "trajectories.jsonl", "--dataset", "data", "--out", "trajectories.jsonl/sub"],
            "trajectories.jsonl/sub",
        ),
        (["score", "trajectories.jsonl", "--dataset", "data", "--out", "/dev/null/x"], "/dev/null/x"),
        (["score", "trajectories.jsonl", "--dataset", "data", "--out", "x" * 300], "too long"),
        (["score", "trajectories.jsonl", "--dataset", "data", "--out", "x", "--limit", "0"], "--limit"),
        (["score", "trajectories.jsonl", "--dataset", "data", "--out", "x", "--nope"], "--nope"),
        (["score", "trajectories.jsonl", "--dataset", "data"], "--out"),
        (["run", "double.yaml"], "the key 'a' stands twice"),
        (["run", "scalar.yaml"], "variants.a.pipeline: expected a mapping, got 5"),
    ],
)
def test_wrong_calls_are_one_line_and_exit_two(
    ragkit_command: Any, folder: Path, arguments: list[str], expected: str
) -> None:
    (folder / "double.yaml").write_text("dataset: data\nvariants:\n  a: {pipeline: {}}\n  a: {pipeline: {}}\n")
    (folder / "scalar.yaml").write_text("dataset: data\nvariants: {a: {pipeline: 5}}\n")
    assert expected in one_line(ragkit_command(*arguments))


def test_ctrl_c_says_that_what_was_finished_is_kept(
    ragkit_command: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ragkit.records.files.write_text", interrupted)
    assert "interrupted; what was finished is kept" in one_line(ragkit_command("init", "x.yaml"), 130)
