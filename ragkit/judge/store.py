"""The judgements on disk: every reply and every verdict, committed one by one, so that each is paid for once.

SQLite in WAL mode: a kill at any moment loses only calls in flight; a power cut may lose the last moments, and breaks
nothing. Prompts are not kept (their hash is in the key), nor is anything of a request's headers.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ragkit.errors import DataError
from ragkit.judge import claims
from ragkit.judge.calls import ModelReply
from ragkit.judge.ledger import Spending
from ragkit.records.judgements import Score, Verdict

FORMAT = "1"
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, judge TEXT NOT NULL, metric TEXT NOT NULL,
    reply TEXT NOT NULL, tokens_in INTEGER, tokens_out INTEGER, created REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, judge TEXT NOT NULL, metric TEXT NOT NULL,
    status TEXT NOT NULL, reason TEXT, verdicts TEXT NOT NULL, n_calls INTEGER NOT NULL,
    created REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (key TEXT PRIMARY KEY, judge TEXT NOT NULL, metric TEXT NOT NULL,
    reason TEXT NOT NULL, raw TEXT, created REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS relevance (key TEXT NOT NULL, judge TEXT NOT NULL, question TEXT NOT NULL,
    passage TEXT NOT NULL, grade INTEGER NOT NULL, carries TEXT NOT NULL, created REAL NOT NULL, pool TEXT NOT NULL,
    text TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (key, question, passage)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spending (run TEXT PRIMARY KEY, judge TEXT NOT NULL, started REAL NOT NULL,
    updated REAL NOT NULL, calls INTEGER NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,
    cost REAL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS relevance_pool ON relevance (pool);
"""
_GRADES = ("SELECT key, judge, question, passage, grade, carries, pool, text, reason FROM relevance "
           "ORDER BY question, passage, key")
_POOL = _GRADES.replace("ORDER", "WHERE pool = ? ORDER")


class StoredVerdicts(NamedTuple):
    """What was judged: the verdicts, or why there are none (`undefined`); and the calls that it took."""

    verdicts: tuple[Verdict, ...]
    undefined: str | None
    n_calls: int


class StoredGrade(NamedTuple):
    """The grade of one passage for one question. Rows of one `key` (the content and who judged it) have one grade.

    `question` and `passage` are ids; a content that was met under several ids has a row for each. `pool` is what the
    passages judged for one question by one judge have in common, `text` the hash of the passage's text, `carries` the
    numbers (from 1) of the reference answer's statements that it carries.
    """

    key: str
    judge: str
    question: str
    passage: str
    grade: int
    carries: tuple[int, ...]
    pool: str
    text: str
    reason: str = ""


class JudgementStore:
    """A judgement file, or memory where `path` is None. Several threads and processes may use one file."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._spent: dict[str, Spending] = {}  # by run: written with the next judgement, which saves a commit a call
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(str(path) if path else ":memory:", timeout=60, check_same_thread=False,
                                         isolation_level=None)
            _use_wal(self._base)
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.execute("PRAGMA wal_autocheckpoint=4000")  # only then it waits for the disk
            self._base.executescript(_TABLES + claims.TABLE)
            self._base.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?)", (FORMAT,))
            found = self._base.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()[0]
        except (sqlite3.Error, OSError) as error:
            raise DataError(f"judgement store {path}: expected an SQLite file of ragkit that can be written, "
                            f"got: {error}") from error
        self.claims = claims.Claims(self._base, self._lock)
        if found != FORMAT:
            raise DataError(f"judgement store {path}: format {found}, this version reads format {FORMAT}")

    def close(self) -> None:
        """Writes down what was spent last, and closes the file."""
        with self._lock:
            try:
                self.claims.end()
                self._commit()
            finally:
                self._base.close()

    def reply(self, key: str) -> ModelReply | None:
        row = self._one("SELECT reply, tokens_in, tokens_out FROM calls WHERE key = ?", key)
        return None if row is None else ModelReply(str(row[0]), tokens_in=row[1], tokens_out=row[2])  # type: ignore[arg-type]

    def keep_reply(self, key: str, judge: str, metric: str, reply: ModelReply, *, replace: bool = False) -> bool:
        """Whether the reply was kept. The first one stays, so that two processes that asked the same thing agree on
        one; `replace` is for one that turned out to be of no use. A claim on the question ends with the same commit."""
        how = "REPLACE" if replace else "IGNORE"
        row = (key, judge, metric, _text(reply.text), reply.tokens_in, reply.tokens_out, time.time())
        insert = (f"INSERT OR {how} INTO calls VALUES (?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608
        with self._lock:
            claim = self.claims.ending(key)
            return self._commit(insert, *([] if claim is None else [claim])) > 0

    def verdicts(self, key: str) -> StoredVerdicts | None:
        row = self._one("SELECT verdicts, reason, n_calls FROM verdicts WHERE key = ?", key)
        if row is None:
            return None
        made = tuple(Verdict(v[0], v[1], v[2], tuple(v[3])) for v in json.loads(str(row[0])))
        return StoredVerdicts(made, None if row[1] is None else str(row[1]), int(str(row[2])))

    def keep_verdicts(self, key: str, judge: str, metric: str, score: Score, found: StoredVerdicts) -> None:
        """Keeps a judgement, and forgets an earlier failure of the same."""
        rows = json.dumps([[v.value, v.subject, v.reason, v.flags] for v in found.verdicts], allow_nan=False)
        row = (key, judge, metric, score.status, found.undefined, rows, found.n_calls, time.time())
        self._write(("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row),
                    ("DELETE FROM failures WHERE key = ?", (key,)))

    def keep_failure(self, key: str, judge: str, metric: str, reason: str, raw: str | None) -> None:
        """A failed judgement, for reading; it is asked again by the next run."""
        row = (key, judge, metric, _text(reason), None if raw is None else _text(raw), time.time())
        self._write(("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?, ?)", row))

    def failures(self) -> list[tuple[str, str, str, str | None]]:
        """(judge, metric, reason, raw reply) of what failed and was not mended since."""
        with self._lock:
            rows = self._base.execute("SELECT judge, metric, reason, raw FROM failures ORDER BY created").fetchall()
        return [(str(j), str(m), str(r), None if raw is None else str(raw)) for j, m, r, raw in rows]

    def failure(self, key: str) -> tuple[str, str | None] | None:
        """Why a judgement failed, and the raw reply; None where it did not, or was mended since."""
        row = self._one("SELECT reason, raw FROM failures WHERE key = ?", key)
        return None if row is None else (str(row[0]), None if row[1] is None else str(row[1]))

    def keep_grades(self, grades: Iterable[StoredGrade]) -> None:
        """Keeps grades, in one commit, and forgets earlier failures; the first of a key, question and passage stays."""
        now = time.time()
        rows = [(g.key, g.judge, _text(g.question), _text(g.passage), g.grade, json.dumps(g.carries), now, g.pool,
                 g.text, _text(g.reason)) for g in grades]
        with self._lock, _transaction(self._base):
            self._base.executemany("INSERT OR IGNORE INTO relevance VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            self._base.executemany("DELETE FROM failures WHERE key = ?", [row[:1] for row in rows])

    def grades(self, pool: str | None = None) -> list[StoredGrade]:
        """The grades of one pool, or all, in the order of their ids."""
        with self._lock:
            rows = self._base.execute(_GRADES if pool is None else _POOL, () if pool is None else (pool,)).fetchall()
        return [StoredGrade(key, judge, question, passage, grade, tuple(json.loads(carries)), own, text, reason)
                for key, judge, question, passage, grade, carries, own, text, reason in rows]

    def keep_spending(self, spent: Spending) -> None:
        """Keeps the sums of a run, in the place of its earlier ones: on disk with the judgement that comes next."""
        with self._lock:
            self._spent[spent.run] = spent

    def spending(self) -> list[Spending]:
        """What every run on this store spent, in order."""
        with self._lock:
            self._commit()
            return list(map(Spending._make, self._base.execute("SELECT * FROM spending ORDER BY started, run")))

    def note(self, name: str) -> str | None:
        """A small fact kept with the judgements, such as the fingerprint of the embedding model."""
        row = self._one("SELECT value FROM meta WHERE name = ?", name)
        return None if row is None else str(row[0])

    def keep_note(self, name: str, value: str) -> None:
        self._write(("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value)))

    def _one(self, query: str, key: str) -> Sequence[object] | None:
        with self._lock:
            row: Sequence[object] | None = self._base.execute(query, (key,)).fetchone()
            return row

    def _write(self, *statements: tuple[str, Sequence[object]]) -> int:
        """Does all of it or nothing; how many rows the first statement changed."""
        with self._lock:
            return self._commit(*statements)

    def _commit(self, *statements: tuple[str, Sequence[object]]) -> int:
        spent = [("INSERT OR REPLACE INTO spending VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
                 for row in self._spent.values()]
        rows = [0]
        if statements or spent:
            with _transaction(self._base):
                rows = [self._base.execute(*statement).rowcount for statement in (*statements, *spent)]
            self._spent.clear()
        return rows[0]


@contextmanager
def _transaction(base: sqlite3.Connection) -> Iterator[None]:
    base.execute("BEGIN IMMEDIATE")
    try:
        yield
        base.execute("COMMIT")
    except BaseException:
        if base.in_transaction:
            base.execute("ROLLBACK")
        raise


def _use_wal(base: sqlite3.Connection) -> None:
    """SQLite does not wait here when another process opens the new file at the same moment, so we do."""
    for tries_left in range(200, -1, -1):
        try:
            base.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if not tries_left or "locked" not in str(error):
                raise
            time.sleep(0.05)
        else:
            return


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate cannot be stored
