"""Move prose that stands beside the calls or the answer of a message into its thinking.

What stands before the last block is the model's word on why it acts: it becomes the end of the
thinking. What stands behind it was written after the act and is removed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trajcurate.curate.mend.tags import Surroundings, find_defect, main_blocks
from trajcurate.curate.step import TextEdit
from trajcurate.schemas.tags import ANSWER_CLOSE, CALL_OPEN, CODE_CLOSE, CODE_OPEN, TAG_ANY_CASE
from trajcurate.schemas.trajectory import Answer, AssistantMessage, Block, Loose


def settle_call_and_answer(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Make a message that calls and answers one or the other.

    Where messages follow, it was taken for a call: the answer is no answer of the trajectory. At
    the end of the trajectory it is the answer, and the calls were never made.
    """
    defect = find_defect(message, "call_and_answer")
    if defect is None:
        return []
    answer = next(block for block in message.blocks if isinstance(block, Answer))
    calls, end = message.calls, len(message.content)
    is_blank = not message.content[answer.text_start : answer.text_end].strip()
    if is_blank or not around.is_last:
        if answer.start > calls[-1].start:
            return [TextEdit(calls[-1].end, end, "", defect.reason)]
        return _move(message, [answer], defect.reason)
    edits = [
        TextEdit(call.start, _skip_space(message.content, call.end), "", defect.reason)
        for call in calls
        if call.start < answer.start
    ]
    if calls[-1].start > answer.start:
        edits.append(TextEdit(answer.end, end, "", defect.reason))
    return edits


def _skip_space(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip())


def move_text_before_think(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Move what stands before the opening tag of the thinking to its end."""
    defect = find_defect(message, "text_before_think")
    if defect is None:
        return []
    cut = TextEdit(0, message.lead_end, "", defect.reason)
    return [cut, *_insert(message, _prose(message.content[: message.lead_end]), defect.reason)]


_FENCE = re.compile(r"(?:`{3,}|~{3,})[\w.+-]*")


def remove_fences(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Remove the lines of a code fence round a call or an answer."""
    text, blocks = message.content, message.blocks
    edits = []
    for at, block in enumerate(blocks):
        if not isinstance(block, Loose):
            continue
        start, end = block.start, block.end
        if at > 0:
            line_end = _end_of_fence_behind(text, start, end)
            if line_end > start:
                edits.append(TextEdit(start, line_end, "", "call_fenced"))
                start = line_end
        if at + 1 < len(blocks):
            line_start = _start_of_fence_before(text, start, end)
            if line_start < end:
                edits.append(TextEdit(line_start, end, "", "call_fenced"))
    return edits


def _end_of_fence_behind(text: str, start: int, end: int) -> int:
    """The end of the line that closes a fence right here; `start` without one."""
    begin = end - len(text[start:end].lstrip())
    line, _, rest = text[begin:end].partition("\n")
    if not _FENCE.fullmatch(line.strip()):
        return start
    return end if end == len(text) and not rest.strip() else begin + len(line)


def _start_of_fence_before(text: str, start: int, end: int) -> int:
    """The start of the line that opens a fence right before `end`; `end` without one."""
    lines = text[start:end].rstrip().split("\n")
    fence_count = sum(_FENCE.fullmatch(line.strip()) is not None for line in lines)
    if fence_count % 2 == 0 or not _FENCE.fullmatch(lines[-1].strip()):
        return end
    return start + sum(len(line) + 1 for line in lines[:-1])


def move_prose(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Move text that stands before the last block to the end of the thinking, without our tags."""
    main, text = main_blocks(message), message.content
    if not main:
        return []
    moved = [
        block
        for block in message.blocks[: main[-1]]
        if isinstance(block, Loose) and text[block.start : block.end].strip()
    ]
    if not moved:
        return []
    is_answer = isinstance(message.blocks[main[-1]], Answer)
    if is_answer and any(_NESTED.search(text, b.start, b.end) for b in moved):
        reason = "answer_nested"
    elif not any(_prose(text[block.start : block.end]) for block in moved):
        reason = "tag_stray"
    else:
        reason = "text_before_answer" if is_answer else "text_before_call"
    return _move(message, moved, reason)


_NESTED = re.compile("<answer>", re.IGNORECASE)


def cut_text_behind(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Remove what stands behind the last call or the answer."""
    main, text = main_blocks(message), message.content
    if not main:
        return []
    last = message.blocks[main[-1]]
    rest = text[last.end :]
    if not rest.strip():
        return []
    if not TAG_ANY_CASE.sub("", rest).strip():
        reason = "tag_stray"
    else:
        reason = "text_after_answer" if isinstance(last, Answer) else "text_after_call"
    return [TextEdit(last.end, len(text), "", reason)]


def close_answer(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Add the closing tag of an answer that runs to the end of the message."""
    answer = next((block for block in message.blocks if isinstance(block, Answer)), None)
    if answer is None or find_defect(message, "answer_unclosed") is None:
        return []
    body = message.content[answer.text_start : answer.end]
    if not body.strip() or CALL_OPEN in body:
        return []
    line_break = "\n" if body.startswith("\n") else ""
    end = answer.text_start + len(body.rstrip())
    return [TextEdit(end, end, line_break + ANSWER_CLOSE, "answer_unclosed")]


# --- moving -----------------------------------------------------------------------------------


def _move(message: AssistantMessage, blocks: Sequence[Block], reason: str) -> list[TextEdit]:
    """Take blocks out and put their prose at the end of the thinking."""
    text = message.content
    pieces = [_prose(text[block.start : block.end]) for block in blocks]
    prose = "\n\n".join(piece for piece in pieces if piece)
    gaps = [_close_gap(text, block, reason, has_prose=bool(prose)) for block in blocks]
    inserted = _insert(message, prose, reason)
    if inserted and len(gaps) == 1 and blocks[0] is message.blocks[0]:
        # Only the closing tag stands between: one move is one edit.
        (at, _, prose, _), (start, end, space, _) = inserted[0], gaps[0]
        return [TextEdit(at, end, prose + text[at:start] + space, reason)]
    return inserted + gaps


def _prose(text: str) -> str:
    """The text without our tags; those of code may be words here, as they are in thinking."""
    return TAG_ANY_CASE.sub(_without_tag, text).strip()


def _without_tag(tag: re.Match[str]) -> str:
    if tag[0].lower() in (CODE_OPEN, CODE_CLOSE):
        return tag[0]
    neighbours = tag.string[tag.start() - 1 : tag.start()] + tag.string[tag.end() : tag.end() + 1]
    parts_words = len(neighbours) == 2 and not any(c.isspace() for c in neighbours)
    return "\n" if parts_words else ""


def _insert(message: AssistantMessage, prose: str, reason: str) -> list[TextEdit]:
    """Put prose at the end of the thinking after a blank line, unless it stands there."""
    start = message.thought_start
    thought = message.content[start : message.thought_end]
    stripped = thought.rstrip()
    if not prose or stripped.endswith("\n" + prose) or stripped == prose:
        return []
    if stripped:
        at = start + len(stripped)
        return [TextEdit(at, at, "\n\n" + prose, reason)]
    at = start + 1 if thought.startswith("\n") else start
    line_break = "\n" if thought == "\n" else ""
    return [TextEdit(at, at, prose + line_break, reason)]


def _close_gap(text: str, block: Block, reason: str, *, has_prose: bool) -> TextEdit:
    """Remove a block but for the white space, at one of its ends, that keeps a line break."""
    start, end = block.start, block.end
    if not isinstance(block, Loose):
        return TextEdit(start, end, "", reason)
    body = text[start:end]
    lead = body[: len(body) - len(body.lstrip())]
    trail = body[len(body.rstrip()) :]
    if "\n" in lead or (lead and "\n" not in trail and not has_prose):
        return TextEdit(start + len(lead), end, "", reason)
    if "\n" in trail or not has_prose:
        return TextEdit(start, end - len(trail), "", reason)
    return TextEdit(start, end, "\n", reason)
