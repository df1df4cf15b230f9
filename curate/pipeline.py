"""What a pipeline is: its options, its sources, its steps, and what can be wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from trajcurate.curate.errors import CurateError
from trajcurate.curate.identity import canonical_json, checksum
from trajcurate.curate.step import Step
from trajcurate.schemas.tools import ToolSet

_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def parse_size(value: Any) -> int:
    """Bytes of a size such as `64MB` (powers of 1,024).

    Raises:
        ValueError: not a positive size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?B?)\s*", str(value).upper())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"`{value}` is no size; write it like 256MB")
    size = int(float(match[1]) * _UNITS[match[2]])
    if size < 1:
        raise ValueError("a size is at least one byte")
    return size


Size = Annotated[int, BeforeValidator(parse_size)]


class InputSpec(BaseModel):
    """`input:`: how records are read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str = Field("auto", description="The record format, or `auto` to detect it per file.")
    max_row_bytes: Size = Field(
        64 << 20, description="A larger record is quarantined by reference."
    )
    unit_size: Size = Field(8 << 20, description="About how many bytes of files one task reads.")


class SourceSpec(BaseModel):
    """One entry of `sources:`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, description="The `source` of its rows.")
    path: str | tuple[str, ...] = Field(description="Files, folders, globs or URLs.")
    format: str = Field("auto", description="As in `input`.")
    columns: dict[str, str] = Field(
        default_factory=dict, description="JSON Pointers by field, such as {answer: /gold}."
    )
    tools: Any = Field(None, description="The source's own tool set; the pipeline's by default.")


class OutputSpec(BaseModel):
    """`output:`: what is written and in what order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    resample: Literal["weight", "repeat"] = Field(
        "weight", description="Weights as a column, or rows copied by their weight."
    )
    shuffle: bool = Field(True, description="Order rows by a hash of seed and id.")
    seed: int = Field(42, description="Seed of the order and of the copies.")
    shard_size: Size = Field(256 << 20, description="Bytes of text in a shard of data/.")
    validation: float = Field(
        0.0, ge=0, lt=1, description="Share of the questions that go to the validation split."
    )
    edits: Literal["compact", "full"] = Field(
        "compact", description="`full` keeps every text, so that each row can be rebuilt."
    )
    rejected: Literal["whole", "reference"] = Field(
        "whole", description="`reference` leaves the row itself out of rejected/."
    )
    dialect: Literal["hermes"] = Field("hermes", description="How calls are written.")


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a pipeline: what, where (`$.steps[2]`) and how to go on."""

    what: str
    where: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.what} @ {self.where}"
        return f"{text}\n    hint: {self.hint}" if self.hint else text


class PipelineError(CurateError):
    """A pipeline that cannot be run, with all its mistakes."""

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        super().__init__(path, self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        lines = [f"{self.path}: {count} problem{'s' if count != 1 else ''}"]
        return "\n  ".join([*lines, *(str(problem) for problem in self.problems)])


@dataclass(frozen=True)
class Source:
    """A declared source, its tools resolved; `path` None stands for the command line's inputs."""

    name: str | None
    path: tuple[str, ...] | None
    format: str
    columns: Mapping[str, str]
    tools: ToolSet


@dataclass(frozen=True)
class Pipeline:
    """A pipeline ready to run. `resolved` is plain data that says all of it, defaults included."""

    name: str
    input: InputSpec
    sources: tuple[Source, ...]
    tools: ToolSet
    steps: tuple[Step, ...]
    output: OutputSpec
    resolved: dict[str, Any]

    @property
    def hash(self) -> str:
        """A hash of all that decides what the pipeline makes of an input."""
        return checksum(canonical_json(self.resolved))

    @cached_property
    def step_labels(self) -> tuple[str, ...]:
        """The steps by name; a name that occurs again is `name#2`."""
        return labels_of([step.name() for step in self.steps])


def labels_of(names: list[str]) -> tuple[str, ...]:
    """Names made unique: one that occurs again is `name#2`."""
    labels: list[str] = []
    for index, name in enumerate(names):
        earlier = names[:index].count(name)
        labels.append(f"{name}#{earlier + 1}" if earlier else name)
    return tuple(labels)
