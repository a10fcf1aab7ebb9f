"""A stratified draw of questions: likely negatives on purpose, every chance to be drawn known. Knows no files."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragkit.errors import DataError


class Unit(NamedTuple):
    """One question that may be drawn: one of its answers, its group, and the judge's score of it."""

    question_id: str
    repeat: int
    group: str
    score: float | None


class Drawn(NamedTuple):
    """A question that was drawn, with what, and for how many questions it stands (1 / its chance to be drawn)."""

    unit: Unit
    stratum: str
    weight: float


def draw(units: Sequence[Unit], count: int, seed: int, ends: tuple[float | None, float | None]) -> list[Drawn]:
    """A stratified sample of questions: band of the judge's score x group, a band by the root of its size.

    So what the judge likes least is drawn more often than it occurs, since a random sample of a good app holds next to
    nothing of it; the weights undo that. Every stratum has two questions or all that it has; small groups are put
    together until that is possible. The same arguments draw the same questions.

    >>> units = [Unit(f"q{i}", 0, "", 1.0 if i < 90 else 0.0) for i in range(100)]
    >>> drawn = draw(units, 20, 0, (0.0, 1.0))
    >>> sum(d.unit.score < 0.5 for d in drawn), sum(d.weight for d in drawn)
    (5, 100.0)
    """
    if count < 1:
        raise DataError(f"labels: expected at least 1 question to draw, got {count}")
    ordered = sorted(units, key=lambda unit: (unit.question_id, unit.repeat))
    bands: dict[str, dict[str, list[Unit]]] = {}
    few = count < 2 * len({_band(unit.score, ends) for unit in ordered})  # too few to have two of each band
    for unit in ordered:
        bands.setdefault("" if few else _band(unit.score, ends), {}).setdefault(unit.group, []).append(unit)
    names = sorted(bands)
    sizes = [sum(map(len, bands[name].values())) for name in names]
    shares = _allocated(sizes, [math.sqrt(size) for size in sizes], count)
    code = hashlib.sha256(json.dumps([count, seed, ordered]).encode()).hexdigest()[:6]
    generator, drawn = random.Random(f"{seed}/{code}"), list[Drawn]()
    for name, share in zip(names, shares, strict=True):
        strata = _together(bands[name], share // 2)
        counts = _allocated([len(members) for members in strata], [len(members) for members in strata], share)
        for members, taken in zip(strata, counts, strict=True):
            stratum = f"s{code}-{len({d.stratum for d in drawn}) + 1}"
            drawn += [Drawn(unit, stratum, len(members) / taken) for unit in generator.sample(members, taken)]
    generator.shuffle(drawn)  # the order of a sheet must not tell what the judge said
    return drawn


def _band(score: float | None, ends: tuple[float | None, float | None]) -> str:
    """0 unknown, 1 low, 2 middle, 3 at the top: the judge's verdict as far as a draw must know it."""
    low, high = ends
    if score is None:
        return "0"
    if low is None or high is None:
        return "1"
    place = (score - low) / (high - low)
    return "1" if place < 0.5 else "3" if place > 1 - 1e-9 else "2"


def _together(groups: Mapping[str, Sequence[Unit]], most: int) -> list[list[Unit]]:
    """The groups as strata, at most so many: groups of one question, then the smallest, are put together."""
    ordered = sorted(groups, key=lambda name: (-len(groups[name]), name))
    kept = min(max(1, most), sum(len(groups[name]) > 1 for name in ordered))
    if kept < len(ordered):
        kept = max(0, min(kept, most - 1))  # room for the rest
    rest = [unit for name in ordered[kept:] for unit in groups[name]]
    return [list(groups[name]) for name in ordered[:kept]] + ([rest] if rest else [])


def _allocated(sizes: Sequence[int], wishes: Sequence[float], count: int) -> list[int]:
    """How many of each are drawn: two of each (or all) where `count` allows it, the rest as near to the wishes as can
    be."""
    taken = [min(2, size) if count >= 2 * len(sizes) else 0 for size in sizes]
    wanted = [count * wish / math.fsum(wishes) for wish in wishes]
    while sum(taken) < min(count, sum(sizes)):
        place = max((i for i in range(len(sizes)) if taken[i] < sizes[i]), key=lambda i: wanted[i] - taken[i])
        taken[place] += 1
    return taken
