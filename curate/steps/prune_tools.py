"""Remove calls of tools that the target agent does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from trajcurate.curate.remove_calls import Removed, has_calls, remove_calls
from trajcurate.curate.step import Drop, Editor, Keep, Outcome, RejectingStep
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import AssistantMessage, MalformedCall, ToolCall, Trajectory


class PruneTools(RejectingStep):
    """Remove every call of a tool outside `allowed`, with its observation.

    The turn goes with its last call, and whole where its observation does not pair with its calls.
    A call that cannot be read names no tool and stays.

    Why: the model should not learn calls that its environment will refuse.
    Safety: changes the story; later thoughts may mention the removed observation. The turn that
        follows a removal is noted (`observation_removed`).
    """

    reasons: ClassVar[dict[str, str]] = {
        "tool_not_allowed": "the call is of a tool outside `allowed`",
        "no_turns_left": "every call of the row is of a tool outside `allowed`",
    }
    finding_reasons: ClassVar[dict[str, str]] = {
        "observation_removed": "an observation before this turn was removed; its thought may "
        "mention it",
    }
    may_change_turns: ClassVar[bool] = True

    allowed: tuple[str, ...] = Field(
        ("search", "visit"),
        min_length=1,
        description="The tools that stay, by name or alias, in any case.",
    )

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Remove the calls of other tools, the last turn first."""
        unwanted = self._unwanted_calls(trajectory, tools)
        if not unwanted:
            return Keep(trajectory)
        editor = Editor(trajectory)
        removed = {
            index: remove_calls(editor, index, numbers, "tool_not_allowed")
            for index, numbers in reversed(unwanted.items())
        }
        if not has_calls(editor.messages):
            return Drop("no_turns_left", detail={"tools": _called_tools(trajectory)})
        _note_followers(editor, unwanted, removed)
        return editor.done()

    def _unwanted_calls(self, trajectory: Trajectory, tools: ToolSet) -> dict[int, list[int]]:
        """The numbers of the calls that go, by the index of their message."""
        allowed = {_tool(name, tools) for name in self.allowed}
        is_allowed: dict[str, bool] = {}
        unwanted: dict[int, list[int]] = {}
        for index, message in enumerate(trajectory.messages):
            if not isinstance(message, AssistantMessage):
                continue
            number = 0
            for block in message.blocks:
                if type(block) is ToolCall:
                    if block.name not in is_allowed:
                        is_allowed[block.name] = _tool(block.name, tools) in allowed
                    if not is_allowed[block.name]:
                        unwanted.setdefault(index, []).append(number)
                    number += 1
                elif type(block) is MalformedCall:
                    number += 1
        return unwanted


def _tool(name: str, tools: ToolSet) -> str:
    """The name under which tools are compared: the declared one, else as called in lower case."""
    return tools.resolve(name) or name.strip().lower()


def _called_tools(trajectory: Trajectory) -> list[str]:
    """The names under which the row calls tools, in order, each once."""
    calls = (call for turn in trajectory.turns for call in turn.assistant.calls)
    return list(dict.fromkeys(call.name for call in calls if isinstance(call, ToolCall)))


def _note_followers(
    editor: Editor, unwanted: Mapping[int, list[int]], removed: Mapping[int, Removed]
) -> None:
    """Note each turn that follows a removed observation, by its number after the removal."""
    names: list[str] = []
    position = 0
    for turn in editor.trajectory.turns:
        numbers = unwanted.get(turn.message_index, ())
        calls = turn.assistant.calls
        if removed.get(turn.message_index) != "turn":
            if names:
                where = f"$.turns[{position}]"
                editor.find("observation_removed", position, where, tools=names)
                names = []
            position += 1
        if turn.replies:
            names = names + [call.name for n in numbers if isinstance(call := calls[n], ToolCall)]
