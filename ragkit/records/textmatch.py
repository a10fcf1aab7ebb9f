"""Where a snippet stands in many passages: exact search and token overlap over one inverted index.

It knows texts alone; what a match means for labels is in gold.py.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property

# Scripts written without blanks are cut into characters, all others into words.
_NO_BLANKS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(f"[{_NO_BLANKS}]|[^\\W{_NO_BLANKS}]+")
_FEW_TOKENS = 3  # below this a snippet is searched as a whole word or phrase, since no inner token is sure to be whole
_RAREST = 16  # tokens of a snippet that vote for candidates; the rare ones tell passages apart
_VISITS = 4_000  # entries of the index that are read for one snippet, so that common words cost no time
_SHORTEST_PIECE = 4  # characters; what is shorter stands at the end of some passage by chance
_CANDIDATES = 24  # passages that are looked at closely per snippet

Share = tuple[int, set[int]]
"""A passage's number, and the positions in the snippet (characters or tokens) that it holds."""


def normalise(text: str) -> str:
    """NFKC, case folded, runs of white space as one blank, without invisible format characters.

    >>> normalise("  The\\n\\u201cﬁrst\\u201d STEP\\u200b ")
    'the “first” step'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(character for character in text if unicodedata.category(character) != "Cf")
        text = unicodedata.normalize("NFKC", text.casefold())
    return " ".join(text.casefold().split())


def tokens(normalised: str) -> list[str]:
    """Words, and single characters of scripts without blanks."""
    return _TOKEN.findall(normalised)


class PassageTexts:
    """The texts of passages with an inverted index of their tokens, built at the first search.

    Everything is deterministic: passages are numbered in the order given, and equal overlap goes to the first.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [normalise(text) for text in texts]
        self._bigrams: dict[int, set[tuple[str, str]]] = {}

    @cached_property
    def _postings(self) -> dict[str, list[int]]:
        postings: dict[str, list[int]] = {}
        for number, text in enumerate(self.texts):
            for token in set(tokens(text)):
                postings.setdefault(token, []).append(number)
        return postings

    def holders(self, snippet: str, among: Collection[int] | None = None) -> list[int]:
        """The passages that hold the whole (normalised) snippet."""
        if not snippet:
            return []
        words = tokens(snippet)
        # The first and the last token may be cut; those between are whole, so each holder has all of them.
        inner = sorted(set(words[1:-1]), key=lambda word: (len(self._postings.get(word, ())), word))[:_FEW_TOKENS]
        if among is not None:
            candidates = sorted(among)
        elif inner:
            lists = [self._postings.get(word, []) for word in inner]
            candidates = sorted(set(lists[0]).intersection(*lists[1:]))
        else:
            candidates = list(range(len(self.texts)))
        whole_words = len(words) < _FEW_TOKENS
        return [number for number in candidates if _contains(self.texts[number], snippet, whole_words)]

    def pieces(self, snippet: str, among: Collection[int] | None = None) -> list[Share]:
        """What passages hold of a snippet that was cut at their borders: its characters, per passage, most first."""
        found: list[Share] = []
        for number in self._candidates(tokens(snippet), among):
            text = self.texts[number]
            held: set[int] = set()
            if text and text in snippet:
                start = snippet.find(text)
                held |= set(range(start, start + len(text)))
            tail = _tail_in(text, snippet)
            held |= set(range(_head_in(text, snippet))) | set(range(len(snippet) - tail, len(snippet)))
            if held:
                found.append((number, held))
        return sorted(found, key=lambda share: (-len(share[1]), share[0]))

    def overlaps(self, words: list[str], among: Collection[int] | None = None) -> list[Share]:
        """The token positions of a snippet that passages hold together with a neighbour, per passage, most first.

        A token counts where the pair with the one before or after it stands in the passage: common words alone, which
        every passage holds, are no overlap.
        """
        found: list[Share] = []
        for number in self._candidates(words, among):
            pairs = self._pairs(number)
            held: set[int] = set()
            for position in range(len(words) - 1):
                if (words[position], words[position + 1]) in pairs:
                    held |= {position, position + 1}
            if held:
                found.append((number, held))
        return sorted(found, key=lambda share: (-len(share[1]), share[0]))

    def weights(self, words: list[str]) -> list[float]:
        """How much each token tells: log(1 + passages / passages that hold it); an unknown one weighs the mean."""
        total = len(self.texts)
        known = [math.log1p(total / len(self._postings[word])) for word in words if word in self._postings]
        mean = sum(known) / len(known) if known else 1.0
        return [math.log1p(total / len(self._postings[word])) if word in self._postings else mean for word in words]

    def _candidates(self, words: list[str], among: Collection[int] | None) -> list[int]:
        counted = Counter(words)
        rare = sorted(counted, key=lambda word: (len(self._postings.get(word, ())), word))
        rare = [word for word in rare if word in self._postings][:_RAREST]
        votes: dict[int, float] = {}
        allowed = None if among is None else set(among)
        seen = 0
        for place, (word, weight) in enumerate(zip(rare, self.weights(rare), strict=True)):
            seen += len(self._postings[word])
            if place > 1 and seen > _VISITS:
                break
            for number in self._postings[word]:
                if allowed is None or number in allowed:
                    votes[number] = votes.get(number, 0.0) + weight
        return sorted(votes, key=lambda number: (-votes[number], number))[:_CANDIDATES]

    def _pairs(self, number: int) -> set[tuple[str, str]]:
        if number not in self._bigrams:
            words = tokens(self.texts[number])
            self._bigrams[number] = set(itertools.pairwise(words))
        return self._bigrams[number]


def _contains(text: str, snippet: str, whole_words: bool) -> bool:
    if not whole_words:
        return snippet in text
    start = text.find(snippet)
    while start >= 0:
        end = start + len(snippet)
        if not (_joined(text, start) or _joined(text, end)):
            return True
        start = text.find(snippet, start + 1)
    return False


def _joined(text: str, place: int) -> bool:
    """Whether `place` lies inside a word: "na" is not in "namibia", but a CJK character is its own word."""
    return 0 < place < len(text) and all(
        character.isalnum() and not re.match(f"[{_NO_BLANKS}]", character) for character in text[place - 1: place + 1]
    )


def _head_in(text: str, snippet: str) -> int:
    """How many first characters of the snippet end the text (the longest such piece, 0 where it is too short)."""
    probe = snippet[:_SHORTEST_PIECE]
    start = text.find(probe, max(0, len(text) - len(snippet)))
    while start >= 0:
        if len(text) - start >= _SHORTEST_PIECE and snippet.startswith(text[start:]):
            return len(text) - start
        start = text.find(probe, start + 1)
    return 0


def _tail_in(text: str, snippet: str) -> int:
    """How many last characters of the snippet begin the text."""
    probe = snippet[-_SHORTEST_PIECE:]
    start = text.rfind(probe, 0, len(snippet))
    while start >= 0:
        end = start + len(probe)
        if end >= _SHORTEST_PIECE and snippet.endswith(text[:end]):
            return end
        start = text.rfind(probe, 0, end - 1)
    return 0
