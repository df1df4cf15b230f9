"""A guess at the language of a question, from its script and, for Latin script, a few words."""

from __future__ import annotations

import re

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u3400-\u9fff\uf900-\ufaff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("el", re.compile("[\u0370-\u03ff]")),
)
_ENGLISH = re.compile(
    r"\b(?:the|of|and|which|what|who|when|where|how|is|was|in|that|this|did|are|by)\b", re.I
)
_LETTER = re.compile(r"[^\W\d_]")

# A CJK character says about as much as a short word; a name in another script is no change of
# language.
_SHARE = {"ja": 0.05, "ko": 0.1, "zh": 0.1}


def guess_language(text: str) -> str:
    """The language as an ISO 639-1 code; `und` where script and common words do not tell."""
    if not text.isascii():
        letters = len(_LETTER.findall(text)) or 1
        for code, pattern in _SCRIPTS:
            if len(pattern.findall(text)) / letters > _SHARE.get(code, 0.3):
                return code
    return "en" if _ENGLISH.search(text) else "und"
