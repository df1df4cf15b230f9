"""Whether a whole trajectory is in the wire format: the one judgement of it.

The filter that rejects a row, `curate check` that reports it and the penalty that punishes it all
ask `form_problems`. What a single assistant message is worth is in its `defects` (`wire.py`); here
is what messages are to each other, and whether calls are of declared tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trajcurate.schemas.judge_arguments import find_misfit
from trajcurate.schemas.tags import RESPONSE_CLOSE, RESPONSE_OPEN
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import Answer, AssistantMessage, Message, ToolCall
from trajcurate.schemas.wire import is_wrapped


class Problem(NamedTuple):
    """One way in which a trajectory is not in the wire format: what and where.

    The span ``[start, end)`` is of the text of message `message_index`; for a message that is
    not there, it is empty and the index is that of the place where it is missed.
    """

    reason: str
    message_index: int
    start: int
    end: int


def form_problems(messages: Sequence[Message], tools: ToolSet | None = None) -> Iterator[Problem]:
    """All that keeps messages from being a well-formed trajectory, message by message.

    A trajectory that ends on a call or an observation is unfinished and well formed.

    Args:
        messages: the messages, system prompt included if there is one.
        tools: the declared tools; without them calls are judged by their form alone.
    """
    first = 1 if messages and messages[0].role == "system" else 0
    yield from _question_problems(messages, first)
    last = len(messages) - 1
    for index in range(first + 1, len(messages)):
        message = messages[index]
        if isinstance(message, AssistantMessage):
            if index < last:
                yield from _neighbour_problems(message, messages[index + 1], index)
            for reason, start, end in message.defects:
                yield Problem(reason, index, start, end)
            if tools is not None:
                yield from _call_problems(message, index, tools)
        elif message.role != "user":
            reason = "system_misplaced" if message.role == "system" else "role_unknown"
            yield Problem(reason, index, 0, len(message.content))
        else:
            yield from _observation_problems(message, messages[index - 1], index)
    if not any(isinstance(message, AssistantMessage) for message in messages):
        yield Problem("assistant_missing", len(messages), 0, 0)


def _question_problems(messages: Sequence[Message], first: int) -> Iterator[Problem]:
    if first == len(messages):
        yield Problem("question_missing", first, 0, 0)
        return
    question = messages[first]
    is_question = question.role == "user" and question.content.strip()
    if not is_question or response_shape(question.content).is_tagged:
        yield Problem("question_missing", first, 0, 0)
    if isinstance(question, AssistantMessage):
        for reason, start, end in question.defects:
            yield Problem(reason, first, start, end)
        if first + 1 < len(messages):
            yield from _neighbour_problems(question, messages[first + 1], first)


def _neighbour_problems(
    message: AssistantMessage, following: Message, index: int
) -> Iterator[Problem]:
    """What is wrong with an assistant message for not being the last."""
    for block in message.blocks:
        if type(block) is Answer:
            yield Problem("answer_before_end", index, block.start, block.end)
            return
    if isinstance(following, AssistantMessage):
        reason = "call_unanswered" if message.calls else "assistant_split"
        yield Problem(reason, index, 0, len(message.content))


def _observation_problems(message: Message, before: Message, index: int) -> Iterator[Problem]:
    reason = response_defect(message.content)
    if isinstance(before, AssistantMessage):
        if reason is not None:
            yield Problem(reason, index, 0, len(message.content))
    else:
        # Two in a row: a response in two halves, or a message beside the question.
        is_split = reason is None and before.role == "user" and is_wrapped(before.content)
        reason = "response_split" if is_split else "message_unexplained"
        yield Problem(reason, index, 0, len(message.content))


def _call_problems(message: AssistantMessage, index: int, tools: ToolSet) -> Iterator[Problem]:
    for block in message.blocks:
        if type(block) is not ToolCall:
            continue
        spec = tools.tools.get(block.name)
        if spec is None:
            spec = tools.get(block.name)
            if spec is not None:
                yield Problem("tool_name_alias", index, block.start, block.end)
        misfit = find_misfit(block, spec)
        if misfit is not None:
            yield Problem(misfit.reason, index, block.start, block.end)


# --- the wrapper of an observation ------------------------------------------------------------


class ResponseShape(NamedTuple):
    """Which of the two outer response tags a text has, in any case, and where.

    The text without the white space around it is ``[start, end)``; a tag that is there stands at
    its very start or end.
    """

    start: int
    end: int
    has_opening: bool
    has_closing: bool

    @property
    def is_tagged(self) -> bool:
        """Whether either tag is there."""
        return self.has_opening or self.has_closing


def response_shape(content: str) -> ResponseShape:
    """Look for the outer tags of an observation at the ends of its text."""
    start = len(content) - len(content.lstrip())
    end = max(start, len(content.rstrip()))
    has_opening = content[start : start + len(RESPONSE_OPEN)].lower() == RESPONSE_OPEN
    has_closing = content[max(start, end - len(RESPONSE_CLOSE)) : end].lower() == RESPONSE_CLOSE
    return ResponseShape(start, end, has_opening, has_closing)


def response_defect(content: str) -> str | None:
    """Why an observation is not exactly wrapped; None if it is."""
    if is_wrapped(content):
        return None
    shape = response_shape(content)
    if not shape.is_tagged:
        return "response_untagged"
    if not (shape.has_opening and shape.has_closing):
        return "response_tag_missing"
    if is_wrapped(content[shape.start : shape.end]):
        return "response_spaced"
    return "tag_case"
