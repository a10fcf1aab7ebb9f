"""Where the reports of the variants lie as a page of their comparison sees them, and which questions they show."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ragkit.report.comparison_html import SingleReport

_QUESTION = re.compile(r'<details class="question" id="(q-[A-Za-z0-9_.~-]+)">')


def single_reports(data: Mapping[str, Any], folder: str | Path) -> dict[str, SingleReport]:
    """The variants that have a report.html, linked to from a page in `folder`; nothing for one that cannot be read."""
    found = {}
    for name, entry in data["variants"].items():
        report = None if entry["folder"] is None else Path(entry["folder"]) / "report.html"
        made = None if report is None else _opened(report, Path(folder))
        if made is not None:
            found[name] = made
    return found


def _opened(report: Path, folder: Path) -> SingleReport | None:
    try:
        shown = frozenset(_QUESTION.findall(report.read_text(encoding="utf-8", errors="replace")))
        return SingleReport(quote(Path(os.path.relpath(report.resolve(), folder.resolve())).as_posix()), shown)
    except (OSError, ValueError):  # no report; on Windows one on another drive
        return None
