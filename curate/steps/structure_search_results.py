"""Turn the text of search observations into their structured form."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from trajcurate.curate.step import Editor, Outcome, Step, TextEdit
from trajcurate.schemas.search_results import is_structured, restructure_search_text
from trajcurate.schemas.tags import RESPONSE_CLOSE, RESPONSE_OPEN
from trajcurate.schemas.tools import ToolSet, ToolSpec
from trajcurate.schemas.trajectory import MalformedCall, Message, ToolCall, Trajectory, Turn
from trajcurate.schemas.wire import ResponseBlock, response_blocks


class StructureSearchResults(Step):
    """Write the results of searches as JSON, a list of titles, URLs and snippets for each query.

    The tool that was called decides, not the words of the observation. A query without results
    gives an empty list and a note; if any line of a response fits nothing, the whole response
    stays text and is noted. What is structured already stays as it is. In a turn of several tools
    only the responses that pair with a search are read.

    Why: the form is the one in which the target agent's tool answers, so that the model is trained
        on what it will see.
    Safety: the same content in another form, unless an option says otherwise.
    """

    reasons: ClassVar[dict[str, str]] = {
        "search_results_as_text": "the search results stood as text",
    }
    finding_reasons: ClassVar[dict[str, str]] = {
        "search_text_unread": "a response to a search has a line that fits nothing",
    }

    dates: Literal["keep", "drop"] = Field("keep", description="Whether results keep their dates.")
    snippet_lines: Literal["keep", "join"] = Field(
        "keep",
        description="`join` strips the lines of a snippet and leaves out blank ones.",
    )
    notes: Literal["keep", "drop"] = Field(
        "keep", description="Whether a query without results, or one that failed, says so."
    )

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Restructure the responses to searches, block by block."""
        editor = Editor(trajectory)
        specs: dict[str, ToolSpec | None] = {}
        for turn in trajectory.turns:
            searches: list[ToolSpec | None] = []
            for block in turn.assistant.blocks:
                if type(block) is ToolCall:
                    if block.name not in specs:
                        specs[block.name] = _search_spec(block.name, tools)
                    searches.append(specs[block.name])
                elif type(block) is MalformedCall:
                    searches.append(None)
            if any(searches):
                first = turn.message_index + 1
                for index in range(first, first + len(turn.replies)):
                    self._structure(editor, turn, index, searches)
        return editor.done()

    def _structure(
        self, editor: Editor, turn: Turn, index: int, searches: list[ToolSpec | None]
    ) -> None:
        """Restructure one observation; `searches` has the tool of each call that is a search."""
        reply = editor.messages[index]
        if len(searches) == 1 and self._structure_only_block(editor, turn, index, reply):
            return
        blocks = response_blocks(reply)
        if blocks[-1].is_order:
            blocks.pop()
        # Blocks that do not pair with the calls answer all of them: all are read, or none.
        if len(blocks) == len(searches):
            groups = [([block], spec) for block, spec in zip(blocks, searches, strict=True)]
        else:
            groups = [(blocks, searches[0] if all(searches) else None)]
        changes: list[TextEdit] = []
        for group, spec in groups:
            if spec is None:
                continue
            found = self._changes(reply.content, group)
            if found is not None:
                changes += found
            else:
                _note_unread(editor, turn.index, reply.content, group, spec)
        if changes:
            editor.replace_text(index, changes, is_reencoding=True, turn=turn.index)

    def _structure_only_block(self, editor: Editor, turn: Turn, index: int, reply: Message) -> bool:
        """The short way for what nearly every reply is: one block with results that are read."""
        content = reply.content
        start, end = len(_ONLY_OPENING), len(content) - len(_ONLY_CLOSING)
        if (
            reply.ends_in_order
            or end < start
            or not content.startswith(_ONLY_OPENING)
            or not content.endswith(_ONLY_CLOSING)
            or content.find(RESPONSE_OPEN, start) >= 0
        ):
            return False
        found = self._changes(content, [ResponseBlock(0, len(content), start, end)])
        if found:
            editor.replace_text(index, found, is_reencoding=True, turn=turn.index)
        return found is not None

    def _changes(self, content: str, blocks: list[ResponseBlock]) -> list[TextEdit] | None:
        """The edits that structure blocks which stand as text; None if one of them is not read."""
        changes = []
        for _, _, start, end, _ in blocks:
            text = content[start:end]
            if is_structured(text):
                continue
            after = restructure_search_text(
                text,
                dates=self.dates == "keep",
                join_snippet_lines=self.snippet_lines == "join",
                notes=self.notes == "keep",
            )
            if after is None:
                return None
            changes.append(TextEdit(start, end, after, "search_results_as_text"))
        return changes


_ONLY_OPENING, _ONLY_CLOSING = f"{RESPONSE_OPEN}\n", f"\n{RESPONSE_CLOSE}"


def _search_spec(name: str, tools: ToolSet) -> ToolSpec | None:
    """The tool that a name means, if that searches."""
    spec = tools.get(name)
    return spec if spec is not None and spec.kind == "search" else None


def _note_unread(
    editor: Editor, turn: int, content: str, blocks: list[ResponseBlock], spec: ToolSpec
) -> None:
    """Note the text that is not read, unless it only says that the search failed."""
    text = content[blocks[0].text_start : blocks[-1].text_end]
    if not spec.has_failed(text):
        begins = text[:80].partition("\n")[0]
        editor.find("search_text_unread", turn, f"$.turns[{turn}]", begins=begins)
