"""Words and sentences of a text in any script, and whether an answer is a refusal. No model, no word lists but those
of refusals.py."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ragkit.metrics.refusals import CONTRAST, COURTESY, REFUSAL, SOURCE

# Scripts written without spaces: every character counts as a word, with the marks that belong to it.
_UNSPACED = ("\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
             "\uf900-\ufaff\U00020000-\U0003ffff\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3"
             "\u0ebd-\u0ec6\u0edc-\u0edf\u1000-\u102a\u103f\u1050-\u1055\u1780-\u17b3")
_UNSPACED_MARKS = ("\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3"
                   "\u3099\u309a")
# \w leaves out combining marks, without which Hindi, Bengali, Tamil and pointed Hebrew or Arabic fall to pieces.
_MARKS = ("\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
          "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0dff\u200c\u200d")
_SPACED = rf"(?![{_UNSPACED}])(?:[^\W_]|[{_MARKS}])"
_TOKEN = re.compile(rf"[{_UNSPACED}][{_UNSPACED_MARKS}]*|\d+(?:[.,]\d+)*(?!{_SPACED})|(?:{_SPACED})+")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_CHUNK = re.compile(rf"[{_UNSPACED}][{_UNSPACED_MARKS}]*|[^\s{_UNSPACED}]+")

_CLOSING = "\"'”’»)\\]」』）】"
_END = re.compile(rf"[.!?…]+[{_CLOSING}]*(?=\s)|[。！？｡؟۔।॥]+[{_CLOSING}]*"
                  rf"|(?<=[{_UNSPACED}])[.!?．]+[{_CLOSING}]*(?=[{_UNSPACED}])|\n+")
# What follows a quotation that ends with a full stop of its own, and still belongs to its sentence.
_SAID = re.compile("と|って|[他她我你您]?[们們]?(?:[说說喊]|[问問答]道)|[\u3400-\u9fff]{2,3}[说說][，。]")
_ABBREVIATIONS = frozenset((  # noqa: SIM905 - a list of 70 quoted words is no easier to read
    "mr mrs ms dr prof st vs e.g i.e inc ltd co jr sr fig al approx ca cf gen gov sen rep capt "
    "col lt sgt rev hon mt bzw z.b d.h u.a usw ggf vgl sog abs art p pp vol ed eds dept "
    "ул им см рис стр проф акад "
    "univ assn bros est jan feb mar apr jun jul aug sep sept oct nov dec").split())
_BULLET = re.compile(r"^\s*(?:[-*•‣·–—]|\(?\d{1,2}[.)]|#+)\s+")


def tokens(text: str) -> list[str]:
    """The words of a text, case folded, compatibility forms made one; without punctuation.

    Chinese, Japanese kana, Thai, Lao, Khmer and Burmese give one token a character. A number stays whole.

    >>> tokens("The U.S. paid 1,250.50 dollars"), tokens("重置密码")
    (['the', 'u', 's', 'paid', '1250.50', 'dollars'], ['重', '置', '密', '码'])
    """
    return [_plain_number(token) if token[0].isdigit() else token
            for token in _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())]


def is_number(token: str) -> bool:
    """Whether a token of tokens() is a number: digits with separators only."""
    return token[0].isdigit() and token[-1].isdigit() and all(c.isdigit() or c in ".," for c in token)


def normalized_tokens(text: str) -> list[str]:
    """The tokens that answers are compared by: case folded, no punctuation, no English article (as SQuAD has it).

    >>> normalized_tokens("The Eiffel-Tower, in Paris!")
    ['eiffeltower', 'in', 'paris']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(c for c in folded if unicodedata.category(c)[0] not in "PS" and unicodedata.category(c) != "Cf")
    return _CHUNK.findall(re.sub(r"\b(a|an|the)\b", " ", kept))


def sentences(text: str) -> list[str]:
    """The sentences of a text in their order; a line break ends one too. Pieces without a word are dropped.

    >>> sentences("Dr. Li came in 1.5 hours. Why? 他走了。我也走了。")
    ['Dr. Li came in 1.5 hours.', 'Why?', '他走了。', '我也走了。']
    """
    found, start = [], 0
    cased = text != text.lower()
    for match in _END.finditer(text):
        if _ends_sentence(text, start, match, cased):
            found.append(text[start:match.end()])
            start = match.end()
    found.append(text[start:])
    stripped = (_BULLET.sub("", piece).strip() for piece in found)
    return [piece for piece in stripped if _TOKEN.search(piece)]


def is_refusal(answer: str) -> bool:
    """Whether an answer only says that it cannot be given ("I don't know", "the context does not say").

    Every sentence must refuse, or be a courtesy, and at least one must refuse. Knows English, German, French,
    Spanish, Italian, Portuguese, Dutch, Polish, Russian, Turkish, Chinese, Japanese, Korean, Arabic and Hindi.

    >>> is_refusal("I'm sorry, but I don't know."), is_refusal("I don't know him, but he was born in Rome in 1950.")
    (True, False)
    """
    refused = False
    for part in sentences(answer.replace("’", "'")):
        if _refuses(part):
            refused = True
        elif not COURTESY.search(part):
            return False
    return refused


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest sequence of tokens that stands in both in this order, gaps allowed.

    One bit a token of the shorter one (Hyyrö 2004), so that a long context costs one big-integer step a token.

    >>> longest_common_subsequence("a b c d".split(), "a x c y d".split())
    3
    """
    short, long = (first, second) if len(first) <= len(second) else (second, first)
    places: dict[str, int] = {}
    for place, token in enumerate(short):
        places[token] = places.get(token, 0) | 1 << place
    everything = (1 << len(short)) - 1
    open_places = everything
    for token in long:
        matched = open_places & places.get(token, 0)
        if matched:
            open_places = ((open_places + matched) | (open_places - matched)) & everything
    return len(short) - open_places.bit_count()


def _plain_number(token: str) -> str:
    if not token.isascii():
        token = "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in token)
    return token.replace(",", "") if _THOUSANDS.fullmatch(token) else token


def _ends_sentence(text: str, start: int, match: re.Match[str], cased: bool) -> bool:
    mark = match.group()
    if mark[-1] in _CLOSING and mark[0] in "。！？" and _SAID.match(text, match.end()):
        return False
    if not mark.startswith(".") or re.match(f"[{_UNSPACED}]", text[match.end():match.end() + 1]):
        return True
    following = text[match.end():].lstrip()[:1]
    if cased and following.islower():  # in a text without capitals a small letter says nothing
        return False
    words = text[start:match.start()].split()
    last = words[-1].lstrip("(\"'“„«") if words else ""
    if len(last) == 1 and last.isupper() and last != "I":  # an initial
        return False
    if len(last) == 1 and last.isalpha() and (re.match(r"\s+[^\W\d_]\.", text[match.end():])  # "z. B.", "u. a. Roggen"
                                              or (len(words) > 1 and re.fullmatch("[a-z][.]", words[-2]))):
        return False
    if last.isdigit() and len(words) == 1:  # the number of a list item
        return False
    if following.isdigit() and last.lower() in ("no", "nr"):  # "No. 5", but not "No. That is all."
        return False
    return last.lower() not in _ABBREVIATIONS


def _refuses(sentence: str) -> bool:
    match = REFUSAL.search(sentence)
    if match is None:
        return False
    before = CONTRAST.split(sentence[:match.start()])
    if len(before) > 1 and len(tokens(before[0])) > 3 and not COURTESY.search(before[0]) \
            and not SOURCE.search(before[0]):
        return False  # "It has six novels, but I do not know their titles"
    turn = CONTRAST.search(sentence, match.end())
    if turn is None:
        return True
    rest = sentence[turn.end():]
    return len(tokens(rest)) < 4 or REFUSAL.search(rest) is not None or COURTESY.search(rest) is not None
