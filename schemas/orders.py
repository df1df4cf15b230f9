"""Orders to answer: the agent loop's own words that end the research and ask for the answer now.

An order is never evidence, result or failure. The phrases of known agent loops are written here as
patterns of their kind: a message or block is known only if it opens with one, so that a page or a
search result that quotes an order, or talks of limits and answers, is not taken for one.
"""

from __future__ import annotations

import re

from trajcurate.schemas.tags import RESPONSE_CLOSE, RESPONSE_OPEN

ORDER_LENGTH = 600  # an order that no phrase is known of is shorter
_KNOWN_LENGTH = 1_000  # of a block, tags included
_BORDER = f"\n{RESPONSE_CLOSE}\n{RESPONSE_OPEN}\n"


def is_known_order(text: str) -> bool:
    """Whether the text is an order to answer of a kind that known agent loops give."""
    if len(text) > _KNOWN_LENGTH:
        return False
    text = text.strip()
    if not asks_for_answer(text):
        return _BARE_LIMIT.fullmatch(text) is not None
    if _OPENING.match(text) is not None:
        return demands_answer(text)
    return len(text) < _PLAIN_LENGTH and _PLAIN_ORDER.match(text) is not None


def ends_in_known_order(content: str) -> bool:
    """Whether the last block of an exactly wrapped observation is a known order."""
    border = content.rfind(_BORDER, -_KNOWN_LENGTH)
    if border >= 0:
        start = border + len(_BORDER)
    elif len(content) <= _KNOWN_LENGTH:
        start = len(RESPONSE_OPEN)
    else:
        return False
    return is_known_order(content[start : -len(RESPONSE_CLOSE)])


def asks_for_answer(text: str) -> bool:
    """Whether the text has a word for an answer in it."""
    return "answer" in text.lower() or "回答" in text or "答案" in text


def demands_answer(text: str) -> bool:
    """Whether the text asks its reader for an answer: more than to have the word in it."""
    return _DEMAND.search(text) is not None


_DEMAND = re.compile(
    r"<answer>|(?:\A|[.!?;,:\n])\s*answer\b(?!\s*(?:[=:]|is\b|was\b))"
    r"|\banswer\b[^.!?\n]{0,40}\b(?:now|immediately)\b"
    r"|\b(?:please|must|should|need to|now|your|give|provide|write|state|output|submit|produce)\b"
    r"[^.!?\n]{0,80}\banswer"
    r"|(?:请|必须|应当?|需要|现在|立即|马上|直接|你的|您的|给出)[^。！？\n]{0,40}(?:回答|答案)",
    re.IGNORECASE,
)

_BARE_LIMIT = re.compile(
    r"(?:sorry, )?(?:the )?(?:number of )?(?:llm|tool|model) calls? (?:count )?"
    r"(?:exceeds?|has exceeded|have exceeded|reached) the (?:limit|maximum)\.?",
    re.IGNORECASE,
)

# What runs out, and how it is said.
_SCARCE = (
    r"(?:context|tokens?|length|tool|calls?|turns?|rounds?|iterations?|steps?|llm|search(?:es)?"
    r"|quer(?:y|ies)|reads?|visits?|actions?|attempts?|interactions?|budget|window|time)"
)
_SPENT = r"(?:reached|exceeded|exceeds?|hit|exhausted|used\s+up|run\s+out|ran\s+out|full)"
_UPTO = r"[^.!?\n]{0,80}?"  # within one sentence

_OPENING = re.compile(
    rf"""
    (?:\[?(?:note|notice|system|warning|attention|important)\s*[\]:：]\s*|sorry,?\s+)?
    (?:
      you(?:['’]ve|\s+have)?\s+(?:now\s+|already\s+)?{_SPENT}\b{_UPTO}\b{_SCARCE}\b
    | (?:the\s+|your\s+|this\s+)?(?:(?:maximum|max\.?|number|limit)\s+(?:\w+\s+){{0,4}}?)?
      {_SCARCE}\b{_UPTO}\b{_SPENT}\b
    | (?:the\s+|your\s+)?time\s+is\s+(?:up|over)\b
    | there\s+is\s+no\s+(?:more\s+)?(?:room|space|context|budget|time)\s+left\b
    | (?:you\s+are|you['’]re)\s+(?:now\s+)?(?:out\s+of|at\s+the\s+(?:limit|maximum)\s+of)\s+
      (?:\w+\s+){{0,3}}?{_SCARCE}\b
    | no\s+(?:more|further)\s+tool\s+(?:calls?|use)\b
    | (?:you\s+(?:must|should|need\s+to)\s+)?(?:now\s+)?
      (?:stop|do\s+not|don['’]t)\s+(?:mak|call|us|invok)(?:e|ing)?\s+
      (?:any\s+|more\s+|further\s+)*(?:tools?|tool\s+calls?)\b
    | (?:抱歉|对不起)?[，,]?\s*(?:你|您|当前|目前|系统|本次)?(?:的)?(?:现在|已经|已)*
      (?:达到|到达|超过|超出|用完|用尽|耗尽)了?[^。！？\n]{{0,30}}?
      (?:上限|限制|最大|上下文|长度|次数|轮次|轮数|步数|预算)
    | (?:你|您|当前|目前)?(?:的)?(?:最大)?
      (?:上下文|工具|调用|对话|搜索|推理|迭代|轮次|轮数|步数|次数|长度|预算|时间|token)
      [^。！？\n]{{0,20}}?(?:达到|到达|超过|超出|用完|用尽|耗尽|已满|不足)
    | (?:请|必须|你必须|您必须|现在|立即|马上)*(?:停止|不要再|不要继续|请勿|禁止|勿再)(?:再|继续)?
      (?:调用|使用)(?:任何|更多)?工具
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)

# Without a word on the limit: short, and the demand comes first.
_PLAIN_LENGTH = 300
_PLAIN_ORDER = re.compile(
    r"(?:please\s+|you\s+must\s+|now,?\s+|it\s+is\s+time\s+to\s+)+"
    r"(?:now\s+|directly\s+|immediately\s+)?"
    r"(?:answer\s+(?:now\b|the\s+question\b|directly\b|immediately\b)"
    r"|(?:give|provide|write|state|output|submit|produce)\s+(?:me\s+)?(?:the|your|a)\s+"
    r"(?:entire\s+|single\s+|best\s+|most\s+likely\s+|final\s+)*answer\b)"
    r"|answer\s+(?:the\s+question\s+)?(?:now|immediately)\b"
    r"|(?:现在|立即|马上)*请(?:你|您)?(?:现在|立即|马上|直接)+[^。！？\n]{0,40}(?:回答|答案)"
    r"|请(?:你|您)?(?:根据|基于)[^。！？\n]{0,40}(?:回答|答案)",
    re.IGNORECASE,
)
