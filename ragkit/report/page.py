"""What every page of ragkit shares: escaping, templates, styles, script, plotly inside, and a policy against any other.

Everything that comes out of the data is escaped as it is written (`finalize`), not where somebody remembers to; the
page's own scripts are named by their hash in a content security policy, so that no other script can run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ragkit.errors import MissingPackageError
from ragkit.report import labels, texts

_TEMPLATES = Path(__file__).parent / "templates"


def environment() -> Environment:
    """Where templates come from, with what all of them use; nothing they write is left unescaped."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, finalize=_finalized,
        trim_blocks=True, lstrip_blocks=True,
    )
    made.filters.update(attr=texts.attribute, shortened=texts.shortened, anchor=texts.anchor)
    made.globals.update(labels=labels)
    return made


def _finalized(value: object) -> object:
    """What a template may write: texts made safe and visible, nothing for None."""
    if type(value) is str:
        return texts.visible(value)
    return "" if value is None else value


def policy(scripts: Sequence[str]) -> str:
    """A content security policy under which these scripts run and nothing is loaded."""
    digests = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def asset(name: str) -> str:
    """A style or script of ours."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def plotly() -> str:
    """The script that draws plots."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingPackageError("plotly", "all", "the report page") from error
    return str(get_plotlyjs())


def encodable(page: str) -> str:
    """The page without what utf-8 cannot write (lone halves of surrogate pairs)."""
    return page.encode("utf-8", "replace").decode("utf-8")
