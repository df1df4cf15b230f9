"""The parts of a pipeline file: options of a model, tool sets, prompts."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from trajcurate.curate.pipeline import Problem
from trajcurate.curate.pipeline_yaml import StrictLoader, nearest, yaml_problem
from trajcurate.schemas.tools import ToolSet

Options = TypeVar("Options", bound=BaseModel)


def read_options(
    model: type[Options], value: Any, where: str, problems: list[Problem]
) -> Options | None:
    """The options of a model; None, with the mistakes noted, if they do not fit."""
    if value is not None and not isinstance(value, dict):
        problems.append(Problem("not a mapping of options", where))
        return None
    try:
        return model.model_validate(value or {})
    except ValidationError as error:
        problems.extend(_option_problems(error, model, where))
        return None


def _option_problems(error: ValidationError, model: type[BaseModel], where: str) -> list[Problem]:
    fields = [field.alias or name for name, field in model.model_fields.items()]
    problems = []
    for item in error.errors():
        place = where + "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"]
        )
        if item["type"] == "extra_forbidden" and len(item["loc"]) == 1:
            name = str(item["loc"][0])
            problems.append(Problem("unknown option", place, nearest(name, fields)))
        else:
            message = item["msg"].removeprefix("Value error, ")
            problems.append(Problem(message[:1].lower() + message[1:], place))
    return problems


def load_tools(value: Any, where: str, base: Path, problems: list[Problem]) -> ToolSet | None:
    """A tool set: the name of a shipped one, a file, or tools by name."""
    if isinstance(value, str):
        declared = shipped_or_file("tools", ".yaml", value, where, base, problems)
        if declared is None:
            return None
        try:
            value = yaml.load(declared, StrictLoader)
        except yaml.YAMLError as error:
            problems.append(Problem(f"`{value}`: {yaml_problem(error)}", where))
            return None
    if not isinstance(value, dict):
        hint = "a shipped set (search_visit), a file, or tools by name"
        problems.append(Problem("no tool set", where, hint))
        return None
    value = {name: _with_schema_file(spec, base) for name, spec in value.items()}
    try:
        tools = ToolSet.model_validate({"tools": value})
        for spec in tools.tools.values():
            _ = spec.validate_arguments
    except ValidationError as error:
        for item in error.errors():
            place = where + "".join(f".{part}" for part in item["loc"][1:])
            problems.append(Problem(item["msg"], place))
        return None
    except Exception as error:
        problems.append(Problem(f"an argument schema is no JSON Schema: {error}", where))
        return None
    return tools


def _with_schema_file(spec: Any, base: Path) -> Any:
    if isinstance(spec, dict) and isinstance(spec.get("schema"), str):
        file = base / spec["schema"]
        if file.is_file():
            return {**spec, "schema": yaml.safe_load(file.read_text(encoding="utf-8"))}
    return spec


def load_prompt(value: Any, where: str, base: Path, problems: list[Problem]) -> str:
    """The text of a prompt: the name of a shipped one, or a file."""
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    if not isinstance(value, str):
        problems.append(Problem("no prompt", where, "a shipped prompt or the path of a file"))
        return ""
    return shipped_or_file("prompts", ".md", value, where, base, problems) or ""


def shipped_or_file(
    folder: str, suffix: str, name: str, where: str, base: Path, problems: list[Problem]
) -> str | None:
    """The text of a shipped file by its name, or of any file by its path."""
    shipped = files("trajcurate.pipelines") / folder
    names = [e.name.removesuffix(suffix) for e in shipped.iterdir() if e.name.endswith(suffix)]
    if name in names:
        return (shipped / f"{name}{suffix}").read_text(encoding="utf-8")
    for file in (base / name, Path(name)):
        if file.is_file():
            try:
                return file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                problems.append(Problem(f"`{name}` cannot be read: {error}", where))
                return None
    hint = nearest(name, names, "shipped:") + " or give the path of a file"
    problems.append(Problem(f"no `{name}` in {folder}", where, hint))
    return None


def dump_tools(tools: ToolSet) -> dict[str, Any]:
    """A tool set as plain data, as `load_tools` reads it."""
    return {name: spec.model_dump(mode="json", by_alias=True) for name, spec in tools.tools.items()}
