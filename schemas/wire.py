"""The wire format: text to `AssistantMessage` and back, messages to blocks and back.

One reading serves everybody: the filter that drops a malformed turn, the report that counts it
and the penalty that punishes it all ask `parse_message(...).defects`. Reading never raises, loses
no character (`render(parse_message(text)) == text`) and takes time linear in the text, whatever
the text is.

Tags are literal text. Position decides which of them count: a call drafted in the thinking, a tag
in a JSON string or in a code body, and any tag in an observation are text. Where thinking ends,
what the answer is and how responses pair with calls is laid down in docs/wire_format.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from trajcurate.schemas.read_assistant import AssistantReader, call_defect
from trajcurate.schemas.strict_json import decode_json, skip_space
from trajcurate.schemas.tags import (
    ANSWER_CLOSE,
    ANSWER_OPEN,
    CALL_CLOSE,
    CALL_OPEN,
    RESPONSE_CLOSE,
    RESPONSE_OPEN,
    TAG,
    TAG_ANY_CASE,
    THINK_CLOSE,
    THINK_OPEN,
)
from trajcurate.schemas.trajectory import (
    Answer,
    AssistantMessage,
    Block,
    Loose,
    MalformedCall,
    Message,
    ToolCall,
)


def from_messages(messages: Iterable[Mapping[str, str]]) -> tuple[Message, ...]:
    """Read role/content pairs; assistant messages are parsed, the others kept as they are."""
    return tuple(read_message(message["role"], message["content"]) for message in messages)


def to_messages(messages: Iterable[Message]) -> list[dict[str, str]]:
    """Write messages back as role/content pairs: the inverse of `from_messages`."""
    return [
        {
            "role": message.role,
            "content": render(message)
            if isinstance(message, AssistantMessage)
            else message.content,
        }
        for message in messages
    ]


def read_message(role: str, content: str) -> Message:
    """One message, parsed when it is the assistant's."""
    return parse_message(content) if role == "assistant" else Message(role, content)


def parse_message(text: str) -> AssistantMessage:
    """Read an assistant message. Never raises; what is wrong is in `defects`."""
    plain = _parse_plain(text)
    if plain is not None:
        return plain
    exact = AssistantReader(text, TAG).read()
    if not exact.defects:
        return exact
    if len(TAG_ANY_CASE.findall(text)) == len(TAG.findall(text)):
        return exact
    # A tag in another case counts only where the message is not well formed without it.
    return AssistantReader(text, TAG_ANY_CASE).read()


def render(message: AssistantMessage) -> str:
    """The text of a parsed message: the inverse of `parse_message`."""
    return "".join(text for _, text in pieces(message))


def pieces(message: AssistantMessage) -> Iterator[tuple[str, str]]:
    """The message cut into (kind, text) pieces that tile it.

    Kinds: lead, think_open, thought, think_close, call, malformed_call, answer, loose.
    """
    content = message.content
    yield "lead", content[: message.lead_end]
    yield "think_open", content[message.lead_end : message.thought_start]
    yield "thought", content[message.thought_start : message.thought_end]
    yield "think_close", content[message.thought_end : message.body_start]
    for block in message.blocks:
        yield _PIECE_KINDS[type(block)], content[block.start : block.end]


_PIECE_KINDS: dict[type, str] = {
    ToolCall: "call",
    MalformedCall: "malformed_call",
    Answer: "answer",
    Loose: "loose",
}


# --- observations -----------------------------------------------------------------------------


def is_wrapped(content: str) -> bool:
    """Whether an observation is exactly wrapped: nothing outside its response tags."""
    return (
        content.startswith(RESPONSE_OPEN)
        and content.endswith(RESPONSE_CLOSE)
        and len(content) >= len(RESPONSE_OPEN) + len(RESPONSE_CLOSE)
    )


def wrap_response(text: str) -> str:
    """An observation in its wrapper."""
    return f"{RESPONSE_OPEN}\n{text}\n{RESPONSE_CLOSE}"


class ResponseBlock(NamedTuple):
    """One `<tool_response>` block of an observation.

    The block, tags included, is ``[start, end)``; its text, without the tags and the line breaks
    beside them, is ``[text_start, text_end)``. `is_order` marks an order to answer.
    """

    start: int
    end: int
    text_start: int
    text_end: int
    is_order: bool = False


_BLOCK_BORDER = re.compile(r"\n</tool_response>\n<tool_response>(?=\n)")


def response_blocks(reply: Message) -> list[ResponseBlock]:
    """The blocks of an exactly wrapped observation, cut at each border that stands on lines.

    An observation that is not wrapped is one block without tags. Only the outer wrapper and the
    line pairs `</tool_response>`, `<tool_response>` are read; a page that quotes the tags in any
    other way is text. The caller decides whether the cuts count: they do only when the number of
    blocks, orders set aside, equals the number of calls (`pair_responses`).
    """
    content = reply.content
    if not is_wrapped(content):
        return [ResponseBlock(0, len(content), 0, len(content), reply.ends_in_order)]
    starts, ends = [0], []
    if content.find(RESPONSE_OPEN, 1) >= 0:
        for border in _BLOCK_BORDER.finditer(content):
            ends.append(border.start() + 1 + len(RESPONSE_CLOSE))
            starts.append(border.end() - len(RESPONSE_OPEN))
    ends.append(len(content))
    last = len(starts) - 1
    return [
        _response_block(content, start, end, reply.ends_in_order and index == last)
        for index, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


def _response_block(content: str, start: int, end: int, is_order: bool) -> ResponseBlock:
    text_start, text_end = start + len(RESPONSE_OPEN), end - len(RESPONSE_CLOSE)
    if text_start < text_end and content[text_start] == "\n":
        text_start += 1
    if text_start < text_end and content[text_end - 1] == "\n":
        text_end -= 1
    return ResponseBlock(start, end, text_start, text_end, is_order)


class Responses(NamedTuple):
    """How a turn's observation answers its calls.

    `blocks` without orders; `are_paired` when block k answers call k, else the message answers
    all calls together. `order` is the order to answer that closes it, if any.
    """

    blocks: tuple[ResponseBlock, ...]
    are_paired: bool
    order: ResponseBlock | None


def pair_responses(call_count: int, reply: Message | None) -> Responses:
    """Pair the blocks of one observation with the calls of its turn.

    With an unequal number the whole text, orders set aside, is one block that answers all calls.
    """
    if reply is None:
        return Responses((), False, None)
    content = reply.content
    if call_count == 1 and not reply.ends_in_order and content.find(RESPONSE_OPEN, 1) < 0:
        # Nearly every reply: one block that answers one call.
        is_whole = is_wrapped(content)
        only = (
            _response_block(content, 0, len(content), False)
            if is_whole
            else ResponseBlock(0, len(content), 0, len(content))
        )
        return Responses((only,), True, None)
    blocks = response_blocks(reply)
    order = blocks.pop() if blocks[-1].is_order else None
    if len(blocks) == call_count:
        return Responses(tuple(blocks), bool(blocks), order)
    if len(blocks) > 1:
        first, last = blocks[0], blocks[-1]
        blocks = [ResponseBlock(first.start, last.end, first.text_start, last.text_end)]
    return Responses(tuple(blocks), False, order)


# --- the plain form, which nearly every message has -----------------------------------------------


def _parse_plain(text: str) -> AssistantMessage | None:
    """The message as `<think>…</think>`, then one call or one answer, and no tag out of place.

    Returns None for all else, also for sound messages that need a closer look.
    """
    if not text.startswith(THINK_OPEN):
        return None
    thought_end = text.find(THINK_CLOSE, 7)
    body = thought_end + 8
    if thought_end < 0 or text.find(THINK_OPEN, 7) >= 0 or text.find(THINK_CLOSE, body) >= 0:
        return None
    start = skip_space(text, body)
    block: ToolCall | Answer | None
    if text.startswith(CALL_OPEN, start):
        block = _read_plain_call(text, start)
    elif text.startswith(ANSWER_OPEN, start):
        block = _read_plain_answer(text, start)
    else:
        return None
    if block is None:
        return None
    blocks: list[Block] = [Loose(body, start)] if start > body else []
    blocks.append(block)
    if block.end < len(text):
        if skip_space(text, block.end) < len(text):
            return None
        blocks.append(Loose(block.end, len(text)))
    return AssistantMessage("assistant", text, False, 0, 7, thought_end, body, tuple(blocks), ())


def _read_plain_call(text: str, start: int) -> ToolCall | None:
    json_start = skip_space(text, start + 11)
    if not text.startswith("{", json_start):
        return None
    try:
        value, json_end = decode_json(text, json_start)
    except ValueError:
        return None
    close = skip_space(text, json_end)
    if not text.startswith(CALL_CLOSE, close) or call_defect(value) is not None:
        return None
    return ToolCall(
        start, close + 12, json_start, json_end, value["name"], value["arguments"], None
    )


def _read_plain_answer(text: str, start: int) -> Answer | None:
    text_start = start + 8
    close = text.find(ANSWER_CLOSE, text_start)
    if close < 0 or TAG.search(text, text_start, close):
        return None
    if not text[text_start:close].strip():
        return None
    return Answer(start, close + 9, text_start, close)
