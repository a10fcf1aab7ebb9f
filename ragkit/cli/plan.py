"""Prints a plan (--dry-run): what would be asked, what is stored already, what it would cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragkit.cli import common
from ragkit.report.numbers import counted, money

if TYPE_CHECKING:
    from ragkit.evaluation.plan import Bridge, MetricPlan, RunPlan

_HEADS = ("", "judgements", "stored", "undefined", "calls", "of them stored", "shared", "to pay", "tokens in",
          "tokens out", "cost")


def print_plans(plans: Sequence[RunPlan], as_json: bool) -> None:
    """One plan, or one of each variant with their sum."""
    if as_json:
        found = [plan.as_dict() for plan in plans]
        common.say(json.dumps(found[0] if len(found) == 1 else found, indent=2, allow_nan=False))
        return
    for plan in plans:
        _print(plan, named=len(plans) > 1)
    judged = [plan for plan in plans if plan.metrics]
    if len(judged) > 1:
        each = [plan.cost(plan.total.tokens_in, plan.total.tokens_out) for plan in judged]
        cost = common.cost(None if None in each else sum(one or 0.0 for one in each))
        calls = sum(plan.total.calls for plan in judged)
        bound = any(plan.upper_bound for plan in judged)
        common.say(f"all variants: {'at most ' if bound else ''}{calls:,.0f} judge calls, {cost}; what they share is "
                   f"{'asked' if bound else 'counted'} once, since they have one store")


def _print(plan: RunPlan, named: bool) -> None:
    if named:
        common.say(f"variant: {plan.variant}")
    common.say(", ".join(f"{what}: {count:,}" for what, count in plan.counts.items()))
    if plan.judge is None:
        common.say("judge calls: 0 (no judge; the judged metrics stay listed as such)")
        return
    price = "price unknown" if plan.price is None else \
        f"price {plan.price[0]:g} in, {plan.price[1]:g} out per million tokens"
    common.say(f"judge: {plan.judge} at {plan.endpoint}, {price}" if plan.endpoint else f"judge: {plan.judge}, {price}")
    rows = [_row(name, one, plan) for name, one in plan.metrics.items()]
    if rows:
        for line in common.columns_of([_HEADS, *rows, _row("total", plan.total, plan)]):
            common.say(line)
    total, most = plan.total, "at most " if plan.upper_bound else ""
    expected = plan.cost(total.tokens_in, total.tokens_out)
    common.say(f"judge calls: {most}{total.calls:,.0f}, {common.cost(expected, most)}")
    if plan.bridge is not None:
        common.say(_bridge(plan, plan.bridge))
    if plan.basis and total.calls:
        common.say(plan.basis)
    for note in plan.notes:
        common.say(f"note: {note}")


def _bridge(plan: RunPlan, bridge: Bridge) -> str:
    cost = common.cost(plan.cost(bridge.tokens_in, bridge.tokens_out))
    return (f"of these first, as a bridge to the earlier judge: {bridge.questions} of "
            f"{counted(bridge.judged, 'question')}, {counted(bridge.calls, 'call')}, "
            f"{bridge.tokens_in:,.0f} tokens in, {bridge.tokens_out:,.0f} out, {cost}")


def _row(name: str, one: MetricPlan, plan: RunPlan) -> tuple[object, ...]:
    asked = one.calls + one.calls_stored + one.calls_shared
    return (name, *map(round, (one.judgements, one.stored, one.undefined, asked, one.calls_stored, one.calls_shared,
                               one.calls, one.tokens_in, one.tokens_out)),
            money(plan.cost(one.tokens_in, one.tokens_out), ""))
