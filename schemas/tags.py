"""The tags of the wire format. They are literal text, not XML."""

from __future__ import annotations

import re

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"
CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"
ANSWER_OPEN, ANSWER_CLOSE = "<answer>", "</answer>"
RESPONSE_OPEN, RESPONSE_CLOSE = "<tool_response>", "</tool_response>"
CODE_OPEN, CODE_CLOSE = "<code>", "</code>"

TAG = re.compile(r"</?(?:think|tool_call|answer|tool_response|summary|code)>")
TAG_ANY_CASE = re.compile(TAG.pattern, re.IGNORECASE)


def without_tags(text: str) -> str:
    """The text without our tags, in any case: what a person would read."""
    return TAG_ANY_CASE.sub("", text)
