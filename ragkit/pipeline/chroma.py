"""Chroma: opens a store, makes or attaches a collection, and searches it by vectors that we always give ourselves.
What goes into a collection of our own is in ingest.py. This is the one file that imports chromadb."""

from __future__ import annotations

import hashlib
import ipaddress
import math
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ragkit.errors import DataError, MissingPackageError
from ragkit.models.embeddings import Embedder, Vectors
from ragkit.pipeline.protocols import warn
from ragkit.pipeline.settings import ChromaSettings, check_count
from ragkit.records.trajectory import Passage, ScoreKind

SPACE = "cosine"
EMBEDDER_KEY = "ragkit_embedder"
CHUNKER_KEY = "ragkit_chunker"
_PAGE = 2000


def collection_name(text: str) -> str:
    """The collection's name for a user's own text: the text where Chroma takes it, else a stable one with its hash.

    3-63 characters of a-z, A-Z, 0-9, ".", "_", "-", first and last a letter or digit, no "..", no IP address: the
    rule of all Chroma versions. Two texts never share a name, also where they differ only after 63 characters.

    >>> collection_name("policies"), collection_name("policy/v2")
    ('policies', 'policy-v2-10c2e835f4e1')
    """
    conformant = re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,61}[a-zA-Z0-9]", text) and ".." not in text
    made_here = re.search(r"-[0-9a-f]{12}$", text)  # such a text could be the name made for another one
    if conformant and not made_here and not _is_address(text):
        return text
    digest = hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:12]
    slug = re.sub(r"[^a-zA-Z0-9]+", "-", text).strip("-")[:40].strip("-")
    return f"{slug or 'collection'}-{digest}"


def open_client(settings: ChromaSettings, index_dir: Path) -> Any:
    """A Chroma client, telemetry off: an HTTP server's, or one on the folder `settings.path` (else `index_dir`)."""
    try:
        import chromadb
        from chromadb.config import Settings
    except ImportError as error:
        raise MissingPackageError("chromadb", "chroma", "a dense index") from error
    options = Settings(anonymized_telemetry=False)
    if settings.url:
        parts = urllib.parse.urlsplit(settings.url)
        secure = parts.scheme == "https"
        try:
            return chromadb.HttpClient(host=parts.hostname or "", port=parts.port or (443 if secure else 8000),
                                       ssl=secure, settings=options)
        except Exception as error:  # the client wraps every cause in its own types
            raise DataError(f"chroma: no server answers at {settings.url} ({_first_line(error)}); start one with "
                            f"`chroma run`") from error
    folder = Path(settings.path) if settings.path else index_dir
    if settings.attach and not (folder / "chroma.sqlite3").is_file():
        raise DataError(f"chroma: expected an existing store to attach, got {folder} (no chroma.sqlite3 in it)")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return chromadb.PersistentClient(path=str(folder), settings=options)
    except Exception as error:  # the client wraps every cause in its own types
        raise DataError(f"chroma: cannot open {folder} ({_first_line(error)})") from error


def own_collection(client: Any, name: str, embedder: Embedder, chunker: str) -> Any:
    """Our collection of this name, made with cosine where it does not exist; else checked before anything is written.

    An existing one keeps its old space whatever is asked for, so space and fingerprints are read back: another
    space, embedder or chunker, or a collection that ragkit did not make, is a DataError.
    """
    mine = {EMBEDDER_KEY: embedder.fingerprint, CHUNKER_KEY: chunker}
    existing = _find(client, name)
    if existing is None:
        # A wider search than the default 100: an approximate miss must not look like a bad embedding.
        graph = {"space": SPACE, "ef_construction": 200, "ef_search": 200}
        existing = client.create_collection(name, configuration={"hnsw": graph}, metadata=mine, embedding_function=None)
    held = existing.metadata or {}
    if EMBEDDER_KEY not in held:
        raise DataError(f"chroma: collection {name!r} exists (space {space_of(existing)}, {existing.count()} entries) "
                        f"and was not made by ragkit; read it with attach: true, or choose another name")
    for key, value in mine.items():
        if held.get(key) != value:
            raise DataError(f"chroma: collection {name!r} was made with {key.removeprefix('ragkit_')} "
                            f"{held.get(key)!r}, got {value!r}; choose another name, or delete the collection")
    if space_of(existing) != SPACE:
        raise DataError(f"chroma: collection {name!r} keeps its space {space_of(existing)!r}, expected {SPACE!r}; "
                        f"choose another name, or delete the collection")
    return existing


def attached_collection(client: Any, name: str, embedder: Embedder | None) -> tuple[Any, tuple[str, ...]]:
    """An existing collection, to be read only, and notes about it; without an embedder only its texts are of use.

    Another embedder's fingerprint or another dimension is a DataError; a collection without a fingerprint is taken
    with a note, since a model of the same dimension cannot be told apart.
    """
    existing = _find(client, name)
    if existing is None:
        known = sorted(str(getattr(item, "name", item)) for item in client.list_collections())
        raise DataError(f"chroma: no collection {name!r} to attach; there are: {', '.join(known) or 'none'}")
    if embedder is None:
        return existing, ()
    notes = []
    held = (existing.metadata or {}).get(EMBEDDER_KEY)
    if held is None:
        notes.append(f"chroma: collection {name!r} says not which model made its vectors; it is searched with "
                     f"{embedder.fingerprint} in its own space {space_of(existing)!r}")
    elif held != embedder.fingerprint:
        raise DataError(f"chroma: collection {name!r} was made with embedder {held!r}, got {embedder.fingerprint!r}")
    sample = existing.get(limit=1, include=["embeddings"])["embeddings"]
    if sample is not None and len(sample) and len(sample[0]) != embedder.dimension:
        raise DataError(f"chroma: collection {name!r} holds vectors of dimension {len(sample[0])}, the embedder "
                        f"{embedder.fingerprint} gives {embedder.dimension}")
    return existing, tuple(notes)


def space_of(collection: Any) -> str:
    """The space that the collection really measures in: cosine, l2 (Chroma's default, squared) or ip."""
    configuration = getattr(collection, "configuration_json", None) or {}
    for kind in ("hnsw", "spann"):
        space = (configuration.get(kind) or {}).get("space")
        if space:
            return str(space)
    return str((collection.metadata or {}).get("hnsw:space", "l2"))


def stored_passages(collection: Any, doc_id_key: str = "doc_id") -> Iterator[Passage]:
    """All entries of a collection as passages, read page by page."""
    for start in range(0, collection.count(), _PAGE):
        page = collection.get(limit=_PAGE, offset=start, include=["documents", "metadatas"])
        for position, name in enumerate(page["ids"]):
            yield _passage(name, page["documents"][position], page["metadatas"][position], doc_id_key)


class DenseRetriever:
    """Nearest passages of a Chroma collection. Their score is Chroma's distance: smaller is better.

    `passages` are those that were ingested, by id; what is not among them (an attached collection) comes from the
    store itself. Equal distances are ordered by id, so that a ranking does not depend on the graph.
    """

    name = "chroma"
    score_kind: ScoreKind = "distance"

    def __init__(self, collection: Any, embedder: Embedder, passages: Mapping[str, Passage] | None = None,
                 doc_id_key: str = "doc_id") -> None:
        self._collection = collection
        self._embedder = embedder
        self._passages = passages or {}
        self._doc_id_key = doc_id_key
        self.space = space_of(collection)

    def retrieve(self, query: str, k: int) -> list[Passage]:
        """At most k passages, fewer where the collection holds fewer; none and a notice where it is empty."""
        check_count("k", k)
        if not query.strip():
            warn("chroma: an empty query finds nothing")
            return []
        vector = self._embedder.embed_query(query)
        found = self._collection.query(query_embeddings=[vector.tolist()], n_results=k,
                                       include=["distances", "documents", "metadatas"])
        rows = []
        for position, name in enumerate(found["ids"][0]):
            distance = float(found["distances"][0][position])
            if not math.isfinite(distance):  # a zero vector in somebody's cosine collection has no distance
                warn(f"chroma: entry {name!r} has no finite distance and is left out")
                continue
            passage = self._passages.get(name) or _passage(
                name, found["documents"][0][position], found["metadatas"][0][position], self._doc_id_key)
            rows.append(replace(passage, score=distance))
        if not found["ids"][0]:
            warn(f"chroma: collection {self._collection.name!r} is empty, nothing can be found")
        return sorted(rows, key=lambda passage: (passage.score, passage.id))


    def vectors(self, passages: Sequence[Passage]) -> Vectors:
        """The stored vectors of these passages; those that the store has not are made by the embedder."""
        found = self._collection.get(ids=[passage.id for passage in passages], include=["embeddings"])
        held = dict(zip(found["ids"], found["embeddings"], strict=True))
        missing = [passage for passage in passages if passage.id not in held]
        made = self._embedder.embed_documents([passage.text or "" for passage in missing]) if missing else ()
        held.update(zip((passage.id for passage in missing), made, strict=True))
        return np.asarray([held[passage.id] for passage in passages], dtype=np.float32)


def _passage(name: str, text: str | None, metadata: Mapping[str, Any] | None, doc_id_key: str) -> Passage:
    kept = {key: value for key, value in (metadata or {}).items() if not key.startswith("ragkit_")}
    document = kept.get(doc_id_key)
    return Passage(name, text, None if document is None else str(document), None, kept)


def _find(client: Any, name: str) -> Any:
    from chromadb.errors import NotFoundError

    try:
        return client.get_collection(name, embedding_function=None)
    except (NotFoundError, ValueError):  # a ValueError before Chroma 1.0.? and for names that no collection can have
        return None
    except Exception as error:  # the client wraps every other cause in its own types
        raise DataError(f"chroma: collection {name!r} cannot be read ({_first_line(error)})") from error


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
