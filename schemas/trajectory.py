"""What a trajectory is: one question, the messages that work on it, the gold answer if any.

Everything here is frozen and says nothing about how text becomes it (`wire.py`) or what is wrong
with it (`judge.py` for answers, `wire.py` for form). Offsets count characters of the message they
belong to; a span is half-open, ``[start, end)``. Turns and messages are counted from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple


class Origin(NamedTuple):
    """The key of an input row."""

    source: str
    source_file: str
    source_row: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it stands. `ends_in_order` marks an observation whose last block is an order
    to answer: the loop's own words, never evidence.
    """

    role: str
    content: str
    ends_in_order: bool = False


class Defect(NamedTuple):
    """One way in which a message is not in the wire format."""

    reason: str
    start: int
    end: int


class ToolCall(NamedTuple):
    """A call in the one form that counts as well formed: Hermes JSON, with an optional code body.

    The block, tags included, is ``[start, end)``; its JSON object is ``[json_start, json_end)``.
    """

    start: int
    end: int
    json_start: int
    json_end: int
    name: str
    arguments: Mapping[str, Any]
    code: str | None = None


@dataclass(frozen=True, slots=True)
class MalformedCall:
    """A call that cannot be read as it stands: its block, what is wrong with it and where.

    ``[body_start, body_end)`` is the text between the tags; `is_closed` says whether the closing
    tag is there.
    """

    start: int
    end: int
    body_start: int
    body_end: int
    reason: str
    at: int
    is_closed: bool


class Answer(NamedTuple):
    """An answer block; its text is ``[text_start, text_end)``."""

    start: int
    end: int
    text_start: int
    text_end: int


class Loose(NamedTuple):
    """Text beside the blocks: white space in a well-formed message, anything in another."""

    start: int
    end: int


Block = ToolCall | MalformedCall | Answer | Loose


@dataclass(frozen=True, slots=True)
class AssistantMessage(Message):
    """An assistant message as read by `wire.parse_message`.

    The pieces tile the content: lead, opening tag, thought, closing tag, then `blocks` from
    `body_start` to the end. A missing tag is an empty piece.

    Attributes:
        lead_end: where the text before the opening think tag ends.
        thought_start: where the thought begins, behind its opening tag.
        thought_end: where the thought ends, before its closing tag.
        body_start: where everything after the thinking begins.
        blocks: calls, answer and loose text after the thinking, in order, without gaps.
        defects: all that keeps the message from being well formed, in order of position.
    """

    lead_end: int = 0
    thought_start: int = 0
    thought_end: int = 0
    body_start: int = 0
    blocks: tuple[Block, ...] = ()
    defects: tuple[Defect, ...] = ()

    @property
    def thought(self) -> str:
        """The thinking between its tags, white space at its ends removed."""
        return self.content[self.thought_start : self.thought_end].strip()

    @property
    def calls(self) -> list[ToolCall | MalformedCall]:
        """The calls after the thinking, sound or not."""
        return [block for block in self.blocks if isinstance(block, ToolCall | MalformedCall)]

    @property
    def answer(self) -> str | None:
        """The answer after the thinking, white space at its ends removed; None without one."""
        for block in self.blocks:
            if isinstance(block, Answer):
                return self.content[block.text_start : block.text_end].strip()
        return None

    @property
    def is_well_formed(self) -> bool:
        return not self.defects


@dataclass(frozen=True, slots=True)
class Turn:
    """One assistant message with everything that follows it up to the next one.

    Attributes:
        index: the turn's number.
        message_index: where the assistant message stands among the trajectory's messages.
        replies: the messages that answer it, orders included.
    """

    index: int
    message_index: int
    assistant: AssistantMessage
    replies: tuple[Message, ...]


@dataclass(frozen=True)
class Trajectory:
    """One row: its key, what is known of it, and its messages.

    `messages` is the truth; `turns` is a view of it. `answer` is the gold answer (not the
    model's), `meta` JSON text of what the columns do not hold. `flags` are reasons noted by steps
    that were told to flag and not to reject.
    """

    origin: Origin
    id: str
    question_id: str
    question: str | None
    answer: str | None
    messages: tuple[Message, ...]
    answer_aliases: tuple[str, ...] = ()
    sample_index: int | None = None
    verdict: str | None = None
    verdict_by: str | None = None
    verdict_score: float | None = None
    token_count: int | None = None
    edit_count: int = 0
    flags: tuple[str, ...] = ()
    weight: float = 1.0
    turn_weights: tuple[float, ...] | None = None
    meta: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The messages from the first assistant message on, grouped into turns."""
        return tuple(_group_turns(self.messages))

    @property
    def opening(self) -> tuple[Message, ...]:
        """The messages before the first assistant message: system prompt, question, strays."""
        turns = self.turns
        return self.messages[: turns[0].message_index] if turns else self.messages

    @cached_property
    def turn_count(self) -> int:
        """Assistant messages, the answer turn included."""
        return sum(isinstance(message, AssistantMessage) for message in self.messages)

    @property
    def final_answer(self) -> str | None:
        """The answer in the last turn; None when the trajectory ends without one."""
        return self.turns[-1].assistant.answer if self.turns else None

    @property
    def termination(self) -> str:
        """`answered`, `ordered` (answered after an order to answer) or `unfinished`."""
        if not self.turns or self.turns[-1].replies or self.final_answer is None:
            return "unfinished"
        replies = self.turns[-2].replies if len(self.turns) > 1 else ()
        return "ordered" if replies and replies[-1].ends_in_order else "answered"


def _group_turns(messages: tuple[Message, ...]) -> Iterator[Turn]:
    starts = [i for i, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else len(messages)
        assistant = messages[start]
        assert isinstance(assistant, AssistantMessage)
        yield Turn(index, start, assistant, messages[start + 1 : end])
