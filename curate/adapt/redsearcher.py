"""Raw REDSearcher rows: `meta{question, answer}`, `messages` without system, `system_prompt`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajcurate.curate.adapt.adapted import Adapted, Unfit, answers_of, read_pairs, rest_of, text_of


def fits(record: Mapping[str, Any]) -> bool:
    """Whether the record has the shape of this format."""
    meta = record.get("meta")
    return (
        isinstance(record.get("messages"), list)
        and isinstance(meta, dict)
        and ("question" in meta or "answer" in meta)
    )


def adapt(record: Mapping[str, Any]) -> Adapted | Unfit:
    """Read one record."""
    messages = read_pairs(record.get("messages"))
    if isinstance(messages, Unfit):
        return messages
    meta = record.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    rest = rest_of(record, ("meta", "messages", "system_prompt")) or {}
    inner = rest_of(meta, ("question", "answer"))
    return Adapted(
        question=text_of(meta.get("question")),
        answers=answers_of(meta.get("answer")),
        messages=messages,
        system_prompt=text_of(record.get("system_prompt")) or None,
        meta={**rest, **({"meta": inner} if inner else {})} or None,
    )
