"""Whether the arguments of a call fit the schema of its tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fastjsonschema import JsonSchemaValueException

from trajcurate.schemas.tools import ToolSpec
from trajcurate.schemas.trajectory import ToolCall


class Misfit(NamedTuple):
    """Why a call does not fit: `argument_missing`, `argument_type` or `tool_undeclared`."""

    reason: str
    detail: dict[str, Any]


def find_misfit(call: ToolCall, spec: ToolSpec | None) -> Misfit | None:
    """Why a call does not fit its tool; None if it does.

    A `<code>` body stands for the argument that the tool declares as its body, and null in a
    declared argument that is not required counts as absent. An argument is missing when it is
    required and absent, null, or an empty list or text that the schema refuses.

    Args:
        call: the call.
        spec: its tool; None if the call's name means no declared tool.
    """
    if spec is None:
        return Misfit("tool_undeclared", {"tool": call.name})
    arguments = call.arguments
    if call.code is not None and spec.body is not None:
        arguments = {**arguments, spec.body: call.code}
    try:
        spec.validate_arguments(arguments)
    except _REFUSALS as error:
        present = _without_optional_nulls(arguments, spec)
        if len(present) < len(arguments):
            return find_misfit(call._replace(arguments=present), spec)
        return _misfit(call, spec, error)
    return None


# What a validator raises: besides its own error, that 1e999 is no multiple of two, and depth.
_REFUSALS = (ValueError, ArithmeticError, RecursionError)


def _without_optional_nulls(arguments: Mapping[str, Any], spec: ToolSpec) -> dict[str, Any]:
    return {
        name: value
        for name, value in arguments.items()
        if value is not None or name not in spec.properties or name in spec.required
    }


def _misfit(call: ToolCall, spec: ToolSpec, error: Exception) -> Misfit:
    detail: dict[str, Any] = {"tool": call.name}
    if not isinstance(error, JsonSchemaValueException):
        return Misfit("argument_type", detail)
    # The error's own message may list arguments in the order of a set.
    detail |= {"argument": ".".join(map(str, error.path[1:])), "rule": error.rule}
    if error.rule == "required" and not detail["argument"]:
        absent = (name for name in spec.required if name not in call.arguments)
        detail["argument"] = next(absent, "")
    is_empty = len(error.path) == 2 and (error.value is None or error.value in ([], ""))
    is_missing = error.rule == "required" or is_empty
    return Misfit("argument_missing" if is_missing else "argument_type", detail)
