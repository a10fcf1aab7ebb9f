"""Who asks what right now, for processes on one store: a question that another one is asking is waited for.

A claim saves money and decides nothing: it runs out, it ends with its process, and where it cannot be written the
question is asked all the same.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
import time
import uuid

_LASTS = 20.0  # seconds; refreshed long before by who is alive
TABLE = ("CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) "
         "WITHOUT ROWID;")
_TAKE = ("INSERT INTO claims VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, "
         "until = excluded.until WHERE until < ? OR owner = excluded.owner")
_END = "DELETE FROM claims WHERE key = ? AND owner = ?"


class Claims:
    """The claims of one gateway, on the connection of its store and under its lock.

    >>> import pathlib, tempfile
    >>> from ragkit.judge.store import JudgementStore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ours, theirs = (JudgementStore(pathlib.Path(folder) / "judgements.sqlite") for _ in range(2))
    ...     print(ours.claims.take("k"), theirs.claims.take("k"))
    ...     ours.claims.release("k")
    ...     print(theirs.claims.take("k"))
    ...     ours.close(), theirs.close()
    True False
    True
    (None, None)
    """

    def __init__(self, base: sqlite3.Connection, lock: threading.Lock) -> None:
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._lock = lock
        self._held: set[str] = set()
        self._base = base

    def take(self, key: str) -> bool:
        """Whether the question is ours to ask now."""
        now = time.time()
        with self._lock:
            try:
                if not self._base.execute(_TAKE, (key, self.owner, now + _LASTS, now)).rowcount:
                    holder = self._base.execute("SELECT owner FROM claims WHERE key = ?", (key,)).fetchone()
                    if holder is None or not _is_gone(holder[0]):
                        return False
                    changed = self._base.execute("UPDATE claims SET owner = ?, until = ? WHERE key = ? AND owner = ?",
                                                 (self.owner, now + _LASTS, key, holder[0]))
                    if not changed.rowcount:
                        return False
            except sqlite3.Error:
                return True
            self._held.add(key)
            return True

    def ending(self, key: str) -> tuple[str, tuple[str, str]] | None:
        """The statement that ends a claim, for the commit of its reply; None where the claim is not held."""
        if key not in self._held:
            return None
        self._held.discard(key)
        return _END, (key, self.owner)

    def release(self, key: str) -> None:
        """Ends a claim that brought no reply."""
        with self._lock:
            ending = self.ending(key)
            if ending is not None:
                self._execute(*ending)

    def refresh(self) -> None:
        """Says that the owner is still alive; to be called every few seconds."""
        with self._lock:
            if self._held:
                self._execute("UPDATE claims SET until = ? WHERE owner = ?", (time.time() + _LASTS, self.owner))

    def end(self) -> None:
        """Ends all that are held. The caller has the lock."""
        if self._held:
            self._execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
        self._held.clear()

    def _execute(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._base.execute(statement, values)
        except sqlite3.Error:
            return  # the claim runs out by itself


def _is_gone(owner: str) -> bool:
    """Whether a process of this machine is known to have ended, so that nobody waits for what a kill left behind."""
    host, pid, _ = owner.rsplit(":", 2)
    if os.name != "posix" or host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False
