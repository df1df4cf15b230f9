"""Remove turns whose calls nothing answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from trajcurate.curate.step import Drop, Editor, Keep, Outcome, RejectingStep
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import AssistantMessage, Message, Trajectory


class DropUnansweredCalls(RejectingStep):
    """Remove an assistant message with calls that another assistant message follows at once.

    A turn with some of its calls answered is one thing and stays; so does a call that an order to
    answer follows, and a message that holds an answer as well. Stands behind `normalize_messages`.

    Why: a call without its result teaches the model to go on without looking.
    Safety: changes the story; a later thought may mention the call that was removed.
    """

    reasons: ClassVar[dict[str, str]] = {
        "call_unanswered": "no message answers the calls of a turn",
        "no_turns_left": "no call of the row is answered",
    }
    may_change_turns: ClassVar[bool] = True

    last: Literal["keep", "drop"] = Field(
        "keep",
        description="The calls that end an unfinished trajectory: leave them, or remove them too.",
    )

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Remove the turns, the last first."""
        unanswered = list(self._find_unanswered(trajectory.messages))
        if not unanswered:
            return Keep(trajectory)
        removed = set(unanswered)
        if not any(
            isinstance(message, AssistantMessage) and message.calls and index not in removed
            for index, message in enumerate(trajectory.messages)
        ):
            return Drop("no_turns_left", f"$.messages[{unanswered[0]}]")
        editor = Editor(trajectory)
        for index in reversed(unanswered):
            editor.remove_turn(index, "call_unanswered")
        return editor.done()

    def _find_unanswered(self, messages: tuple[Message, ...]) -> Iterator[int]:
        last = len(messages) - 1
        for index, message in enumerate(messages):
            if not isinstance(message, AssistantMessage):
                continue
            if index == last:
                if self.last == "keep":
                    return
            elif not isinstance(messages[index + 1], AssistantMessage):
                continue
            if message.calls and message.answer is None:
                yield index
