"""How texts speak to a model, in several languages: patterns for folded text, each with the words it needs. No logic.

A pattern is tried only where one of its words (parted by "|") stands in the text, which makes most texts cost nothing.
"""

from __future__ import annotations


def _order(verbs: str, objects: str, which: str) -> str:
    """An order: a verb, then what it is about and which of them is meant, in either order, in the same sentence."""
    near = r"[^.!?\n]{0,60}?\b"
    return rf"\b(?:{verbs})\b(?={near}(?:{objects}))(?={near}(?:{which}))[^.!?\n]{{0,60}}"


_MODEL = (r"(?:ai(?: (?:model|assistant|evaluator|judge|grader|system))?|llm|language model|evaluator|grader|"
          r"(?:ai )?assistant|chatbot)s?")
_FIELD = r"(?:verdict|attributed|rating|grade|score|noncommittal|classifications?|faithful|relevant)"

LEAVE_INSTRUCTIONS = (
    ("ignor|disregard|forget|override|bypass|follow|obey|no attention", _order(
        r"ignore|disregard|forget|override|bypass|(?:do not|don't|stop) (?:follow(?:ing)?|obey(?:ing)?)|"
        r"pay no attention to",
        r"instructions?\b|prompts?\b|rubric\b|guidelines?\b|directions?\b|directives?\b|system message|"
        r"rules? (?:above|before|you)|everything",
        r"previous|prior|above|preceding|earlier|foregoing|your|all\b|any\b|every|original|system|initial|rubric")),
    ("instructions", r"\b(?:new|updated|real|actual) (?:system )?instructions? ?(?::|(?:are|is) (?:as follows|to))"),
    ("from now on", r"\bfrom now on,? you (?:are|will|must|shall)\b"),
    ("you are", r"\byou are (?:now )?(?:an? |the )?(?:\w+ )?(?:ai|language model|chatgpt|llm|assistant|evaluator|judge|"
                r"grader)\b(?= (?:that|who|which|and must|in|with)|[.,:;!])"),
    (" ai|llm|judge|evaluator|grader|language model|assistant|chatbot",
     r"\b(?:attention|note|notice|message|instructions?|reminder) (?:to|for) (?:the |any |all )?(?:ai\b|llms?\b|"
     r"judges?:|evaluators?\b|graders?\b|language models?\b|(?:ai )?assistants?\b|chatbots?\b)"),
    ("evaluator|grader|judge|assistant|language model|llm",
     rf"\b{_MODEL}\s?[:,] (?:please |you (?:must|should) )?(?:rate|ignore|mark|give|treat|score|output|respond|approve|"
     r"when you read)\b|\bas (?:the|an) (?:evaluator|grader|judge|ai),? you (?:should|must)\b|"
     r"\bthe (?:evaluator|grader|judge|llm|language model|assistant) (?:must|should|has to|will) (?:give|output|rate|"
     r"score|return|respond|assign|mark)\b"),
    ("if you are a|if you're a", r"\bif you(?: are|'re) an? (?:ai|llm|language model|assistant|chatbot)\b"),
    ("ai:|ai,|llm|language model|evaluator|grader|assistant|chatbot|<!--",
     rf"\b(?:to|dear|hey) (?:the |any |all )?{_MODEL}\s?[:,]|<!--[^>]{{0,40}}\b(?:llm|ai|assistant|model)s?\b"),
    ("new task|new role|new goal|new objective|pretend|act as",
     r"\b(?:your )?new (?:task|role|goal|objective)s? ?(?::|(?:is|are) to)|\bpretend (?:that )?(?:the|this|all|every) "
     r"(?:context|passage|claim|statement|answer|document)|\b(?:now )?act as (?:dan\b|an? (?:ai|unrestricted|llm))"),
    ("prompt|instructions", r"\b(?:reveal|print|repeat|show|output) (?:me )?(?:your|the) (?:system|hidden|initial) "
                            r"(?:prompt|instructions?)"),
    # German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Turkish
    ("ignorier|missacht|vergiss|vergessen|beachte", _order(
        r"ignorier(?:e|en|t)|missachte(?:n|t)?|vergiss|vergessen|beachte(?:n|t)?",
        r"(?:\w*anweisung|instruktion|vorgabe|prompt|\w*richtlinie|bewertungs)",
        r"(?:alle|vorherig|bisherig|obig|früher|vorangegang|deine|oben)")),
    ("ignore|oublie|pas compte|abstraction", _order(
        r"ignore[rz]?|ignorez|oublie[rz]?|(?:ne )?(?:tiens|tenez) pas compte|fai(?:s|tes) abstraction",
        r"instructions?|consignes?|directives?|prompt", r"précédent|ci-dessus|toutes|antérieur|tes\b|système")),
    ("ignor|olvid|caso omiso|omite|omita|sigas", _order(
        r"ignor(?:a|e|ar|en)|olvid(?:a|e|ar)|ha(?:z|ga) caso omiso|omit(?:e|a)|no sigas",
        r"instruccion|indicacion|directri|prompt", r"anterior|previ|todas|de arriba|tus\b|sistema")),
    ("ignora|dimentica|non seguire|non considerare", _order(
        r"ignora|ignorare|ignorate|dimentica|dimenticate|non (?:seguire|considerare)",
        r"istruzion|indicazion|direttiv|prompt", r"precedent|tutte|sopra|tue\b|sistema")),
    ("ignor|esque|desconsidere", _order(
        r"ignor(?:e|a|ar|em)|esque(?:ça|ce)|desconsidere", r"instruç|diretri|prompt",
        r"anterior|prévi|todas|acima|suas\b|sistema")),
    ("negeer|vergeet|negeren", _order(
        r"negeer|vergeet|negeren", r"instructie|aanwijzing|richtlijn|prompt", r"vorige|eerdere|bovenstaande|alle\b")),
    ("ignoruj|pomiń|zapomnij", _order(
        r"(?:z?ignoruj|pomiń|zapomnij)(?:cie)?", r"instrukcj|polece|wytyczn|prompt",
        r"poprzedn|wszystk|powyższ|wcześniejsz")),
    ("игнорируй|забудь|обращай|следуй|отбрось", _order(
        r"(?:(?:про)?игнорируй|забудь|не обращай|не следуй|отбрось)(?:те)?",
        r"инструкци|указани|промпт|команд|правил", r"предыдущ|все|выше|ранее|прежн|системн|эти")),
    ("talimat|komut|yönerge", r"\b(?:önceki|yukarıdaki|tüm|bütün)\b[^.!?\n]{0,30}(?:talimat|komut|yönerge)\w*"
                              r"[^.!?\n]{0,20}(?:yok say|görmezden gel|dikkate alma|unut)"),
    # Who it speaks to, in the same languages
    ("du bist|sie sind|hinweis|nachricht|anweisung",
     r"\b(?:du bist|sie sind) (?:jetzt|nun|ab jetzt|ab sofort) (?:ein|der)\w* (?:\w+ )?(?:prüfer|assistent|ki\b|modell|"
     r"bewerter|richter)|\b(?:hinweis|nachricht|anweisung) (?:an|für) (?:die ki\b|das (?:sprach)?modell|"
     r"den (?:bewerter|prüfer))"),
    ("vous êtes|tu es|l'ia|le modèle|l'évaluateur",
     r"\b(?:vous êtes|tu es) (?:maintenant|désormais) (?:un|une|le) (?:\w+ )?(?:assistant|évaluateur|juge|ia\b)|"
     r"\b(?:note|message|instruction) (?:pour|à) (?:l'ia\b|le modèle|l'évaluateur|l'assistant)"),
    ("eres|nota para|mensaje para|instrucciones para",
     r"\b(?:ahora eres|eres ahora) (?:un|una|el) (?:\w+ )?(?:asistente|evaluador|juez|ia\b)|"
     r"\b(?:nota|mensaje|instrucciones) para (?:la ia\b|el (?:modelo|evaluador|asistente))"),
    ("ты |вы |для ",
     r"\b(?:ты|вы) (?:теперь|отныне) (?:\w+ )?(?:помощник|ассистент|судья|оценщик|модель)|"
     r"\b(?:сообщение|инструкция|примечание) для (?:ии\b|модели|оценщика|ассистента)"),
    ("你现在是|你現在是|作为|作為",
     r"(?:你现在是|你現在是)[^。！？\n]{0,8}(?:助手|模型|评|評|裁判)|"
     r"(?:作为|作為)(?:一名)?(?:评审|評審|评估者|裁判|评判)[^。！？\n]{0,4}你(?:必须|必須|应|應)"),
    # Chinese, Japanese, Korean, Arabic, Hindi
    ("忽略|无视|無視|忽视|忽視|忘记|忘記|不要",
     r"(?:忽略|无视|無視|忽视|忽視|忘记|忘記|不要理会|不要遵[循守])[^。！？\n]{0,12}"
     r"(?:之前|以前|先前|上面|上述|以上|所有|前面|系统|系統|一切)[^。！？\n]{0,12}"
     r"(?:指令|指示|说明|說明|规则|規則|提示|要求|命令|标准|標準)"),
    ("無視|忘れ|従わない",
     r"(?:以前|前|上記|これまで|すべて|全て|先|システム)[^。！？\n]{0,12}(?:指示|命令|プロンプト|ルール|指令)"
     r"[^。！？\n]{0,6}(?:無視|忘れ|従わない)"),
    ("무시|잊",
     r"(?:이전|위의?|앞의?|모든|시스템)[^.!?\n]{0,15}(?:지시|명령|프롬프트|규칙|지침)[^.!?\n]{0,8}(?:무시|잊)"),
    ("تجاهل|انس|لا تتبع", r"(?:تجاهل|انس[ىَ]?|لا تتبع)[^.!؟\n]{0,20}(?:تعليمات|أوامر|الإرشادات)[^.!؟\n]{0,12}"
                          r"(?:السابق|أعلاه)"),
    ("अनदेखा|नज़रअंदाज़|भूल|उपेक्षा", r"(?:पिछले|पहले|उपरोक्त|सभी|ऊपर)[^।!?\n]{0,30}(?:निर्देश|आदेश)[^।!?\n]{0,20}"
                              r"(?:अनदेखा|नज़रअंदाज़|भूल|उपेक्षा)"),
)
"""Orders to leave the instructions that stand outside the text, or to follow new ones."""

TELL_VERDICT = (
    ("verdict|attributed|rating|grade|score|noncommittal|classification|faithful|relevant",
     rf"[\"'“{{][\"'\s\\]*{_FIELD}[\"'\s\\]*[:=][\"'\s\\]*(?:\d|true|yes|\[|supported|relevant)"),
    ("verdict|rating", r"\b(?:verdict|rating) ?(?:=|:|must be|should be|to be|of|is) ?[\"']?(?:[1-9]|10|yes|true|"
                       r"supported)\b(?!\s*[-/]\s*\d)"),
    ("supported|faithful|attribut|verified|relevant|useful",
     r"\b(?:every|all|each)(?: of)?(?: the| these| those)? (?:statements?|claims?|sentences?|contexts?|passages?) "
     r"(?:(?:above|below|here|in the \w+) )?(?:is|are|must be|should be|has been|have been) (?:\w+ )?"
     r"(?:supported|faithful|attributed|verified|relevant|useful|attributable)\b"),
    ("perfect|full|maximum|highest|top|10/10|5/5|100/100",
     r"\b(?:deserves?|(?:should|must) (?:receive|get|give)|give|award|merits)\b[^.!?,;\n]{0,40}\b"
     r"(?:(?:perfect|full|maximum|highest|top) (?:score|marks?|rating|grade)|10/10|5/5|100/100)"),
    ("perfectly|highly|fully|completely|extremely",
     r"\bthis (?:passage|document|context|text|answer|response) is (?:perfectly|highly|fully|completely|extremely) "
     r"(?:relevant|correct|supported|accurate|faithful)\b"),
    (" as perfect| as correct| as highly| as relevant| as fully| as true| as supported| as faithful| as acc| as attr",
     r"\b(?:score|rate|grade|mark|label|classify|judge|treat) (?:this|the|every|all|it|each)\b[^.!?,;\n]{0,30} as "
     r"(?:perfect|correct|(?:highly |fully )?relevant|true|supported|faithful|accurate|attributed)\b"),
    ("set ", r"\bset (?:the )?(?:attributed|verdict|rating|score|grade) to\b"),
    ("return|output|reply|answer|respond|say",
     r"\b(?:just|always|only|simply) (?:return|output|reply|answer|respond|say)s? (?:with )?[\"']?"
     r"(?:1|yes|true|verdict)\b"),
    ("verdict", r"\bverdict 1\b"),
    ("full marks|score|rating|grade|as fully|as supported|as relevant|as faithful|as useful",
     r"\b(?:mark|rate|score|grade|label|classify|judge|treat|give|assign|award|approve|accept)\b[^.!?,;\n]{0,45}\b"
     r"(?:full marks|(?:the )?(?:highest|maximum|max|top|perfect|best)(?: possible)? (?:score|rating|grade|verdict)|"
     r"as (?:fully )?(?:supported|relevant|faithful|useful)\b)"),
    ("reply|respond|answer|output|return|print|say",
     r"\b(?:reply|respond|answer|output|return|print|say) (?:only |just |exactly |always )*(?:with |by )?"
     r"(?:[\"'“](?:yes|1|true|supported|relevant)[\"'”]|verdict)"),
    ("aussage|behauptung", r"\b(?:jede|alle) (?:behauptung|aussage)\w* (?:ist|sind|gilt|gelten|wird|werden)"
                           r"(?: \w+){0,2} (?:belegt|gestützt|unterstützt)"),
    ("bewert|punktzahl|note|belegt|relevant|hilfreich",
     r"\b(?:bewerte|gib|vergib|antworte)(?:n sie)?\b[^.!?\n]{0,40}(?:höchst\w+ (?:note|bewertung|punktzahl)|"
     r"volle punktzahl|als (?:relevant|hilfreich|belegt))"),
    ("affirmation|déclaration", r"\b(?:toutes les (?:affirmations|déclarations)|chaque (?:affirmation|déclaration)) "
                                r"(?:est|sont)(?: \w+){0,2} (?:soutenue|étayée|confirmée)s?"),
    ("note maximale|meilleure note|note la plus", r"\b(?:note[rz]?|attribue[rz]?|donne[rz]?)\b[^.!?\n]{0,40}\b"
                                                  r"(?:note maximale|meilleure note|note la plus haute)"),
    ("afirmaci|declaraci", r"\b(?:todas las (?:afirmaciones|declaraciones)|cada (?:afirmación|declaración)) "
                           r"(?:está|están|es|son)(?: \w+){0,2} (?:respaldad|apoyad|sustentad)"),
    ("máxima", r"\b(?:califica|puntúa|asigna|otorga|da)\b[^.!?\n]{0,40}\b(?:puntuación máxima|máxima puntuación|"
               r"nota máxima)"),
    ("утверждени|вывод", r"\b(?:все|каждое|каждый) (?:утверждени|вывод)\w+[^.!?\n]{0,20} (?:подтвержд|обоснован|"
                         r"поддержан)"),
    ("балл|оценк", r"\b(?:поставь|оцени|выставь|ответь)(?:те)?\b[^.!?\n]{0,40}(?:высш|максимальн)\w+ (?:балл|оценк)"),
    ("陈述|陳述|语句|語句|声明|聲明|说法",
     r"(?:所有|每个|每個|每一个|全部)[^。！？\n]{0,4}(?:陈述|陳述|语句|語句|声明|聲明|说法)"
     r"[^。！？\n]{0,6}(?:支持|成立)"),
    ("分", r"(?:给|給|打|评|評)[^。！？\n]{0,8}(?:最高分|满分|滿分)"),
    ("点", r"(?:最高点|満点)(?:を|に)[^。！？\n]{0,6}(?:つけ|付け|与え|し)"),
    ("記述|文|主張", r"(?:すべて|全て)の(?:記述|文|主張)[^。！？\n]{0,6}(?:支持|裏付け)"),
    ("최고점|만점", r"(?:최고점|만점)[을를][^.!?\n]{0,6}(?:주|부여|매)"),
)
"""What a judge should find, said in the text that it judges; also a reply ready to be copied."""

PLAY_A_PART = (
    ("system|developer", r"(?:^|[\n>}\])]|-{3,}|#{2,})\s*\**(?:system|developer)(?: (?:prompt|message|note|instruction|"
                         r"override)s?)?\**\s*[:>\]](?!//)"),
    ("assistant|ai:|ai**",
     r"(?:^|\n)\s*\**(?:human|user)\**\s*:[^\n]*\n+(?:[^\n]*\n){0,3}?\s*\**(?:assistant|ai)\**\s*:"),
    ("system|developer|assistant", r"[<\[]\s*/?\s*(?:system|system[_ -]?prompt|developer|assistant)\s*[>\]]"),
    ("system prompt", r"\b(?:begin|start|end)(?: of)? system prompt\b"),
    ("role", r"[\"']role[\"']\s*:\s*[\"'](?:system|assistant|developer|user)[\"']"),
)
"""Markers of who speaks."""

CHAT_TEMPLATE = (
    ("<", r"<\|[a-z_▁ ]{2,24}\|>"),
    ("inst]", r"\[/?inst\]"),
    ("sys>>", r"<</?sys>>"),
    ("_of_turn>", r"<(?:start|end)_of_turn>"),
    ("##", r"(?:^|\n)\s*#{2,4}\s*(?:instructions?|response|system|human|assistant)\s*:?\s*(?:\n|$)"),
)
"""The marks by which models tell turns apart."""

CLOSE_BLOCK = (
    ("</", r"</\s*(?:contexts?|passages?|retrieved\w*|instructions?|prompt|user_?input|untrusted\w*|tool_?results?|"
           r"search_?results?|documents?|input_?json)\s*>"),
    ("output|input|now perform|end of", r"[\"'][\s}\]]*[}\]][\s}\]]*(?:\\n|\s)*(?:output|now perform|new input|input|"
                                        r"end of)\b"),
    ("now perform the same", r"now perform the same with the following input"),
    ("end of", r"\bend of (?:the )?(?:context|input|retrieved \w+)\s*[.:\]\n]"),
    ("end of", r"-{5,}\s*end of (?:input|context|data|document)"),
)
"""What would end the block of data, were it not a JSON string."""
