"""What `ragkit agreement` prints where a table has no room for it: said once, for whom, and never as a number."""

from __future__ import annotations

from ragkit.judge.agreement import Comparison, Rules, compare_all
from ragkit.judge.labelled import Ratings
from ragkit.report.agreement_table import agreement_lines

HUMAN = Ratings("human", (0, 1, 2, 3, 3, None), {5: "no label"})
ONE, OTHER = Ratings("m1", (0, 1, 2, 3, 3, 1)), Ratings("m2", (0, 1, 1, 3, 2, 0))
GROUPS = [f"q{place}" for place in range(6)]


def lines(found: list[Comparison], by: str | None = None) -> list[str]:
    labels = {"file": "l.csv", "rows": 6, "questions": 6, "weighted": False}
    return agreement_lines({"labels": labels, "by": by, "comparisons": [one.to_json() for one in found]})


def test_a_table_says_once_what_holds_for_all_and_names_whom_the_rest_is_of() -> None:
    odd = Ratings("m3", tuple([0, 1, 2, 3] * 10 + [7]))
    human = Ratings("human", tuple([0, 1, 2, 3] * 10 + [3]))
    made = lines(compare_all([human], [odd, human], [f"q{place}" for place in range(41)]))
    assert made[2] == "Against human:"
    assert made[3].split()[:2] == ["judge", "rows"]
    assert "a label of 2 or more is a yes" in made
    assert [line for line in made if "off the scale" in line] == [
        "m3: off the scale 0 to 3: 1 × 7 (each a disagreement, at most as wide as the scale)"]
    assert len([line for line in made if line.startswith("base rate")]) == 1
    widths = {len(line) for line in made[3:6]}
    assert len(widths) == 1


def test_slices_name_the_judge_only_where_there_are_several() -> None:
    alone = lines(compare_all([HUMAN], [ONE], GROUPS, Rules(), {"de": [0, 1], "en": [1, 2, 3, 4, 5]}), "lang")
    assert "By lang:" in alone
    assert "de: AUROC undefined (the labels are all of one class)" in alone
    assert "en: left out: 1 no label" in alone
    both = lines(compare_all([HUMAN], [ONE, OTHER], GROUPS, Rules(), {"de": [0, 1], "en": [1, 2, 3, 4, 5]}), "lang")
    assert "de m1, de m2: AUROC undefined (the labels are all of one class)" in both


def test_an_undefined_figure_is_a_dash_and_its_reason() -> None:
    made = lines(compare_all([Ratings("human", (1, 1, 1, 1, 1, 1))], [ONE], GROUPS))
    assert "  AUROC              –  (the labels are all of one class)" in made
    assert not any("nan" in line for line in made)
