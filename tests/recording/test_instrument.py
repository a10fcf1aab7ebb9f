"""Watching one object: scores and what they are, direct calls, compressors, cross-encoders, and undoing it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from ragkit.errors import DataError
from ragkit.recording import Recorder
from ragkit.records.trajectory import Step
from tests.support.recording_parts import TEXTS, WordEmbedding, documents

QUESTION = "Who built the lighthouse at Norrby?"


class Points(Embeddings):
    """The vectors of case C63, by name; the query lies on A."""

    places: ClassVar = {"A": [1.0, 0.0], "B": [0.6, 0.8], "C": [-1.0, 0.0], "q": [1.0, 0.0]}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.places[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.places[text]


def scores(step: Step) -> list[float]:
    return [passage.score if passage.score is not None else float("nan") for passage in step.outermost.passages]


def test_direct_calls_with_scores(store: InMemoryVectorStore) -> None:
    recorder = Recorder()
    recorder.instrument(store)
    with recorder.trace(QUESTION) as trace:
        found = store.similarity_search_with_score(QUESTION, k=2)
        store.similarity_search(QUESTION, k=2)
        asyncio.run(store.asimilarity_search(QUESTION, k=2))
        store.max_marginal_relevance_search(QUESTION, k=2)
        store.as_retriever(search_kwargs={"k": 2}).invoke(QUESTION)
    steps = trace.trajectory.steps
    assert len(steps) == 5 and all(len(step.retrievals) == 1 for step in steps)
    assert [step.outermost.query for step in steps] == [QUESTION] * 5
    expected = [score for _, score in found]
    for number in (0, 1, 2, 4):
        assert scores(steps[number]) == pytest.approx(expected) and steps[number].outermost.score_kind == "similarity"


@pytest.fixture
def client(tmp_path: Path) -> Any:
    chromadb = pytest.importorskip("chromadb")
    return chromadb.PersistentClient(str(tmp_path), chromadb.Settings(anonymized_telemetry=False))


def test_chroma_gives_distances_and_calls_them_so(client: Any) -> None:  # case C63
    chroma = pytest.importorskip("langchain_chroma")
    store = chroma.Chroma("points", Points(), client=client)
    store.add_texts(["C", "A", "B"], ids=["C", "A", "B"])
    with Recorder().instrument(store), Recorder().trace("q") as trace:
        store.similarity_search("q", k=3)
        store.as_retriever(search_kwargs={"k": 3}).invoke("q")
    collection = client.get_collection("points")
    recorder = Recorder()
    with recorder.instrument(collection), recorder.trace("q") as raw:
        collection.query(query_embeddings=[[1.0, 0.0]], n_results=3)
        with pytest.raises(Exception, match=r".+"):
            collection.query(query_embeddings=[[1.0]], n_results=3)
        collection.query(query_embeddings=[[1.0, 0.0], [-1.0, 0.0]], n_results=1)
    for step in [*trace.trajectory.steps, raw.trajectory.steps[0]]:
        assert step.outermost.ids == ("A", "B", "C") and len(step.retrievals) == 1
        assert scores(step) == pytest.approx([0.0, 0.8, 4.0], abs=1e-6)
        assert step.outermost.score_kind == "distance"
    _, failed, one, two = raw.trajectory.steps
    assert failed.outermost.error and failed.outermost.name == "points"
    assert [(step.outermost.ids, step.turn) for step in (one, two)] == [(("A",), 2), (("C",), 2)]


@pytest.mark.filterwarnings("ignore:Relevance scores must be")  # LangChain's own, about the point opposite
def test_relevance_scores_are_similarities_and_a_threshold_is_a_filter(client: Any) -> None:
    chroma = pytest.importorskip("langchain_chroma")
    store = chroma.Chroma("relevance", Points(), client=client, collection_metadata={"hnsw:space": "cosine"})
    store.add_texts(["A", "B", "C"], ids=["A", "B", "C"])
    options = {"k": 3, "score_threshold": 0.5}
    retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs=options)
    recorder = Recorder()
    with recorder.instrument(retriever), recorder.trace("q") as trace:
        retriever.invoke("q")
    (step,) = trace.trajectory.steps
    outer, inner = step.retrievals
    assert (outer.ids, outer.score_kind) == (("A", "B"), "similarity")
    assert [passage.score for passage in outer.passages] == pytest.approx([1.0, 0.6], abs=1e-6)
    assert (inner.ids, inner.score_kind) == (("A", "B", "C"), "distance")


@pytest.mark.parametrize(
    ("convert", "expected"),
    [
        (VectorStore._euclidean_relevance_score_fn, "distance"),
        (VectorStore._cosine_relevance_score_fn, "distance"),
        (VectorStore._max_inner_product_relevance_score_fn, "unknown"),
        (lambda score: (score + 1) / 2, "similarity"),
        (None, "unknown"),
    ],
)
def test_other_stores_are_asked_by_their_own_conversion(convert: Any, expected: str) -> None:
    class Remote(VectorStore):
        def _select_relevance_score_fn(self) -> Any:
            if convert is None:
                raise NotImplementedError
            return convert

        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            return [found for found, _ in self.similarity_search_with_score(query)]

        def similarity_search_with_score(self, *args: Any, **kwargs: Any) -> list[tuple[Document, float]]:
            return [(documents("d1")[0], 0.25)]

        @classmethod
        def from_texts(cls, *args: Any, **kwargs: Any) -> Any:
            return cls()

    recorder, store = Recorder(), Remote()
    with recorder.instrument(store), recorder.trace("q") as trace:
        store.similarity_search("q")
    (step,) = trace.trajectory.steps
    assert step.outermost.score_kind == expected and scores(step) == [0.25]


def test_twice_is_harmless_and_undone_is_undone(store: InMemoryVectorStore) -> None:
    one, other = Recorder(), Recorder()
    method = store.similarity_search
    one.instrument(store), one.instrument(store), other.instrument(store)
    other.instrument(store.as_retriever())
    with one.trace("q") as trace:
        store.similarity_search("q")
    assert len(trace.trajectory.steps) == 1 and len(trace.trajectory.steps[0].retrievals) == 1
    one.uninstrument(store), one.uninstrument(store)
    with one.trace("q") as still:
        store.similarity_search("q")
    assert len(still.trajectory.steps) == 1  # the other recorder still watches it
    other.uninstrument(store)
    for _, undo in list(other._undo.values()):
        undo()
    assert store.similarity_search == method and not [name for name in vars(store) if "search" in name]
    with one.trace("q") as trace:
        store.similarity_search("q")
    assert trace.trajectory.steps == ()


def test_only_that_one_object_is_watched(store: InMemoryVectorStore) -> None:
    twin = InMemoryVectorStore(WordEmbedding())
    recorder = Recorder()
    with recorder.instrument(store) as same, recorder.trace("q") as trace:
        assert same is store
        twin.similarity_search("q")
    assert trace.trajectory.steps == ()


def test_a_store_that_fails_and_a_wrong_call(store: InMemoryVectorStore) -> None:
    recorder = Recorder()
    with recorder.instrument(store), recorder.trace("q") as trace:
        with pytest.raises(TypeError):
            store.similarity_search()  # type: ignore[call-arg]
        store.embedding = None  # type: ignore[assignment]
        with pytest.raises(AttributeError):
            store.similarity_search("q")
    (step,) = trace.trajectory.steps
    assert str(step.outermost.error).startswith("AttributeError")


@pytest.mark.parametrize("wrong", [object(), "store", print, {"similarity_search": 1}])
def test_what_cannot_be_watched_is_refused(wrong: object) -> None:
    with pytest.raises(DataError, match=r"@recorder\.retriever"):
        Recorder().instrument(wrong)


class KeepShort(BaseDocumentCompressor):
    """A filter that hands on new documents without ids or metadata, as some compressors do."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return [Document(page_content=found.page_content) for found in documents if len(found.page_content) < 54]


def test_a_compressor_called_by_itself(store: InMemoryVectorStore) -> None:
    recorder, compressor = Recorder(), KeepShort()
    with recorder.instrument(compressor), recorder.trace("q") as trace:
        first = store.as_retriever(search_kwargs={"k": 3}).invoke(QUESTION)
        kept = compressor.compress_documents(first, QUESTION)
        asyncio.run(compressor.acompress_documents(documents("d2 d4"), "unseen search"))
    short = [found.id for found in first if len(found.page_content) < 54]
    assert 0 < len(short) < 3
    assert [found.id for found in kept] == [None] * len(short)
    one, two = trace.trajectory.steps
    assert [(found.stage, found.ids) for found in one.retrievals] == [
        ("filter", tuple(short)), ("retrieve", tuple(found.id for found in first)),
    ]
    assert [(found.stage, found.ids) for found in two.retrievals] == [("filter", ("d4",)), ("retrieve", ("d2", "d4"))]
    assert compressor.model_dump() == {}


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A real CrossEncoder, tiny and with seeded random weights: what it thinks is noise, how it is called is not."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    torch = pytest.importorskip("torch")
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder: Path = tmp_path_factory.mktemp("cross-encoder")
    words = sorted({word.strip(".,?").lower() for text in [*TEXTS.values(), QUESTION] for word in text.split()})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]), "utf-8")
    torch.manual_seed(3)
    config = BertConfig(vocab_size=len(words) + 5, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=16, num_labels=1, initializer_range=1.0)
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return sentence_transformers.CrossEncoder(str(folder), device="cpu")


@pytest.mark.slow
def test_cross_encoder_rank_and_predict_are_matched_back_by_text(store: Any, cross_encoder: Any) -> None:
    recorder = Recorder()
    with recorder.instrument(cross_encoder), recorder.trace(QUESTION) as trace:
        for way in ("rank", "predict", "one by one"):
            found = store.as_retriever(search_kwargs={"k": 4}).invoke(f"{QUESTION} {way}")
            pairs = [(QUESTION, one.page_content) for one in found]
            if way == "rank":
                ranked = cross_encoder.rank(QUESTION, [text for _, text in pairs], top_k=3)
                expected = [found[row["corpus_id"]].id for row in ranked]
                values = [row["score"] for row in ranked]
            elif way == "predict":
                predicted = cross_encoder.predict(pairs)
            else:
                alone = [float(cross_encoder.predict(pair)) for pair in pairs]
    rank, predict, single = trace.trajectory.steps
    assert [one.stage for one in rank.retrievals] == ["rerank", "retrieve"]
    assert list(rank.outermost.ids) == expected and scores(rank) == pytest.approx(values)
    assert scores(predict) == pytest.approx(sorted((float(one) for one in predicted), reverse=True))
    assert [one.stage for one in single.retrievals] == ["rerank", "retrieve"]
    assert scores(single) == pytest.approx(sorted(alone, reverse=True)) and len(single.outermost.ids) == 4
    for step in (rank, predict, single):
        assert step.outermost.score_kind == "similarity" and step.outermost.name == "CrossEncoder"
        assert set(step.outermost.ids) <= set(TEXTS)


@pytest.mark.slow
def test_cross_encoder_beneath_a_compressor_and_two_queries_in_one_call(store: Any, cross_encoder: Any) -> None:
    class Best(BaseDocumentCompressor):
        def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
            values = cross_encoder.predict([(query, one.page_content) for one in documents])
            return [documents[row] for row in values.argsort()[::-1][:2]]

    recorder, best = Recorder(), Best()
    with recorder.instrument(cross_encoder), recorder.instrument(best), recorder.trace(QUESTION) as trace:
        best.compress_documents(store.as_retriever().invoke(QUESTION), QUESTION)
    (step,) = trace.trajectory.steps
    assert [(one.stage, len(one.ids)) for one in step.retrievals] == [("rerank", 2), ("rerank", 4), ("retrieve", 4)]
    assert step.retrievals[0].ids == step.retrievals[1].ids[:2]
    with recorder.instrument(cross_encoder), recorder.trace("two") as two:
        cross_encoder.predict([("one", TEXTS["d1"]), ("two", TEXTS["d2"]), ("one", TEXTS["d3"])])
    assert [step.outermost.query for step in two.trajectory.steps] == ["one", "two"]
