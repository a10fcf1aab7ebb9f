"""Chroma for real: names, spaces, ingest, fingerprints, attaching, an HTTP server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragkit.errors import DataError, RagkitError
from ragkit.pipeline import chroma
from ragkit.pipeline.ingest import Ingester, IngestReport
from ragkit.pipeline.settings import ChromaSettings
from ragkit.recording import Recorder
from ragkit.records.trajectory import Passage
from tests.support.pipeline_parts import CountingEmbedder, TableEmbedder, chroma_server, free_port

C65 = ["ab", "Policy Docs", "policy/v2", "données", "知识库", "_memory_", "a..b", "127.0.0.1", "x" * 70 + "1",
       "x" * 70 + "2"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return chroma.open_client(ChromaSettings(), tmp_path_factory.mktemp("store"))


def passages(*texts: str) -> list[Passage]:
    return [Passage(f"p{number}", text, f"p{number}") for number, text in enumerate(texts)]


def own(client: Any, name: str, embedder: Any = None) -> Any:
    return chroma.own_collection(client, name, embedder or CountingEmbedder(), "whole:1")


def test_names_from_user_text_are_taken_by_chroma_and_never_shared(client: Any) -> None:  # C65
    names = [chroma.collection_name(text) for text in C65]
    assert len(set(names)) == len(C65) and all(3 <= len(name) <= 63 for name in names)
    for name in names:
        assert own(client, name).name == name
    # A text that looks like the name made for another text must not get that one's collection.
    assert chroma.collection_name(names[0]) != names[0]


def test_names_are_the_same_in_a_new_process() -> None:
    code = ("import sys; from ragkit.pipeline.chroma import collection_name as name;"
            "print(ascii([name(text) for text in sys.argv[1:]]))")
    out = subprocess.run([sys.executable, "-c", code, *C65], capture_output=True, text=True, check=True).stdout
    assert out.strip() == ascii([chroma.collection_name(text) for text in C65])


def test_a_new_collection_is_cosine_and_says_who_made_it(client: Any) -> None:
    collection = own(client, "fresh")
    assert chroma.space_of(collection) == "cosine"
    assert collection.metadata == {"ragkit_embedder": "counting:1", "ragkit_chunker": "whole:1"}
    assert own(client, "fresh").id == collection.id


def test_an_old_space_is_kept_by_chroma_and_refused_by_us(client: Any) -> None:
    made = {chroma.EMBEDDER_KEY: "counting:1", chroma.CHUNKER_KEY: "whole:1"}
    client.create_collection("old-space", metadata=made, embedding_function=None)
    with pytest.raises(DataError, match="keeps its space 'l2', expected 'cosine'"):
        own(client, "old-space")


def test_somebody_elses_collection_is_never_written_to(client: Any) -> None:
    client.create_collection("theirs", embedding_function=None).add(ids=["x"], embeddings=[[1.0, 0.0]])
    with pytest.raises(DataError, match=r"'theirs' exists \(space l2, 1 entries\) and was not made by ragkit"):
        own(client, "theirs")


def test_another_model_of_the_same_dimension_is_refused(client: Any) -> None:
    own(client, "model")
    with pytest.raises(DataError, match="made with embedder 'counting:1', got 'counting:2'") as caught:
        own(client, "model", CountingEmbedder("counting:2"))
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="made with chunker 'whole:1', got 'characters"):
        chroma.own_collection(client, "model", CountingEmbedder(), "characters:1:9:0")


def test_ingest_adds_nothing_twice_replaces_what_changed_and_removes_what_is_gone(client: Any) -> None:  # C67 a
    embedder = CountingEmbedder()
    collection = own(client, "ingest", embedder)
    texts = ["fog bell", "lamp oil", "goat cheese"]
    assert Ingester(client, collection, embedder).ingest(passages(*texts)) == IngestReport(added=3)
    assert Ingester(client, collection, embedder).ingest(passages(*texts)) == IngestReport(kept=3)
    assert embedder.asked == texts and collection.count() == 3
    report = Ingester(client, collection, embedder).ingest(passages("fog bell", "whale oil"))
    assert report == IngestReport(changed=1, removed=1, kept=1)
    assert sorted(collection.get()["documents"]) == ["fog bell", "whale oil"]
    assert embedder.asked[3:] == ["whale oil"]


def test_blank_passages_get_no_vector(client: Any) -> None:
    embedder = CountingEmbedder()
    collection = own(client, "blank", embedder)
    report = Ingester(client, collection, embedder).ingest(passages("fog", "", " \n"))
    assert report == IngestReport(added=1, blank=("p1", "p2")) and collection.count() == 1


class FailingStore:
    """A real collection that takes `good` batches and then refuses `bad` calls."""

    def __init__(self, collection: Any, good: int, bad: int) -> None:
        self._collection, self.good, self.bad = collection, good, bad
        self.sizes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collection, name)

    def upsert(self, **rows: Any) -> None:
        if self.good == 0 and self.bad > 0:
            self.bad -= 1
            raise OSError("disk full")
        self.good = max(0, self.good - 1)
        self.sizes.append(len(rows["ids"]))
        self._collection.upsert(**rows)


def test_six_thousand_documents_in_one_call_are_embedded_once_each(client: Any) -> None:  # C67 b
    embedder = CountingEmbedder(dimension=8)
    store = FailingStore(own(client, "many", embedder), good=3, bad=2)
    Ingester(client, store, embedder).ingest(passages(*(f"document {n}" for n in range(6000))))
    assert store.count() == 6000 and len(embedder.asked) == len(set(embedder.asked)) == 6000
    assert max(store.sizes) <= client.get_max_batch_size()


def test_a_batch_above_the_clients_limit_is_split(client: Any) -> None:
    class Narrow:
        def get_max_batch_size(self) -> int:
            return 2

    embedder = CountingEmbedder()
    store = FailingStore(own(client, "narrow", embedder), good=99, bad=0)
    Ingester(Narrow(), store, embedder).ingest(passages("a", "b", "c", "d", "e"))
    assert store.sizes == [2, 2, 1]


def test_a_store_that_stays_broken_keeps_the_vectors_for_the_next_call(client: Any) -> None:
    embedder = CountingEmbedder()
    store = FailingStore(own(client, "broken", embedder), good=0, bad=3)
    ingester = Ingester(client, store, embedder)
    with pytest.raises(RagkitError, match=r"refused 3 times by collection 'broken' \(disk full\)"):
        ingester.ingest(passages("fog", "oil"))
    assert ingester.ingest(passages("fog", "oil")).added == 2 and embedder.asked == ["fog", "oil"]


C63 = TableEmbedder({"A": (1, 0), "B": (0.6, 0.8), "C": (-1, 0), "query": (1, 0)})


def test_the_nearest_is_first_and_its_score_is_a_distance(client: Any) -> None:  # C63
    theirs = client.create_collection("c63", embedding_function=None)
    theirs.add(ids=["A", "B", "C"], embeddings=[[1.0, 0.0], [0.6, 0.8], [-1.0, 0.0]], documents=["A", "B", "C"])
    collection, notes = chroma.attached_collection(client, "c63", C63)
    dense = chroma.DenseRetriever(collection, C63)
    found = dense.retrieve("query", 3)
    assert [passage.id for passage in found] == ["A", "B", "C"]
    assert [passage.score for passage in found] == pytest.approx([0.0, 0.8, 4.0], abs=1e-6)
    assert dense.score_kind == "distance" and dense.space == "l2"
    assert "says not which model" in notes[0] and "'l2'" in notes[0]


def test_k_above_the_count_k_of_zero_and_an_empty_collection(client: Any) -> None:  # C67 c
    embedder = CountingEmbedder()
    collection = own(client, "counts", embedder)
    dense = chroma.DenseRetriever(collection, embedder)
    with Recorder().trace("fog") as trace:
        assert dense.retrieve("fog", 10) == []
    assert "'counts' is empty" in trace.trajectory.meta["warnings"][0]
    Ingester(client, collection, embedder).ingest(passages("fog bell", "lamp oil", "goat cheese"))
    assert dense.retrieve("fog", 10)[0].id == "p0" and len(dense.retrieve("fog", 10)) == 3
    with pytest.raises(DataError, match="k: expected a whole number of at least 1, got 0"):
        dense.retrieve("fog", 0)


def test_equal_distances_are_ordered_by_id(client: Any) -> None:
    embedder = CountingEmbedder()
    collection = own(client, "equal", embedder)
    Ingester(client, collection, embedder).ingest(list(reversed(passages("fog", "fog", "fog"))))
    assert [p.id for p in chroma.DenseRetriever(collection, embedder).retrieve("fog", 3)] == ["p0", "p1", "p2"]


def test_attaching_reads_texts_and_document_ids_and_writes_nothing(client: Any) -> None:
    theirs = client.create_collection("attach", embedding_function=None)
    embedder = CountingEmbedder()
    theirs.add(ids=["k1", "k2"], embeddings=embedder.embed_documents(["fog bell", "oil"]).tolist(),
               documents=["fog bell", "oil"], metadatas=[{"source": "a.txt"}, {"source": "b.txt"}])
    before = theirs.get(include=["documents", "metadatas", "embeddings"])
    collection, _ = chroma.attached_collection(client, "attach", embedder)
    found = chroma.DenseRetriever(collection, embedder, doc_id_key="source").retrieve("fog", 1)[0]
    assert (found.id, found.doc_id, found.text) == ("k1", "a.txt", "fog bell")
    assert {p.id: p.doc_id for p in chroma.stored_passages(collection, "source")} == {"k1": "a.txt", "k2": "b.txt"}
    assert str(theirs.get(include=["documents", "metadatas", "embeddings"])) == str(before)


def test_attaching_refuses_what_cannot_fit(client: Any, tmp_path: Path) -> None:
    own(client, "mine")
    with pytest.raises(DataError, match="made with embedder 'counting:1', got 'counting:9'"):
        chroma.attached_collection(client, "mine", CountingEmbedder("counting:9"))
    client.create_collection("wide", embedding_function=None).add(ids=["x"], embeddings=[[1.0, 0.0, 0.0]])
    with pytest.raises(DataError, match="vectors of dimension 3, the embedder counting:1 gives 64"):
        chroma.attached_collection(client, "wide", CountingEmbedder())
    with pytest.raises(DataError, match=r"no collection 'nowhere' to attach; there are: .*wide"):
        chroma.attached_collection(client, "nowhere", CountingEmbedder())
    with pytest.raises(DataError, match=r"no chroma\.sqlite3"):
        chroma.open_client(ChromaSettings(path=str(tmp_path / "none"), collection="x", attach=True), tmp_path)
    assert not (tmp_path / "none").exists()


def test_stored_vectors_are_given_back_for_a_reranker(client: Any) -> None:
    embedder = CountingEmbedder()
    collection = own(client, "vectors", embedder)
    given = passages("fog bell", "lamp oil")
    Ingester(client, collection, embedder).ingest(given[:1])
    asked = len(embedder.asked)
    vectors = chroma.DenseRetriever(collection, embedder).vectors(given[::-1])
    assert vectors[1] == pytest.approx(embedder.embed_query("fog bell"), abs=1e-6)
    assert embedder.asked[asked:] == ["lamp oil"]


def test_an_http_server_holds_a_collection_like_a_folder_does(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    with chroma_server(tmp_path) as url:
        client = chroma.open_client(ChromaSettings(url=url), tmp_path)
        collection = own(client, "served", embedder)
        assert Ingester(client, collection, embedder).ingest(passages("fog bell", "lamp oil")).added == 2
        assert chroma.space_of(collection) == "cosine"
        assert [p.id for p in chroma.DenseRetriever(collection, embedder).retrieve("lamp", 5)] == ["p1", "p0"]
        attached, _ = chroma.attached_collection(client, "served", embedder)
        assert attached.count() == 2
        with pytest.raises(DataError, match="no collection 'nowhere' to attach; there are: served"):
            chroma.attached_collection(client, "nowhere", embedder)


def test_no_server_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no server answers at http://127.0.0.1:\d+ .*chroma run") as caught:
        chroma.open_client(ChromaSettings(url=f"http://127.0.0.1:{free_port()}"), tmp_path)
    assert "\n" not in str(caught.value)
