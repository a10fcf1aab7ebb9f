"""A dataset as a folder: what is optional, splits, the corpus, and real collections."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import DataError
from ragkit.records.labels import check_labels
from ragkit.records.questions import Dataset, GoldText
from ragkit.records.readers import load_dataset
from ragkit.records.readers.beir import read_corpus, write_folder
from tests.support.data import data_folder

QUERIES = ('{"_id": "001", "text": "Who?", "answers": ["me"], "category": "fact", "metadata": {"level": "hard"}}\n'
           '{"_id": "1", "text": "Out of scope?", "unanswerable": true}\n'
           '{"_id": "g", "text": "Where?", "gold_texts": ["in the tin", '
           '{"document_id": "d1", "start": 0, "end": 3}]}\n')
CORPUS = '{"_id": "d1", "title": "T", "text": "in the tin", "url": "u", "metadata": {"a": 1}}\n' \
         '{"_id": "d2", "title": "", "text": ""}\n'
HEADER = "query-id\tcorpus-id\tscore\n"


def folder(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        path = tmp_path / "data" / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    return tmp_path / "data"


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        load_dataset(source, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_queries_alone_are_enough(tmp_path: Path) -> None:
    dataset = load_dataset(folder(tmp_path, queries_DOT_jsonl=QUERIES))
    assert dataset.corpus is None and dict(dataset.qrels) == {} and dataset.name == "data"
    first = dataset.questions[0]
    assert (first.id, first.answers, first.category) == ("001", ("me",), "fact")
    assert dict(first.metadata) == {"level": "hard"}
    assert dataset.questions[2].gold_texts == (GoldText("in the tin"), GoldText("", "d1", 0, 3))
    assert dataset.label_states() == {"001": "unlabelled", "1": "unanswerable", "g": "labelled"}


def test_the_whole_folder(tmp_path: Path) -> None:
    path = folder(tmp_path, queries_DOT_jsonl=QUERIES, corpus_DOT_jsonl=CORPUS,
                  qrels_DOT_tsv=HEADER + "001\td1\t1.5\n1\td1\t0\n")
    dataset = load_dataset(path)
    assert dataset.qrels == {"001": {"d1": 1.5}, "1": {"d1": 0.0}}
    assert dataset.corpus is not None
    assert list(dataset.corpus) == ["d1", "d2"] and dataset.corpus["d2"].content == ""
    assert dict(dataset.corpus["d1"].metadata) == {"url": "u", "a": 1}
    assert dataset.corpus["d1"].content == "T\nin the tin"
    assert load_dataset(str(path)) == dataset


def test_splits_leave_out_the_questions_of_the_others(tmp_path: Path) -> None:
    path = folder(tmp_path, queries_DOT_jsonl=QUERIES, qrels__test_DOT_tsv=HEADER + "001\td1\t1\n",
                  qrels__dev_DOT_tsv=HEADER + "g\td1\t1\n001\td9\t1\n")
    assert [q.id for q in load_dataset(path).questions] == ["001", "1"]  # "1" is in no split: nobody labelled it
    assert [q.id for q in load_dataset(path, split="dev").questions] == ["001", "1", "g"]
    assert load_dataset(path, split="dev").qrels["001"] == {"d9": 1.0}
    told = refusal(path, split="train")
    assert "no split 'train'" in told and "dev, test" in told


def test_compressed_files_and_trec_forms(tmp_path: Path) -> None:
    path = folder(tmp_path, topics_DOT_txt="<top>\n<num> Number: 301\n<title> Organized\n crime\n<desc> x\n</top>\n",
                  qrels_DOT_txt="301 0 d1 2\n")
    (path / "corpus.jsonl.gz").write_bytes(gzip.compress(CORPUS.encode()))
    dataset = load_dataset(path)
    assert [(q.id, q.text) for q in dataset.questions] == [("301", "Organized crime")]
    assert dataset.qrels == {"301": {"d1": 2.0}} and len(dataset.corpus or ()) == 2


@pytest.mark.parametrize(("files", "told"), [
    ({"corpus_DOT_jsonl": CORPUS}, "no queries.jsonl; expected queries.jsonl, and optionally"),
    ({"queries_DOT_jsonl": "\n"}, "no question"),
    ({"queries_DOT_jsonl": QUERIES, "corpus_DOT_jsonl": "\n"}, "corpus.jsonl: the corpus is empty"),
    ({"queries_DOT_jsonl": QUERIES, "corpus_DOT_jsonl": CORPUS + CORPUS},
     "corpus.jsonl:3: document id 'd1' stands already in"),
    ({"queries_DOT_jsonl": QUERIES, "corpus_DOT_jsonl": '{"_id": "d"}'}, "corpus.jsonl:1: expected 'text'"),
    ({"queries_DOT_jsonl": QUERIES, "corpus_DOT_jsonl": '{"text": "d"}'}, "corpus.jsonl:1: expected '_id'"),
    ({"queries_DOT_jsonl": QUERIES + '{"_id": "001", "text": "Again?"}'},
     "queries.jsonl:4: question id '001' stands already"),
    ({"queries_DOT_jsonl": QUERIES, "qrels_DOT_tsv": HEADER + "001\td1\n"}, "qrels.tsv:2: expected 3 columns"),
])
def test_what_is_refused_names_the_file(tmp_path: Path, files: dict[str, str], told: str) -> None:
    assert told in refusal(folder(tmp_path, **files))


def test_line_separators_inside_texts_do_not_break_a_corpus(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(json.dumps({"_id": "d", "text": "a\u2028b\x85c"}, ensure_ascii=False) + "\r\n", encoding="utf-8")
    assert read_corpus(path)["d"].text == "a\u2028b\x85c"


def real(name: str) -> Dataset:
    return load_dataset(data_folder(name))


@pytest.mark.parametrize(("name", "questions", "documents", "pairs"), [
    ("cranfield", 225, 1400, 1612), ("hotpotqa_react_traces", 100, 1000, 200),
    ("xquad/en", 1190, 240, 1190), ("xquad/de", 1190, 240, 1190), ("xquad/ru", 1190, 240, 1190),
])
def test_real_collections_load_whole(name: str, questions: int, documents: int, pairs: int) -> None:
    dataset = real(name)
    assert (len(dataset.questions), len(dataset.corpus or ())) == (questions, documents)
    assert sum(len(row) for row in dataset.qrels.values()) == pairs
    report = check_labels(dataset)
    assert (len(report.labelled), report.unanswerable, report.unlabelled) == (questions, (), ())
    assert (report.unknown, report.stray_questions, report.warnings()) == ((), (), [])


def test_cranfield_keeps_its_empty_documents_and_its_grades() -> None:
    dataset = real("cranfield")
    assert dataset.corpus is not None
    assert [d.id for d in dataset.corpus.values() if not d.content] == ["471", "995"]
    grades = [grade for row in dataset.qrels.values() for grade in row.values()]
    assert [grades.count(value) for value in (4, 3, 2, 1)] == [128, 387, 734, 363]
    assert dataset.questions[3].metadata["original_number"] == "008" and dataset.questions[3].id == "4"
    sample = dataset.limit(10, seed=1)
    assert len(sample.questions) == 10 and sample.questions == dataset.limit(10, seed=1).questions


def test_xquad_is_parallel() -> None:
    english, russian = real("xquad/en"), real("xquad/ru")
    assert [q.id for q in english.questions] == [q.id for q in russian.questions] and english.qrels == russian.qrels
    assert english.questions[0].answers == ("308",) and russian.questions[0].text.startswith("Сколько")


def test_hotpotqa_has_two_gold_paragraphs_and_categories() -> None:
    dataset = real("hotpotqa_react_traces")
    assert {len(row) for row in dataset.qrels.values()} == {2}
    assert {q.category for q in dataset.questions} == {"bridge", "comparison"}


def test_a_written_folder_reads_back_the_same(tmp_path: Path) -> None:
    source = folder(tmp_path, queries_DOT_jsonl=QUERIES, corpus_DOT_jsonl=CORPUS,
                    qrels_DOT_tsv=HEADER + "001\td1\t1.5\n1\td1\t0\n")
    dataset = load_dataset(source)
    write_folder(tmp_path / "copy", dataset)
    again = load_dataset(tmp_path / "copy")
    assert (again.questions, again.qrels, again.corpus) == (dataset.questions, dataset.qrels, dataset.corpus)
    assert again.fingerprints() == dataset.fingerprints()
