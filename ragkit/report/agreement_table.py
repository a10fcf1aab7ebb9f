"""What `ragkit agreement` prints: one pair of raters in full, several as a table, what was left out in words.

Takes the plain data of ragkit.judge.agreement and computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragkit.report import numbers

_TITLES = {
    "base_rate": "base rate", "auroc": "AUROC", "balanced_accuracy": "balanced accuracy",
    "sensitivity": "sensitivity", "specificity": "specificity", "exact": "exact agreement", "kappa": "kappa",
    "kappa_linear": "kappa, linear", "kappa_quadratic": "kappa, quadratic",
}
_COLUMNS = ("exact", "kappa", "kappa_linear", "kappa_quadratic", "auroc", "balanced_accuracy", "base_rate")
_KINDS = {"grades": "grades on one scale", "decisions": "yes or no", "scores": "scores", "categories": "names"}

Found = Mapping[str, Any]


def agreement_lines(result: Found) -> list[str]:
    """The result of `ragkit agreement` as lines of text.

    >>> figure = {"value": 0.5, "low": None, "high": None, "reason": "one question gives no interval"}
    >>> pair = {"human": "ann", "judge": "bob", "slice": None, "kind": "categories", "n": 4, "n_questions": 1,
    ...         "missing": {"no label": 2}, "off_scale": {}, "level": None, "scale": None, "thresholds": [],
    ...         "figures": {"kappa": figure}, "levels": [], "confusion": []}
    >>> print("\\n".join(agreement_lines({"labels": {"file": "l.csv", "rows": 6, "questions": 1, "weighted": False},
    ...                                  "comparisons": [pair]})))
    l.csv: 6 rows, 1 question; 95 % intervals resample questions
    <BLANKLINE>
    bob against ann (names)
      rows compared      4 of 6 (2 no label)
      kappa              0.500  (one question gives no interval)
    """
    labels, comparisons = result["labels"], result["comparisons"]
    lines = [f"{labels['file']}: {numbers.counted(labels['rows'], 'row')}, "
             f"{numbers.counted(labels['questions'], 'question')}; 95 % intervals resample questions"]
    if labels["weighted"]:
        lines.append("Figures are weighted by the column weight, what each row stands for; counts are of rows.")
    whole = [found for found in comparisons if found["slice"] is None]
    sliced = [found for found in comparisons if found["slice"] is not None]
    if len(whole) == 1:
        lines += ["", *_in_full(whole[0])]
    else:
        lines += ["", *_table(whole, ("judge", "against")), *_notes(whole)]
    if sliced:
        lines += ["", f"By {result['by']}:", "", *_table(sliced, ("slice", "judge", "against")), *_notes(sliced)]
    return lines


def _in_full(found: Found) -> list[str]:
    told = _missing(found)
    total = found["n"] + sum(found["missing"].values())
    rows = [("rows compared", f"{numbers.count(found['n'])} of {numbers.count(total)}{f' ({told})' if told else ''}")]
    names = [name for name in _TITLES if name in found["figures"]]
    first_of_decisions = next((name for name in names if name in ("balanced_accuracy", "kappa")), None)
    for name in names:
        if name == first_of_decisions and found["thresholds"]:
            rows.append(("decided", _decided(found)))
        rows.append((_TITLES[name], _figure(found["figures"][name])))
    lines = [_head(found), *(f"  {title:<17}  {text}" for title, text in rows)]
    lines += [f"  {line}" for line in _confusion(found)]
    off = _off_scale(found)
    return [*lines, f"  {off}"] if off else lines


def _head(found: Found) -> str:
    level = "" if found["level"] is None else f"; a label of {numbers.plain(found['level'])} or more is a yes"
    return f"{found['judge']} against {found['human']} ({_KINDS[found['kind']]}{level})"


def _figure(figure: Found) -> str:
    ends = "" if figure["low"] is None else numbers.interval(figure["low"], figure["high"])
    reason = f"({figure['reason']})" if figure["reason"] else ""
    return "  ".join(part for part in (numbers.number(figure["value"]), ends, reason) if part)


def _decided(found: Found) -> str:
    thresholds = found["thresholds"]
    if found["threshold_given"]:
        return f"yes from {numbers.plain(thresholds[0])}, as given"
    low, high = numbers.plain(min(thresholds)), numbers.plain(max(thresholds))
    ends = low if low == high else f"{low} to {high}"
    return f"yes from {ends}, chosen on other rows ({len(thresholds)} folds by question)"


def _missing(found: Found) -> str:
    return ", ".join(f"{numbers.count(count)} {reason}" for reason, count in found["missing"].items())


def _off_scale(found: Found) -> str:
    if not found["off_scale"]:
        return ""
    low, high = map(numbers.plain, found["scale"])
    values = ", ".join(f"{numbers.count(count)} × {value}" for value, count in found["off_scale"].items())
    return f"off the scale {low} to {high}: {values} (each a disagreement, at most as wide as the scale)"


def _confusion(found: Found) -> list[str]:
    if not found["levels"]:
        return []
    names = [f"said {level}" for level in found["levels"]]
    body = [[f"label {level}", *map(numbers.count, line)]
            for level, line in zip(found["levels"], found["confusion"], strict=True)]
    return _aligned([["", *names], *body])


def _table(found: Sequence[Found], heads: Sequence[str]) -> list[str]:
    """A row a comparison; a column that says the same in every row is left out."""
    keys = {"judge": "judge", "against": "human", "slice": "slice"}
    shown = [head for head in heads if head != "against" or len({one["human"] for one in found}) > 1
             or len(found) == 1]
    names = [name for name in _COLUMNS if any(name in one["figures"] for one in found)]
    if _one_base_rate(found):
        names.remove("base_rate")  # the notes say it once
    lines = [[*shown, "rows", *(_TITLES[name] for name in names)]]
    for one in found:
        figures = (one["figures"].get(name) for name in names)
        cells = ["" if f is None else numbers.number(f["value"]) if f["low"] is None else
                 f"{numbers.number(f['value'])} {numbers.interval(f['low'], f['high'])}" for f in figures]
        lines.append([*(str(one[keys[head]]) for head in shown), numbers.count(one["n"]), *cells])
    told = "" if "against" in shown else f"Against {found[0]['human']}:"
    return [*([told] if told else []), *_aligned(lines, len(shown))]


def _one_base_rate(found: Sequence[Found]) -> bool:
    rates = [one["figures"].get("base_rate") for one in found]
    return rates[0] is not None and all(rate == rates[0] for rate in rates)


def _notes(found: Sequence[Found]) -> list[str]:
    """What a row of the table has no room for, said once where it is the same for many."""
    rate, many = found[0]["figures"].get("base_rate"), len({one["judge"] for one in found}) > 1
    notes = {f"base rate {_figure(rate)}": [""] * len(found)} if rate is not None and _one_base_rate(found) else {}
    for one in found:
        judge = one["judge"] if many or one["slice"] is None else ""
        name = " ".join(part for part in (one["slice"], judge) if part)
        undefined = (f"{_TITLES.get(key, key)} undefined ({figure['reason']})" for key, figure in one["figures"].items()
                     if figure["value"] is None)
        decided = f"decided: {_decided(one)}" if one["thresholds"] and one["slice"] is None else ""
        level = "" if one["level"] is None else f"a label of {numbers.plain(one['level'])} or more is a yes"
        missing = f"left out: {_missing(one)}" if one["missing"] else ""
        for text in (level, missing, _off_scale(one), decided, *undefined):
            if text:
                notes.setdefault(text, []).append(name)
    total = len(found)
    return ["", *(text if len(names) == total else f"{', '.join(names[:4])}{' …' if len(names) > 4 else ''}: {text}"
                  for text, names in notes.items())] if notes else []


def _aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) if place < left else cell.rjust(width)
                      for place, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
