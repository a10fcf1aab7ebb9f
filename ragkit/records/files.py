"""Files of records: JSON and JSON Lines in and out, always UTF-8, strict, whole or not at all.

What a record looks like as JSON is decided in serialization.py and parsing.py.
"""

from __future__ import annotations

import gzip
import json
import os
import secrets
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ragkit.errors import DataError, shown
from ragkit.records.parsing import trajectory_from_json
from ragkit.records.plain import dumps, jsonable
from ragkit.records.serialization import TRAJECTORY_SCHEMA, trajectory_to_json
from ragkit.records.trajectory import Trajectory

__all__ = [
    "TRAJECTORY_SCHEMA", "append_trajectory", "decode", "dumps", "jsonable", "read_bytes", "read_json", "read_jsonl",
    "read_object", "read_trajectories", "trajectory_from_json", "trajectory_to_json", "write_json", "write_jsonl",
    "write_text", "write_trajectories",
]

_BOM = b"\xef\xbb\xbf"
_APPENDING = threading.Lock()  # a thread must not take the half-written line of another for a torn one


def read_bytes(path: str | Path, expected: str = "a file") -> bytes:
    """All bytes of a file, unpacked where it is gzip; one that cannot be read is a DataError with what was expected."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        place = "" if path.is_absolute() else f" (looked in {Path.cwd()})"
        raise DataError(f"{path}: no such file{place}; expected {expected}: check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; expected {expected}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); expected {expected}") from None
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: broken gzip data ({error}); pack or copy the file again") from None


def decode(data: bytes, path: str | Path, first_line: int = 1) -> str:
    """Bytes as text, without a byte order mark; what is not UTF-8 is refused with its line and byte, never guessed."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{path}:{first_line}: the text is UTF-16; expected UTF-8: save the file as UTF-8")
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        data = data.removeprefix(_BOM)
        line = first_line + data.count(b"\n", 0, error.start)
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise DataError(f"{path}:{line}: byte 0x{data[error.start]:02x} (byte {column} of the line) is not UTF-8, "
                        "perhaps the file is cp1252 or Latin-1: save it as UTF-8") from None


def read_json(path: str | Path) -> Any:
    """The one JSON value of a file."""
    return _parse(read_bytes(path, "a JSON file"), Path(path), 1)


def read_object(path: str | Path) -> dict[str, Any]:
    """The one JSON object of a file; a key that stands twice in an object is a DataError, not the last of them."""
    path = Path(path)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise DataError(f"{path}: the key {twice!r} stands twice in one object; expected each id once")
        return found

    value = _parse(read_bytes(path, "a JSON file"), path, 1, once)
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object, got {shown(value)}")
    return value


def read_jsonl(path: str | Path) -> Iterator[tuple[int, Any]]:
    """(line number from 1, parsed value) of each line that is not blank; gzip and a byte order mark are understood.

    Lines end at \\n alone, so a text may hold U+2028 and its like. A broken line is a DataError with file:line.
    """
    path = Path(path)
    for number, line in _lines(path):
        yield number, _parse(line, path, number)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(read_bytes(path, "JSON Lines, one object a line").split(b"\n"), start=1):
        if line.strip():
            yield number, line


def _parse(line: bytes, path: Path, number: int, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    text = decode(line, path, number)
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{number + error.lineno - 1}: expected JSON, got {text[:60].strip()!r} "
                        f"({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{number}: cannot be read as JSON ({error})") from None


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is complete: another process never sees a half of it."""
    target = Path(os.path.realpath(path))  # a link keeps being a link
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); expected a file in a folder that can be "
                        "written to") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Write a text as UTF-8 (lone surrogates as backslash escapes), atomically, line ends as given."""
    with _whole(Path(path)) as file:
        file.write(text.encode("utf-8", "backslashreplace"))


def write_json(path: str | Path, obj: Any) -> None:
    """Write one value as strict, indented JSON, atomically."""
    text = dumps(obj, indent=2)
    with _whole(Path(path)) as file:
        file.write(text.encode("utf-8") + b"\n")


def write_jsonl(path: str | Path, rows: Iterable[Any]) -> None:
    """Write each row as one line of strict JSON; the file appears when all rows are in it, or not at all."""
    with _whole(Path(path)) as file:
        for row in rows:
            file.write(dumps(row).encode("utf-8") + b"\n")


def read_trajectories(path: str | Path, allow_torn_tail: bool = False) -> list[Trajectory]:
    """All trajectories of a file, in its order.

    A key (question_id, repeat) that stands twice is a DataError that names both lines. With allow_torn_tail, a last
    line that has no end and is no JSON (a process was killed while writing it) is left out; without, it is an error.
    """
    path = Path(path)
    trajectories: list[Trajectory] = []
    seen: dict[tuple[str, int], int] = {}
    lines = list(_lines(path))
    if allow_torn_tail and lines and _is_torn(read_bytes(path)):
        lines.pop()
    for number, line in lines:
        trajectory = trajectory_from_json(_parse(line, path, number), f"{path}:{number}")
        first = seen.setdefault(trajectory.key, number)
        if first != number:
            raise DataError(f"{path}:{number}: question_id {trajectory.question_id!r}, repeat {trajectory.repeat} "
                            f"stands already in line {first}; expected each pair once: number the repeats 0, 1, …")
        trajectories.append(trajectory)
    return trajectories


def _is_torn(data: bytes) -> bool:
    tail = data[data.rfind(b"\n") + 1:]
    return bool(tail.strip()) and not _is_json(tail)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line.removeprefix(_BOM).decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def write_trajectories(path: str | Path, trajectories: Iterable[Trajectory], include_text: bool = True) -> None:
    """Write trajectories as JSON Lines, atomically; include_text=False writes hashes instead of texts."""
    write_jsonl(path, (trajectory_to_json(trajectory, include_text) for trajectory in trajectories))


def append_trajectory(path: str | Path, trajectory: Trajectory, include_text: bool = True) -> None:
    """Add one line and hand it to the operating system at once, so that a killed run keeps what it finished.

    A torn last line of an earlier run is cut off first: left in place it would spoil the line that follows.
    """
    path = Path(path)
    line = dumps(trajectory_to_json(trajectory, include_text)).encode("utf-8") + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with _APPENDING, path.open("a+b") as file:
        _mend_tail(file)
        file.write(line)
        file.flush()


def _mend_tail(file: IO[bytes]) -> None:
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return
    file.seek(size - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    tail = file.read().rpartition(b"\n")[2]
    if _is_json(tail):
        file.write(b"\n")  # whole, only its line end is missing
    else:
        file.truncate(size - len(tail))
