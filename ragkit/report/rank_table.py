"""The table of `ragkit rank` as text of 80 columns, and its notes in words. Takes plain data and computes nothing.

Without rich: the whole process is timed, and the text goes into pipes and logs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragkit.records.runs import PLAIN_RULES, RunRules
from ragkit.report import numbers
from ragkit.report.numbers import counted

WIDTH = 80
DECIMALS = 4
FEW = 3
_LOUD = ("no_overlap",)
_ORDER = ("no_overlap", "missing", "unknown_questions", "similar_ids", "nothing_relevant", "duplicates", "ties", "self",
          "unmapped", "unjudged", "short_lists")


@dataclass(frozen=True)
class Settings:
    """What the numbers were computed by, as the header says it."""

    rules: RunRules = PLAIN_RULES
    level: float = 1.0
    trec: bool = False
    cut: int | None = None

    def words(self) -> str:
        """The rules in one sentence."""
        rules = self.rules
        unit = "chunk (ids as they stand)" if rules.document_of is None else "document (at its best chunk)"
        order = "by document id, descending" if rules.ties == "id" else "in the run's own order"
        parts = [f"unit: {unit}", f"relevant: grade >= {numbers.plain(self.level)}", f"equal scores: {order}"]
        parts += ["scores compared as float32"] if rules.float32 else []
        parts += ["judged documents only, ranks closed up"] if rules.judged_only else []
        parts += ["ids compared in their visible form"] if rules.normalize_ids else []
        parts += ["documents named as their question dropped"] if rules.drop_self else []
        parts += ["undefined and missing count as 0 (as trec_eval -c)"] if self.trec else []
        return "; ".join(parts)


def rank_lines(result: Mapping[str, Any], settings: Settings, n_questions: int) -> list[str]:
    """The table and the notes, as lines of at most 80 columns where the names allow it."""
    runs: Mapping[str, Mapping[str, Mapping[str, Any]]] = result["runs"]
    lines = _wrapped(f"{counted(n_questions, 'question')}; {settings.words()}", "")
    heads = {name: name for name in runs}
    metrics = list(next(iter(runs.values())))
    if not _blocks(list(heads.values()), metrics, 1):
        heads = {name: f"[{place}]" for place, name in enumerate(runs, start=1)}
        lines += [line for name, head in heads.items() for line in _wrapped(f"{head} {name}", "    ")]
    for names in _blocks(list(heads), metrics, None, heads) or []:
        lines += ["", *_table([(heads[name], runs[name]) for name in names], metrics)]
    lines += _differing(runs, metrics)
    notes = note_lines(result["notes"], settings, many=len(runs) > 1)
    return [*lines, "", *notes] if notes else lines


def note_lines(notes: Sequence[Mapping[str, Any]], settings: Settings, many: bool) -> list[str]:
    """The notes in words, the grave ones first; with several runs each names its own."""
    ordered = sorted(notes, key=lambda note: _ORDER.index(note["kind"]) if note["kind"] in _ORDER else len(_ORDER))
    lines = []
    for note in ordered:
        run = f"{note['run']}: " if many and note.get("run") else ""
        mark = "WARNING: " if note["kind"] in _LOUD else "- "
        lines += _wrapped(mark + run + note_words(note, settings), "  ")
    return lines


def note_words(note: Mapping[str, Any], settings: Settings) -> str:
    """One note as a sentence."""
    count, few, k = note["count"], _listed(note), settings.cut
    verb = "has" if count == 1 else "have"
    match note["kind"]:
        case "no_overlap":
            return (f"the run and the qrels have nothing in common ({counted(count, 'question')} looked at): a wrong "
                    f"file, or ids written otherwise? {'; '.join(note['examples'])}")
        case "missing":
            return f"no results for {counted(count, 'question')} of the qrels (scored 0): {few}"
        case "unknown_questions":
            return f"{counted(count, 'question')} of the run without a row in the qrels (ignored): {few}"
        case "similar_ids":
            return (f"{counted(count, 'id')} of the qrels not found, while the run holds one that looks the same "
                    f"(--normalize-ids takes them as equal): {'; '.join(note['examples'][:FEW])}")
        case "nothing_relevant":
            zero = "0, and counted (--trec)" if settings.trec else "undefined, and in no mean"
            level = numbers.plain(settings.level)
            return f"no document of {counted(count, 'question')} reaches grade {level} ({zero}): {few}"
        case "duplicates":
            return f"{counted(count, 'later copy', 'later copies')} of a document dropped, ranks closed up: {few}"
        case "ties":
            rule = "by document id, descending, as trec_eval; --ties rank takes the run's own order" \
                if settings.rules.ties == "id" else \
                "in the run's own order; trec_eval takes the document id, descending"
            return f"{counted(count, 'result')} {verb} the score of one above of the same question; ordered {rule}"
        case "self":
            return f"{counted(count, 'document')} dropped because the id is the question's (--drop-self): {few}"
        case "unmapped":
            return f"{counted(count, 'id')} not in the document map, taken as documents: {few}"
        case "unjudged":
            depth = "in the lists" if k is None else f"in the top {k}"
            share = f" ({numbers.percent(float(note['text']), 1)} of those there are judged)" if "text" in note else ""
            return (f"{counted(count, 'document')} {depth} {verb} no label, and {'counts' if count == 1 else 'count'} "
                    f"as not relevant{share}")
        case "short_lists":
            return f"{_short(note, k)}; precision@k still divides by k"
    return f"{note['kind']}: {numbers.count(count)}{f' ({few})' if few else ''}"


def _short(note: Mapping[str, Any], k: int | None) -> str:
    if note["count"] == 1:
        question, _, length = note["examples"][0].rpartition(" ")
        return f"only {length.strip('()')} returned for {question}"
    return f"fewer than {k} returned for {counted(note['count'], 'question')}: {_listed(note)}"


def _listed(note: Mapping[str, Any]) -> str:
    few = note["examples"][:FEW]
    more = note["count"] - len(few)
    return ", ".join(few) + (f" and {numbers.count(more)} more" if few and more > 0 else "")


def _blocks(
    names: list[str], metrics: list[str], most: int | None, heads: Mapping[str, str] | None = None
) -> list[list[str]] | None:
    """The runs cut into groups whose columns fit beside each other; None where more than `most` groups are needed."""
    room = WIDTH - max(map(len, [*metrics, "metric"])) - 2 - len("scored") - 8
    groups: list[list[str]] = [[]]
    used = 0
    for name in names:
        wide = _width((heads or {}).get(name, name))
        if groups[-1] and used + wide > room:
            groups.append([])
            used = 0
        groups[-1].append(name)
        used += wide
    fits = most is None or (len(groups) <= most and used <= room)
    return groups if fits else None


def _width(head: str) -> int:
    return max(len(head), DECIMALS + 2) + 2


def _table(columns: Sequence[tuple[str, Mapping[str, Mapping[str, Any]]]], metrics: list[str]) -> list[str]:
    first = max(map(len, [*metrics, "metric"]))
    scored = [_scored([found[metric] for _, found in columns]) for metric in metrics]
    last = max(map(len, [*scored, "scored"]))
    heads = "".join(head.rjust(_width(head)) for head, _ in columns)
    lines = [f"{'metric'.ljust(first)}{heads}  {'scored'.rjust(last)}"]
    lines.append("-" * len(lines[0]))
    for metric, share in zip(metrics, scored, strict=True):
        cells = "".join(_mean(found[metric]).rjust(_width(head)) for head, found in columns)
        lines.append(f"{metric.ljust(first)}{cells}  {share.rjust(last)}")
    return lines


def _mean(found: Mapping[str, Any]) -> str:
    return "-" if found["mean"] is None else numbers.number(found["mean"], DECIMALS)


def _scored(found: Sequence[Mapping[str, Any]]) -> str:
    """Scored of asked, where all runs agree."""
    shares = {f"{one['n_scored']}/{one['n_asked']}" for one in found}
    return shares.pop() if len(shares) == 1 else "below"


def _differing(runs: Mapping[str, Mapping[str, Mapping[str, Any]]], metrics: list[str]) -> list[str]:
    lines = []
    for metric in metrics:
        shares = [f"{name} {found[metric]['n_scored']}/{found[metric]['n_asked']}" for name, found in runs.items()]
        if len({share.rpartition(" ")[2] for share in shares}) > 1:
            lines += _wrapped(f"{metric} scored: {', '.join(shares)}", "  ")
    return ["", *lines] if lines else []


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
