"""A scripted judge that can also translate ragas' examples: into sentences of the language, or wrongly on demand."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.support.openai_server import Answer, Request, lexical_judge

SENTENCES = {
    "german": "Der Satz mit der Nummer {} ist nicht wie die anderen.",
    "russian": "Это предложение под номером {}, и оно не как другие.",
    "chinese": "这是第{}个句子，和别的不一样。", "english": "This is the sentence with the number {}.",
}


def texts_of(request: Request) -> list[str] | None:
    """The texts to translate; None where something else is asked."""
    head, mark, tail = request.first_prompt.partition("Statements to translate:\n")
    return list(json.loads(tail)) if mark and "TRANSLATOR" in head else None


def language_of(request: Request) -> str:
    return request.first_prompt.partition(" statements to ")[2].partition(".")[0]


def translated(request: Request) -> list[str]:
    texts = texts_of(request) or []
    return [SENTENCES[language_of(request)].format(texts.index(text) + 1) for text in texts]


def translating(judge: Callable[[Request], Answer | str] = lexical_judge,
                spoil: Callable[[list[str]], list[str]] = list) -> Callable[[Request], Answer | str]:
    """Translates what is to be translated, spoilt by `spoil`; else answers as `judge`."""

    def reply(request: Request) -> Answer | str:
        if texts_of(request) is None:
            return judge(request)
        return json.dumps({"statements": spoil(translated(request))})

    return reply


def adaptations(calls: list[Request]) -> list[str]:
    """The languages that were asked for, a name a call."""
    return [language_of(call) for call in calls if texts_of(call) is not None]
