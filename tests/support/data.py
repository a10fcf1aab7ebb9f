"""Where the real collections lie: RAGKIT_DATA, by default ../shared/data beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def data_folder(name: str) -> Path:
    """The folder of one collection; the test is skipped with a reason where it is absent."""
    base = Path(os.environ.get("RAGKIT_DATA", _ROOT.parent / "shared" / "data"))
    if not (base / name).is_dir():
        pytest.skip(f"the collection {name} is not here (RAGKIT_DATA={base})")
    return base / name
