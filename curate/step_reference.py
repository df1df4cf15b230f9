"""The reference page of a step, made from its code: docstring, options, reasons."""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass
from typing import Any

from trajcurate.curate.errors import CurateError
from trajcurate.curate.find_step import find_step, step_names
from trajcurate.curate.step import RejectingStep


@dataclass(frozen=True)
class StepReference:
    """What a step is, for people and for docs/steps.md."""

    name: str
    summary: str
    text: str
    options: list[dict[str, Any]]
    reasons: dict[str, str]
    finding_reasons: dict[str, str]
    rejects: bool

    def as_text(self) -> str:
        """The page as plain text."""
        lines = [self.name, "", self.text, "", "Options:"]
        lines += [
            f"  {option['name']}: {option['type']} = {option['default']}\n      {option['help']}"
            for option in self.options
        ] or ["  none"]
        for title, table in (("Reasons:", self.reasons), ("Findings:", self.finding_reasons)):
            if table:
                lines += ["", title]
                lines += [f"  {code}: {meaning}" for code, meaning in table.items()]
        return "\n".join(lines)

    def as_markdown(self) -> str:
        """The page as a section of docs/steps.md."""
        lines = [f"## `{self.name}`", "", self.text, ""]
        if self.options:
            lines += ["| option | values | default | meaning |", "|---|---|---|---|"]
            for option in self.options:
                kind, default = _cell(option["type"]), _cell(option["default"])
                lines.append(
                    f"| `{option['name']}` | {kind} | `{default}` | {_cell(option['help'])} |"
                )
            lines.append("")
        for title, table in (("reason", self.reasons), ("finding", self.finding_reasons)):
            if table:
                lines += [f"| {title} | what was found |", "|---|---|"]
                lines += [f"| `{code}` | {_cell(meaning)} |" for code, meaning in table.items()]
                lines.append("")
        return "\n".join(lines)


class NoSuchStep(CurateError):
    """A name that is no step's."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name
        close = difflib.get_close_matches(name, step_names(), 1)
        self.hint = f"did you mean `{close[0]}`?" if close else f"steps: {', '.join(step_names())}"

    def __str__(self) -> str:
        return f"unknown step `{self.name}`"


def reference(name: str) -> StepReference:
    """The reference of one step.

    Raises:
        NoSuchStep: there is no step of that name.
    """
    try:
        step = find_step(name)
    except LookupError:
        raise NoSuchStep(name) from None
    text = inspect.cleandoc(step.__doc__ or "")
    schema = step.model_json_schema(by_alias=True).get("properties", {})
    options = [
        {
            "name": option,
            "type": _type(schema.get(option, {})),
            "default": _default(field.get_default(call_default_factory=True)),
            "help": field.description or "",
        }
        for option, field in step.model_fields.items()
    ]
    return StepReference(
        name=step.name(),
        summary=text.split("\n", 1)[0],
        text=text,
        options=options,
        reasons=dict(step.reasons),
        finding_reasons=dict(step.finding_reasons),
        rejects=issubclass(step, RejectingStep),
    )


def all_references() -> list[StepReference]:
    """The references of all shipped steps, by name."""
    return [reference(name) for name in step_names()]


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        return " | ".join(_type(item) for item in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    return str(schema.get("type", "value"))


def _default(value: Any) -> str:
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_default(item) for item in value) + "]"
    if isinstance(value, str):
        return value if len(value) <= 60 else value[:57] + "…"
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
