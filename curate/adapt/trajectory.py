"""From an adapted record to a trajectory with its identity."""

from __future__ import annotations

from typing import Any

from trajcurate.curate.adapt.adapted import Adapted
from trajcurate.curate.identity import question_id, row_id, storable_json
from trajcurate.schemas.trajectory import Message, Origin, Trajectory
from trajcurate.schemas.wire import from_messages


def to_trajectory(adapted: Adapted, origin: Origin) -> Trajectory:
    """The trajectory of a record; a row of our own output keeps its identity and history."""
    pairs = _with_system_first(adapted)
    question = adapted.question if adapted.question is not None else _first_user_text(pairs)
    answers = adapted.answers
    carried = adapted.carried or {}
    messages = from_messages(pairs)
    meta = dict(adapted.meta or {})
    orders = meta.pop("orders", ()) if carried else ()
    return Trajectory(
        origin=_carried_origin(carried) or origin,
        id=carried.get("id") or _row_id(question, answers, pairs),
        question_id=adapted.question_id or question_id(question or ""),
        question=question,
        answer=answers[0] if answers else None,
        answer_aliases=answers[1:] if answers else (),
        messages=_mark_orders(messages, orders) if orders else messages,
        sample_index=adapted.sample_index,
        verdict=adapted.verdict,
        verdict_by=carried.get("verdict_by") or ("source" if adapted.verdict else None),
        verdict_score=adapted.verdict_score,
        edit_count=carried.get("edit_count") or 0,
        flags=tuple(carried.get("flags") or ()),
        meta=storable_json(meta) if meta else None,
    )


def is_copy(adapted: Adapted) -> bool:
    """Whether the record is a further copy of a row of our own output: folded into copy 0."""
    return bool(adapted.carried and adapted.carried.get("copy"))


def _with_system_first(adapted: Adapted) -> list[dict[str, str]]:
    system, messages = adapted.system_prompt, adapted.messages
    if system is None or (messages and messages[0] == {"role": "system", "content": system}):
        return messages
    return [{"role": "system", "content": system}, *messages]


def _first_user_text(pairs: list[dict[str, str]]) -> str | None:
    return next((pair["content"] for pair in pairs if pair["role"] == "user"), None)


def _row_id(
    question: str | None, answers: tuple[str, ...] | None, pairs: list[dict[str, str]]
) -> str:
    system = pairs[0]["content"] if pairs and pairs[0]["role"] == "system" else None
    gold = answers[0] if answers and len(answers) == 1 else answers
    return row_id(question, gold, pairs if system is None else pairs[1:], system)


def _carried_origin(carried: Any) -> Origin | None:
    if not carried:
        return None
    return Origin(carried["source"], carried["source_file"], carried["source_row"])


def _mark_orders(messages: tuple[Message, ...], orders: Any) -> tuple[Message, ...]:
    marked = list(messages)
    for index in orders:
        if isinstance(index, int) and 0 <= index < len(marked) and marked[index].role == "user":
            marked[index] = Message("user", marked[index].content, ends_in_order=True)
    return tuple(marked)
