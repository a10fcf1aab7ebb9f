"""What an app's searches brought, as finished texts: the funnel, how it searched, its turns, the marks of a step.

The same for the page, Markdown and the console; the plots of steps are in step_plots.py. Computes no figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragkit.report import labels, numbers
from ragkit.report.data import QuestionView, ReportData, StepView
from ragkit.report.rows import MetricRow, StepRow, metric_row, step_order

_WASTED = {"gold": "found no gold that was new", "judged": "brought no statement of the reference that was new"}
_IN_WORDS = 4  # stages that the line of the console names


@dataclass(frozen=True)
class Segment:
    """One fate's part of a bar: in words, how many, its share as a text and as a width in percent."""

    name: str
    count: str
    share: str
    width: float
    fill: str

    @property
    def size(self) -> str:
        """How much of it can be written into the bar: its share, that on wide screens alone, or nothing."""
        return "wide" if self.width >= 12 else "slim" if self.width >= 4.5 else "bare"


@dataclass(frozen=True)
class Slice:
    """One bar of the funnel, of all questions or of a category. A segment is None where the slice has none of it."""

    name: str
    total: str
    segments: tuple[Segment | None, ...]


@dataclass(frozen=True)
class Funnel:
    """Where the evidence ended: the fates that occur, a bar of all questions, and one for each category."""

    noun: str
    judged: bool
    heads: tuple[str, ...]
    slices: tuple[Slice, ...]


@dataclass(frozen=True)
class Fact:
    """One fact of how an app searched."""

    title: str
    value: str
    note: str = ""


def funnel(data: ReportData) -> Funnel | None:
    """The funnel, in the order of the stages; None where no question has labels.

    Categories stand beside all questions where there are at least two, or one beside questions without any.
    """
    found: Mapping[str, Any] = data.summary.get("funnel") or {}
    everything: Mapping[str, Any] = found.get("all") or {}
    stages: Mapping[str, Mapping[str, Any]] = everything.get("stages") or {}
    keys = [key for key in dict.fromkeys((*labels.FATES, *stages)) if (stages.get(key) or {}).get("count")]
    if not keys:
        return None
    categories: Mapping[str, Any] = found.get("categories") or {}
    slices = [_slice("All", everything, keys)]
    if len(categories) > 1:
        slices += [_slice(name, own, keys) for name, own in categories.items()]
    return Funnel(str(found.get("noun") or "gold passages"), found.get("labels") == "judged",
                  tuple(labels.fate(key) for key in keys), tuple(slices))


def _slice(name: str, figures: Mapping[str, Any], keys: list[str]) -> Slice:
    stages: Mapping[str, Mapping[str, Any]] = figures.get("stages") or {}
    segments = (_segment(key, stages[key]) if (stages.get(key) or {}).get("count") else None for key in keys)
    return Slice(name, numbers.count(figures.get("total")), tuple(segments))


def _segment(key: str, figures: Mapping[str, Any]) -> Segment:
    share = numbers.known(figures.get("share")) or 0.0
    return Segment(labels.fate(key), numbers.count(figures["count"]), numbers.share(share), share * 100,
                   labels.fate_fill(key))


def funnel_line(data: ReportData) -> str:
    """The funnel in one line, largest part first."""
    found = funnel(data)
    if found is None:
        return ""
    parts = sorted((part for part in found.slices[0].segments if part), key=lambda part: -part.width)
    named = "; ".join(f"{part.share} {part.name}" for part in parts[:_IN_WORDS])
    rest = f"; {numbers.counted(len(parts) - _IN_WORDS, 'smaller part')}" if len(parts) > _IN_WORDS else ""
    return f"Of {found.slices[0].total} {found.noun}: {named}{rest}"


def evidence(data: ReportData) -> Fact | None:
    """How many questions reached complete evidence, and after how many searches; None where that is unknown."""
    figures: Mapping[str, Any] = (data.summary.get("metrics") or {}).get("steps_to_evidence") or {}
    share: Mapping[str, Any] = figures.get("share") or {}
    if numbers.known(share.get("mean")) is None:
        return None
    between = numbers.percents(share.get("low"), share.get("high"))
    median = numbers.known(figures.get("median"))
    return Fact("All evidence found", numbers.share(share["mean"]), "of questions"
                + (f" (95% interval {between})" if between else "")
                + (f", median {numbers.plain(median)} search{'' if median == 1 else 'es'}" if median else ""))


def several_steps(data: ReportData) -> bool:
    """Whether some trajectory has more than one step: else most of what is said of steps says nothing."""
    return len(data.summary.get("per_step") or {}) > 1


def without_retrieval(data: ReportData) -> Fact | None:
    """How many trajectories answered without any search; None where the run does not say."""
    entry = (data.summary.get("retrieval") or {}).get("answered_without")
    return _part("Answered without retrieval", entry) if entry else None


def behaviour(data: ReportData) -> list[Fact]:
    """How the app searched. Of an app that searches once only what went wrong is told."""
    found: Mapping[str, Any] = data.summary.get("retrieval") or {}
    silent, failing = without_retrieval(data), found.get("failing_steps") or {}
    if not several_steps(data):
        wrong = [silent if silent and silent.value != "0" else None,
                 _part("Failing searches", failing) if failing.get("count") else None]
        return [fact for fact in wrong if fact is not None]
    whose = (data.summary.get("funnel") or {}).get("labels", "gold")
    facts = [evidence(data), silent, _part("Failing searches", failing),
             _part("Repeated queries", found.get("repeated_queries") or {}),
             _part("Wasted searches", found.get("wasted_steps") or {}, _WASTED[whose]),
             _spread("Searches a question", found.get("steps")),
             _spread("Turns a question", found.get("turns")) if data.summary.get("per_turn") else None,
             _context(found.get("context") or {})]
    return [fact for fact in facts if fact is not None] if found else []


def _part(title: str, entry: Mapping[str, Any], about: str = "") -> Fact | None:
    if not numbers.known(entry.get("of")):
        return None
    of = f"of {numbers.count(entry['of'])} ({numbers.share(entry.get('share'))})"
    return Fact(title, numbers.count(entry.get("count")), f"{of} {about}".rstrip())


def _spread(title: str, entry: Mapping[str, Any] | None) -> Fact | None:
    if not entry or numbers.known(entry.get("mean")) is None:
        return None
    return Fact(title, numbers.number(entry["mean"], 1),
                f"in the mean; median {numbers.plain(entry.get('median'))}, most {numbers.plain(entry.get('max'))}")


def _context(entry: Mapping[str, Any]) -> Fact | None:
    if not numbers.known(entry.get("of")):
        return None
    notes = [f"{numbers.count(entry[key])} {words}" for key, words in
             (("sets", "without an order"), ("truncated", "with a text cut off")) if entry.get(key)]
    return Fact("Final context known", numbers.count(entry.get("known")),
                "; ".join([f"of {numbers.count(entry['of'])}", *notes]))


def unknown_contexts(data: ReportData) -> str:
    """What stands for the context in the funnel where the app showed none; empty where all are known."""
    found: Mapping[str, Any] = (data.summary.get("retrieval") or {}).get("context") or {}
    known, of = numbers.known(found.get("known")), numbers.known(found.get("of"))
    if known is None or of is None or known >= of:
        return ""
    which = "No trajectory shows its final context" if not known else \
        f"Only {numbers.count(known)} of {numbers.count(of)} trajectories show their final context"
    return f"{which}; {'else ' if known else ''}what the steps returned counts as the context."


def turn_rows(data: ReportData) -> tuple[list[str], list[StepRow]]:
    """The metrics of turns, and a row a turn with how many questions it has; empty without parallel searches."""
    per_turn: Mapping[str, Mapping[str, Any]] = data.summary.get("per_turn") or {}
    names = list(dict.fromkeys(name for figures in per_turn.values() for name in figures))
    rows = []
    for turn, figures in sorted(per_turn.items(), key=lambda item: step_order(item[0])):
        cells: tuple[MetricRow | None, ...] = tuple(
            metric_row(data, name, figures[name]) if name in figures else None for name in names)
        reached = (own for name, own in figures.items() if name != "cumulative_recall")  # that one is carried forward
        asked = max((numbers.known(own.get("n_asked")) or 0 for own in reached), default=0)
        rows.append(StepRow(turn, numbers.count(asked), cells))
    return names, rows


def thin(data: ReportData, step: str) -> bool:
    """Whether so few trajectories reached the step that its means say little."""
    reached, most = numbers.known(data.step_reach.get(step)), max(data.step_reach.values(), default=0)
    return reached is not None and (reached < labels.THIN_REACH or reached < labels.THIN_SHARE * most)


def any_thin(data: ReportData) -> bool:
    """Whether some step is marked thin, so that the mark is explained."""
    return any(thin(data, step) for step in data.step_reach)


def marks(step: StepView) -> list[tuple[str, str, str]]:
    """What is to be noticed about a step's query, as (words, tone, what they mean)."""
    found = []
    if step.error:
        found.append(("failed", "failed", "the search failed"))
    if step.repeated:
        found.append(("repeated query", "warn", "asked before in this question; case, blanks and quotes ignored"))
    if numbers.known(step.drift):
        found.append((f"drift {numbers.number(step.drift, 2)}", "plain",
                      "how far the query’s words are from the question’s: 0 the same words, 1 none in common"))
    return found


def lost_at(step: StepView) -> list[tuple[str, tuple[str, ...]]]:
    """The gold that the app did not get though a stage beneath held it, by the stage that dropped it."""
    where: dict[str, list[str]] = {}
    for gold in step.lost_gold:
        holding = [own.stage for own in step.lists if gold in own.lost and own.stage != "retrieve"]
        stage = holding[-1] if holding else step.lists[0].stage if step.lists else "other"
        where.setdefault(labels.STAGES.get(stage, stage), []).append(gold)
    return [(stage, tuple(ids)) for stage, ids in where.items()]


def searches_of_turn(question: QuestionView, step: StepView) -> str:
    """A step's turn, and how many searches it has where they ran at once."""
    same = sum(other.turn == step.turn for other in question.steps)
    return f"turn {step.turn}" + (f", one of {same} searches at once" if same > 1 else "")


def left_out(question: QuestionView) -> tuple[str, ...]:
    """The gold that some step returned and that is not in the context of the answer."""
    return tuple(id_ for id_, fate in question.fates.items() if fate in ("lost_at_cut", "lost_at_budget"))


def context_words(question: QuestionView) -> str:
    """What is known of the context: whether it has an order, was cut off, or is not known at all."""
    context = question.context
    if context is None:
        return "Not known: the app’s final context was not found."
    if context.stage == "union":
        order = "" if context.ranked else ", as a set"
        return f"Not known: the app’s final context was not found; what its steps returned stands for it{order}."
    order = ("A ranking: its order counts." if context.ranked else
             "A set: it has no order, so nothing is cut at k or read by rank.")
    cut = sum(passage.truncated for passage in context.passages)
    return order + (f" {numbers.counted(cut, 'text')} of it {'is' if cut == 1 else 'are'} cut off." if cut else "")
