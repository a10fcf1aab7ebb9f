"""Tokens, sentences and refusals in many scripts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.metrics.text import (
    is_number,
    is_refusal,
    longest_common_subsequence,
    normalized_tokens,
    sentences,
    tokens,
)


@pytest.mark.parametrize(("text", "expected"), [
    ("Hello, World! It's state-of-the-art.", ["hello", "world", "it", "s", "state", "of", "the", "art"]),
    ("1,250.50 and 3.5, or 1990.", ["1250.50", "and", "3.5", "or", "1990"]),
    ("the 3rd, covid19", ["the", "3rd", "covid19"]),
    ("如何重置密码？2024年", ["如", "何", "重", "置", "密", "码", "2024", "年"]),
    ("東京タワーは333mです", ["東", "京", "タ", "ワ", "ー", "は", "333m", "で", "す"]),
    ("ﾃｽﾄ ＡＢＣ", ["テ", "ス", "ト", "abc"]),
    ("서울은 수도이다", ["서울은", "수도이다"]),
    ("भारत की राजधानी", ["भारत", "की", "राजधानी"]),
    ("ภาษาไทย", ["ภ", "า", "ษ", "า", "ไ", "ท", "ย"]),
    ("STRASSE Straße", ["strasse", "strasse"]),
    ("e\u0301t\u00e9", ["\u00e9t\u00e9"]),
    ("٣٫٥ و١٩٩٠", ["3", "5", "و١٩٩٠"]),
    ("foo_bar 😀 !?", ["foo", "bar"]), ("", []),
])
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_numbers() -> None:
    assert [is_number(token) for token in ("1990", "3.5", "3rd", "abc", "x1")] == [True, True, False, False, False]


def test_normalized_tokens() -> None:
    assert normalized_tokens("The U.S. Open, a tournament") == ["us", "open", "tournament"]
    assert normalized_tokens("“密码”, OK") == ["密", "码", "ok"]
    assert normalized_tokens("the") == []


@pytest.mark.parametrize(("text", "expected"), [
    ("One. Two! Three?", ["One.", "Two!", "Three?"]),
    ("Dr. Smith met J. K. Rowling at 5 p.m. in the U.S. capital.", [
        "Dr. Smith met J. K. Rowling at 5 p.m. in the U.S. capital."]),
    ("It costs 3.5 dollars. He said \"No.\" Then he left.", [
        "It costs 3.5 dollars.", "He said \"No.\"", "Then he left."]),
    ("他走了。她问：“为什么？”没有人知道！", ["他走了。", "她问：“为什么？”", "没有人知道！"]),
    ("Es gibt z. B. Brot, u. a. Roggen. Und d. h. mehr.", ["Es gibt z. B. Brot, u. a. Roggen.", "Und d. h. mehr."]),
    ("Это т. е. ответ, см. Рис. 2. Он на ул. Ленина.", ["Это т. е. ответ, см. Рис. 2.", "Он на ул. Ленина."]),
    ("她问：“为什么？”他说没有。", ["她问：“为什么？”他说没有。"]),
    ("“快走！”小明说。没有人动。", ["“快走！”小明说。", "没有人动。"]),
    ("「行くよ！」と彼は言った。雨だった。", ["「行くよ！」と彼は言った。", "雨だった。"]),
    ("他走了.我也走了!你呢?好.", ["他走了.", "我也走了!", "你呢?", "好."]),
    ("版本3.5发布了。Python 3.11更快。", ["版本3.5发布了。", "Python 3.11更快。"]),
    ("等等……他来了。（真的。）好", ["等等……他来了。", "（真的。）", "好"]),
    ("यह पहला है। यह दूसरा है।", ["यह पहला है।", "यह दूसरा है।"]),
    ("- first point\n- second point\n\n1. third", ["first point", "second point", "third"]),
    ("i am not sure. it is small.", ["i am not sure.", "it is small."]),
    ("Is it No. 5? No. It is Nr. 7.", ["Is it No. 5?", "No.", "It is Nr. 7."]),
    ("no end", ["no end"]), ("... !!!", []), ("", []),
])
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


REFUSALS = [
    "I don't know.", "I’m not sure.", "I'm sorry, but I can't help with that.", "Unknown", "N/A",
    "The context does not mention who wrote it.",
    "Not enough information.",
    "Based on the provided context, I cannot determine the answer. Please provide more details.",
    "There is not enough information in the passages to answer.", "The answer cannot be determined from the passages.",
    "I could not find any information about this in the documents.",
    "The documents provided do not contain the answer. They only discuss the river Nile.",
    "Das weiß ich nicht.", "Leider kann ich diese Frage nicht beantworten.", "Der Kontext enthält keine Angaben dazu.",
    "Je ne sais pas.", "Le contexte ne mentionne pas l'auteur.", "No lo sé.", "El texto no menciona al autor.",
    "Lo siento, no puedo responder a esa pregunta.", "Non lo so.", "Il testo non contiene informazioni.", "Não sei.",
    "O contexto não menciona o autor.", "Ik weet het niet.", "Nie wiem.", "Bilmiyorum.", "Я не знаю.",
    "В тексте нет информации об этом.", "我不知道。", "抱歉，我无法回答这个问题。", "上下文中没有提到作者。",
    "わかりません。",
    "情報が見つかりません。",
    "문서에서 찾을 수 없습니다.", "모르겠습니다.", "لا أعرف.", "मुझे नहीं पता।",
]
ANSWERS = [
    "Paris", "No", "None", "Нет", "", "It was founded in 1950.", "The Unknown Soldier", "Unknown Pleasures, in 1979",
    "He did not know that the war was over.", "I don't know him, but he was born in Rome in 1950.",
    "It has six novels, but I do not know their titles.", "I don't know. It was probably founded in 1950.",
    "The museum is not open on Monday.", "The company cannot be sold.", "No, the river is not deep.",
    "Refunds are not available after 30 days.", "You cannot return opened items.",
    "Please send the form to the office.",
    "The treaty does not include fishing rights.", "Sorry, we are closed on Sundays.", "Der Fluss ist nicht tief.",
    "La ville n'a pas d'aéroport.", "Il fiume non è profondo.", "Это не город.", "这不是城市。", "そうではありません。",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusal(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_no_refusal(text: str) -> None:
    assert not is_refusal(text)


WORDS = st.lists(st.sampled_from("abcd"), max_size=12)


@given(WORDS, WORDS)
def test_longest_common_subsequence_equals_the_table(first: list[str], second: list[str]) -> None:
    row = [0] * (len(second) + 1)
    for a in first:
        diagonal = 0
        for j, b in enumerate(second, 1):
            diagonal, row[j] = row[j], diagonal + 1 if a == b else max(row[j], row[j - 1])
    assert longest_common_subsequence(first, second) == row[-1]


@settings(max_examples=50)
@given(st.text(max_size=60))
def test_any_text_goes_through(text: str) -> None:
    assert all(tokens(sentence) or sentence for sentence in sentences(text))
    assert isinstance(is_refusal(text), bool)
    assert all(token.strip() for token in [*tokens(text), *normalized_tokens(text)])
