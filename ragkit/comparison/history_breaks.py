"""What changed between two runs so that their numbers do not mean the same: data, labels, judge, embedder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ragkit.comparison.sides import Side
from ragkit.report.numbers import anything

_DATA: Final = {"questions": "other questions or reference answers", "labels": "other labels",
                "corpus": "other documents"}


def breaks_between(before: Side, now: Side) -> list[dict[str, str]]:
    """What differs, each as {"what": questions, labels, corpus, level, sample, judge or embedder, "told": a sentence}.

    What the app itself is made of is no break, since that is what is measured; but an embedder, which decides what is
    found at all, is marked.
    """
    one, two = before.run, now.run
    data = one.get("data") or {}, two.get("data") or {}
    found = [_break(what, told) for what, told in _DATA.items() if data[0].get(what) != data[1].get(what)]
    config = one.get("config") or {}, two.get("config") or {}
    for key, what, told in (("level", "level", "relevant from another grade"), ("limit", "sample", "another sample")):
        if config[0].get(key) != config[1].get(key):
            found.append(_break(what, f"{told}: {_change(config[0].get(key), config[1].get(key))}"))
    if set(before.asked) != set(now.asked) and not any(entry["what"] in ("questions", "sample") for entry in found):
        found.append(_break("sample", f"other questions asked: {len(before.asked)}, now {len(now.asked)}"))
    return [*found, *_judge(one.get("judge"), two.get("judge")), *_embedder(one, two)]


def _judge(one: Mapping[str, Any] | None, two: Mapping[str, Any] | None) -> list[dict[str, str]]:
    if not one and not two:
        return []
    if not one or not two:
        return [_break("judge", f"the judge: {_change(one and one.get('name'), two and two.get('name'))}")]
    keys = ("name", "fingerprint", "language", "embeddings")
    differs = [key for key in keys if one.get(key) != two.get(key)]
    if not differs:
        return []
    if differs[0] == "fingerprint":
        return [_break("judge", f"the judge {two.get('name')} with other settings")]
    return [_break("judge", f"the judge: {_change(one.get(differs[0]), two.get(differs[0]))}")]


def _embedder(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[dict[str, str]]:
    names = [(run.get("fingerprints") or {}).get("embedder") for run in (one, two)]
    return [_break("embedder", f"the embedder: {_change(*names)}")] if names[0] != names[1] else []


def _change(before: Any, now: Any) -> str:
    told = ["none" if value is None else anything(value) for value in (before, now)]
    return f"{told[0]}, now {told[1]}"


def _break(what: str, told: str) -> dict[str, str]:
    return {"what": what, "told": told}
