"""Tables of a comparison about searching itself: re-rankers, figures over k, agents by step. Finished texts, for any
renderer; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ragkit.report import numbers

_TITLES = {"reached": "evidence complete (share)", "steps": "steps", "wasted_steps": "wasted steps",
           "steps_to_evidence": "steps to evidence, where reached", "ms": "time a question", "cost": "cost",
           "input_tokens": "input tokens", "output_tokens": "output tokens"}


class Part(NamedTuple):
    """A titled table with what must be said of it; the first row is its head."""

    title: str
    notes: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def search_parts(data: Mapping[str, Any]) -> list[Part]:
    """All tables that the comparison holds, in order; none where it holds none."""
    made = []
    for name, found in (data["rerankers"] or {}).items():
        made += [_reranker(name, found), _depths(name, found)]
        made += [_answers(name, found)] if found["without"] else []
    if data["sweep"]:
        made += [_sweep(name, found, data["sweep"]["tokens_by"]) for name, found in data["sweep"]["variants"].items()]
    if data["agents"]:
        made += [_over_steps(data["agents"], data["baseline"]), _by_step(data["agents"], data["baseline"])]
    return made


def search_sentences(data: Mapping[str, Any]) -> list[str]:
    """The same in a few sentences, for a console."""
    return [*(reranker_sentence(name, found) for name, found in (data["rerankers"] or {}).items()),
            *_sweep_sentences(data["sweep"]), *([_agents_sentence(data["agents"])] if data["agents"] else [])]


def reranker_sentence(name: str, found: Mapping[str, Any]) -> str:
    """What a re-ranker won of what could be won, by NDCG, and what it pushed out."""
    metric = next(one for one in found["metrics"] if one.startswith("ndcg"))
    figures = found["metrics"][metric]
    lift, room, cut = figures["lift"], figures["headroom"], max(found["pushed_out"], key=int)
    share = f"{numbers.percent(room['share'])} of the headroom" if room["share"] is not None else room["reason"]
    out = found["pushed_out"][cut]
    own = f", {numbers.milliseconds(found['ms']['median'])} a question" if found["ms"] else ""
    return (f"{name} re-ranks {found['first_stage']}: {metric} {numbers.number(figures['before'])} -> "
            f"{numbers.number(figures['after'])}, {numbers.signed(lift['difference'])} "
            f"({numbers.interval(lift['low'], lift['high'])}), {share}; of the first {cut} it pushed "
            f"{numbers.counted(out['passages'], 'gold passage')} out and pulled {out['pulled_in']} in{own}")


def _sweep_sentences(found: Mapping[str, Any] | None) -> list[str]:
    lines = []
    for name, one in (found or {"variants": {}})["variants"].items():
        k = one["enough"]
        if k is not None and _grows(one):
            lines.append(f"{name}: recall still grows at k = {k}, the end of its lists")
        elif k is not None:
            figures, deepest = one["at"][str(k)], max(one["at"], key=int)
            tokens = figures["tokens"]["mean"]
            cost = "" if tokens is None else f", {numbers.count(tokens)} tokens"
            lines.append(f"{name}: k = {k} has recall {numbers.number(figures['recall']['mean'])} of "
                         f"{numbers.number(one['at'][deepest]['recall']['mean'])} at {deepest}{cost}")
    return lines


def _grows(found: Mapping[str, Any]) -> bool:
    """Whether no smaller k has nearly the recall of the deepest: longer lists might have more."""
    return bool(found["enough"] == max(map(int, found["at"])))


def _agents_sentence(found: Mapping[str, Any]) -> str:
    name = f"aucr@{found['aucr_at']}"
    told = [f"{variant} {numbers.number(one['over_steps'].get(name, {}).get('mean'))}, evidence complete in "
            f"{numbers.of(one['steps_to_evidence']['reached'], one['steps_to_evidence']['of'])}"
            for variant, one in found["variants"].items()]
    return f"{name}: {'; '.join(told)}"


def _difference(found: Mapping[str, Any] | None, name: str = "") -> str:
    if found is None or found["difference"] is None:
        return numbers.NONE
    if name == "ms":
        ends = "" if found["low"] is None else " ({} to {})".format(*(numbers.milliseconds(found[end])
                                                                      for end in ("low", "high")))
        return f"{'+' if found['difference'] > 0 else ''}{numbers.milliseconds(found['difference'])}{ends}"
    return f"{numbers.signed(found['difference'])} ({numbers.interval(found['low'], found['high'])})"


def _reranker(name: str, found: Mapping[str, Any]) -> Part:
    body = [(metric, numbers.number(one["before"]), numbers.number(one["after"]), numbers.number(one["ceiling"]),
             _difference(one["lift"]), f"{one['lift']['wins']} / {one['lift']['losses']}", _headroom(one["headroom"]))
            for metric, one in found["metrics"].items()]
    sizes = found["candidates"]
    size = numbers.count(sizes["max"]) if sizes["min"] == sizes["max"] else f"{sizes['min']} to {sizes['max']}"
    notes = [f"{found['reranker']} over {size} candidates of {found['first_stage']}, "
             f"{numbers.counted(found['n'], 'question')}."]
    if found["source"] == "variant":
        notes.append("Taken for a re-ranking since its lists hold nothing but those candidates in another order.")
    if found["left_out"]:
        notes.append(f"{numbers.counted(found['left_out'], 'search', 'searches')} left out: what came back was not in "
                     "the list beneath.")
    for cut, one in found["pushed_out"].items():
        notes.append(f"First {cut}: {numbers.counted(one['passages'], 'gold passage')} pushed out (on "
                     f"{numbers.counted(one['questions'], 'question')}), {one['pulled_in']} pulled in.")
    if found["ms"]:
        notes.append(f"The re-ranker took {numbers.milliseconds(found['ms']['median'])} a question in the median, "
                     f"{numbers.milliseconds(found['ms']['p95'])} at the 95th percentile.")
    return Part(f"Re-ranker: {name}", tuple(notes), (
        ("Metric", "Before", "After", "Best order", "Lift (95% interval)", "Helped / hurt", "Of the headroom"), *body))


def _headroom(found: Mapping[str, Any]) -> str:
    if found["share"] is None:
        return str(found["reason"])
    ends = numbers.known(found["low"]), numbers.known(found["high"])
    spread = "" if None in ends else f" ({numbers.percent(ends[0])} to {numbers.percent(ends[1])})"
    return f"{numbers.percent(found['share'])}{spread}"


def _depths(name: str, found: Mapping[str, Any]) -> Part:
    metrics = list(found["metrics"])
    body = [("none", *(numbers.number(found["metrics"][metric]["before"]) for metric in metrics))]
    about = False
    for one in found["depths"]:
        is_exact = one["exact"] == one["of"]
        about = about or not is_exact
        body.append((f"{one['depth']}{'' if is_exact else ' (about)'}",
                     *(numbers.number(one["metrics"][metric]["mean"]) for metric in metrics)))
    notes = ["The re-ranker's order of so many first candidates, the rest as the first stage had it."]
    notes += ["About: where the re-ranker gave back too few of them to know its order, the first stage's stands in."
              ] if about else []
    return Part(f"How deep {name} re-ranks", tuple(notes), (("Depth", *metrics), *body))


def _answers(name: str, found: Mapping[str, Any]) -> Part:
    body = [(metric, _difference(one), f"{one['wins']} / {one['losses']}", numbers.count(one["n"]))
            for metric, one in found["answers"].items()]
    time = found["question_ms"]
    if time:
        body.append(("time a question", _difference(time, "ms"), f"{time['wins']} / {time['losses']}",
                     numbers.count(time["n"])))
    return Part(f"What {name} did to the answers", (f"Against {found['without']}, which searches alike and does not "
                                                    "re-rank.",),
                (("Metric", "Difference (95% interval)", "Wins / losses", "Questions"), *body))


def _sweep(name: str, found: Mapping[str, Any], by: str) -> Part:
    body = [(k, *(numbers.number(one[measure]["mean"]) for measure in ("hit", "recall", "allhit", "precision")),
             numbers.count(one["tokens"]["mean"])) for k, one in found["at"].items()]
    notes = [f"{numbers.counted(found['n'], 'question')}; tokens of the first k passages, by {by}."]
    notes += [] if found["enough"] is None else ["Recall still grows at the end of the lists."] if _grows(found) else [
        f"From k = {found['enough']} on recall is at least 95% of that at the deepest k."]
    head = ("k", "hit@k", "recall@k", "allhit@k", "precision@k", "Tokens")
    return Part(f"Over k: {name}", tuple(notes), (head, *body))


def _over_steps(found: Mapping[str, Any], baseline: str) -> Part:
    variants = list(found["variants"])
    compared = [name for name in variants if name != baseline]
    names = list(dict.fromkeys(name for one in found["variants"].values() for name in one["over_steps"]))
    body = [(_TITLES.get(name, name),
             *(_mean(found["variants"][variant]["over_steps"].get(name), name) for variant in variants),
             *(_difference(found["differences"].get(name, {}).get(variant), name) for variant in compared))
            for name in names]
    body += [("reached the evidence", *(_reached(found["variants"][name]["steps_to_evidence"]) for name in variants),
              *("" for _ in compared))]
    return Part("Agents over their steps", ("Means over questions, repeats averaged; aucr has one length for all.",),
                (("", *variants, *(f"{name} minus {baseline}" for name in compared)), *body))


def _mean(figures: Mapping[str, Any] | None, name: str = "") -> str:
    if figures is None:
        return numbers.NONE
    return numbers.milliseconds(figures["mean"]) if name == "ms" else numbers.number(figures["mean"])


def _reached(figures: Mapping[str, Any]) -> str:
    median = figures["median"]
    told = "" if median is None else f", in the median after {numbers.plain(median)}"
    return f"{numbers.of(figures['reached'], figures['of'])}{told}"


def _by_step(found: Mapping[str, Any], baseline: str) -> Part:
    variants = list(found["variants"])
    compared = [name for name in variants if name != baseline]
    body = []
    for place, step in enumerate(found["steps"]):
        cells = []
        for name in variants:
            own = found["variants"][name]["per_step"][place]
            metrics = own["metrics"]
            cells += [numbers.share(own["reached"]["share"]), _mean(metrics["cumulative_recall"]),
                      _mean(metrics["recall"])]
        body.append((str(step["step"]), *cells,
                     *(_difference(step["cumulative_recall"].get(name)) for name in compared)))
    head = [title for name in variants for title in (f"{name}: reached", "gathered", "own list")]
    return Part("Agents step by step", (
        "Reached: trajectories that took the step. Gathered: recall of all steps up to it, the last value carried "
        "forward. Own list: recall of that step's list, of those that took it. Steps count from 0.",),
        (("Step", *head, *(f"gathered, {name} minus {baseline}" for name in compared)), *body))
