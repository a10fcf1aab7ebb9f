"""A gate in words: lines for a console, a Markdown table for the summary of a pull request. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragkit.report import numbers, texts
from ragkit.report.markdown import table

_MOST_PAIRS = 20
_HEADS = {"pass": "passes", "fail": "fails", "undecided": "cannot decide"}


def gate_lines(data: Mapping[str, Any]) -> list[str]:
    """A line a check, then the pairs that would settle what is undecided, then the outcome."""
    lines = []
    for check in data["checks"]:
        reason = f": {check['reason']}" if check["reason"] else ""
        lines.append(f"{check['outcome'].upper():9}  {check_name(check)}  {figures(check)}{reason}")
        lines += pair_lines(check)
    lines += [f"note: {warning}" for warning in data["warnings"]]
    return [*lines, conclusion(data)]


def conclusion(data: Mapping[str, Any]) -> str:
    """The outcome of all checks in one sentence, and what the flag made of an undecided one."""
    counts = {outcome: sum(check["outcome"] == outcome for check in data["checks"]) for outcome in _HEADS}
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    flag = f"; --undecided {data['undecided']}" if data["outcome"] == "undecided" and data["undecided"] else ""
    return f"The gate {_HEADS[data['outcome']]} ({told}{flag})"


def reasons(data: Mapping[str, Any]) -> list[str]:
    """Why checks did not pass, a line each."""
    return [f"{check['outcome']}: {check_name(check)}: {check['reason']}" for check in data["checks"]
            if check["outcome"] != "pass"]


def check_name(check: Mapping[str, Any]) -> str:
    if check["kind"] == "rule":
        return str(check["rule"])
    return f"{check['metric']} against the baseline, margin {numbers.plain(check['margin'])}"


def figures(check: Mapping[str, Any]) -> str:
    """The number that was held against the rule, with its interval and counts."""
    spread = numbers.interval(check["low"], check["high"])
    if check["kind"] == "rule":
        return f"{numbers.number(check['mean'])} ({spread}), scored {numbers.of(check['n_scored'], check['n_asked'])}"
    return f"{numbers.signed(check['difference'])} ({spread}), {numbers.counted(check['n'], 'question')}"


def pair_lines(check: Mapping[str, Any]) -> list[str]:
    """The pairs that nobody judged, where they leave a rule undecided."""
    pairs = check.get("pairs") or []
    lines = [f"    not judged: {pair_name(pair)}" for pair in pairs[:_MOST_PAIRS]]
    if len(pairs) > _MOST_PAIRS:
        lines.append(f"    and {numbers.count(len(pairs) - _MOST_PAIRS)} more (all of them with --json)")
    return lines


def pair_name(pair: Mapping[str, Any]) -> str:
    what = pair.get("passage") or pair.get("metric") or "its passages"
    return f"question {pair['question']}, {what} ({pair['reason']})"


def gate_markdown(data: Mapping[str, Any]) -> str:
    """The gate as Markdown, as GitHub shows it beside a workflow's run."""
    body = []
    for check in data["checks"]:
        scored = numbers.of(check["n_scored"], check["n_asked"]) if check["kind"] == "rule" else \
            numbers.count(check["n"])
        value = numbers.number(check["mean"]) if check["kind"] == "rule" else numbers.signed(check["difference"])
        body.append([texts.code(check_name(check)), f"**{check['outcome']}**",
                     value, numbers.interval(check["low"], check["high"]), scored, texts.markdown(check["reason"])])
    parts = [f"### {texts.markdown(conclusion(data))}",
             f"{texts.markdown(data['run'])}" + (f" against {texts.markdown(data['baseline'])}"
                                                 if data["baseline"] else ""),
             table(["Check", "Outcome", "Value", "95% interval", "Scored", "Why"], body)]
    pairs = [pair for check in data["checks"] for pair in check.get("pairs") or ()]
    if pairs:
        listed = "\n".join(f"- {texts.markdown(pair_name(pair))}" for pair in pairs[:_MOST_PAIRS])
        more = f"\n- and {numbers.count(len(pairs) - _MOST_PAIRS)} more" if len(pairs) > _MOST_PAIRS else ""
        parts.append(f"Not judged:\n\n{listed}{more}")
    parts += ["\n".join(f"- {texts.markdown(warning)}" for warning in data["warnings"])] if data["warnings"] else []
    return "\n\n".join(parts) + "\n"
