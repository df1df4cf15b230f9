"""Settle what stands before the first assistant message: the system prompt and the question."""

from __future__ import annotations

from collections.abc import Sequence

from trajcurate.curate.settle.draft import Draft
from trajcurate.curate.step import Quarantine, TextEdit
from trajcurate.schemas.form import response_shape
from trajcurate.schemas.trajectory import AssistantMessage, Message, Trajectory


def settle_system(draft: Draft) -> Quarantine | None:
    """Put the system message first and make one of several.

    Returns a rejection for a system message behind the opening.
    """
    opening = opening_length(draft.messages)
    systems = [i for i, m in enumerate(draft.messages) if m.role == "system"]
    if systems and systems[-1] >= opening:
        late = next(i for i in systems if i >= opening)
        return draft.quarantine("message_unexplained", late)
    if systems and systems[0] > 0:
        draft.move_to(systems[0], 0, "system_misplaced")
    if len(systems) > 1:
        _join_systems(draft, systems[1:])
    return None


def _join_systems(draft: Draft, others: list[int]) -> None:
    texts = [draft.messages[i].content for i in (0, *others)]
    joined = "\n\n".join(text for text in texts if text.strip())
    if joined.startswith(texts[0]):
        at = len(texts[0])
        change = TextEdit(at, at, joined[at:], "system_split")
    else:
        change = TextEdit(0, len(texts[0]), joined, "system_split")
    if change.after:
        draft.replace_text(0, [change])
    for index in reversed(others):
        draft.remove(index, "system_split")


def settle_question(draft: Draft) -> Quarantine | None:
    """See to it that the first message after the system prompt is the question, and the only one.

    A row that holds its question beside the messages only gets it as a message; a message beside
    the question is not understood.
    """
    first = question_index(draft.messages)
    opening = range(first, opening_length(draft.messages))
    asked = (draft.trajectory.question or "").strip()
    if not opening:
        if not asked or response_shape(asked).is_tagged:
            return Quarantine("question_missing", "$.messages")
        question = Message("user", draft.trajectory.question or "")
        draft.insert(first, question, "question_absent")
        return None
    candidates = [i for i in opening if _may_be_question(draft, i)]
    question_at = next(
        (i for i in candidates if draft.messages[i].content.strip() == asked),
        candidates[0] if candidates else None,
    )
    stray = next((i for i in opening if i != question_at), None)
    return None if stray is None else draft.quarantine("message_unexplained", stray)


def _may_be_question(draft: Draft, index: int) -> bool:
    content = draft.messages[index].content
    return not draft.sources[index].is_from_tool and not response_shape(content).is_tagged


def opening_length(messages: Sequence[Message]) -> int:
    """How many messages stand before the first assistant message."""
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            return index
    return len(messages)


def question_index(messages: Sequence[Message]) -> int:
    """Where the question belongs: behind the system message, if there is one."""
    return 1 if messages and messages[0].role == "system" else 0


def differs_from_question(trajectory: Trajectory, message: Message) -> bool:
    """Whether the row's question is another one than the message, white space aside."""
    question = trajectory.question
    if question is None or question == message.content:
        return False
    folded, asked = message.content.split(), question.split()
    return bool(folded and asked) and folded != asked
