"""Whether a cause is commoner where signals disagree than on the other questions: a one-sided exact test. No causes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ragkit.metrics.paired import ALPHA, holm

MOST = 500  # questions of each kind that are looked at


NEEDS = {
    "label_hole": "needs the texts of passages and reference answers, or labels of several grades",
    "redundant_passages": "needs the texts of passages",
    "lost_after_retrieval": "needs recorded steps, and the context that the answer was written from",
    "below_the_cut": "needs the lists, and gold",
    "more_passages": "needs the lists",
    "answer_refused": "needs recorded answers",
    "from_memory": "needs the texts of passages, and reference answers that can be looked for in them",
    "guessable": "needs reference answers",
    "judge_failed": "needs judgements",
}
"""What the data must hold for a cause to be told."""


class Suspect(NamedTuple):
    """A cause to be tested: its name, what its test looks at in words, and the test itself. `among`: the questions that
    it is looked for on, where these are not those of the conflict. `compared`: whether it can hold elsewhere, too; one
    that can hold on such questions alone is likely where it holds on half of them."""

    cause: str
    told: str
    holds: Callable[[str], bool | None]
    among: Sequence[str] | None = None
    compared: bool = True


def weighed(suspects: Sequence[Suspect], here: Sequence[str], known: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """What each cause comes to: how often it holds here and elsewhere, and p of Fisher's exact test, by Holm.

    Questions on which it cannot be told are left out on both sides. p is None where one side is empty, or not compared.
    """
    found = list[dict[str, Any]]()
    for suspect in suspects:
        own = list(suspect.among if suspect.among is not None else here)
        here_too = set(own)
        rest = [question for question in known if question not in here_too] if suspect.compared else []
        if len(rest) > MOST:
            rest = random.Random(seed).sample(rest, MOST)
        count, of = _counted(suspect.holds, own[:MOST])
        elsewhere, elsewhere_of = _counted(suspect.holds, rest)
        found.append({"cause": suspect.cause, "told": suspect.told, "count": count, "of": of, "elsewhere": elsewhere,
                      "elsewhere_of": elsewhere_of, "p": fisher(count, of, elsewhere, elsewhere_of),
                      "compared": suspect.compared})
    for entry, p in zip(found, holm([entry["p"] for entry in found]), strict=True):
        entry["p"] = p
    return found


def likely(causes: Sequence[dict[str, Any]]) -> str | None:
    """The cause that holds most often of those that are commoner here than elsewhere, or that cannot hold elsewhere and
    explain half of what is here; None where there is none."""
    sure = [entry for entry in causes if entry["of"] and (
        entry["p"] is not None and entry["p"] < ALPHA if entry["compared"] else 2 * entry["count"] >= entry["of"])]
    return max(sure, key=lambda entry: entry["count"] / entry["of"])["cause"] if sure else None


def fisher(count: int, of: int, elsewhere: int, elsewhere_of: int) -> float | None:
    """p of so many or more of the cases here, were they as common as elsewhere (one-sided, exact).

    >>> fisher(3, 3, 0, 3), fisher(0, 4, 2, 4), fisher(1, 1, 0, 0)
    (0.05, 1.0, None)
    """
    if not of or not elsewhere_of:
        return None
    cases, everything = count + elsewhere, of + elsewhere_of
    ways = sum(math.comb(cases, here) * math.comb(everything - cases, of - here)
               for here in range(count, min(of, cases) + 1))
    return ways / math.comb(everything, of)


def _counted(holds: Callable[[str], bool | None], questions: Sequence[str]) -> tuple[int, int]:
    told = [found for question in questions if (found := holds(question)) is not None]
    return sum(told), len(told)
