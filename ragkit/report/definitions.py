"""The page "what each number means", made from the registry so that it cannot drift from the code."""

from __future__ import annotations

from collections.abc import Iterable

from ragkit.metrics.registry import Definition, definitions
from ragkit.report import labels, numbers

_GROUPS = {
    "ranking": (
        "Rank metrics",
        "Of every step's list and of the final context, against the gold of the question. A name without `@k` has no "
        "cut. i is the rank from 1, grade_i the grade of the document there (0 where it is unjudged, or a repeated "
        "copy), rel_i 1 where that grade reaches the level, else 0, R the number of relevant documents in the labels, "
        "retrieved or not. The ideal order holds all judged documents of the question, the highest grade first. A "
        "list is judged in the order it came in; a run with scores is sorted by score, equal scores by document id, "
        "descending. Equal to trec_eval's where trec_eval has the metric. A dialect is what another tool gives under "
        "the same name.",
    ),
    "trajectory": (
        "Trajectory metrics",
        "Of all steps of one question together. Steps count from 0 in tables, step counts from 1.",
    ),
    "judged": (
        "RAGAS metrics",
        "A model judges; the value is computed from its stored verdicts, by the formulas of ragas 0.4.3.",
    ),
    "answer": ("Keyless answer metrics", "Word overlap: deterministic, and not faithfulness."),
}
_WHEN = """\
## Which number to read when

- `hit@k`: did anything useful come back? Quick to explain, blind to order.
- `mrr`: one passage answers. 0.5 is a harmonic mean first rank of 2, not "usually rank 2".
- `recall@k`, `allhit@k`: the answer needs several passages. `hit@k` stays high while complete evidence collapses.
- `precision@k`: noise in the prompt. It cannot exceed R / k.
- `map`: binary labels, and all relevant passages should stand high.
- `ndcg@k`: graded labels, or the fine order matters.

Recall and precision trade against each other through k. A better NDCG with the same hit rate means that questions which
worked already got better and the failing ones still fail.

## Undefined is not failed is not zero

A score is a value, or *undefined* (there was nothing to measure: no label, no answer, no order), or *failed* (it
should have been measured and was not: the app raised, the judge gave no verdict). Neither of the last two enters a
mean; every mean stands with how many questions were scored, undefined and failed, and why. Questions are *labelled*,
*declared unanswerable*, or *unlabelled*; label metrics are undefined for the last two. An empty list scores 0 and is
listed. A mean carries a 95 % bootstrap interval over questions; repeats are averaged per question first. `worst` and
`best` take every failed score as the ends of the metric's range.

A list without a trustworthy order (the prompt of a tool-calling agent holds all tool messages: a set) has set metrics
only; what needs an order is undefined, "no order". Where no final context is known, the union of all steps stands for
it, without a cut at k, or one ranking of their lists by reciprocal rank fusion (`--without-context rrf`); a note says
which. Never one step's list after the other, cut at k. Gold at document level is credited at its best-ranked chunk.
Gold given as text counts once, whatever the chunking.
"""


def metrics_page(known: Iterable[Definition] | None = None) -> str:
    """The page in Markdown, a section a kind of metric."""
    found = list(known if known is not None else definitions())
    parts = ["# What each number means\n", _WHEN]
    for kind, (title, about) in _GROUPS.items():
        parts.append(f"## {title}\n\n{about}\n")
        parts += [_entry(definition) for definition in found if definition.kind == kind]
    return "\n".join(parts)


def _entry(definition: Definition) -> str:
    facts = [f"range {numbers.limits(definition.range)}", labels.DIRECTIONS[definition.direction],
             f"undefined where {definition.undefined}"]
    facts += ["a value for each step"] if definition.series else []
    facts += [f"also called {', '.join(definition.aliases)}"] if definition.aliases else []
    facts += [f"{definition.calls} model calls a sample"] if definition.calls else []
    facts += [f"dialect of {definition.dialect_of}: {definition.differs}"] if definition.dialect_of else []
    facts += [f"source: {definition.source}"] if definition.source else []
    formula = f"`{definition.formula}`  \n" if definition.formula else ""
    return f"**`{definition.pattern}`** {definition.summary}  \n{formula}*{'; '.join(facts)}.*\n"
