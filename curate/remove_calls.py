"""Remove calls together with what answers them, so that nothing is orphaned."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from trajcurate.curate.step import Editor, TextEdit
from trajcurate.schemas.trajectory import AssistantMessage, Block, Loose, Message
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
        _without_blocks(message, {calls[number].start for number in numbers}, reason),
        turn=turn,
    )
    return "calls"


def has_calls(messages: Iterable[Message]) -> bool:
    """Whether any message calls a tool, soundly or not."""
    return any(isinstance(message, AssistantMessage) and message.calls for message in messages)


def _reply(editor: Editor, index: int) -> Message | None:
    if index + 1 >= len(editor.messages):
        return None
    following = editor.messages[index + 1]
    return None if isinstance(following, AssistantMessage) else following


def _without_blocks(
    message: AssistantMessage, removed_starts: Collection[int], reason: str
) -> list[TextEdit]:
    """Remove blocks, each with the white space before it; with the space behind it as long as
    nothing that is kept stands before. So no space is removed with two blocks.
    """
    changes = []
    is_after_kept = False
    blocks = message.blocks
    for at, block in enumerate(blocks):
        if block.start not in removed_starts or isinstance(block, Loose):
            is_after_kept = is_after_kept or not _is_space(message, block)
            continue
        start, end = block.start, block.end
        if is_after_kept and _is_space(message, blocks[at - 1]):
            start = blocks[at - 1].start
        elif not is_after_kept and at + 1 < len(blocks) and _is_space(message, blocks[at + 1]):
            end = blocks[at + 1].end
        changes.append(TextEdit(start, end, "", reason))
    return changes


def _is_space(message: AssistantMessage, block: Block) -> bool:
    return isinstance(block, Loose) and not message.content[block.start : block.end].strip()


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
    removed = set(numbers)
    if len(removed) == len(blocks) and blocks[-1].end == len(content):
        editor.remove(index, reason)
        return
    last_kept = len(blocks) if blocks[-1].end < len(content) else -1
    last_kept = max([last_kept, *(n for n in range(len(blocks)) if n not in removed)])
    changes = []
    for number in sorted(removed):
        block = blocks[number]
        if number < last_kept:
            changes.append(TextEdit(block.start, block.end + 1, "", reason))
        else:
            changes.append(TextEdit(block.start - 1, block.end, "", reason))
    editor.replace_text(index, changes, turn=turn)
