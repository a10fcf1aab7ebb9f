"""Lists as cells of text spell them, and what a table of datasets.Dataset becomes when it is written as CSV."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest

from ragkit.records.readers import load_dataset
from ragkit.records.readers.written import written


def test_a_csv_of_huggingface_keeps_its_texts_apart(tmp_path: Path) -> None:
    texts = ["it's\nRome", 'say "A, B"']
    rows = datasets.Dataset.from_list([{"user_input": "Which?", "reference_contexts": texts, "gold_ids": [7, 8]}])
    rows.to_csv(tmp_path / "rows.csv")
    loaded = load_dataset(tmp_path / "rows.csv")
    assert [gold.text for gold in loaded.questions[0].gold_texts] == texts
    assert loaded.qrels[loaded.questions[0].id] == {"7": 1.0, "8": 1.0}


@pytest.mark.parametrize(("cell", "expected"), [
    ("['a' 'b' ... 'c']", None), ("['a', 'b' 'c']", ["a", "bc"]), ("[1 2]", [1, 2]), ("['a']", ["a"]), ("[]", []),
    ("[a b]", None), ("['a]", None), ("{'a': None}", {"a": None}), ("[__import__('os')]", None), ("plain", None),
])
def test_what_a_cell_spells(cell: str, expected: object) -> None:
    assert written(cell) == expected
