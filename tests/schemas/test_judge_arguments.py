from __future__ import annotations

import json
from typing import Any

import pytest
from zoo import search_visit

from trajcurate.schemas.judge_arguments import find_misfit
from trajcurate.schemas.tools import ToolSpec
from trajcurate.schemas.trajectory import ToolCall

PYTHON = ToolSpec(
    kind="compute",
    body="code",
    schema={
        "type": "object",
        "properties": {"code": {"type": "string", "minLength": 1}, "limit": {"type": "integer"}},
        "required": ["code"],
    },
)
STRICT = ToolSpec(
    schema={
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "multipleOf": 2},
            "area": {"type": "object", "required": ["name"]},
        },
        "additionalProperties": False,
    }
)


def make_call(arguments: dict[str, Any], name: str = "t", code: str | None = None) -> ToolCall:
    return ToolCall(0, 0, 0, 0, name, arguments, code)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"url": ["u"], "goal": "g"}, None),
        ({"url": [], "goal": ""}, None),
        ({"url": ["u"], "goal": "g", "depth": {"a": 1}, "other": None}, None),
        ({"url": ["u"]}, ("argument_missing", "goal", "required")),
        ({"url": ["u"], "goal": None}, ("argument_missing", "goal", "type")),
        ({"url": ["u"], "goal": []}, ("argument_missing", "goal", "type")),
        ({"url": ["u"], "goal": 7}, ("argument_type", "goal", "type")),
        ({"url": "u", "goal": "g"}, ("argument_type", "url", "type")),
        ({"url": ["u", None], "goal": "g"}, ("argument_type", "url.1", "type")),
    ],
)
def test_a_call_fits_or_it_is_said_which_argument_does_not(
    arguments: dict[str, Any], expected: tuple[str, str, str] | None
) -> None:
    misfit = find_misfit(make_call(arguments, "visit"), search_visit().tools["visit"])
    if expected is None:
        assert misfit is None
    else:
        reason, argument, rule = expected
        assert misfit == (reason, {"tool": "visit", "argument": argument, "rule": rule})


def test_an_empty_list_of_queries_is_no_query() -> None:
    misfit = find_misfit(make_call({"query": []}, "search"), search_visit().tools["search"])
    assert misfit is not None
    assert misfit.reason == "argument_missing"


def test_a_tool_that_is_not_declared_is_named() -> None:
    assert find_misfit(make_call({}, "abacus"), None) == ("tool_undeclared", {"tool": "abacus"})


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ({}, "print(1)", None),
        ({"code": "print(1)"}, None, None),
        ({"code": ""}, "print(1)", None),
        ({"limit": None}, "print(1)", None),
        ({}, None, "argument_missing"),
        ({}, "", "argument_missing"),
        ({"limit": "3"}, "print(1)", "argument_type"),
    ],
)
def test_a_code_body_is_the_argument_that_the_tool_declares(
    arguments: dict[str, Any], code: str | None, reason: str | None
) -> None:
    misfit = find_misfit(make_call(arguments, code=code), PYTHON)
    assert (misfit.reason if misfit else None) == reason


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"limit": 4, "area": {"name": "x"}}, None),
        ({"limit": None, "area": None}, None),
        ({"limit": 3}, "argument_type"),
        ({"other": 1}, "argument_type"),
        ({"area": {}}, "argument_missing"),
        (json.loads('{"limit": 1e999}'), "argument_type"),
    ],
)
def test_a_strict_schema_is_obeyed_and_null_is_absence(
    arguments: dict[str, Any], reason: str | None
) -> None:
    misfit = find_misfit(make_call(arguments), STRICT)
    assert (misfit.reason if misfit else None) == reason
