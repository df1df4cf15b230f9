"""An agent's own rollouts: `request_id, sample_idx, turn, num_turns, messages, finished`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trajcurate.curate.adapt.adapted import (
    Adapted,
    Unfit,
    answers_of,
    read_pairs,
    rest_of,
    text_of,
    verdict_of,
)

_USED = ("sample_idx", "messages", "question", "gt", "reward", "system_prompt")


def fits(record: Mapping[str, Any]) -> bool:
    """Whether the record has the shape of this format."""
    return isinstance(record.get("messages"), list) and any(
        key in record for key in ("sample_idx", "num_turns")
    )


def adapt(record: Mapping[str, Any]) -> Adapted | Unfit:
    """Read one record."""
    messages = read_pairs(record.get("messages"))
    if isinstance(messages, Unfit):
        return messages
    verdict, score = verdict_of(record.get("reward"))
    sample = record.get("sample_idx")
    return Adapted(
        question=text_of(record.get("question")),
        answers=answers_of(record.get("gt")),
        messages=messages,
        system_prompt=text_of(record.get("system_prompt")) or None,
        sample_index=sample if isinstance(sample, int) else None,
        verdict=verdict,
        verdict_score=score,
        meta=rest_of(record, _USED),
    )
