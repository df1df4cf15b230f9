"""Remove calls together with what answers them, so that nothing is orphaned."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from trajcurate.curate.step import Editor, TextEdit
from trajcurate.schemas.trajectory import AssistantMessage, Loose, Message
from trajcurate.schemas.wire import ResponseBlock, pair_responses

Removed = Literal["turn", "calls", "nothing"]


def remove_calls(
    editor: Editor,
    index: int,
    numbers: Collection[int],
    reason: str,
    *,
    keep_unpaired: bool = False,
) -> Removed:
    """Remove calls of the assistant message at `index`, by number, with their response blocks.

    The turn goes with its last call. Where the observation does not pair with the calls, the turn
    is one thing: it goes whole, or stays whole with `keep_unpaired`.
    """
    message = editor.messages[index]
    assert isinstance(message, AssistantMessage)
    calls = message.calls
    reply = _reply(editor, index)
    if not numbers:
        return "nothing"
    if len(set(numbers)) >= len(calls) and message.answer is None:
        editor.remove_turn(index, reason)
        return "turn"
    responses = pair_responses(len(calls), reply)
    if reply is not None and responses.blocks and not responses.are_paired:
        if keep_unpaired:
            return "nothing"
        editor.remove_turn(index, reason)
        return "turn"
    turn = editor.turn_of(index)
    if responses.are_paired and reply is not None:
        _remove_responses(editor, index + 1, responses.blocks, numbers, reason, turn)
    editor.replace_text(
        index,
        [
            _without_block(message, calls[number].start, calls[number].end, reason)
            for number in numbers
        ],
        turn=turn,
    )
    return "calls"


def _reply(editor: Editor, index: int) -> Message | None:
    if index + 1 >= len(editor.messages):
        return None
    following = editor.messages[index + 1]
    return None if isinstance(following, AssistantMessage) else following


def _without_block(message: AssistantMessage, start: int, end: int, reason: str) -> TextEdit:
    """Remove a block with the white space before it; the first one with the space behind it."""
    blocks = message.blocks
    at = next(i for i, block in enumerate(blocks) if block.start == start and block.end == end)
    before = blocks[at - 1] if at > 0 else None
    behind = blocks[at + 1] if at + 1 < len(blocks) else None
    is_first = at == 0 or (at == 1 and isinstance(before, Loose))
    if is_first and isinstance(behind, Loose) and _is_space(message, behind):
        return TextEdit(start, behind.end, "", reason)
    if not is_first and isinstance(before, Loose) and _is_space(message, before):
        return TextEdit(before.start, end, "", reason)
    return TextEdit(start, end, "", reason)


def _is_space(message: AssistantMessage, block: Loose) -> bool:
    return not message.content[block.start : block.end].strip()


def _remove_responses(
    editor: Editor,
    index: int,
    blocks: tuple[ResponseBlock, ...],
    numbers: Collection[int],
    reason: str,
    turn: int | None,
) -> None:
    """Remove response blocks, each with the line break that joins it to its neighbour."""
    content = editor.messages[index].content
    removed = sorted(set(numbers))
    if len(removed) == len(blocks) and blocks[-1].end == len(content):
        editor.remove(index, reason)
        return
    last_kept = len(blocks) if blocks[-1].end < len(content) else -1
    last_kept = max([last_kept, *(n for n in range(len(blocks)) if n not in removed)])
    changes = []
    for number in removed:
        block = blocks[number]
        if number < last_kept:
            changes.append(TextEdit(block.start, block.end + 1, "", reason))
        else:
            changes.append(TextEdit(block.start - 1, block.end, "", reason))
    editor.replace_text(index, changes, turn=turn)
