"""Judgement files as a whole: opened without touching them, copied, counted, merged, written out. Asks nobody."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from ragkit.errors import DataError
from ragkit.judge.ledger import Spending, total
from ragkit.judge.store import FORMAT, JudgementStore

RECORD = "ragkit.judgement/1"
_SAME = {  # table -> its key, and what two rows of one key must have in common to say the same
    "calls": (("key",), ("reply",)),
    "verdicts": (("key",), ("status", "reason", "verdicts")),
    "relevance": (("key", "question", "passage"), ("grade", "carries")),
}


class Merged(NamedTuple):
    """What a merge did to one table: rows added, rows that were there already, rows of another content (left out)."""

    added: int
    known: int
    conflicts: int


def store_of(path: Path) -> Path:
    """The judgement file that a path means: the file itself, or the one of a run folder (its own, or where it says)."""
    if not path.is_dir():
        return path
    own = path / "judgements.sqlite"
    if own.exists():
        return own
    try:
        named = json.loads((path / "run.json").read_text(encoding="utf-8")).get("store")
    except (OSError, ValueError, AttributeError):
        named = None
    if not isinstance(named, str):
        raise DataError(f"{path}: expected a judgement file, or a run folder that was judged")
    return Path(named) if Path(named).exists() else path.parent / Path(named).name


def read_only(path: Path) -> sqlite3.Connection:
    """An open judgement file that nothing is written to, nor beside; DataError where it is none."""
    if not path.is_file():
        raise DataError(f"{path}: no such judgement file")
    log = Path(f"{path}-wal")
    settled = not log.exists() or log.stat().st_size == 0  # nobody is writing: not even a lock file is needed
    base = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro{'&immutable=1' if settled else ''}", uri=True,
                           timeout=60)
    try:
        found = base.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    except sqlite3.Error as error:
        base.close()
        raise DataError(f"{path}: expected a judgement file of ragkit, got: {error}") from error
    if found is None or found[0] != FORMAT:
        base.close()
        raise DataError(f"{path}: format {found and found[0]}, this version reads format {FORMAT}")
    return base


def copy_store(source: Path, target: Path) -> None:
    """A copy of a judgement file that may be written to."""
    with closing(read_only(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def stats(path: Path) -> dict[str, Any]:
    """What a judgement file holds, by judge and metric, and what all runs on it spent.

    Grades for a step's own query are kept with those for the question, and counted there: `judgements` of
    query_relevance is None.
    """
    with closing(read_only(path)) as base:
        tables = _tables(base)
        rows: dict[tuple[str, str], dict[str, Any]] = {}

        def entry(judge: str, metric: str) -> dict[str, Any]:
            own = None if metric == "query_relevance" else 0
            blank = {"judge": judge, "metric": metric, "calls": 0, "judgements": own, "failures": 0,
                     "tokens": {"input": 0, "output": 0}}
            return rows.setdefault((judge, metric), blank)

        query = ("SELECT judge, metric, count(*), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0) FROM calls "
                 "GROUP BY judge, metric")
        for judge, metric, count, tokens_in, tokens_out in base.execute(query):
            entry(judge, metric).update(calls=count, tokens={"input": tokens_in, "output": tokens_out})
        for table, name in (("verdicts", "judgements"), ("failures", "failures")):
            query = f"SELECT judge, metric, count(*) FROM {table} GROUP BY judge, metric"  # noqa: S608 -- two names
            for judge, metric, count in base.execute(query):
                entry(judge, metric)[name] = count
        if "relevance" in tables:
            query = "SELECT judge, count(DISTINCT key), count(DISTINCT question) FROM relevance GROUP BY judge"
            for judge, pairs, questions in base.execute(query):
                entry(judge, "relevance").update(judgements=pairs, questions=questions)
        first, last = base.execute("SELECT min(created), max(created) FROM calls").fetchone()
        spent = base.execute("SELECT * FROM spending").fetchall() if "spending" in tables else []
    log = path.with_name(f"{path.name}-wal")  # what a process that was killed left is there still
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    return {"file": str(path), "bytes": size, "first": _when(first), "last": _when(last),
            "content": [rows[key] for key in sorted(rows)], "spent": total(map(Spending._make, spent))}


def merge(into: Path, sources: Sequence[Path]) -> dict[str, Merged]:
    """Adds what other files hold to one, which may be new; where two differ, what stood first stays, and it is counted.

    The sources are only read. Failures are not taken over: what failed is asked again.
    """
    for source in sources:
        if source.resolve() == into.resolve():
            raise DataError(f"{source}: expected other files than the one that is merged into")
        read_only(source).close()  # all are looked at before any is taken
    JudgementStore(into).close()
    done = dict.fromkeys(_SAME, Merged(0, 0, 0))
    with closing(sqlite3.connect(into, timeout=60, isolation_level=None)) as base:
        for source in sources:
            with closing(read_only(source)) as other:
                base.execute("BEGIN IMMEDIATE")
                for table in [name for name in _SAME if name in _tables(other)]:
                    counts = _merge_table(base, other, table)
                    done[table] = Merged(*(a + b for a, b in zip(done[table], counts, strict=True)))
                _take(base, other, "meta", "INSERT OR IGNORE")
                if "spending" in _tables(other):
                    _take(base, other, "spending", "INSERT OR REPLACE")
                base.execute("DELETE FROM failures WHERE key IN (SELECT key FROM verdicts)")
                base.execute("COMMIT")
    return done


def records(path: Path, calls: bool = False) -> Iterator[dict[str, Any]]:
    """All judgements of a file as plain data, in order of their time; `calls` adds the raw replies."""
    with closing(read_only(path)) as base:
        base.row_factory = sqlite3.Row
        for table in ("verdicts", "relevance", "failures", *(["calls"] if calls else [])):
            if table not in _tables(base):
                continue
            for row in base.execute(f"SELECT * FROM {table} ORDER BY created, key"):  # noqa: S608 -- our own names
                found = {"schema": RECORD, "kind": table.removesuffix("s"), **dict(row)}
                found["created"] = _when(found["created"])
                if table == "verdicts":
                    found["verdicts"] = [dict(zip(("value", "subject", "reason", "flags"), verdict, strict=True))
                                         for verdict in json.loads(found["verdicts"])]
                if table == "relevance":
                    found["carries"] = json.loads(found["carries"])
                yield found


def _merge_table(base: sqlite3.Connection, other: sqlite3.Connection, table: str) -> Merged:
    key, content = _SAME[table]
    names = [row[1] for row in other.execute(f"PRAGMA table_info({table})")]
    added = known = conflicts = 0
    where = " AND ".join(f"{name} = ?" for name in key)
    look = f"SELECT {', '.join(content)} FROM {table} WHERE {where}"  # noqa: S608 -- our own names
    put = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608
    for row in other.execute(f"SELECT * FROM {table}"):  # noqa: S608
        values = dict(zip(names, row, strict=True))
        found = base.execute(look, [values[name] for name in key]).fetchone()
        if found is None:
            base.execute(put, row)
            added += 1
        elif found == tuple(values[name] for name in content):
            known += 1
        else:
            conflicts += 1
    return Merged(added, known, conflicts)


def _take(base: sqlite3.Connection, other: sqlite3.Connection, table: str, verb: str) -> None:
    for row in other.execute(f"SELECT * FROM {table}"):  # noqa: S608
        base.execute(f"{verb} INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _tables(base: sqlite3.Connection) -> set[str]:
    return {row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _when(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
