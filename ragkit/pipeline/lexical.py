"""BM25 over passages (bm25s), with a tokenizer for all scripts. Vectors are in chroma.py."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ragkit.pipeline.protocols import warn
from ragkit.pipeline.settings import check_count
from ragkit.records.trajectory import Passage, ScoreKind

# Scripts written without blanks (kana, Han, Thai, Lao, Burmese, Khmer): cut into character bigrams, or a sentence
# would be one token.
_UNSPACED = (r"\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
             r"\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u109f\u1780-\u17d3\U00020000-\U0003fffd")
# Vowel signs and other marks that a letter carries are no letters to \w: without them Hindi falls to pieces.
_MARKS = (r"\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0903\u093a-\u094f"
          r"\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a03\u0a3c-\u0a51\u0a81-\u0a83\u0abc-\u0acd"
          r"\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bd7\u0c00-\u0c04\u0c3c-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6"
          r"\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0dca-\u0ddf\u200c\u200d")
_TOKEN = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[{_MARKS}])+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")


def lexical_tokens(text: str) -> list[str]:
    """Lower-cased words of letters and digits; scripts without blanks give their character bigrams.

    Compatibility forms (full-width letters, ligatures) are folded first. No stemming, stop words are kept here.

    >>> lexical_tokens("Mach-2 flow_rate"), lexical_tokens("重置密码")
    (['mach', '2', 'flow', 'rate'], ['重置', '置密', '密码'])
    """
    tokens: list[str] = []
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).lower()):
        word = match.group()
        if len(word) > 1 and _IS_UNSPACED.match(word):
            tokens.extend(word[i:i + 2] for i in range(len(word) - 1))
        else:
            tokens.append(word)
    return tokens


def content_tokens(text: str) -> list[str]:
    """lexical_tokens without bm25s' 33 English stop words.

    >>> content_tokens("The flow of the air")
    ['flow', 'air']
    """
    from bm25s.stopwords import STOPWORDS_EN

    return [token for token in lexical_tokens(text) if token not in STOPWORDS_EN]


class LexicalRetriever:
    """BM25 (Lucene's form, k1 = 1.5, b = 0.75, bm25s' 33 English stop words left out).

    A passage that shares no token with the query scores 0 and is never ranked: four of such would look like hits.
    Equal scores keep the order of the passages. Scores are similarities without a common scale.
    """

    name = "bm25"
    score_kind: ScoreKind = "similarity"
    fingerprint = "bm25s:lucene:1.5:0.75:en:1"

    def __init__(self, passages: Sequence[Passage]) -> None:
        import bm25s

        self._passages = tuple(passages)
        tokens = [content_tokens(passage.text or "") for passage in self._passages]
        self._model: Any = None
        if any(tokens):  # without a single token bm25s divides by zero
            self._model = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
            self._model.index(tokens, show_progress=False)

    def retrieve(self, query: str, k: int) -> list[Passage]:
        """At most k passages with a positive score; none and a notice where all scores are 0."""
        check_count("k", k)
        known = [] if self._model is None else [t for t in content_tokens(query) if t in self._model.vocab_dict]
        if not known:
            reason = "the index is empty" if self._model is None else "all lexical scores are 0 for this query"
            warn(f"bm25: {reason}")
            return []
        scores = np.asarray(self._model.get_scores(known))
        order = np.argsort(-scores, kind="stable")[:k]
        return [replace(self._passages[i], score=float(scores[i])) for i in order if scores[i] > 0]
