"""How people and models say that they cannot answer, in several languages: patterns for one sentence. No logic here."""

from __future__ import annotations

import re

_SOURCE = (r"(?:contexts?|passages?|documents?|texts?|sources?|excerpts?|articles?|snippets?|search results?|"
           r"(?:provided|given|retrieved|available|supplied) \w+|information)")
_UNABLE = r"(?:cannot|can not|can't|could not|couldn't|(?:am|are|'m|'re|was|were) (?:unable|not able) to)"
_HELP = (r"(?:answer|find|determine|provide|tell|say(?! that)|help|assist|locate|give|confirm|verify|respond|identify|"
         r"comply|be (?:sure|certain))")

_ENGLISH = (
    r"\b(?:i|we)(?: \w+)? (?:(?:do not|don't) (?:\w+ )?(?:know|have (?:enough|sufficient|any|the|that|access|an "
    r"answer|information)|see any|find)|(?:did not|didn't) (?:see|find) any)\b",
    rf"\b(?:i|we) ?(?:\w+ )?{_UNABLE} (?:\w+ )?{_HELP}\b",
    r"\b(?:i|we)(?: am| are|'m|'re) not (?:sure|certain)\W*$",
    r"\bi have no (?:idea|information|knowledge|answer|data)\b",
    rf"\b(?:cannot|can't|can not|could not|couldn't) be (?:\w+ )?(?:answered|determined|found|inferred)\b.{{0,40}}"
    rf"(?:{_SOURCE}|from|based|$)",
    rf"\b{_SOURCE}\b[^.]{{0,60}}?\b(?:does not|do not|doesn't|don't|did not|didn't|is not|isn't|are not|aren't|never)"
    r" (?:\w+ ){0,2}?(?:contain|provide|mention|include|say|specify|state|give|address|cover|answer|discuss|indicate|"
    r"sufficient|enough|available|have|tell|reveal|list)",
    r"\b(?:there is|there's|there are|there was|i found|i see|i can find) (?:no|not enough|insufficient) (?:\w+ )?"
    r"(?:information|mention|details?|data|evidence|answer|references?)\b",
    r"\bno (?:relevant |specific |further )?(?:information|answer|mention|evidence|data|details?)\b[^.]{0,30}"
    r"\b(?:found|available|provided|given)\b",
    r"^\W*(?:unknown|n/a|no answer|unanswerable|insufficient (?:information|context|evidence|data)|no (?:information|"
    r"idea|results?)|not (?:available|specified|mentioned|stated|provided|known|found|answerable|given|enough "
    r"(?:information|context|data)|sufficient information))\b[^.,;]{0,45}\W*$",
    r"\bas an ai\b.{0,60}\b(?:not|n't|cannot|unable)\b",
)
_OTHERS = (
    # German
    r"\bich wei(?:ß|ss) (?:es |das )?(?:leider )?nicht\b", r"\bdas wei(?:ß|ss) ich (?:leider )?nicht\b",
    r"\b(?:kann|konnte|können|lässt sich|lassen sich)\b.{0,80}\bnicht (?:\w+ )?(?:beantwort|find|sagen|helfen|bestimm|"
    r"ermittel|feststell|entnehm|gefunden|geben)",
    r"\b(?:es gibt|habe|finde|liegen|enthält|enthalten|finden sich|stehen)\b(?: \w+){0,5} (?:keine|nicht genügend|"
    r"nicht genug|unzureichende|nicht ausreichend) (?:\w+ )?(?:information|angabe|antwort|hinweis|daten)",
    r"\b(?:kontext|text|dokument\w*|passage\w*|quellen?|abschnitt\w*)\b.{0,60}\b(?:nicht|keine)\b",
    r"\bkeine (?:information|angabe|antwort)(?:en)?\W*$",
    # French
    r"\bje ne (?:sais|peux|connais|trouve|dispose|suis)\b.{0,30}\bpas\b", r"\bje n'ai (?:pas|aucune)\b",
    r"\bje l'ignore\b",
    r"\b(?:contextes?|textes?|documents?|passages?|sources?|extraits?)\b.{0,50}\bn(?:e |').{0,40}\b(?:pas|aucun)",
    r"\bil n'y a (?:pas|aucune)\b.{0,30}\binformation", r"\baucune information\b",
    # Spanish
    r"\bno (?:lo )?sé\b", r"\bno (?:puedo|podemos|es posible|se puede)\b.{0,20}\b(?:responder|contestar|encontrar|"
    r"determinar|ayudar|proporcionar)", r"\bno (?:tengo|tenemos|dispongo|hay|encuentro|encontré)\b.{0,30}\b"
    r"(?:información|datos|respuesta)\b",
    r"\b(?:contexto|textos?|documentos?|pasajes?|fuentes?)\b.{0,50}\bno (?:contien|mencion|proporcion|inclu|"
    r"especific|dice|indic)",
    # Italian
    r"\bnon (?:lo )?so\b", r"\bnon (?:posso|sono in grado|è possibile|riesco)\b.{0,30}\b(?:rispond|trovar|"
    r"determin|aiutar|fornir)", r"\bnon (?:ho|ci sono|dispongo)\b.{0,30}\b(?:informazion|risposta|dati)",
    r"\b(?:contesto|test[oi]|document\w+|passagg\w+|font[ei])\b.{0,50}\bnon (?:contien|contengon|menzion|fornisc|"
    r"includ|specific|dic|indic)",
    # Portuguese
    r"\bnão sei\b", r"\bnão (?:posso|consigo|podemos|é possível)\b.{0,20}\b(?:responder|encontrar|determinar|ajudar|"
    r"fornecer)", r"\bnão (?:tenho|há|encontrei|existe)\b.{0,30}\b(?:informaç|dados|resposta)",
    r"\b(?:contexto|textos?|documentos?|trechos?|fontes?)\b.{0,50}\bnão (?:cont|mencion|fornec|inclu|especific|diz|"
    r"indic)",
    # Dutch, Polish, Turkish
    r"\bik weet (?:het |dat )?niet\b", r"\bik kan\b.{0,80}\bniet (?:beantwoord|vind|zeg|help|bepal)",
    r"\b(?:context|tekst|documenten|passages?|bronnen|bron)\b.{0,50}\b(?:niet|geen)\b",
    r"\bnie wiem\b", r"\bnie (?:mogę|mam|znalazł\w*|można)\b.{0,40}\b(?:odpowied|informac|znale|pomóc|określi)",
    r"\b(?:kontekst|tekst|dokument)\w*\b.{0,50}\bnie (?:zawiera|wspomina|podaje|określa)",
    r"\bbilmiyorum\b", r"\b(?:bağlam|metin|belge)\w*\b.{0,60}\b(?:yok|bulunm|belirtilm|içerm)",
    r"\b(?:yanıt|cevap) veremiyorum\b", r"\byeterli bilgi (?:yok|bulunm)",
    # Russian
    r"\bя не знаю\b", r"^\W*не знаю\b", r"\bне (?:могу|удалось|удаётся|удается|нашёл|нашел|нашла)\b.{0,40}\b(?:ответ|"
    r"найти|определ|помочь|сказать|информац)", r"\bнет (?:\w+ )?(?:информации|данных|ответа|сведений)\b",
    r"\bнедостаточно (?:информации|данных|сведений)\b",
    r"\b(?:контекст|текст|документ|отрывк|источник)\w*\b.{0,50}\bне (?:содерж|упомин|указ|сообщ|говор|привод)",
    # Chinese
    r"不知道|不清楚|(?:无法|不能|無法)(?:回答|确定|確定|提供|找到|判断|判斷|得知|从|從|根据|根據)",
    r"(?:上下文|文中|文本|资料|資料|文档|文件|段落|内容|內容|信息).{0,20}(?:没有|沒有|并未|並未|未|不)(?:提供|提到|提及|包含|"
    r"说明|說明|给出|給出|找到|足够|足夠|涉及)", r"没有(?:足够的?|相关的?|找到).{0,8}(?:信息|资料|内容|答案)",
    # Japanese
    r"(?:分|わ)かりません|存じません|(?:お答え|回答)(?:することが)?(?:は)?できません|答えられません|見つかりません",
    r"(?:記載|言及|説明)(?:が|は|されて)?(?:ありません|いません|おりません)|情報(?:が|は).{0,8}(?:ありません|ない|含まれていません)",
    # Korean
    r"모르겠|모릅니다|알 수 없|(?:답변|대답)(?:을)? ?(?:할|드릴) 수 없|찾을 수 없|"
    r"정보(?:가|는) ?(?:없|부족|충분하지 않)|(?:언급|제공|포함|명시)(?:되지|되어 있지|하지|하고 있지) 않",
    # Arabic
    r"لا (?:أعرف|أعلم|أدري)|لا (?:أستطيع|يمكنني|يمكن) (?:ال)?(?:إجابة|اجابة|تحديد|العثور)|لا (?:توجد|تتوفر|يوجد)"
    r" (?:\w+ )?معلومات|(?:السياق|النص|الوثائق|المستند)\w*.{0,40}(?:لا|لم) (?:ي|ت)(?:ذكر|حتو|وفر|تضمن)|غير مذكور",
    # Hindi
    r"(?:नहीं (?:पता|मालूम|जानता|जानती))|(?:पता|मालूम) नहीं|जानकारी.{0,25}(?:नहीं (?:है|मिली)|उपलब्ध नहीं)|"
    r"(?:संदर्भ|पाठ|दस्तावेज़).{0,60}नहीं",
)
_COURTESIES = (
    r"\bsorry\b", r"\bapologi[sz]e", r"^\W*(?:unfortunately|please|thank)\b",
    r"\b(?:please|you (?:may|might|could|can))\b.{0,30}\b(?:provide|check|consult|try|contact|rephrase|share|clarify|"
    r"let me know|ask|refer|give)", r"\blet me know\b", r"\bfeel free\b", r"^\W*if you\b", r"\bwould you like\b",
    r"^\W*they (?:only|merely)\b",
    rf"\b{_SOURCE}\b.{{0,40}}\b(?:only|merely|instead)\b",
    r"\b(?:bitte|leider|entschuldig|tut mir leid)", r"\b(?:désolée?|s'il vous plaît|veuillez|malheureusement)\b",
    r"\b(?:lo siento|por favor|lamentablemente|disculp)", r"\b(?:mi dispiace|per favore|purtroppo)\b",
    r"\b(?:desculp|sinto muito|infelizmente)", r"\b(?:helaas|sorry|alstublieft)\b",
    r"\b(?:przepraszam|niestety|proszę)", r"\b(?:üzgünüm|maalesef|lütfen)\b",
    r"\b(?:извините|к сожалению|пожалуйста|простите)\b",
    r"抱歉|对不起|對不起|请您?提供|請您?提供|申し訳|すみません|残念|ください|죄송|유감|주세요|عذر|آسف|للأسف|क्षमा|माफ|कृपया",
)

REFUSAL = re.compile("|".join((*_ENGLISH, *_OTHERS)), re.IGNORECASE)
"""A sentence that says that the answer is not known or cannot be given."""

COURTESY = re.compile("|".join(_COURTESIES), re.IGNORECASE)
"""A sentence that may stand beside a refusal without making it an answer."""

SOURCE = re.compile(_SOURCE, re.IGNORECASE)
"""What an answer is written from."""

CONTRAST = re.compile(r"\b(?:but|however|although|though|aber|jedoch|allerdings|mais|cependant|pero|sin embargo|ma|"
                      r"però|mas|porém|maar|echter|ale|ama|но|однако)\b|但是?|不过|しかし|ただし|하지만|그러나|لكن|लेकिन",
                      re.IGNORECASE)
"""The word after which a sentence may turn and answer after all."""
