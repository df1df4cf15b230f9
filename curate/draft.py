"""An editor for a step that moves messages about: it remembers what each was at the start."""

from __future__ import annotations

from typing import NamedTuple

from trajcurate.curate.step import Editor, Quarantine
from trajcurate.schemas.trajectory import AssistantMessage, Message, Trajectory

_EXCERPT_LENGTH = 200


class Source(NamedTuple):
    """What a message was when the step began; `place` is None for one that the step put in."""

    place: int | None
    role: str
    is_from_tool: bool = False


class Draft(Editor):
    """Changes the messages of one trajectory; `sources` runs beside `messages`."""

    def __init__(self, trajectory: Trajectory) -> None:
        super().__init__(trajectory)
        self.sources = [Source(i, m.role) for i, m in enumerate(trajectory.messages)]
        # Changes go through the messages in order: turns are counted on from the place that was
        # asked for last, so that many changes of a long row take linear time.
        self._counted_to = 0
        self._assistants = 0

    def turn_of(self, index: int) -> int | None:
        """The turn that message `index` belongs to now; None before the first turn."""
        self._count_to(min(index + 1, len(self.messages)))
        return self._assistants - 1 if self._assistants else None

    def set_role(self, index: int, role: str, reason: str, *, is_from_tool: bool = False) -> None:
        """Give a message another role."""
        count = self._count_to(index)
        super().set_role(index, role, reason)
        self._counted_to, self._assistants = index, count
        self.sources[index] = self.sources[index]._replace(is_from_tool=is_from_tool)

    def remove(self, index: int, reason: str, *, safe: bool = True) -> None:
        """Remove a whole message."""
        count = self._count_to(index)
        super().remove(index, reason, safe=safe)
        self._counted_to, self._assistants = index, count
        del self.sources[index]

    def insert(self, index: int, message: Message, reason: str) -> None:
        """Put a message before what stands at `index`."""
        self._count_to(index)
        super().insert(index, message, reason)
        self.sources.insert(index, Source(None, message.role))

    def move_to(self, index: int, target: int, reason: str) -> None:
        """Move a message forward to `target`: two edits."""
        message, source = self.messages[index], self.sources[index]
        self.remove(index, reason)
        self.insert(target, message, reason)
        self.sources[target] = source

    def quarantine(self, reason: str, index: int) -> Quarantine:
        """The outcome for a row whose message `index` is not understood, as it was at the start."""
        source, content = self.sources[index], self.messages[index].content
        where = "$.messages" if source.place is None else f"$.messages[{source.place}]"
        excerpt = {"role": source.role[:_EXCERPT_LENGTH], "content": content[:_EXCERPT_LENGTH]}
        return Quarantine(reason, where, excerpt)

    def _count_to(self, index: int) -> int:
        while self._counted_to < index:
            self._assistants += isinstance(self.messages[self._counted_to], AssistantMessage)
            self._counted_to += 1
        while self._counted_to > index:
            self._counted_to -= 1
            self._assistants -= isinstance(self.messages[self._counted_to], AssistantMessage)
        return self._assistants
