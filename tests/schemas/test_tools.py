from __future__ import annotations

import json

import fastjsonschema
import pytest
from pydantic import ValidationError
from zoo import search_visit

from trajcurate.schemas.tools import ToolSet, ToolSpec

PYTHON = {"kind": "compute", "body": "code", "schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("search", "search"),
        ("Search", "search"),
        (" SEARCH\n", "search"),
        ("web_search", "search"),
        ("Web_Search", "search"),
        ("browse", "visit"),
        ("searches", None),
        ("", None),
    ],
)
def test_a_name_means_a_tool_by_alias_and_in_any_case(name: str, declared: str | None) -> None:
    tools = search_visit()
    assert tools.resolve(name) == declared
    assert tools.get(name) is (None if declared is None else tools.tools[declared])


def test_a_declared_name_may_have_capitals() -> None:
    tools = ToolSet.model_validate({"tools": {"PythonInterpreter": PYTHON}})
    assert tools.resolve("pythoninterpreter") == "PythonInterpreter"


def test_of_two_tools_that_claim_a_name_the_first_has_it() -> None:
    tools = ToolSet.model_validate({"tools": {"a": {"aliases": ["x"]}, "b": {"aliases": ["X"]}}})
    assert tools.resolve("x") == "a"


def test_the_kind_of_an_undeclared_tool_is_other() -> None:
    tools = search_visit()
    assert [tools.kind(name) for name in ("Search", "open_url", "scholar")] == [
        "search",
        "visit",
        "other",
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "fits"),
    [
        ("search", {"query": ["a"]}, True),
        ("search", {"query": ["a"], "topn": 20}, True),
        ("search", {"query": []}, False),
        ("search", {"query": "a"}, False),
        ("search", {"query": [1]}, False),
        ("search", {}, False),
        ("visit", {"url": ["u"], "goal": "g"}, True),
        ("visit", {"url": ["u"], "goal": 7}, False),
        ("visit", {"url": ["u"], "goal": None}, False),
        ("visit", {"url": ["u"]}, False),
    ],
)
def test_arguments_are_judged_by_the_schema(
    tool: str, arguments: dict[str, object], fits: bool
) -> None:
    validate = search_visit().tools[tool].validate_arguments
    if fits:
        validate(arguments)
    else:
        with pytest.raises(fastjsonschema.JsonSchemaValueException):
            validate(arguments)


def test_judging_arguments_adds_no_default_to_them() -> None:
    spec = ToolSpec(schema={"properties": {"limit": {"type": "integer", "default": 10}}})
    arguments: dict[str, object] = {}
    spec.validate_arguments(arguments)
    assert arguments == {}


@pytest.mark.parametrize(
    ("tool", "response", "has_failed"),
    [
        ("search", "", True),
        ("search", " \n\t", True),
        ("search", "Failed to search for 'tide'", True),
        ("search", "Tool execution timed out after 120 seconds.", True),
        ("search", "A Google search for 'tide' found 1 results:", False),
        ("search", "They said: Failed to search", False),
        ("search", "Failed to search for 'tide'" + " " * 2_000, False),
        ("visit", "[visit] Failed to read page.", True),
        ("visit", "Summary: The provided webpage content could not be accessed.", True),
        ("visit", "Errors in tide tables are rare.", False),
        ("visit", "Error: no route to host", True),
    ],
)
def test_a_response_has_failed_when_it_is_empty_or_says_so(
    tool: str, response: str, has_failed: bool
) -> None:
    assert search_visit().tools[tool].has_failed(response) is has_failed


def test_a_tool_without_patterns_fails_by_saying_nothing() -> None:
    assert ToolSpec().has_failed("")
    assert not ToolSpec().has_failed("Error")


def test_a_tool_set_knows_how_all_responses_begin() -> None:
    heads = search_visit().heads
    assert "A Google search for " in heads
    assert "The useful information in " in heads


def test_a_declaration_is_what_the_model_reads() -> None:
    tools = search_visit()
    assert [json.loads(line)["function"]["name"] for line in tools.declarations] == [
        "search",
        "visit",
    ]
    assert tools.declarations[0] == (
        '{"type": "function", "function": {"name": "search", "description": "Perform Google web '
        'searches then returns a string of the top search results. Accepts multiple queries.", '
        '"parameters": {"type": "object", "properties": {"query": {"type": "array", "items": '
        '{"type": "string", "description": "The search query."}, "minItems": 1, "description": '
        '"The list of search queries."}}, "required": ["query"]}}}'
    )
    assert json.loads(tools.declarations_json) == [json.loads(d) for d in tools.declarations]


@pytest.mark.parametrize(
    "spec",
    [{"kind": "browse"}, {"colour": "red"}, {"aliases": "search"}],
)
def test_a_tool_that_cannot_be_right_is_refused(spec: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ToolSpec.model_validate(spec)
