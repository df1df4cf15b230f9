"""`columns:` of a source: JSON Pointers that say where a format's fields stand in a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trajcurate.curate.adapt.adapted import (
    Adapted,
    Unfit,
    answers_of,
    read_pairs,
    text_of,
    verdict_of,
)

COLUMN_NAMES = (
    "question",
    "answer",
    "messages",
    "system_prompt",
    "id",
    "group",
    "sample",
    "verdict",
)


class PointerError(ValueError):
    """A JSON Pointer that is not one."""


def resolve_pointer(record: Any, pointer: str) -> Any:
    """The value at a JSON Pointer (RFC 6901), or None where the record has nothing there.

    Raises:
        PointerError: the pointer does not start with `/`.
    """
    if not pointer.startswith("/"):
        raise PointerError(f"`{pointer}` is no JSON Pointer: it starts with `/`, as in `/task/id`")
    value = record
    for token in pointer[1:].split("/"):
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(token)
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value


def apply_columns(
    adapted: Adapted, record: Mapping[str, Any], columns: Mapping[str, str]
) -> Adapted | Unfit:
    """Put the values that `columns` points to in place of the format's own."""
    values = {name: resolve_pointer(record, pointer) for name, pointer in columns.items()}
    changes: dict[str, Any] = {}
    if "question" in values:
        changes["question"] = text_of(values["question"])
    if "answer" in values:
        changes["answers"] = answers_of(values["answer"])
    if "system_prompt" in values:
        changes["system_prompt"] = text_of(values["system_prompt"]) or None
    if "group" in values:
        changes["question_id"] = text_of(values["group"])
    if "sample" in values:
        sample = values["sample"]
        changes["sample_index"] = int(sample) if str(sample).isdecimal() else None
    if "verdict" in values:
        changes["verdict"], changes["verdict_score"] = verdict_of(values["verdict"])
    if values.get("id") is not None:
        changes["meta"] = {**(adapted.meta or {}), "source_id": text_of(values["id"])}
    return replace(adapted, **changes)


def with_messages_in_place(
    record: Mapping[str, Any], columns: Mapping[str, str]
) -> Mapping[str, Any]:
    """The record with the messages that `columns` points to under the name adapters look at."""
    if "messages" not in columns:
        return record
    messages = resolve_pointer(record, columns["messages"])
    if isinstance(messages, list) and not isinstance(read_pairs(messages), Unfit):
        return {**record, "messages": messages}
    return record
