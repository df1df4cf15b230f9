"""An editor for a step that moves messages about: it remembers what each was at the start."""

from __future__ import annotations

from typing import NamedTuple

from trajcurate.curate.step import Editor, Quarantine
from trajcurate.schemas.trajectory import Message, Trajectory

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

    def set_role(self, index: int, role: str, reason: str, *, is_from_tool: bool = False) -> None:
        """Give a message another role."""
        super().set_role(index, role, reason)
        self.sources[index] = self.sources[index]._replace(is_from_tool=is_from_tool)

    def remove(self, index: int, reason: str, *, safe: bool = True) -> None:
        """Remove a whole message."""
        super().remove(index, reason, safe=safe)
        del self.sources[index]

    def insert(self, index: int, message: Message, reason: str) -> None:
        """Put a message before what stands at `index`."""
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
