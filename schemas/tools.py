"""Tools as data: what the agent may call, and how its calls and their responses are known.

A tool set is declared once, in YAML or inline in a pipeline, and everything that depends on tools
goes by it: repair of arguments, pruning, well-formedness, system prompt, counts, information gain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import fastjsonschema
from pydantic import BaseModel, ConfigDict, Field, field_validator

Kind = Literal["search", "visit", "compute", "other"]


class ToolSpec(BaseModel):
    """One tool.

    Attributes:
        kind: what the tool does for the agent; counts and information gain go by it.
        description: the line that the model reads.
        schema_: JSON Schema of the arguments (`schema` in YAML).
        aliases: other names that mean this tool. Names are compared without regard to case.
        argument_aliases: other names of arguments, each with the declared one.
        body: the argument that holds the text of a `<code>` body, if the tool takes one.
        failures: patterns (searched in a response of under 2,000 characters) that say it failed.
        heads: how its responses begin; with none, any text may be its response.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    kind: Kind = "other"
    description: str = ""
    schema_: dict[str, Any] = Field(default_factory=lambda: {"type": "object"}, alias="schema")
    aliases: tuple[str, ...] = ()
    argument_aliases: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    failures: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()

    @field_validator("failures")
    @classmethod
    def _compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"`{pattern}` is no pattern: {error}") from None
        return patterns

    @cached_property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """The declared arguments by name."""
        return self.schema_.get("properties") or {}

    @cached_property
    def required(self) -> tuple[str, ...]:
        return tuple(self.schema_.get("required") or ())

    @cached_property
    def validate_arguments(self) -> Callable[[Any], Any]:
        """Raises fastjsonschema.JsonSchemaValueException for arguments that do not fit."""
        compiled: Callable[[Any], Any] = fastjsonschema.compile(self.schema_, use_default=False)
        return compiled

    @cached_property
    def _failures_at_start(self) -> re.Pattern[str] | None:
        return _any_of(pattern for pattern in self.failures if pattern.startswith("^"))

    @cached_property
    def _failures_anywhere(self) -> re.Pattern[str] | None:
        # Apart from the others: one anchored alternative makes a search try all at every place.
        return _any_of(pattern for pattern in self.failures if not pattern.startswith("^"))

    def has_failed(self, response: str) -> bool:
        """Whether a response is empty or says that the call failed."""
        if not response or response.isspace():
            return True
        if len(response) >= _FAILURE_LENGTH:
            return False
        start, anywhere = self._failures_at_start, self._failures_anywhere
        if start is not None and start.match(response):
            return True
        return anywhere is not None and anywhere.search(response) is not None


def _any_of(patterns: Iterable[str]) -> re.Pattern[str] | None:
    text = "|".join(f"(?:{pattern})" for pattern in patterns)
    return re.compile(text) if text else None


_FAILURE_LENGTH = 2_000  # a longer response holds content, whatever it quotes


class ToolSet(BaseModel):
    """The declared tools by name, in the order in which the prompt lists them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: dict[str, ToolSpec]

    @cached_property
    def _names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for name, spec in self.tools.items():
            for alias in (name, *spec.aliases):
                names.setdefault(alias.lower(), name)
        return names

    def resolve(self, name: str) -> str | None:
        """The declared name that `name` means, by alias and without regard to case, or None."""
        if name in self.tools:
            return name
        return self._names.get(name.strip().lower())

    def get(self, name: str) -> ToolSpec | None:
        """The tool that `name` means, or None when it is not declared."""
        declared = self.resolve(name)
        return None if declared is None else self.tools[declared]

    def kind(self, name: str) -> str:
        """The kind of the tool that `name` means; `other` when it is not declared."""
        spec = self.get(name)
        return spec.kind if spec is not None else "other"

    @cached_property
    def heads(self) -> tuple[str, ...]:
        """How responses of all declared tools begin."""
        return tuple(head for spec in self.tools.values() for head in spec.heads)

    @cached_property
    def declarations(self) -> tuple[str, ...]:
        """Each tool as the JSON text of a function declaration, in declared order."""
        return tuple(
            json.dumps(
                {
                    "type": "function",
                    "function": {
                        "name": name,
                        "description": spec.description,
                        "parameters": spec.schema_,
                    },
                },
                ensure_ascii=False,
            )
            for name, spec in self.tools.items()
        )

    @cached_property
    def declarations_json(self) -> str:
        """The declarations as one JSON list: the `tools` column."""
        return "[" + ", ".join(self.declarations) + "]"
