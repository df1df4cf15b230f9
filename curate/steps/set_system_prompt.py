"""Give every trajectory the system prompt that its model will be run with."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from trajcurate.curate.step import Editor, Keep, Outcome, Step, TextEdit
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import Message, Trajectory


class SetSystemPrompt(Step):
    """Write, keep or remove the system message.

    In the prompt's text `{tools}` stands for the declarations of the tools, one a line, and
    `{current_date}` for the date; without a date the line that holds it is left out.

    Why: a model should be trained with the prompt that it will see.
    Safety: replaces the whole system message; what it said that the template does not say is gone.
    """

    reasons: ClassVar[dict[str, str]] = {
        "system_prompt_differs": "the system message was another than the template's",
        "system_prompt_missing": "the row had no system message",
        "system_prompt_present": "the row had a system message (`mode: none`)",
    }

    mode: str = Field(
        "template",
        min_length=1,
        description="`template` writes the pipeline's `prompt`, a path the text of that file; "
        "`keep` leaves the system message as it is, `none` removes it.",
    )
    current_date: str | None = Field(
        None, description="The date that the prompt names, as YYYY-MM-DD; none by default."
    )
    prompt: str = Field(
        "", description="The prompt's text; a pipeline fills it in from its `prompt` or the path."
    )

    @field_validator("current_date", mode="before")
    @classmethod
    def _check_date(cls, value: Any) -> Any:
        if value is None:
            return None
        try:
            text = date.fromisoformat(str(value)).isoformat()
        except ValueError:
            text = ""
        if text != str(value):
            raise ValueError(f"`{value}` is no date; write it like 2026-03-01")
        return text

    @model_validator(mode="after")
    def _check_prompt(self) -> SetSystemPrompt:
        if self.mode not in ("keep", "none") and not self.prompt.strip():
            raise ValueError(f"mode `{self.mode}` has no prompt text to write")
        return self

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Make the first message the system message that `mode` asks for."""
        messages = trajectory.messages
        has_system = bool(messages) and messages[0].role == "system"
        if self.mode == "keep" or (self.mode == "none" and not has_system):
            return Keep(trajectory)
        editor = Editor(trajectory)
        if self.mode == "none":
            editor.remove(0, "system_prompt_present")
            return editor.done()
        text = self._render(tools)
        if not has_system:
            editor.insert(0, Message("system", text), "system_prompt_missing")
            return editor.done()
        present = messages[0].content
        if present == text:
            return Keep(trajectory)
        change = TextEdit(0, len(present), text, "system_prompt_differs")
        editor.replace_text(0, [change], is_reencoding=True)
        return editor.done()

    def _render(self, tools: ToolSet) -> str:
        # The date first: a tool's description may say `{current_date}` and mean just that.
        if self.current_date is None:
            text = _DATE_LINE.sub("", self.prompt)
        else:
            text = self.prompt.replace("{current_date}", self.current_date)
        return text.replace("{tools}", "\n".join(tools.declarations))


_DATE_LINE = re.compile(r"^.*\{current_date\}.*(?:\n|\Z)", re.MULTILINE)
