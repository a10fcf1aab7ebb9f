"""A stratified draw of questions: likely negatives on purpose, every chance to be drawn known. Knows no files."""

from __future__ import annotations

import hashlib
import json
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
    """A stratified sample of questions: band of the judge's score x group, as many low scores as high ones.

    What the judge likes least is drawn on purpose, since that is where people and judges differ in both directions and
    where a random sample of a good app holds next to nothing; the weights undo it. Every stratum has two questions or
    all that it has; small groups are put together until that is possible. The same arguments draw the same questions.

    >>> units = [Unit(f"q{i}", 0, "", 1.0 if i < 90 else 0.0) for i in range(100)]
    >>> drawn = draw(units, 20, 0, (0.0, 1.0))
    >>> sum(d.unit.score < 0.5 for d in drawn), sum(d.weight for d in drawn)
    (10, 100.0)
    """
    if count < 1:
        raise DataError(f"labels: expected at least 1 question to draw, got {count}")
    ordered = sorted(units, key=lambda unit: (unit.question_id, unit.repeat))
    bands: dict[str, dict[str, list[Unit]]] = {}
    few = count < 2 * len({_band(unit.score, ends) for unit in ordered})  # too few to have two of each band
    for unit in ordered:
        bands.setdefault("" if few else _band(unit.score, ends), {}).setdefault(unit.group, []).append(unit)
    sizes = {name: sum(map(len, groups.values())) for name, groups in bands.items()}
    shares = _evenly(sizes, min(count, len(ordered)))
    code = hashlib.sha256(json.dumps([count, seed, ordered]).encode()).hexdigest()[:6]
    generator, drawn = random.Random(f"{seed}/{code}"), list[Drawn]()
    for band, groups in sorted(bands.items()):
        for members, taken in _in_groups(_together(groups, shares[band] // 2), shares[band]):
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


def _evenly(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Equal shares of `count`, none larger than its size; what a small one leaves goes to the others."""
    shares, left, open_ = dict.fromkeys(sizes, 0), count, sorted(sizes, key=lambda name: (sizes[name], name))
    while open_:
        name = open_.pop(0)
        shares[name] = min(sizes[name], left // (len(open_) + 1))
        left -= shares[name]
    return shares


def _together(groups: Mapping[str, Sequence[Unit]], most: int) -> list[list[Unit]]:
    """The groups as strata, at most so many: groups of one question, then the smallest, are put together."""
    ordered = sorted(groups, key=lambda name: (-len(groups[name]), name))
    kept = min(max(1, most), sum(len(groups[name]) > 1 for name in ordered))
    if kept < len(ordered):
        kept = max(0, min(kept, most - 1))  # room for the rest
    rest = [unit for name in ordered[kept:] for unit in groups[name]]
    return [list(groups[name]) for name in ordered[:kept]] + ([rest] if rest else [])


def _in_groups(strata: Sequence[list[Unit]], count: int) -> list[tuple[list[Unit], int]]:
    """Each stratum with how many are drawn: two of each (or all), the rest by size."""
    total = sum(map(len, strata))
    taken = [min(2, len(members)) if count >= 2 * len(strata) else 0 for members in strata]
    wishes = [count * len(members) / total if total else 0.0 for members in strata]
    while sum(taken) < count:
        place = max((i for i in range(len(strata)) if taken[i] < len(strata[i])), key=lambda i: wishes[i] - taken[i])
        taken[place] += 1
    return [(members, number) for members, number in zip(strata, taken, strict=True) if number]
