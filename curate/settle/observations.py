"""Settle what stands between two assistant messages: responses in their wrappers, orders last.

All messages behind one assistant message are read first and changed after, so that a row that is
not understood is left as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from trajcurate.curate.settle.draft import Draft
from trajcurate.curate.step import Quarantine, TextEdit
from trajcurate.schemas.form import ResponseShape, response_shape
from trajcurate.schemas.orders import (
    ORDER_LENGTH,
    asks_for_answer,
    demands_answer,
    ends_in_known_order,
    is_known_order,
)
from trajcurate.schemas.tags import CALL_OPEN, RESPONSE_CLOSE, RESPONSE_OPEN, THINK_OPEN
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import AssistantMessage, Message, ToolCall
from trajcurate.schemas.wire import is_wrapped, parse_message, response_blocks, wrap_response

Orders = Literal["wrap", "keep", "quarantine"]


def settle_observations(draft: Draft, tools: ToolSet, orders: Orders) -> Quarantine | None:
    """Wrap and join the messages behind each assistant message, orders to answer among them.

    Returns a rejection if one of them is not understood.
    """
    index = 0
    while index < len(draft.messages):
        if not isinstance(draft.messages[index], AssistantMessage):
            index += 1
            continue
        rejection = _settle_replies(draft, index, tools, orders)
        if rejection is not None:
            return rejection
        index += 1
    return None


def reads_as_call_turn(content: str) -> bool:
    """Whether a text is a well-formed assistant message with a call."""
    if CALL_OPEN not in content or not content.lstrip().startswith(THINK_OPEN):
        return False
    message = parse_message(content)
    return message.is_well_formed and bool(message.calls)


class _Kind(Enum):
    RESPONSE = "one or more responses"
    ENDS_IN_ORDER = "responses with an order behind them"
    ORDER = "an order alone"


@dataclass(frozen=True, slots=True)
class _Reply:
    """What a message is, its text in wrappers, and the changes that make it so."""

    kind: _Kind
    wrapped: str
    changes: tuple[TextEdit, ...] = ()

    @property
    def is_untagged_order(self) -> bool:
        return any(change.reason == "order_to_answer" for change in self.changes)


def _settle_replies(draft: Draft, index: int, tools: ToolSet, orders: Orders) -> Quarantine | None:
    assistant = draft.messages[index]
    assert isinstance(assistant, AssistantMessage)
    start = index + 1
    end = _join_cut_wrappers(draft, start, _end_of_replies(draft, start))
    turn = _Turn(assistant, tools)
    replies: list[_Reply] = []
    for at in range(start, end):
        is_last = at == len(draft.messages) - 1
        reply = turn.read(draft.messages[at], draft.sources[at].is_from_tool, is_last)
        follows_order = bool(replies) and replies[-1].kind is not _Kind.RESPONSE
        if reply is None or (follows_order and reply.kind is not _Kind.ORDER):
            return draft.quarantine("message_unexplained", at)
        if reply.kind is not _Kind.RESPONSE and orders == "quarantine":
            return draft.quarantine("order_to_answer", at)
        replies.append(reply)
    if orders == "keep":
        replies = _leave_orders(draft, start, replies)
    _write_replies(draft, start, replies)
    return None


def _end_of_replies(draft: Draft, start: int) -> int:
    end = start
    while end < len(draft.messages) and not isinstance(draft.messages[end], AssistantMessage):
        end += 1
    return end


# --- reading ----------------------------------------------------------------------------------


class _Turn:
    """Reads the messages behind one assistant message."""

    def __init__(self, assistant: AssistantMessage, tools: ToolSet) -> None:
        self.heads = tools.heads
        self.call_count = len(assistant.calls)
        self.response_count = 0
        called = [tools.get(c.name) for c in assistant.calls if isinstance(c, ToolCall)]
        # A tool that is not declared, or that declares no heads, may say anything.
        self.takes_any_text = any(spec is None or not spec.heads for spec in called)

    def read(self, message: Message, is_from_tool: bool, is_last: bool) -> _Reply | None:
        """What the message is; None if it is not understood."""
        content = message.content
        reply: _Reply | None
        if is_wrapped(content):
            reply = _read_wrapped(content, is_order=message.ends_in_order)
        elif message.ends_in_order:
            reply = _untagged(content, _Kind.ORDER)
        else:
            reply = self._read_tagged(content, is_last)
            if reply is None:
                reply = self._read_untagged(content, is_from_tool, is_last)
        if reply is not None and reply.kind is not _Kind.ORDER:
            self.response_count += 1
        return reply

    def _read_tagged(self, content: str, is_last: bool) -> _Reply | None:
        shape = response_shape(content)
        if not shape.is_tagged:
            return None
        changes = _wrapper_changes(content, shape)
        if changes is not None:
            return _read_wrapped(_changed(content, changes), changes)
        tail = _tail_start(content, shape)
        if tail is None or not self._is_order(content[tail : shape.end], is_last, strictly=True):
            return None
        changes = _tail_changes(content, shape, tail)
        return _Reply(_Kind.ENDS_IN_ORDER, _changed(content, changes), changes)

    def _read_untagged(self, content: str, is_from_tool: bool, is_last: bool) -> _Reply | None:
        is_tagged = response_shape(content).is_tagged
        if not is_tagged and is_known_order(content):
            return _untagged(content, _Kind.ORDER)
        if is_from_tool or content.lstrip().startswith(self.heads):
            return _untagged(content, _Kind.RESPONSE)
        if not content.strip():
            is_response = self.response_count < self.call_count
            return _untagged(content, _Kind.RESPONSE) if is_response else None
        if not is_tagged and self._is_order(content, is_last, strictly=self.takes_any_text):
            return _untagged(content, _Kind.ORDER)
        return _untagged(content, _Kind.RESPONSE) if self.takes_any_text else None

    def _is_order(self, text: str, is_last: bool, *, strictly: bool) -> bool:
        """Whether a text that begins like no tool's response is an order to answer.

        Args:
            text: the text without tags.
            is_last: whether it ends the trajectory, so that nobody answered it.
            strictly: the word alone is not enough, for the text may be a response as well.
        """
        if is_known_order(text):
            return True
        if is_last or len(text.strip()) >= ORDER_LENGTH or text.lstrip().startswith(self.heads):
            return False
        asks = demands_answer(text) if strictly else asks_for_answer(text)
        return asks and not reads_as_call_turn(text)


def _read_wrapped(
    content: str, changes: tuple[TextEdit, ...] = (), *, is_order: bool = False
) -> _Reply:
    if not is_order and not ends_in_known_order(content):
        return _Reply(_Kind.RESPONSE, content, changes)
    is_alone = len(response_blocks(Message("user", content))) == 1
    return _Reply(_Kind.ORDER if is_alone else _Kind.ENDS_IN_ORDER, content, changes)


def _untagged(content: str, kind: _Kind) -> _Reply:
    reason = "order_to_answer" if kind is _Kind.ORDER else "response_untagged"
    end = len(content)
    changes: tuple[TextEdit, ...] = (
        TextEdit(0, 0, f"{RESPONSE_OPEN}\n", reason),
        TextEdit(end, end, f"\n{RESPONSE_CLOSE}", reason),
    )
    if not content:
        changes = (TextEdit(0, 0, wrap_response(""), reason),)
    return _Reply(kind, wrap_response(content), changes)


def _wrapper_changes(content: str, shape: ResponseShape) -> tuple[TextEdit, ...] | None:
    """What makes an exact wrapper of the tags at the ends; None where that takes a guess."""
    if not (shape.has_opening and shape.has_closing):
        surplus = _surplus_openings(content)
        if surplus != (1 if shape.has_opening else -1):
            return None
    changes = _around_opening(content, shape)
    if shape.has_closing:
        at = shape.end - len(RESPONSE_CLOSE)
        changes += _tag_case(content, at, RESPONSE_CLOSE)
        if shape.end < len(content):
            changes.append(TextEdit(shape.end, len(content), "", "response_spaced"))
    else:
        closing = RESPONSE_CLOSE if content.endswith("\n") else f"\n{RESPONSE_CLOSE}"
        changes.append(TextEdit(len(content), len(content), closing, "response_tag_missing"))
    return tuple(changes)


def _around_opening(content: str, shape: ResponseShape) -> list[TextEdit]:
    if not shape.has_opening:
        opening = RESPONSE_OPEN if content.startswith("\n") else f"{RESPONSE_OPEN}\n"
        return [TextEdit(0, 0, opening, "response_tag_missing")]
    changes = [TextEdit(0, shape.start, "", "response_spaced")] if shape.start else []
    return changes + _tag_case(content, shape.start, RESPONSE_OPEN)


def _tag_case(content: str, at: int, tag: str) -> list[TextEdit]:
    end = at + len(tag)
    return [] if content[at:end] == tag else [TextEdit(at, end, tag, "tag_case")]


def _surplus_openings(content: str) -> int:
    lowered = content.lower()
    return lowered.count(RESPONSE_OPEN) - lowered.count(RESPONSE_CLOSE)


def _tail_start(content: str, shape: ResponseShape) -> int | None:
    """Where text begins that stands behind a whole wrapper; None where there is none."""
    closing = content.rfind(RESPONSE_CLOSE)
    if not shape.has_opening or closing < 0 or _surplus_openings(content) != 0:
        return None
    return closing + len(RESPONSE_CLOSE)


def _tail_changes(content: str, shape: ResponseShape, tail: int) -> tuple[TextEdit, ...]:
    text_start = shape.end - len(content[tail : shape.end].lstrip())
    return (
        *_around_opening(content, shape),
        TextEdit(tail, text_start, f"\n{RESPONSE_OPEN}\n", "order_to_answer"),
        TextEdit(shape.end, len(content), f"\n{RESPONSE_CLOSE}", "order_to_answer"),
    )


def _changed(content: str, changes: Iterable[TextEdit]) -> str:
    for change in sorted(changes, reverse=True):
        content = content[: change.start] + change.after + content[change.end :]
    return content


# --- writing ----------------------------------------------------------------------------------


def _join_cut_wrappers(draft: Draft, start: int, end: int) -> int:
    """Join messages between which one wrapper was cut; returns where the replies end then."""
    index = start
    while index < end - 1:
        stop = _end_of_cut(draft, index, end)
        if stop is not None:
            texts = [m.content for m in draft.messages[index + 1 : stop]]
            _append(draft, index, texts, "response_split")
            for at in range(stop - 1, index, -1):
                draft.remove(at, "response_split")
            end -= stop - index - 1
        index += 1
    return end


def _end_of_cut(draft: Draft, index: int, end: int) -> int | None:
    """The end of the messages that close the wrapper which message `index` leaves open."""
    content = draft.messages[index].content
    shape = response_shape(content)
    if not shape.has_opening or shape.has_closing or _surplus_openings(content) != 1:
        return None
    for at in range(index + 1, end):
        content = draft.messages[at].content
        shape = response_shape(content)
        if shape.is_tagged:
            closes = shape.has_closing and not shape.has_opening
            return at + 1 if closes and _surplus_openings(content) == -1 else None
        if is_known_order(content) or draft.messages[at].ends_in_order:
            return None
    return None


def _leave_orders(draft: Draft, start: int, replies: list[_Reply]) -> list[_Reply]:
    """Note the orders; returns the responses before them, which are written all the same."""
    responses: list[_Reply] = []
    for at, reply in enumerate(replies, start):
        if reply.kind is _Kind.RESPONSE:
            responses.append(reply)
            continue
        draft.find("order_to_answer", draft.turn_of(at), f"$.messages[{at}]")
        if reply.kind is _Kind.ORDER or not reply.is_untagged_order:
            _mark(draft, at)
    return responses


def _write_replies(draft: Draft, start: int, replies: list[_Reply]) -> None:
    """Give each reply its wrapper and make one message of them all, the orders last."""
    responses = [reply for reply in replies if reply.kind is not _Kind.ORDER]
    orders = [reply for reply in replies if reply.kind is _Kind.ORDER]
    for at, reply in enumerate(replies, start):
        if reply.changes and (at == start or reply.kind is not _Kind.ORDER):
            draft.replace_text(at, reply.changes)
    if len(responses) > 1:
        _append(draft, start, [reply.wrapped for reply in responses[1:]], "response_split")
    if orders and len(replies) > 1:
        _append_orders(draft, start, responses, orders)
    for number in range(len(replies) - 1, 0, -1):
        draft.remove(start + number, _reason_of([replies[number]]))
    if replies and replies[-1].kind is not _Kind.RESPONSE:
        _mark(draft, start)


def _append_orders(draft: Draft, start: int, responses: list[_Reply], orders: list[_Reply]) -> None:
    """Put orders behind what message `start` holds: several are one block."""
    if responses and responses[-1].kind is _Kind.RESPONSE:
        texts = [_order_text(order) for order in orders]
        block = orders[0].wrapped if len(orders) == 1 else wrap_response("\n".join(texts))
        _append(draft, start, [block], _reason_of(orders))
        return
    added = orders if responses else orders[1:]
    content = draft.messages[start].content
    at = response_blocks(Message("user", content))[-1].text_end
    text = "".join(f"\n{_order_text(order)}" for order in added)
    draft.replace_text(start, [TextEdit(at, at, text, _reason_of(added))])


def _append(draft: Draft, index: int, texts: list[str], reason: str) -> None:
    at = len(draft.messages[index].content)
    draft.replace_text(index, [TextEdit(at, at, "".join(f"\n{text}" for text in texts), reason)])


def _order_text(order: _Reply) -> str:
    block = response_blocks(Message("user", order.wrapped))[-1]
    return order.wrapped[block.text_start : block.text_end]


def _reason_of(replies: list[_Reply]) -> str:
    is_order = any(reply.kind is _Kind.ORDER and reply.is_untagged_order for reply in replies)
    return "order_to_answer" if is_order else "response_split"


def _mark(draft: Draft, index: int) -> None:
    if not draft.messages[index].ends_in_order:
        draft.mark_order(index)
