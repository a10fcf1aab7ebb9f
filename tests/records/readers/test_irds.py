"""ir_datasets: a collection of the catalogue where the package is installed, and what is said where it is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragkit.errors import DataError
from ragkit.records.readers import load_dataset
from ragkit.records.readers.irds import DocumentsOnDemand

ROOT = Path(__file__).resolve().parents[3]


def test_a_missing_package_is_named_with_the_command_that_brings_it() -> None:
    script = ("import sys; sys.modules['ir_datasets'] = None\n"
              "from ragkit.records.readers import load_dataset\n"
              "from ragkit.errors import DataError\n"
              "try: load_dataset('irds:vaswani')\n"
              "except DataError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8", cwd=ROOT,
                          check=True, timeout=60)
    assert done.stdout == "irds:vaswani: needs the package ir_datasets: pip install ir-datasets\n"


def test_a_dataset_of_the_catalogue(tmp_path: Path) -> None:
    ir_datasets = pytest.importorskip("ir_datasets", reason="ir-datasets is not installed")
    (tmp_path / "docs.tsv").write_text("d1\tin the tin\nd2\tunder the stairs\n", encoding="utf-8")
    (tmp_path / "queries.tsv").write_text("001\tWhere?\n1\tWhen?\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("001 0 d2 2\n", encoding="utf-8")
    made = ir_datasets.create_dataset(docs_tsv=str(tmp_path / "docs.tsv"), queries_tsv=str(tmp_path / "queries.tsv"),
                                      qrels_trec=str(tmp_path / "qrels.txt"))
    ir_datasets.registry.register("ragkit-test", made)
    dataset = load_dataset("irds:ragkit-test")
    assert [(q.id, q.text) for q in dataset.questions] == [("001", "Where?"), ("1", "When?")]
    assert dataset.qrels == {"001": {"d2": 2.0}} and isinstance(dataset.corpus, DocumentsOnDemand)
    assert dataset.corpus["d2"].text == "under the stairs" and "d9" not in dataset.corpus
    assert list(dataset.corpus) == ["d1", "d2"] and len(dataset.corpus) == 2
    assert [d.text for d in dataset.corpus.values()] == ["in the tin", "under the stairs"]
    assert len(dataset.fingerprints()) == 3
    with pytest.raises(DataError, match="no such dataset"):
        load_dataset("irds:no-such-id")
