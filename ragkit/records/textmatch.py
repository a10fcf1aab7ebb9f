"""Where a snippet stands in many passages: exact search and token overlap over one inverted index.

It knows texts alone; what a match means for labels is in gold.py.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import pairwise

# Scripts written without blanks are cut into characters, all others into words.
_NO_BLANKS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(f"[{_NO_BLANKS}]|[^\\W{_NO_BLANKS}]+")
_FEW_TOKENS = 3  # below this a snippet is searched as a whole word or phrase, since no inner token is sure to be whole
_COMMON = 500  # passages; a pair of words in more of them ("of the") finds no candidate
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
    """The texts of passages, with an index of the words and pairs of neighbours that the snippets hold.

    Other words are not in it, so that its size follows the gold, not the corpus.
    Everything is deterministic: passages are numbered in the order given, and equal overlap goes to the first.
    """

    def __init__(self, texts: Iterable[str], snippets: Iterable[str]) -> None:
        self.texts = [normalise(text) for text in texts]
        self._wanted = [tokens(snippet) for snippet in snippets]

    @cached_property
    def _index(self) -> tuple[dict[str, list[int]], dict[tuple[str, str], list[int]]]:
        words: dict[str, list[int]] = {word: [] for snippet in self._wanted for word in snippet}
        pairs: dict[tuple[str, str], list[int]] = {pair: [] for snippet in self._wanted for pair in pairwise(snippet)}
        for number, text in enumerate(self.texts):
            found = tokens(text)
            for word in words.keys() & set(found):
                words[word].append(number)
            for pair in pairs.keys() & set(pairwise(found)):
                pairs[pair].append(number)
        return words, pairs

    def holders(self, snippet: str, among: Collection[int] | None = None) -> list[int]:
        """The passages that hold the whole (normalised) snippet."""
        if not snippet:
            return []
        words = tokens(snippet)
        postings = self._index[0]
        # The first and the last token may be cut; those between are whole, so each holder has all of them.
        inner = sorted(set(words[1:-1]), key=lambda word: (len(postings.get(word, ())), word))[:_FEW_TOKENS]
        if among is not None:
            candidates = sorted(among)
        elif inner:
            lists = [postings.get(word, []) for word in inner]
            candidates = sorted(set(lists[0]).intersection(*lists[1:]))
        else:
            candidates = list(range(len(self.texts)))
        whole_words = len(words) < _FEW_TOKENS
        return [number for number in candidates if _contains(self.texts[number], snippet, whole_words)]

    def overlaps(self, words: Sequence[str], among: Collection[int] | None = None) -> list[Share]:
        """The token positions of a snippet that passages hold together with a neighbour, in the order of passages.

        A token counts where the pair with the one before or after it stands in the passage: common words alone, which
        every passage holds, are no overlap.
        """
        index = self._index[1]
        postings = [index.get(pair, []) for pair in pairwise(words)]
        candidates = sorted(among) if among is not None else self._candidates(postings)
        shares: list[Share] = []
        for number in candidates:
            held: set[int] = set()
            for position, numbers in enumerate(postings):
                place = bisect_left(numbers, number)
                if place < len(numbers) and numbers[place] == number:
                    held |= {position, position + 1}
            if held:
                shares.append((number, held))
        return shares

    def _candidates(self, postings: Sequence[list[int]]) -> list[int]:
        found = [numbers for numbers in postings if numbers]
        telling = [numbers for numbers in found if len(numbers) <= _COMMON] or sorted(found, key=len)[:1]
        votes: dict[int, float] = {}
        for numbers in telling:
            weight = math.log1p(len(self.texts) / len(numbers))
            for number in numbers:
                votes[number] = votes.get(number, 0.0) + weight
        return sorted(sorted(votes, key=lambda number: (-votes[number], number))[:_CANDIDATES])

    def pieces(self, snippet: str, candidates: Iterable[int]) -> list[Share]:
        """The characters that passages hold of a snippet that was cut at their borders."""
        shares: list[Share] = []
        for number in candidates:
            text = self.texts[number]
            held: set[int] = set()
            if text and text in snippet:
                start = snippet.find(text)
                held |= set(range(start, start + len(text)))
            tail = _tail_in(text, snippet)
            held |= set(range(_head_in(text, snippet))) | set(range(len(snippet) - tail, len(snippet)))
            if held:
                shares.append((number, held))
        return shares

    def weights(self, words: Sequence[str]) -> list[float]:
        """How much each token tells: log(1 + passages / passages that hold it); an unknown one weighs the mean."""
        counts = [len(self._index[0].get(word, ())) for word in words]
        known = [math.log1p(len(self.texts) / count) for count in counts if count]
        mean = sum(known) / len(known) if known else 1.0
        return [math.log1p(len(self.texts) / count) if count else mean for count in counts]


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
