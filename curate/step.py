"""What a step is, what it may answer, and how it changes a trajectory.

A step is one declared operation on one trajectory: pure, in a file of its own, named after it. It
changes messages through an `Editor` only, so that every change is an edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field

from trajcurate.schemas.audit import Edit, Finding
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import AssistantMessage, Message, Trajectory
from trajcurate.schemas.wire import read_message


@dataclass(frozen=True, slots=True)
class Keep:
    """The row goes on, changed or not."""

    trajectory: Trajectory
    edits: tuple[Edit, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Drop:
    """The row was understood and is not wanted."""

    reason: str
    where: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The row was not understood or cannot be repaired: kept whole for a person."""

    reason: str
    where: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


Outcome = Keep | Drop | Quarantine


class Step(BaseModel):
    """One operation over one trajectory.

    Subclasses say in `reasons` what they find (code → what it means), in `finding_reasons` what
    they only note, and in `may_change_turns` whether turn counts can differ after them. The
    docstring, with its `Why:` and `Safety:` lines, is the step's reference page.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    reasons: ClassVar[dict[str, str]] = {}
    finding_reasons: ClassVar[dict[str, str]] = {}
    may_change_turns: ClassVar[bool] = False
    sets_weight: ClassVar[bool] = False

    @classmethod
    def name(cls) -> str:
        """The step's name in YAML: the class name in snake case, as its file's."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Judge or change one trajectory. Pure; raises nothing for any trajectory."""
        raise NotImplementedError


class RejectingStep(Step):
    """A step that rejects rows, or flags them where a pipeline asks for that."""

    action: Literal["reject", "flag"] = Field(
        "reject",
        description="`flag` keeps the row, writes a finding and adds the reason to `flags`.",
    )


class TextEdit(NamedTuple):
    """A replacement of ``[start, end)`` in one message."""

    start: int
    end: int
    after: str
    reason: str


class Editor:
    """Changes the messages of one trajectory and keeps an edit for every change."""

    def __init__(self, trajectory: Trajectory) -> None:
        self.trajectory = trajectory
        self.messages: list[Message] = list(trajectory.messages)
        self.edits: list[Edit] = []
        self.findings: list[Finding] = []
        # Assistant messages among the first k, as far as they were counted: removing many
        # messages must not count all of them each time.
        self._assistant_counts = [0]

    def turn_of(self, index: int) -> int | None:
        """The turn that message `index` belongs to now; None before the first turn."""
        counts = self._assistant_counts
        for message in self.messages[len(counts) - 1 : index + 1]:
            counts.append(counts[-1] + isinstance(message, AssistantMessage))
        count = counts[min(index + 1, len(self.messages))]
        return count - 1 if count else None

    def replace_text(
        self,
        index: int,
        changes: Iterable[TextEdit],
        *,
        safe: bool = True,
        is_reencoding: bool = False,
        turn: int | None = None,
    ) -> None:
        """Replace spans of one message's text. Spans must not overlap; the last is done first."""
        message = self.messages[index]
        content = message.content
        turn = self.turn_of(index) if turn is None else turn
        pieces: list[str] = []
        rest = len(content)
        changes = list(changes)
        if len(changes) > 1:
            changes.sort(reverse=True)
        for start, end, after, reason in changes:
            self.edits.append(
                Edit(
                    reason,
                    index,
                    turn,
                    start,
                    end - start,
                    content[start:end],
                    after,
                    safe=safe,
                    is_reencoding=is_reencoding,
                )
            )
            pieces += content[end:rest], after
            rest = start
        if pieces:
            pieces.append(content[:rest])
            self.messages[index] = _with_content(message, "".join(reversed(pieces)))

    def set_role(self, index: int, role: str, reason: str) -> None:
        """Give a message another role."""
        message = self.messages[index]
        turn = self.turn_of(index)
        self.messages[index] = read_message(role, message.content)
        self._forget_turns_from(index)
        self.edits.append(
            Edit(
                reason,
                index,
                turn,
                before=_json({"role": message.role}),
                after=_json({"role": role}),
            )
        )

    def remove(self, index: int, reason: str, *, safe: bool = True) -> None:
        """Remove a whole message."""
        turn = self.turn_of(index)
        message = self.messages.pop(index)
        self._forget_turns_from(index)
        self.edits.append(Edit(reason, index, turn, before=_message_json(message), safe=safe))

    def insert(self, index: int, message: Message, reason: str) -> None:
        """Put a message before what stands at `index`."""
        self.messages.insert(index, message)
        self._forget_turns_from(index)
        self.edits.append(Edit(reason, index, self.turn_of(index), after=_message_json(message)))

    def mark_order(self, index: int) -> None:
        """Note that the last block of an observation is an order to answer. No text changes."""
        self.messages[index] = replace(self.messages[index], ends_in_order=True)

    def remove_turn(self, message_index: int, reason: str) -> None:
        """Remove an assistant message with all that answers it; each text stands in its edit."""
        end = message_index + 1
        while end < len(self.messages) and not isinstance(self.messages[end], AssistantMessage):
            end += 1
        for index in range(end - 1, message_index - 1, -1):
            self.remove(index, reason)

    def _forget_turns_from(self, index: int) -> None:
        del self._assistant_counts[index + 1 :]

    def set_column(self, column: str, before: str | None, after: str | None, reason: str) -> None:
        """Note a change of a text column (`question`, `answer`); pass the new value to `done`."""
        self.edits.append(
            Edit(
                reason,
                start=0,
                length=len(before or ""),
                before=before,
                after=after,
                column=column,
            )
        )

    def find(self, reason: str, turn: int | None = None, where: str = "", **detail: Any) -> None:
        """Note something without changing it."""
        self.findings.append(Finding(reason, turn, where, detail))

    def done(self, **columns: Any) -> Keep:
        """The outcome: the trajectory with its changed messages, and `columns` set."""
        changes: dict[str, Any] = columns
        if self.edits or any(
            a is not b for a, b in zip(self.messages, self.trajectory.messages, strict=False)
        ):
            changes = {"messages": tuple(self.messages), **columns}
        trajectory = replace(self.trajectory, **changes) if changes else self.trajectory
        return Keep(trajectory, tuple(self.edits), tuple(self.findings))


def _with_content(message: Message, content: str) -> Message:
    if isinstance(message, AssistantMessage):
        return read_message("assistant", content)
    return Message(message.role, content, message.ends_in_order)


def _json(value: dict[str, Any]) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # half a surrogate pair, which UTF-8 cannot hold: written as an escape
        return json.dumps(value)


def _message_json(message: Message) -> str:
    value: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.ends_in_order:
        value["ends_in_order"] = True
    return _json(value)
