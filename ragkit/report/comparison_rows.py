"""The rows of a comparison as finished texts, for every renderer: what comparison.json holds. Computes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ragkit.errors import DataError
from ragkit.metrics.registry import parse
from ragkit.report import numbers

Data = Mapping[str, Any]
LEADING = ("ndcg", "recall", "allhit", "mrr", "map", "faithfulness", "answer_accuracy", "answer_f1", "exact_match")
DECIDED = ("better", "worse", "higher", "lower")
HOW = ("A difference is variant minus baseline on the questions that both scored, repeats averaged first. The interval "
       "is a paired bootstrap's; p is of a paired randomisation test, by Holm over all differences in this comparison; "
       "decided is p below 0.05. Detects: the smallest difference that a run like the baseline shows in four of five "
       "cases; without repeats an upper bound. Not decided is not the same as no difference.",)
_IN_THE_HEADER = 4


class DifferenceRow(NamedTuple):
    """One metric of one variant against the baseline."""

    metric: str
    baseline: str
    variant: str
    difference: str
    interval: str
    p: str
    wins: str
    n: str
    detects: str
    verdict: str


class SliceRow(NamedTuple):
    """One slice: how many questions, and the difference of each metric shown."""

    name: str
    n: str
    cells: tuple[str, ...]


def verdict(figures: Mapping[str, Any], direction: str) -> str:
    """better, worse, higher, lower (where neither is better), the same, not decided, or not scored.

    >>> verdict({"n": 9, "difference": -0.1, "decided": True, "wins": 8, "losses": 1}, "lower")
    'better'
    """
    if not figures["n"]:
        return "not scored"
    if figures["wins"] == figures["losses"] == 0:
        return "the same"
    if not figures["decided"]:
        return "not decided"
    up = figures["difference"] > 0
    if direction == "none":
        return "higher" if up else "lower"
    return "better" if up == (direction == "higher") else "worse"


def compared(data: Data) -> list[str]:
    """The variants that stand against the baseline, in their order."""
    return [name for name in data["variants"] if name != data["baseline"]]


def difference_rows(data: Data, variant: str) -> list[DifferenceRow]:
    """The rows of one variant, a metric each, in the order of the metrics."""
    baseline, made = data["baseline"], []
    detects = data["variants"][baseline]["detectable"]
    for metric, found in data["metrics"].items():
        figures, means = found[variant], data["means"][metric]
        made.append(DifferenceRow(
            metric, numbers.number(means[baseline]["mean"]), numbers.number(means[variant]["mean"]),
            numbers.signed(figures["difference"]), numbers.interval(figures["low"], figures["high"]),
            numbers.p_value(figures["p_holm"]),
            " / ".join(numbers.count(figures[name]) for name in ("wins", "ties", "losses")),
            numbers.count(figures["n"]), numbers.number(detects.get(metric)), verdict(figures, direction_of(metric))))
    return made


def leading(metrics: Iterable[str], most: int) -> list[str]:
    """The metrics to read first: one of each kind, of several cuts the one nearest to 10; else the first ones.

    >>> leading(["hit@1", "ndcg@5", "ndcg@10", "recall", "recall@5"], 2)
    ['ndcg@10', 'recall']
    """
    names, found = list(metrics), []
    for base in LEADING:
        own = [name for name in names if name.partition("@")[0] == base]
        if own:
            found.append(min(own, key=lambda name: abs(int(name.partition("@")[2] or 10) - 10)))
    return (found or names)[:most]


def direction_of(metric: str) -> str:
    """Which way is better; of a metric that is not declared here, neither."""
    try:
        return parse(metric).definition.direction
    except DataError:
        return "none"


def header(data: Data) -> str:
    """What was compared, in one sentence, with the smallest difference that a run like the baseline can show."""
    asked = {entry["n_asked"] for entry in data["variants"].values()}
    questions = numbers.counted(asked.pop(), "question") if len(asked) == 1 else "their common questions"
    labels = {"gold": "by gold labels", "judged": "by a judge's labels, not people's"}[data["labels"]]
    told = f"{', '.join(compared(data))} against {data['baseline']} on {questions}, {labels}"
    shown = ", ".join(f"{metric} {value}" for metric, value in detected(data))
    return f"{told}. Smallest difference that a run like {data['baseline']} detects: {shown or 'unknown'}"


def detected(data: Data) -> list[tuple[str, str]]:
    """(metric, the smallest difference that a run like the baseline detects), of the first metrics that have one."""
    found = data["variants"][data["baseline"]]["detectable"]
    return [(metric, numbers.number(value)) for metric, value in found.items() if value is not None][:_IN_THE_HEADER]


def slice_rows(data: Data, slicing: str, variant: str, metrics: Sequence[str]) -> list[SliceRow]:
    """The slices of one slicing, with the difference of each of these metrics and its interval."""
    return [SliceRow(name, numbers.count(part["n"]), tuple(_cell(part.get(metric, {}).get(variant))
                                                           for metric in metrics))
            for name, part in data["slices"][slicing].items()]


def _cell(figures: Mapping[str, Any] | None) -> str:
    if figures is None or figures["difference"] is None:
        return numbers.NONE
    spread = numbers.interval(figures["low"], figures["high"])
    return f"{numbers.signed(figures['difference'])} ({spread})" if spread != numbers.NONE \
        else numbers.signed(figures["difference"])


def corrected_facts(data: Data, variant: str) -> list[tuple[str, str]]:
    """(metric, what people's labels say of its difference)."""
    made = []
    for metric, found in data["metrics"].items():
        figures = found[variant]["corrected"]
        if figures and figures["mean"] is not None:
            made.append((metric, f"corrected by {numbers.counted(figures['n_labels'], 'label')}: "
                                 f"{numbers.signed(figures['mean'])} "
                                 f"({numbers.interval(figures['low'], figures['high'])}); by the judge alone "
                                 f"{numbers.signed(figures['raw'])}"))
        elif figures:
            made.append((metric, f"labels do not correct it: {figures['reason']}"))
    return made


def app_rows(data: Data) -> list[tuple[str, str, str, str]]:
    """(variant, median time a question, tokens in and out, cost) of the variants where any was recorded."""
    made = []
    for name, entry in data["variants"].items():
        app = entry["app"] or {}
        tokens = app.get("tokens") or {}
        told = " + ".join(numbers.count(tokens[key]) for key in ("input", "output") if key in tokens)
        if app.get("ms") or told or app.get("cost") is not None:
            made.append((name, numbers.milliseconds((app.get("ms") or {}).get("median")),
                         told or numbers.NOT_RECORDED, numbers.money(app.get("cost"))))
    return made
