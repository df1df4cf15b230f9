"""Text for terminals: data from outside can hold control codes, and none of them may act."""

from __future__ import annotations

import re

# C0 and C1 controls, delete, and the marks that reorder or hide text; line feed and tab stay.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def safe(text: str) -> str:
    """The text with every control and reordering code spelled out."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shortened(text: str, length: int = 160) -> str:
    """One line of at most `length` characters, controls spelled out."""
    line = safe(text).replace("\n", "\\n").replace("\t", " ")
    return line if len(line) <= length else line[: length - 1] + "…"


def with_caret(text: str, at: int, width: int = 100) -> tuple[str, str]:
    """The line of `text` that holds position `at`, cut to `width`, and a caret below it."""
    at = max(0, min(at, len(text)))
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : len(text) if end < 0 else end]
    column = at - start
    left = max(0, column - width // 2)
    shown = safe(line[left : left + width])
    before = safe(line[left:column])
    return shown, " " * len(before) + "^"
