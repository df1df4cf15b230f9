"""Mend the calls of one assistant message and their tags, each kind of defect by a stage.

A stage is given a message as it is read and returns changes of its text; what they make is read
again before the next stage. A defect that none of them settles is still in the message at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trajcurate.curate.mend.call import Mended, Unmendable, mend_call
from trajcurate.curate.mend.call_shape import JSON_SPACE
from trajcurate.curate.step import TextEdit
from trajcurate.schemas.read_assistant import call_defect
from trajcurate.schemas.strict_json import decode_json, skip_space
from trajcurate.schemas.tags import CALL_CLOSE, CALL_OPEN, CODE_CLOSE, CODE_OPEN
from trajcurate.schemas.trajectory import (
    AssistantMessage,
    Block,
    Defect,
    Loose,
    MalformedCall,
    ToolCall,
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands round a message and decides between two readings of it.

    Attributes:
        is_last: whether no message follows.
        response_count: the response blocks that answer it, orders not counted.
        schemas: JSON schema of the arguments by tool name and alias.
    """

    is_last: bool
    response_count: int
    schemas: Mapping[str, Mapping[str, Any]]

    @property
    def is_answered(self) -> bool:
        return self.response_count > 0


def lower_tags(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Write the tags that count in lower case."""
    return [
        TextEdit(start, end, message.content[start:end].lower(), reason)
        for reason, start, end in message.defects
        if reason == "tag_case"
    ]


# --- the tags of the calls --------------------------------------------------------------------


def tag_bare_calls(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Put tags round a call that has none, or no opening one.

    Beside calls that have them it is a call only if a response stands for it; else it is prose.
    """
    text = message.content
    bare = [d for d in message.defects if d.reason in ("call_untagged", "call_unopened")]
    if message.calls and around.response_count != len(message.calls) + len(bare):
        return []
    edits: list[TextEdit] = []
    for reason, start, end in bare:
        edits += _tag_call(text, skip_space(text, start), end, reason)
    return edits or _tag_damaged_call(message, around)


def _tag_damaged_call(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """The same for a damaged call, where nothing else stands behind the thinking."""
    if not around.is_answered or message.calls or find_defect(message, "call_missing") is None:
        return []
    text = message.content
    start, end = skip_space(text, message.body_start), len(text.rstrip())
    body = text[start:end].removesuffix(CALL_CLOSE)
    mended = mend_call(body, around.schemas)
    if not isinstance(mended, Mended) or not _is_whole(body, mended):
        return []
    if "call_text_around" in mended.mendings:
        return []
    reason = "call_unopened" if len(body) < end - start else "call_untagged"
    return _tag_call(text, start, end, reason)


def _tag_call(text: str, start: int, end: int, reason: str) -> list[TextEdit]:
    end = len(text[:end].rstrip())
    if reason == "call_untagged":
        return [
            TextEdit(start, start, CALL_OPEN + "\n", reason),
            TextEdit(end, end, "\n" + CALL_CLOSE, reason),
        ]
    line_break = "\n" if text[: end - len(CALL_CLOSE)].endswith("\n") else ""
    return [TextEdit(start, start, CALL_OPEN + line_break, reason)]


def close_calls(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Add the closing tag to calls that are whole without it."""
    edits = []
    for call in message.calls:
        if isinstance(call, MalformedCall) and not call.is_closed:
            end = _end_of_unclosed(message.content, call, around)
            if end is not None:
                line_break = "\n" if message.content.startswith("\n", call.body_start) else ""
                edits.append(TextEdit(end, end, line_break + CALL_CLOSE, "call_unclosed"))
    return edits


def _end_of_unclosed(text: str, call: MalformedCall, around: Surroundings) -> int | None:
    """Where a call without closing tag ends; None where it may have been cut off."""
    mended = mend_block(text, call, around)
    is_prose_behind = call.reason == "call_text_around" and not text.startswith(CODE_OPEN, call.at)
    if is_prose_behind and (
        isinstance(mended, Unmendable) or "call_text_around" in mended.mendings
    ):
        return len(text[: call.at].rstrip())
    return len(text[: call.body_end].rstrip()) if isinstance(mended, Mended) else None


def join_code(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Take a code body into the call it belongs to, where that was closed before it."""
    main = main_blocks(message)
    last = message.blocks[main[-1]] if main else None
    if not isinstance(last, ToolCall) or last.code is not None or last.arguments:
        return []
    text = message.content
    rest = text[last.end :].strip()
    if not rest.startswith(CODE_OPEN) or CODE_CLOSE not in rest:
        return []
    reason = "tag_misplaced"
    close = last.end - len(CALL_CLOSE)
    moved = TextEdit(close, skip_space(text, last.end), "", reason)
    end = len(text.rstrip())
    if rest.endswith(CODE_CLOSE):
        return [moved, TextEdit(end, end, "\n" + CALL_CLOSE, reason)]
    is_closed_again = rest.endswith(CALL_CLOSE) and rest[: -len(CALL_CLOSE)].rstrip().endswith(
        CODE_CLOSE
    )
    return [moved] if is_closed_again else []


def mend_calls(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Mend the bodies of malformed calls; an edit bears the first thing found wrong."""
    edits: list[TextEdit] = []
    for call in message.calls:
        if isinstance(call, MalformedCall) and call.is_closed:
            edits += mend_body(message.content, call.body_start, call.body_end, around)
    return edits


def split_calls(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Give each call a block of its own where one block holds several, each with its response."""
    edits: list[TextEdit] = []
    call_count = 0
    for call in message.calls:
        several: list[str] = []
        if isinstance(call, MalformedCall) and call.is_closed:
            several = _read_several(message.content[call.body_start : call.body_end])
        if len(several) > 1:
            bodies = f"\n{CALL_CLOSE}\n{CALL_OPEN}\n".join(several)
            span = call.start + len(CALL_OPEN), call.end - len(CALL_CLOSE)
            edits.append(_replace(message.content, *span, f"\n{bodies}\n", "call_several"))
        call_count += len(several) or 1
    return edits if call_count == around.response_count else []


_SEPARATOR = re.compile(r"[\s,]*")


def _read_several(body: str) -> list[str]:
    """The strict calls that a text holds and nothing else, in a list or not."""
    rest = body.strip()
    if rest.startswith("[") and rest.endswith("]"):
        rest = rest[1:-1].strip()
    at, calls = 0, []
    while at < len(rest):
        try:
            value, end = decode_json(rest, at)
        except ValueError:
            return []
        if call_defect(value) is not None:
            return []
        calls.append(rest[at:end])
        separator = _SEPARATOR.match(rest, end)
        assert separator is not None
        at = separator.end()
    return calls


def mend_block(text: str, call: MalformedCall, around: Surroundings) -> Mended | Unmendable:
    """What becomes of a malformed call; without its closing tag it must be whole by itself."""
    body = text[call.body_start : call.body_end]
    mended = mend_call(body, around.schemas)
    if isinstance(mended, Mended) and not call.is_closed and not _is_whole(body, mended):
        return Unmendable("call_cut_off", len(body.rstrip()))
    if isinstance(mended, Unmendable) and mended.reason == "call_too_damaged":
        # A bound of the mending, and nothing that a reader of reports could look for.
        return Unmendable("call_not_json", mended.at)
    return mended


_COMPLETED = {"call_brace_missing", "call_code_unclosed"}
_DIALECT_ENDS = ("</function>", "</invoke>", "</function_calls>")


def _is_whole(body: str, mended: Mended) -> bool:
    """Whether nothing says that the text goes on behind its end."""
    if "call_dialect" in mended.mendings and not body.rstrip().endswith(_DIALECT_ENDS):
        return False
    return _COMPLETED.isdisjoint(mended.mendings)


def mend_body(text: str, start: int, end: int, around: Surroundings) -> list[TextEdit]:
    """Mend the call between two offsets; nothing where it is sound or cannot be mended."""
    body = text[start:end]
    mended = mend_call(body, around.schemas)
    if not isinstance(mended, Mended) or not mended.mendings:
        return []
    # The white space beside the tags stays as it is.
    start = skip_space(text, start)
    end = start + len(body.strip(JSON_SPACE))
    new = mended.text.strip(JSON_SPACE)
    return [_replace(text, start, end, new, mended.mendings[0])]


def _replace(text: str, start: int, end: int, new: str, reason: str) -> TextEdit:
    """The change of a span to a new text, without what both have at their ends."""
    old = text[start:end]
    head = _count_shared(old, new)
    tail = _count_shared(old[head:][::-1], new[head:][::-1])
    return TextEdit(start + head, end - tail, new[head : len(new) - tail], reason)


def _count_shared(first: str, second: str) -> int:
    """How many characters two texts share at their start."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def remove_empty_calls(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Remove call tags with nothing between them, where no response stands for them."""
    calls = message.calls
    empty = [c for c in calls if isinstance(c, MalformedCall) and c.reason == "call_empty"]
    is_sound = len(empty) < len(calls)
    if not empty or not is_sound or around.response_count == len(calls):
        return []
    return [without_block(message, call, "tag_stray") for call in empty]


def remove_repeated_calls(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Remove call blocks that say again what an earlier one says and that nothing answers.

    With as many responses as calls each was made, and all stay. Where several different calls are
    repeated and the number of responses fits some of them, nothing says which: all stay.
    """
    calls = message.calls
    excess = len(calls) - around.response_count
    if len(calls) < 2 or excess == 0:
        return []
    seen: set[str] = set()
    repeated: list[ToolCall | MalformedCall] = []
    for call in calls:
        body = message.content[call.start : call.end]
        body = body.removeprefix(CALL_OPEN).removesuffix(CALL_CLOSE).strip()
        if body in seen:
            repeated.append(call)
        seen.add(body)
    if 0 < excess < len(repeated):
        if len(seen) > 1:
            return []
        repeated = repeated[-excess:]
    return [without_block(message, call, "call_block_repeated") for call in repeated]


# --- what the stages share --------------------------------------------------------------------


def find_defect(message: AssistantMessage, *reasons: str) -> Defect | None:
    """The first defect with one of the reasons."""
    return next((defect for defect in message.defects if defect.reason in reasons), None)


def main_blocks(message: AssistantMessage) -> list[int]:
    """Where calls and answer stand among the blocks."""
    return [i for i, block in enumerate(message.blocks) if not isinstance(block, Loose)]


def without_block(message: AssistantMessage, block: Block, reason: str) -> TextEdit:
    """Remove a block with the white space before it; the first one with the space behind it."""
    at = message.blocks.index(block)
    is_first = at == main_blocks(message)[0]
    start, end = block.start, block.end
    if is_first and at + 1 < len(message.blocks):
        end = _end_of_space(message, at + 1) or end
    elif not is_first:
        before = message.blocks[at - 1]
        start = before.start if _end_of_space(message, at - 1) else start
    return TextEdit(start, end, "", reason)


def _end_of_space(message: AssistantMessage, at: int) -> int | None:
    """The end of a block, if that is white space alone."""
    block = message.blocks[at]
    is_space = isinstance(block, Loose) and not message.content[block.start : block.end].strip()
    return block.end if is_space else None
