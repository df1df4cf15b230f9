"""Write tool names and arguments as their tool declares them, and judge what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

from pydantic import Field

from trajcurate.curate.mend.arguments import encode_call, has_undeclared, mend_arguments
from trajcurate.curate.remove_calls import has_calls, remove_calls
from trajcurate.curate.step import Drop, Editor, Keep, Outcome, RejectingStep, TextEdit
from trajcurate.schemas.judge_arguments import Misfit, find_misfit
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import AssistantMessage, Message, ToolCall, Trajectory


class NormalizeArguments(RejectingStep):
    """Write names and arguments of calls as their tools declare them; settle calls that do not fit.

    A name or an argument under an alias gets its declared name, a string where a list is wanted
    becomes a list of one, a list of strings where a string is wanted becomes its lines, and a null
    that the tool does not have goes. A call that fits its tool's schema is not touched, and an
    unknown argument is no mistake. A null in a declared argument stays; it does not fit where the
    argument is required.

    Why: a model that sees one argument in three forms learns to write all three.
    Safety: every character of every string and number stays; an argument that is missing is never
        supplied. Removing a call that does not fit changes the story.
    """

    reasons: ClassVar[dict[str, str]] = {
        "tool_name_alias": "the tool was called by an alias or with other capitals",
        "argument_alias": "an argument stood under another name",
        "argument_null": "null for an argument that the tool does not have",
        "argument_extra": "something that the tool does not declare (`extra: drop`)",
        "argument_not_list": "a string stood where a list is wanted",
        "argument_list_in_string": "a list of strings was written as one string",
        "argument_not_string": "a list of strings stood where a string is wanted",
        "call_encoding": "the call's JSON was written in another form (`encode: always`)",
        "argument_missing": "a required argument is absent, null or an empty list",
        "argument_type": "an argument does not fit its tool's schema",
        "tool_undeclared": "the call is of a tool that is not declared",
        "no_turns_left": "no call of the row fits its tool",
    }
    finding_reasons: ClassVar[dict[str, str]] = {
        "argument_missing": "a required argument is absent, null or an empty list",
        "argument_type": "an argument does not fit its tool's schema",
        "tool_undeclared": "the call is of a tool that is not declared",
    }
    may_change_turns: ClassVar[bool] = True

    unfit: Literal["drop_turn", "reject", "keep"] = Field(
        "drop_turn",
        description="A call that does not fit: remove it with its observation (the turn goes with "
        "its last call), reject the row, or keep the call and note it.",
    )
    encode: Literal["changed", "always"] = Field(
        "changed",
        description="`always` writes the JSON of every call anew: name first, arguments in "
        "declared order, default separators, no ASCII escapes.",
    )
    extra: Literal["keep", "drop"] = Field(
        "keep", description="What to do with arguments and keys that the tool does not declare."
    )

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Mend the calls that are not as declared, then settle those that still do not fit."""
        unsettled = [
            index
            for index, message in enumerate(trajectory.messages)
            if isinstance(message, AssistantMessage) and not self._is_settled(message, tools)
        ]
        if not unsettled:
            return Keep(trajectory)
        editor = Editor(trajectory)
        for index in unsettled:
            self._mend(editor, index, tools)
        return self._settle(editor, unsettled, tools)

    def _is_settled(self, message: AssistantMessage, tools: ToolSet) -> bool:
        """Whether the calls plainly are as they should be; False asks for a closer look."""
        for call in message.blocks:
            if type(call) is not ToolCall:
                continue
            spec = tools.tools.get(call.name)
            if spec is None or self.encode == "always" or self.extra == "drop":
                return False
            if find_misfit(call, spec) is not None:
                return False
            # All that is required is there, so a call of no more arguments has none undeclared.
            if len(call.arguments) > len(spec.required) and has_undeclared(call, spec):
                return False
        return True

    def _mend(self, editor: Editor, index: int, tools: ToolSet) -> None:
        drop_extra = self.extra == "drop"
        _change_calls(
            editor,
            index,
            lambda content, call: mend_arguments(content, call, tools, drop_extra=drop_extra),
        )
        if self.encode == "always":
            _change_calls(
                editor,
                index,
                lambda content, call: _reencoded(content, call, tools),
                is_reencoding=True,
            )

    def _settle(self, editor: Editor, mended: list[int], tools: ToolSet) -> Outcome:
        misfits = {index: _find_misfits(editor.messages[index], tools) for index in mended}
        if self.unfit == "drop_turn":
            for index, found in reversed(misfits.items()):
                _remove_misfits(editor, index, found)
            if not has_calls(editor.messages):
                removed = [misfit.reason for found in misfits.values() for misfit in found.values()]
                return Drop("no_turns_left", detail={"removed": removed})
        else:
            for index, found in misfits.items():
                turn = editor.turn_of(index) if found else None
                for number, misfit in found.items():
                    where = f"$.turns[{turn}].calls[{number}]"
                    if self.unfit == "reject":
                        return Drop(misfit.reason, where, misfit.detail)
                    editor.find(misfit.reason, turn, where, **misfit.detail)
        return editor.done()


Change = Callable[[str, ToolCall], list[TextEdit]]


def _change_calls(
    editor: Editor, index: int, change: Change, *, is_reencoding: bool = False
) -> None:
    message = editor.messages[index]
    assert isinstance(message, AssistantMessage)
    changes: list[TextEdit] = []
    for call in message.calls:
        if isinstance(call, ToolCall):
            try:
                changes += change(message.content, call)
            except ValueError:  # nested too deep to be read again: judged as it stands
                continue
    if changes:
        editor.replace_text(index, changes, is_reencoding=is_reencoding)


def _reencoded(content: str, call: ToolCall, tools: ToolSet) -> list[TextEdit]:
    written = encode_call(content, call, tools.get(call.name))
    if written == content[call.json_start : call.json_end]:
        return []
    return [TextEdit(call.json_start, call.json_end, written, "call_encoding")]


def _find_misfits(message: Message, tools: ToolSet) -> dict[int, Misfit]:
    """What does not fit, by the number of the call."""
    assert isinstance(message, AssistantMessage)
    found = {
        number: find_misfit(call, tools.get(call.name))
        for number, call in enumerate(message.calls)
        if isinstance(call, ToolCall)
    }
    return {number: misfit for number, misfit in found.items() if misfit is not None}


def _remove_misfits(editor: Editor, index: int, misfits: Mapping[int, Misfit]) -> None:
    """Remove calls, those of one reason together; a turn that loses all goes by its first one."""
    if not misfits:
        return
    numbers_by_reason: dict[str, set[int]] = {}
    for number, misfit in misfits.items():
        numbers_by_reason.setdefault(misfit.reason, set()).add(number)
    message = editor.messages[index]
    assert isinstance(message, AssistantMessage)
    left = list(range(len(message.calls)))
    if len(misfits) == len(left):
        numbers_by_reason = {next(iter(numbers_by_reason)): set(left)}
    for reason, numbers in numbers_by_reason.items():
        places = [place for place, number in enumerate(left) if number in numbers]
        if remove_calls(editor, index, places, reason) == "turn":
            return
        left = [number for number in left if number not in numbers]
