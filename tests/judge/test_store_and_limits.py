"""The judgement file under several threads and processes, and the arithmetic of limits and money."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import BudgetExceeded, DataError, JudgeError
from ragkit.judge.calls import ModelReply
from ragkit.judge.ledger import Allowance, Ledger
from ragkit.judge.limits import Pace, Slots
from ragkit.judge.store import JudgementStore, StoredVerdicts
from ragkit.records.judgements import Score, Verdict

WRITER = """
import sys
from pathlib import Path
from ragkit.judge.calls import ModelReply
from ragkit.judge.store import JudgementStore
store = JudgementStore(Path(sys.argv[1]))
for n in range(200):
    store.keep_reply(f"{sys.argv[2]} {n}", "m", "x", ModelReply(f"{sys.argv[2]}"))
    store.keep_reply(f"both {n}", "m", "x", ModelReply(f"{sys.argv[2]}"))
"""


def test_two_processes_and_threads_lose_no_row(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    store = JudgementStore(path)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("a", "b")]
    threads = [threading.Thread(target=lambda t=t: [store.keep_reply(f"t{t} {n}", "m", "x", ModelReply("r"))
                                                    for n in range(100)]) for t in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    with sqlite3.connect(path) as base:
        assert base.execute("SELECT count(*) FROM calls").fetchone() == (900,)
        assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    both = {store.reply(f"both {n}").text for n in range(200)}  # type: ignore[union-attr]
    assert both <= {"a", "b"}
    store.keep_reply("both 0", "m", "x", ModelReply("later"))
    assert store.reply("both 0").text in {"a", "b"}, "the first reply stays"  # type: ignore[union-attr]
    store.close()


@given(st.lists(st.builds(Verdict, value=st.sampled_from([0.0, 1.0, -0.25]), subject=st.text(max_size=20),
                          reason=st.text(max_size=20), flags=st.tuples(st.text(max_size=5))), max_size=5))
def test_verdicts_come_back_as_they_went_in(verdicts: list[Verdict]) -> None:
    store = JudgementStore()
    store.keep_verdicts("k", "m", "x", Score.scored(1), StoredVerdicts(tuple(verdicts), None, 3))
    assert store.verdicts("k") == StoredVerdicts(tuple(verdicts), None, 3)


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "j.sqlite").write_text("no database at all, but long enough to look at" * 50, encoding="utf-8")
    with pytest.raises(DataError, match=r"j\.sqlite: expected an SQLite file"):
        JudgementStore(tmp_path / "j.sqlite")
    store = JudgementStore(tmp_path / "k.sqlite")
    store.keep_note("format", "99")
    store.close()
    with pytest.raises(DataError, match="format 99, this version reads format 1"):
        JudgementStore(tmp_path / "k.sqlite")


def test_pace_lets_a_seconds_worth_through_and_then_spreads() -> None:
    now = [0.0]
    pace = Pace(120, lambda: now[0])  # 2 a second
    assert [pace.take(1) for _ in range(4)] == [0.0, 0.0, 0.5, 1.0]
    now[0] = 10.0
    assert [pace.take(1) for _ in range(3)] == [0.0, 0.0, 0.5]
    tokens = Pace(600, lambda: now[0])  # 10 a second
    assert tokens.take(50) == 0.0, "nothing is too large to be sent"
    assert tokens.take(1) == pytest.approx(4.1)
    assert Pace(None).take(1e9) == 0.0


def test_money_is_reserved_before_it_is_spent() -> None:
    ledger = Ledger((1e6, 1e6), Allowance(budget=100.0))  # one a token
    first = ledger.admit(size=30, max_tokens=50)  # 10 in, 50 out
    assert first is not None
    assert ledger.admit(size=30, max_tokens=50) is None, "what is in flight may take it all"
    ledger.settle(first, 30, ModelReply("x", tokens_in=9, tokens_out=1))
    assert ledger.spent == 10.0
    second = ledger.admit(size=30, max_tokens=50)
    assert second is not None
    ledger.settle(second, 30, None)
    assert ledger.spent == 70.0, "nobody knows what a call cost that never came back: the worst is taken"
    with pytest.raises(BudgetExceeded, match=r"budget of 100 is reached \(70\.0000 spent"):
        ledger.admit(size=30, max_tokens=50)
    assert ledger.admit(size=30, max_tokens=20) is not None


def test_work_is_begun_as_slots_come_free_and_a_chain_goes_on_before_the_next_is_begun() -> None:
    log: list[str] = []

    async def main() -> int:
        slots, begun, most = Slots(4), 0, 0

        async def job(number: int) -> None:
            nonlocal begun, most
            begun += 1
            for part in "ab":
                async with slots:
                    most = max(most, begun - len([line for line in log if line.endswith("b")]))
                    await asyncio.sleep(0.002)
                log.append(f"{number}{part}")

        await slots.in_turn(map(job, range(40)))
        return most

    assert asyncio.run(main()) <= 2 * 4
    places = {name: place for place, name in enumerate(log)}
    assert len(log) == 80
    assert all(places[f"{n}b"] - places[f"{n}a"] <= 12 for n in range(40)), "40, if all began at once"


def test_all_jobs_are_done_before_the_gravest_error_is_raised() -> None:
    done: list[int] = []

    async def job(number: int) -> None:
        if number in (3, 5):
            raise JudgeError("stopped") if number == 3 else ZeroDivisionError
        await asyncio.sleep(0.001)
        done.append(number)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(Slots(2).in_turn(map(job, range(9))))
    assert sorted(done) == [0, 1, 2, 4, 6, 7, 8]


def test_an_interrupted_run_leaves_no_job_that_was_never_begun() -> None:
    made: list[int] = []
    begun: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(60)

    def job(number: int) -> Coroutine[None, None, None]:
        made.append(number)
        return work(number)

    async def main() -> None:
        running = asyncio.create_task(Slots(2).in_turn(map(job, range(40))))
        await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert made == begun and 0 < len(made) < 40
