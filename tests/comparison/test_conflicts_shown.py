"""Conflicts and holes of a real comparison as the console and Markdown show them."""

from __future__ import annotations

import io

from rich.console import Console

import ragkit
from ragkit.report.comparison_markdown import render_comparison_markdown
from ragkit.report.comparison_terminal import print_comparison
from tests.support.variants import at_rank, variant


def compared(*better: int) -> ragkit.Comparison:
    """Twelve questions whose gold stands at rank 3, four of them at 9; at rank 1 in the variant for these."""
    base = variant({f"q{n}": [at_rank(3 if n < 8 else 9)] for n in range(12)}, metrics="ndcg@10,hit@5")
    own = variant({f"q{n}": [at_rank(1 if n in better else 3 if n < 8 else 9)] for n in range(12)},
                  metrics="ndcg@10,hit@5")
    return ragkit.compare({"base": base, "own": own})


def console(made: ragkit.Comparison) -> str:
    out = io.StringIO()
    print_comparison(made.data, Console(file=out, width=80))
    return " ".join(out.getvalue().split())


def test_the_console_says_what_disagrees_why_and_what_labels_could_change() -> None:
    said = console(compared(*range(8)))
    assert ("own: ndcg@10 is better in own on 8 questions whose hit@5 is unchanged; 8 of them worked in base already, "
            "and of the 4 that failed there 4 still do; likely cause: its gold stands in the list of own, below place 5"
            ) in said
    assert "label holes (the labels list only what is relevant): 1 / 2 verdicts could be others" in said
    assert "pairs to label would settle it (--holes FILE)" in said


def test_what_happens_on_a_single_question_is_counted_alone() -> None:
    said = console(compared(0))
    assert "1 conflict of signals on single questions (comparison.json)" in said and "is unchanged" not in said


def test_markdown_names_the_questions() -> None:
    text = render_comparison_markdown(compared(*range(8)).data)
    assert "## Conflicts" in text and "still failing (4): q8, q9, q10, q11" in text
    assert "| ndcg&#64;10 | own | +0.333 |" in text
