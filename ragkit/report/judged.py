"""Judged labels as finished texts: the pool, how far the judge agrees with the gold, its metrics beside the gold's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragkit.report import numbers
from ragkit.report.data import ReportData
from ragkit.report.rows import MetricRow, metric_row

ABOUT = ("Relevance as a judge saw it, not as people labelled it: grades 0 to 3 of each passage for its question, of "
         "which {level} and 3 count as relevant; recall, allhit and what is counted over steps count statements of the "
         "reference answers that the passages carry. Numbers of two runs compare only where their pools are the same.")


def about(data: ReportData) -> str:
    """What judged labels are; empty where there are none."""
    entry = _entry(data)
    return ABOUT.format(level=numbers.plain(entry["pool"]["level"])) if entry else ""


def facts(data: ReportData) -> list[tuple[str, str]]:
    """The pool, and the agreement with the gold where there is some, as (name, text)."""
    entry = _entry(data)
    if not entry:
        return []
    pool, agreement = entry["pool"], entry.get("agreement_with_gold")
    found = [("judge", str(pool["judge"])), ("pool", str(pool["fingerprint"])),
             ("pairs judged", numbers.of(pool["judged"], pool["pairs"])),
             ("statements", numbers.count(pool["statements"]))]
    found += [("pairs that failed", numbers.count(pool["failed"]))] if pool["failed"] else []
    if agreement:
        weighted = agreement.get("kappa_weighted")
        shown = f"Cohen’s kappa {numbers.number(agreement['kappa'])} (relevant or not"
        shown += f"; grades, quadratic weights: {numbers.number(weighted)}" if weighted is not None else ""
        agreed, gold, own, both = (numbers.count(agreement[key]) for key in
                                   ("agreed", "gold_relevant", "judged_relevant", "both_relevant"))
        found.append(("agreement with the gold", f"{shown}) on {numbers.counted(agreement['n'], 'passage')}: the same "
                                                 f"on {agreed}; relevant by the gold {gold}, by the judge {own}, by "
                                                 f"both {both}"))
    return found


def beside_gold(data: ReportData) -> list[tuple[MetricRow, MetricRow]]:
    """(by gold, by the judge) of each metric that has both; empty where the summary is made of judged labels itself."""
    main: Mapping[str, Any] = data.summary.get("metrics") or {}
    return [(metric_row(data, name, main[name]), metric_row(data, name, figures))
            for name, figures in (_entry(data).get("metrics") or {}).items()
            if name in main and main[name].get("labels") != "judged"]


def _entry(data: ReportData) -> Mapping[str, Any]:
    return data.summary.get("judged_labels") or {}
