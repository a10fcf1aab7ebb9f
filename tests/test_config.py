"""Experiment files: what is read, what is refused, and in which words."""

import json
from pathlib import Path

import pytest

from ragkit.cli.experiment import ExperimentRun
from ragkit.config import judge_options, load_experiment, resolve_variant
from ragkit.errors import DataError
from tests.support.command import command


def written(folder: Path, text: str) -> Path:
    path = folder / "experiment.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str) -> str:
    with pytest.raises(DataError) as error:
        load_experiment(written(folder, text))
    message = str(error.value)
    assert "\n" not in message
    assert str(folder / "experiment.yaml") in message
    return message


def test_a_variant_changes_only_what_it_names(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
dataset: questions.csv
pipeline: {retriever: dense, k: 7, agent: {max_steps: 2}}
variants:
  base:
  agent:
    pipeline: {agent: {kind: iterative}}
""",
    )
    experiment = load_experiment(path)
    base, agent = (resolve_variant(experiment, name).pipeline for name in ("base", "agent"))
    assert base is not None and agent is not None
    assert (base.agent.kind, base.k) == ("none", 7)
    assert (agent.agent.kind, agent.agent.max_steps, agent.k) == ("iterative", 2, 7)


def test_a_variant_may_be_the_users_own_app(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
dataset: questions.csv
pipeline: {k: 3}
variants:
  ours: {}
  mine: {app: {call: "shop.rag:build", args: {k: 3}}}
""",
    )
    experiment = load_experiment(path)
    mine = resolve_variant(experiment, "mine")
    assert mine.app is not None and mine.app.args == {"k": 3}
    assert mine.pipeline is None
    assert resolve_variant(experiment, "ours").pipeline is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pipeline: {}", "the key 'dataset' is missing"),
        ("dataset: q.csv", "expected one of the keys pipeline, app, variants"),
        ("dataset: q.csv\npipline: {}", "unknown key 'pipline'; did you mean 'pipeline'?"),
        ("dataset: q.csv\npipeline: {retriver: dense}", "unknown key 'pipeline.retriver'; did you mean 'retriever'?"),
        ("dataset: q.csv\npipeline: {retriever: magic}", "pipeline.retriever: Input should be 'dense'"),
        ("dataset: q.csv\npipeline: {k: 0}", "pipeline.k: Input should be greater than or equal to 1, got 0"),
        ("dataset: q.csv\npipeline: {}\nk_values: [5, 0]", "k_values: a cut must be at least 1, got 0"),
        ("dataset: q.csv\napp: {call: no_colon}", "app.call: expected package.module:name, got 'no_colon'"),
        ("dataset: q.csv\npipeline: {}\napp: {call: 'a:b'}", "expected either pipeline or app, got both"),
        ("dataset: q.csv\nvariants: {a: {retriever: dense}}", "variants.a: unknown key 'retriever'"),
        ("dataset: q.csv\nvariants: {a: {}}", "variants.a: expected pipeline or app"),
        ("dataset: [", "not YAML"),
        ("- dataset", "expected a mapping with the key dataset, got list"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refused(tmp_path, text)


def test_a_missing_file_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such experiment file; `ragkit init"):
        load_experiment(tmp_path / "absent.yaml")


def test_paths_may_hold_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "dataset: ${RAGKIT_TEST_DATA:-fallback}/cranfield\npipeline: {}"
    monkeypatch.delenv("RAGKIT_TEST_DATA", raising=False)
    assert load_experiment(written(tmp_path, text)).dataset.path == "fallback/cranfield"
    monkeypatch.setenv("RAGKIT_TEST_DATA", "elsewhere")
    assert load_experiment(written(tmp_path, text)).dataset.path == "elsewhere/cranfield"
    assert "RAGKIT_UNSET is not set" in refused(tmp_path, "dataset: ${RAGKIT_UNSET}/x\npipeline: {}")


def test_how_a_judge_is_asked_stands_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANT", "t1")
    judge = """
judge:
  model: m
  url: http://127.0.0.1:9/v1
  temperature: null
  max_tokens: 4096
  reasoning_effort: low
  key_variable: MY_KEY
  attempts: 9
  headers: {X-Tenant: "${TENANT}"}
  extra_body: {top_k: 1}
"""
    path = tmp_path / "e.yaml"
    path.write_text("dataset: sample\npipeline: {}\n" + judge, encoding="utf-8")
    opened = ExperimentRun(path, tmp_path / "out", None, None)
    (variant,) = opened.variants()
    given = opened.judge(variant, None, None, {"options": ["extra_body.seed=7", "max_tokens=99"], "attempts": None})
    settings = given["judge_settings"]
    assert (given["judge"], given["judge_url"]) == ("m", "http://127.0.0.1:9/v1")
    assert (settings.temperature, settings.max_tokens, settings.reasoning_effort) == (None, 99, "low")
    assert (settings.key_variable, settings.attempts) == ("MY_KEY", 9)
    assert dict(settings.headers) == {"X-Tenant": "t1"}
    assert dict(settings.extra_body) == {"top_k": 1, "seed": 7}


def test_thresholds_stand_in_the_file_and_lie_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag takes their place."""
    threshold = ("labels.csv", "--column", "score", "-m", "lexical_support", "--scored-by", "offline:lexical")
    (tmp_path / "labels.csv").write_text(
        "question,answer,label,score\n" + "".join(f"q{n},a,{n % 2},{n % 2 / 2 + .1}\n" for n in range(8)))
    monkeypatch.chdir(tmp_path)
    assert command("agreement", *threshold, "--calibrate", "support.json").code == 0
    path = tmp_path / "e.yaml"
    path.write_text("dataset: sample\nlimit: 2\npipeline: {retriever: lexical}\nmetrics: lexical_support\n"
                    "threshold: support.json\n", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    done = command("run", path, "--json")
    chosen = json.loads((tmp_path / "support.json").read_text())["threshold"]
    assert json.loads(done.out)["metrics"]["lexical_support"]["above_threshold"]["threshold"] == chosen
    assert "absent.json" in command("run", path, "--threshold", "absent.json").error
    path.write_text(path.read_text().replace("support.json", "[a.json, support.json]"), encoding="utf-8")
    assert load_experiment(path).threshold == ("a.json", "support.json")
    assert "a.json" in command("run", path).error


@pytest.mark.parametrize(("word", "part"), [
    ("max_token=5", "did you mean 'max_tokens'"), ("attempts=none", "attempts"), ("attempts", "expected NAME=VALUE"),
    ("model=x", "expected --judge"), ("temperature=-1", "temperature"),
])
def test_a_wrong_judge_option_is_named(word: str, part: str) -> None:
    with pytest.raises(DataError) as caught:
        judge_options([word])
    assert part in str(caught.value)
    assert "--judge-option" in str(caught.value)
