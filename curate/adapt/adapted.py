"""What an adapter makes of one record: the fields of a trajectory, or why it cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trajcurate.curate.identity import storable_json


@dataclass(frozen=True, slots=True)
class Adapted:
    """A record in our terms.

    `messages` are role/content pairs without the system prompt that the record holds in a field of
    its own (`system_prompt`). `carried` holds the columns of a record that is our own output.
    """

    question: str | None
    answers: tuple[str, ...] | None
    messages: list[dict[str, str]]
    system_prompt: str | None = None
    question_id: str | None = None
    sample_index: int | None = None
    verdict: str | None = None
    verdict_score: float | None = None
    meta: dict[str, Any] | None = None
    carried: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Unfit:
    """A record that the format cannot hold: quarantined with this reason."""

    reason: str
    where: str
    detail: dict[str, Any]


UNFIT_REASONS = {
    "row_unreadable": "the record cannot be read: bad JSON, not UTF-8, or too large",
    "messages_missing": "the record has no list of messages",
    "message_not_pair": "a message is not a role and a content",
    "content_not_text": "a message's content is not text",
}


def read_pairs(value: Any, where: str = "$.messages") -> list[dict[str, str]] | Unfit:
    """A list of role/content pairs with null contents as empty text; Unfit for anything else."""
    if not isinstance(value, list):
        return Unfit("messages_missing", where, {"found": type(value).__name__})
    pairs: list[dict[str, str]] = []
    for index, message in enumerate(value):
        if type(message) is dict and message.keys() == _PAIR and _are_texts(message):
            pairs.append(message)
            continue
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return Unfit("message_not_pair", f"{where}[{index}]", {})
        content = message.get("content")
        if content is None:
            content = ""
        elif not isinstance(content, str):
            found = {"found": type(content).__name__}
            return Unfit("content_not_text", f"{where}[{index}].content", found)
        pairs.append({"role": message["role"], "content": content})
    return pairs


_PAIR = {"role", "content"}


def _are_texts(message: dict[str, Any]) -> bool:
    return type(message["role"]) is str and type(message["content"]) is str


def text_of(value: Any) -> str | None:
    """A scalar as the text that stands for it in the source; structure as JSON text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return storable_json(value)


def answers_of(value: Any) -> tuple[str, ...] | None:
    """The gold answers: one text, or a list of texts that all count."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return tuple(text for item in value if (text := text_of(item)) is not None) or None
    text = text_of(value)
    return None if text is None else (text,)


def verdict_of(value: Any) -> tuple[str | None, float | None]:
    """A recorded verdict or reward: (verdict, score). Only 0 and 1 of a number are a verdict."""
    if isinstance(value, bool):
        return ("correct" if value else "wrong"), float(value)
    if isinstance(value, int | float):
        return {1.0: "correct", 0.0: "wrong"}.get(float(value)), float(value)
    if isinstance(value, str):
        return _VERDICT_WORDS.get(value.strip().lower()), None
    return None, None


_VERDICT_WORDS = {
    "correct": "correct",
    "true": "correct",
    "yes": "correct",
    "wrong": "wrong",
    "incorrect": "wrong",
    "false": "wrong",
    "no": "wrong",
    "undecided": "undecided",
    "no_gold": "no_gold",
    "judge_failed": "judge_failed",
}


def rest_of(record: Mapping[str, Any], used: Sequence[str]) -> dict[str, Any] | None:
    """The fields that no column holds; None when there are none."""
    rest = {k: v for k, v in record.items() if k not in used and v is not None}
    return rest or None
