"""Judgement files as a whole: counted, merged without touching the sources, exported as JSON Lines and as qrels."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.judge.archive import merge, records, stats, store_of
from ragkit.judge.calls import ModelReply
from ragkit.judge.ledger import Spending
from ragkit.judge.store import JudgementStore, StoredGrade, StoredVerdicts
from ragkit.records.judgements import Score, Verdict
from tests.support.command import command


def filled(path: Path, *keys: str, reply: str = "r", value: float = 1.0, grade: int = 2) -> Path:
    store = JudgementStore(path)
    for key in keys:
        store.keep_reply(key, "m", "faithfulness", ModelReply(reply, tokens_in=100, tokens_out=10))
        store.keep_verdicts(f"v{key}", "m", "faithfulness", Score.scored(value),
                            StoredVerdicts((Verdict(value, "a statement", "why"),), None, 2))
        store.keep_grades([StoredGrade(f"g{key}", "m", f"q{key}", "d1", grade, (1,), "pool", "text", "reason")])
    store.keep_failure(f"f{path.stem}", "m", "faithfulness", "timed out", None)
    store.keep_spending(Spending(path.stem, "m", 1.0, 2.0, len(keys), 100 * len(keys), 10 * len(keys), 0.5))
    store.close()
    return path


def contents(path: Path) -> dict[str, set[str]]:
    with sqlite3.connect(path) as base:
        return {table: {row[0] for row in base.execute(f"SELECT key FROM {table}")}
                for table in ("calls", "verdicts", "relevance")}


def state(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_merging_adds_what_is_missing_and_counts_what_differs(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    first = filled(tmp_path / "all.sqlite", "1", "2")
    second = filled(sources / "b.sqlite", "2", "3")
    third = filled(sources / "c.sqlite", "3", "4", reply="other", value=0.0, grade=0)
    before = state(sources)
    done = merge(first, [second, third])
    assert state(sources) == before, "the sources are only read"
    assert done["calls"] == (2, 1, 1) and done["verdicts"] == (2, 1, 1) and done["relevance"] == (2, 1, 1)
    assert contents(first)["calls"] == {"1", "2", "3", "4"}
    store = JudgementStore(first)
    assert store.reply("3").text == "r" and store.reply("4").text == "other"  # type: ignore[union-attr]
    assert store.verdicts("v3").verdicts[0].value == 1.0  # type: ignore[union-attr]
    assert [failure[2] for failure in store.failures()] == ["timed out"], "failures are not taken over"
    assert [row.run for row in store.spending()] == ["all", "b", "c"]
    store.close()
    assert merge(first, [second])["calls"] == (0, 2, 0), "once more changes nothing"
    assert stats(first)["spent"] == {"runs": 3, "calls": 6, "tokens": {"input": 600, "output": 60}, "cost": 1.5,
                                     "unpriced_calls": 0}


def test_a_source_that_is_being_written_is_read_with_its_last_commits(tmp_path: Path) -> None:
    writer = JudgementStore(tmp_path / "live.sqlite")
    writer.keep_reply("k", "m", "x", ModelReply("r"))
    assert (tmp_path / "live.sqlite-wal").stat().st_size > 0
    assert merge(tmp_path / "all.sqlite", [tmp_path / "live.sqlite"])["calls"].added == 1
    writer.keep_reply("k2", "m", "x", ModelReply("r"))
    writer.close()
    assert merge(tmp_path / "all.sqlite", [tmp_path / "live.sqlite"])["calls"].added == 1


@given(st.lists(st.sets(st.sampled_from("abcdef")), min_size=1, max_size=3))
def test_a_merge_holds_every_key_of_every_source(tmp_path_factory: pytest.TempPathFactory, parts: list[set[str]]
                                                 ) -> None:
    folder = tmp_path_factory.mktemp("merge")
    sources = [filled(folder / f"{n}.sqlite", *sorted(keys)) for n, keys in enumerate(parts)]
    done = merge(folder / "all.sqlite", sources)
    assert contents(folder / "all.sqlite")["calls"] == set().union(*parts)
    assert sum(done["calls"]) == sum(map(len, parts)) and done["calls"].added == len(set().union(*parts))


def test_a_wrong_source_is_said_before_anything_is_merged(tmp_path: Path) -> None:
    good = filled(tmp_path / "a.sqlite", "1")
    (tmp_path / "text.sqlite").write_text("no database, but long enough to be looked at as one" * 30, encoding="utf-8")
    with sqlite3.connect(tmp_path / "other.sqlite") as base:
        base.execute("CREATE TABLE meta (name TEXT, value TEXT)")
        base.execute("INSERT INTO meta VALUES ('format', '99')")
    for name, said in (("text", "expected a judgement file of ragkit"), ("other", "format 99"), ("absent", "no such")):
        with pytest.raises(DataError, match=said):
            merge(tmp_path / "new.sqlite", [good, tmp_path / f"{name}.sqlite"])
        assert not (tmp_path / "new.sqlite").exists()
    with pytest.raises(DataError, match="other files than the one"):
        merge(good, [good])
    with pytest.raises(DataError, match="expected a judgement file, or a run folder"):
        store_of(tmp_path)


def test_records_are_plain_and_whole(tmp_path: Path) -> None:
    found = list(records(filled(tmp_path / "a.sqlite", "1"), calls=True))
    assert [row["kind"] for row in found] == ["verdict", "relevance", "failure", "call"]
    assert found[0]["verdicts"] == [{"value": 1.0, "subject": "a statement", "reason": "why", "flags": []}]
    assert found[1]["carries"] == [1] and found[1]["grade"] == 2 and found[3]["reply"] == "r"
    json.dumps(found, allow_nan=False)


def test_the_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    run.mkdir()
    filled(run / "judgements.sqlite", "1", "2")
    shown = command("judgements", "stats", "run").out
    assert "m      faithfulness           2      2        200          20         1" in shown
    assert "all runs: 1, requests 2, tokens 200 in, 20 out, cost 0.50" in shown
    assert json.loads(command("judgements", "stats", "run", "--json").out)["content"][0]["judgements"] == 2
    filled(tmp_path / "b.sqlite", "2", "3", reply="other")
    done = command("judgements", "merge", "all.sqlite", "run", "b.sqlite")
    assert done.code == 0 and "calls: 3 added, 0 known, 1 of another content left out" in done.out
    assert "all.jsonl: 6 records" in command("judgements", "export", "all.sqlite", "--out", "all.jsonl").out
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    assert kinds == ["verdict"] * 3 + ["relevance"] * 3
    assert "3 grades of 3 questions by m" in command("judgements", "export", "all.sqlite", "--qrels", "q.tsv").out
    assert (tmp_path / "q.tsv").read_text(encoding="utf-8") == (
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td1\t2\nq3\td1\t2\n")
    command("judgements", "export", "all.sqlite", "--qrels", "q.qrels")
    assert (tmp_path / "q.qrels").read_text(encoding="utf-8").splitlines()[0] == "q1 0 d1 2"
    assert "expected --out FILE.jsonl or --qrels FILE" in command("judgements", "export", "all.sqlite").error
    assert "no such judgement file" in command("judgements", "stats", "absent.sqlite").error
    assert not (tmp_path / "absent.sqlite").exists()
    assert "no relevance grade of x" in command("judgements", "export", "run", "--qrels", "x.tsv", "--judge", "x").error
    filled(tmp_path / "c.sqlite", "1", grade=0)
    store = JudgementStore(tmp_path / "c.sqlite")
    store.keep_grades([StoredGrade("other", "m", "q1", "d1", 3, (), "pool2", "text", "")])
    store.close()
    assert "q1, d1: graded" in command("judgements", "export", "c.sqlite", "--qrels", "x.tsv").error
