"""Which language a question is in, by its script, letters and most frequent words: no network, no model, no package.

For choosing a judge's prompts: where it is not sure it says so, and the prompts stay as they are.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cache

from ragkit.errors import DataError
from ragkit.metrics.text import tokens

AUTO = "auto"
"""Each question's own language."""
ENGLISH = "english"
"""The language that the prompts are written in."""

_CODES = {
    "ar": "arabic", "bg": "bulgarian", "bn": "bengali", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": ENGLISH, "es": "spanish", "fa": "persian", "fi": "finnish", "fr": "french", "gu": "gujarati", "he": "hebrew",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "ja": "japanese",
    "ka": "georgian", "km": "khmer", "kn": "kannada", "ko": "korean", "lo": "lao", "ml": "malayalam", "mr": "marathi",
    "my": "burmese", "ne": "nepali", "nl": "dutch", "no": "norwegian", "nb": "norwegian", "pa": "punjabi",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "si": "sinhala", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "te": "telugu", "th": "thai", "tr": "turkish", "uk": "ukrainian", "ur": "urdu",
    "vi": "vietnamese", "zh": "chinese",
}
# Scripts by their letters. A sign of a script without an alphabet says as much as two or three letters.
_SCRIPTS = {
    "latin": ("a-zA-Z\u00c0-\u024f\u1e00-\u1eff", 1.0), "cyrillic": ("\u0400-\u052f", 1.0),
    "arabic": ("\u0620-\u06ff\ufb50-\ufdff\ufe70-\ufefc", 1.0), "devanagari": ("\u0900-\u097f", 1.0),
    "han": ("\u3400-\u9fff\U00020000-\U0003ffff", 2.5), "kana": ("\u3041-\u30ff", 2.5),
    "korean": ("\u1100-\u11ff\uac00-\ud7af", 2.5), "greek": ("\u0370-\u03ff\u1f00-\u1fff", 1.0),
    "hebrew": ("\u05d0-\u05ea", 1.0), "thai": ("\u0e01-\u0e4e", 1.0), "lao": ("\u0e81-\u0ecd", 1.0),
    "khmer": ("\u1780-\u17b3", 1.0), "burmese": ("\u1000-\u103f", 1.0), "bengali": ("\u0980-\u09ff", 1.0),
    "tamil": ("\u0b80-\u0bff", 1.0), "telugu": ("\u0c00-\u0c7f", 1.0), "kannada": ("\u0c80-\u0cff", 1.0),
    "malayalam": ("\u0d00-\u0d7f", 1.0), "gujarati": ("\u0a80-\u0aff", 1.0), "punjabi": ("\u0a00-\u0a7f", 1.0),
    "sinhala": ("\u0d80-\u0dff", 1.0), "armenian": ("\u0531-\u0587", 1.0), "georgian": ("\u10a0-\u10ff", 1.0),
}
_LETTERS = {script: re.compile(f"[{signs}]") for script, (signs, _) in _SCRIPTS.items()}
_CHINESE_WORDS = re.compile("[的是了吗嗎呢谁誰哪怎什么麼几幾]")
_NO_WORD = re.compile(r"['’]s\b|\d+-\w+")

# The words that questions and sentences cannot do without, and letters that few languages have.
_WORDS = {
    "latin": {
        ENGLISH: "the of and to in is was what who how when where which why did does do many much are were for that it "
                 "with on as by from at be has had have this an a or not his her their its whom whose can will would "
                 "been there after between during about",
        "german": "der die das und ist war was wer wie wann wo welche welcher welches welchem welchen warum wieso "
                  "viele viel den dem des ein eine einer einem einen nicht mit von zu zum zur auf für im in hat haben "
                  "wurde wurden werden wird sind waren es sie er sich nach bei aus durch über als auch vom wen wem "
                  "wessen kann gibt man am an dass wofür womit worin woran worauf worüber wovon wozu weshalb muss "
                  "seine seinen seinem seiner ihre ihren ihr jahr können konnte hatte hatten zwischen oder kein keine "
                  "ich mein meine wir laut vor einige sollte",
        "french": "le la les des du de et est était que qui quoi quand où comment pourquoi quel quelle quels quelles "
                  "combien un une dans pour par sur avec ne pas il elle ils ont été au aux ce cette se son sa ses en "
                  "d l c qu est-ce sont plus fait peut",
        "spanish": "el la los las de del y es fue qué quién quiénes cuándo dónde cómo cuál cuáles cuánto cuántos "
                   "cuántas cuánta por para con un una en que se no su sus al lo son era como más está hay entre desde "
                   "quien cuando donde cual cuantos cuantas cuanto tiene",
        "italian": "il lo la gli le di del della dei delle degli e è che chi cosa quando dove come perché quale quali "
                   "quanti quante quanto un una in per con non si al alla nel nella da dal sono era stato ha cui su "
                   "i dell nell qual più",
        "portuguese": "o a os as de do da dos das e é foi que quem quando onde como por qual quais quantos quantas "
                      "quanto um uma em no na nos nas para com não se ao à pelo pela seu sua são era mais está há",
        "dutch": "de het een en is was wat wie hoe wanneer waar welke welk waarom veel van in op te met voor niet aan "
                 "door bij naar uit zijn werd werden heeft hebben er dat die als ook om hoeveel over wordt",
        "swedish": "och är var vad vem hur när vilken vilket vilka varför många det den en ett som på av till med för "
                   "inte i om har hade från de att blev mycket finns kan sin",
        "danish": "og er var hvad hvem hvordan hvornår hvor hvilken hvilket hvilke hvorfor mange det den en et som på "
                  "af til med for ikke i om har havde fra de at blev meget kan ud",
        "norwegian": "og er var hva hvem hvordan når hvor hvilken hvilket hvilke hvorfor mange det den en et som på av "
                     "til med for ikke i om har hadde fra de å ble mye kan",
        "finnish": "ja on oli mikä kuka miten milloin missä miksi kuinka mitä monta ovat että se ei kun hän ne tai "
                   "joka kenen mistä mihin ollut myös minkä",
        "polish": "i jest był była było co kto jak kiedy gdzie który która które dlaczego ile w na z do nie się to od "
                  "po za przez jaki jaka jakie są o dla czy jakim kim ze roku",
        "czech": "a je byl byla bylo co kdo jak kdy kde který která které proč kolik v na s do ne se to od po za že "
                 "jaký jaká jaké jsou o pro z ve byly při roce",
        "romanian": "și este a fost ce cine cum când unde care de câți câte cât un o în la cu pe nu se din pentru ale "
                    "al sunt era ai lui prin sau dintre",
        "hungarian": "a az és volt mi ki hogyan mikor hol melyik miért hány van nem egy hogy mit milyen kik mennyi "
                     "meg de ez kit ezt voltak után honnan",
        "turkish": "ve bir ne kim nasıl ne zaman nerede hangi neden kaç bu için ile mi mı mu mü da de olarak en çok "
                   "kadar daha var olan nedir kimdir nereye niçin sonra göre",
        "vietnamese": "là và của có gì ai như thế nào khi đâu tại sao bao nhiêu được trong cho các những một người "
                      "không với đã từ ở năm này vào",
        "indonesian": "dan adalah yang apa siapa bagaimana kapan di mana mengapa berapa ini itu untuk dengan dari pada "
                      "ke tidak oleh akan telah dalam apakah sebagai",
    },
    "cyrillic": {
        "russian": "и в не на что кто как когда где какой какая какое какие почему сколько с по это был была было были "
                   "из к у от для его ее их или же чем кого чего кому во при каким каком который до о за после",
        "ukrainian": "і в не на що хто як коли де який яка яке які чому скільки з по це був була було були із до від "
                     "для його її їх або та у про під після якого",
        "bulgarian": "и в не на какво кой как кога къде коя кое кои защо колко с по това е са беше от за се да към "
                     "му му или който при през си със",
        "serbian": "и у не на шта ко како када где који која које зашто колико са по то је су био била из за се да од "
                   "што или којој",
    },
    "devanagari": {
        "hindi": "है हैं था थे थी का की के में से को और कौन क्या कब कहाँ कहां कैसे क्यों कितने कितनी कितना पर ने किस यह वह "
                 "नहीं किया",
        "marathi": "आहे आहेत होता होती होते चा ची चे च्या मध्ये आणि कोण काय कधी कुठे कसे का किती हा ही हे नाही केले",
        "nepali": "छ छन् थियो थिए को मा र को हो कसले के कहिले कहाँ कसरी किन कति लाई बाट यो त्यो छैन गरे भयो",
    },
    "arabic": {
        "arabic": "في من على ما ماذا هو هي متى أين كيف لماذا كم التي الذي إلى عن هل أي كان كانت مع هذا هذه أن لم و بين",
        "persian": "در از به که چه چیست کیست کی کجا کجاست چگونه چرا چند را با این آن است بود شد برای چیزی کدام می و",
        "urdu": "میں سے کا کی کے ہے ہیں تھا تھی کیا کون کب کہاں کیسے کیوں کتنے کو نے پر اور یہ وہ نہیں",
    },
}
_SIGNS = {
    "latin": {"german": "ßäöü", "french": "éèêëçàâîïôûùœ", "spanish": "ñ¿¡áíóú", "italian": "èìòù", "dutch": "ĳ",
              "portuguese": "ãõçâêôà", "swedish": "åäö", "danish": "åæø", "norwegian": "åæø", "finnish": "äö",
              "polish": "łąęśźżćńó", "czech": "řěůčšžťďňýí", "romanian": "țșăâîţş", "hungarian": "őűóüöáé",
              "turkish": "ğışöüç", "vietnamese": "ơưđăạảấầẩậắằặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ"},
    "cyrillic": {"russian": "ыэё", "ukrainian": "іїєґ", "bulgarian": "ъ", "serbian": "јљњђћџ"},
    "devanagari": {"marathi": "ळ"},
    "arabic": {"arabic": "ةىإأؤئ", "persian": "پچژگیک", "urdu": "ٹڈڑںےھہپچگیک"},
}
_SURE = 0.3


def language_name(given: str | None) -> str | None:
    """The English name, in small letters, of a language given by name or code; None for English or nothing.

    >>> language_name("de"), language_name("German"), language_name("en"), language_name("auto")
    ('german', 'german', None, 'auto')
    """
    name = " ".join((given or "").split()).lower()
    name = _CODES.get(name, name)
    if name in ("", ENGLISH):
        return None
    if not re.fullmatch(r"[a-z]+(?:[ -][a-z]+)*", name) or len(name) > 40 or len(name) < 3:
        raise DataError(f"judge language: expected auto, or a language by its English name or code (german, de), "
                        f"got {given!r}")
    return name


def detect_language(text: str) -> str | None:
    """The language of a text by its English name in small letters; None where the text does not tell.

    >>> detect_language("Wer schrieb den Faust?"), detect_language("谁写了红楼梦？"), detect_language("CRISPR-Cas9")
    ('german', 'chinese', None)
    """
    counts: Counter[str] = Counter()
    for script, pattern in _LETTERS.items():
        counts[script] = round(len(pattern.findall(text)) * _SCRIPTS[script][1])
    kana, han = counts["kana"], counts["han"]
    if kana:
        counts["kana"], counts["han"] = kana + han, 0
    if {name for name, weight in counts.most_common(2) if weight} == {"han", "latin"} \
            and not _CHINESE_WORDS.search(text):
        latin = _by_words(text, "latin")  # "What is 中华人民共和国?" is English
        if latin is not None:
            return latin
    enough = counts.total() / 4
    for script, weight in counts.most_common():
        found = _of_script(text, script) if weight and weight >= enough else None
        if found is not None:
            return found
    return None


def _of_script(text: str, script: str) -> str | None:
    if script in _WORDS:
        usual = {"cyrillic": "russian", "devanagari": "hindi", "arabic": "arabic"}
        return _by_words(text, script) or usual.get(script)
    return {"han": "chinese", "kana": "japanese"}.get(script, script)


def _by_words(text: str, script: str) -> str | None:
    """By words and letters, each worth the more the fewer languages have it."""
    scores: dict[str, float] = defaultdict(float)
    words, signs = _weights(script)
    for token in set(tokens(_NO_WORD.sub(" ", text))):
        for language in words.get(token, ()):
            scores[language] += 1 / len(words[token])
    for sign in set(text.lower()):
        for language in signs.get(sign, ()):
            scores[language] += 0.6 / len(signs[sign])
    best, next_best = [*sorted(scores.values(), reverse=True), 0.0, 0.0][:2]
    sure = best >= _SURE and best >= 1.05 * next_best
    return max(scores, key=scores.__getitem__) if sure else None


@cache
def _weights(script: str) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    words: dict[str, list[str]] = {}
    for language, line in _WORDS[script].items():
        for word in dict.fromkeys(tokens(line)):
            words.setdefault(word, []).append(language)
    signs: dict[str, list[str]] = {}
    for language, letters in _SIGNS[script].items():
        for letter in letters:
            signs.setdefault(letter, []).append(language)
    return ({word: tuple(names) for word, names in words.items()},
            {sign: tuple(names) for sign, names in signs.items()})
