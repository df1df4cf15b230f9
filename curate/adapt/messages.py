"""Cleaned rows: `question`, `messages` (system first), `gt`; and our own `data/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from trajcurate.curate.adapt.adapted import Adapted, Unfit, answers_of, read_pairs, rest_of, text_of

_OWN_COLUMNS = {"id", "question_id", "messages", "turn_count", "source_file", "source_row", "copy"}


def fits(record: Mapping[str, Any]) -> bool:
    """Whether the record has the shape of this format."""
    messages = record.get("messages")
    if not isinstance(messages, list) or isinstance(record.get("meta"), dict):
        return False
    if any(key in record for key in ("sample_idx", "num_turns")):
        return False
    return not any(isinstance(m, dict) and _is_structured(m) for m in messages)


def _is_structured(message: Mapping[str, Any]) -> bool:
    return any(message.get(key) is not None for key in ("tool_calls", "tool_call_id"))


def adapt(record: Mapping[str, Any]) -> Adapted | Unfit:
    """Read one record."""
    messages = read_pairs(record.get("messages"))
    if isinstance(messages, Unfit):
        return messages
    if record.keys() >= _OWN_COLUMNS:
        return _continue(record, messages)
    answer = record.get("gt") if record.get("gt") is not None else record.get("answer")
    return Adapted(
        question=text_of(record.get("question")),
        answers=answers_of(answer),
        messages=messages,
        system_prompt=text_of(record.get("system_prompt")) or None,
        meta=rest_of(record, ("question", "answer", "gt", "messages", "system_prompt")),
    )


def _continue(record: Mapping[str, Any], messages: list[dict[str, str]]) -> Adapted:
    """A row of our own output goes on as the row it was."""
    answer = record.get("answer")
    answers = None if answer is None else (answer, *(record.get("answer_aliases") or ()))
    meta = record.get("meta")
    return Adapted(
        question=record.get("question"),
        answers=answers,
        messages=messages,
        question_id=record.get("question_id"),
        sample_index=record.get("sample_index"),
        verdict=record.get("verdict"),
        verdict_score=record.get("verdict_score"),
        meta=orjson.loads(meta) if meta else None,
        carried=record,
    )
