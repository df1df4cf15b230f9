from __future__ import annotations

import json
from itertools import pairwise

import pytest
from generated_turns import turn, unhurried
from hypothesis import given
from hypothesis import strategies as st
from zoo import search_visit

from trajcurate.curate.mend.arguments import encode_call, mend_arguments
from trajcurate.schemas.tools import ToolSet, ToolSpec
from trajcurate.schemas.trajectory import ToolCall
from trajcurate.schemas.wire import parse_message

FREE = ToolSet(
    tools={
        "note": ToolSpec(),
        "pick": ToolSpec(
            schema={
                "type": "object",
                "properties": {
                    "either": {"type": ["string", "array"]},
                    "numbers": {"type": "array", "items": {"type": "integer"}},
                    "anything": {},
                    "some": {"type": ["array", "null"]},
                },
            },
            argument_aliases={"n": "numbers"},
        ),
    }
)


def mend(
    text: str, tools: ToolSet | None = None, *, drop_extra: bool = False
) -> tuple[str, list[str]]:
    """The call's JSON after its mendings, and their reasons in the order of the text."""
    content = turn(text)
    message = parse_message(content)
    (call,) = message.calls
    assert isinstance(call, ToolCall)
    changes = sorted(mend_arguments(content, call, tools or search_visit(), drop_extra=drop_extra))
    start, end = call.json_start, call.json_end
    for change in reversed(changes):
        assert start <= change.start <= change.end <= end
        text = text[: change.start - start] + change.after + text[change.end - start :]
    for before, behind in pairwise(changes):
        assert before.end <= behind.start
    return text, [change.reason for change in changes]


def search(arguments: str) -> str:
    return f'{{"name": "search", "arguments": {arguments}}}'


def visit(arguments: str) -> str:
    return f'{{"name": "visit", "arguments": {arguments}}}'


@pytest.mark.parametrize(
    "text",
    [
        search('{"query": ["a"]}'),
        search('{ "query":["a" ,"b"],"topn":20 }'),
        search('{"query": ["a"], "queries": ["b"], "q": "c"}'),
        search('{"query": [1, null]}'),
        search('{"query": 1.50}'),
        search('{"query": true}'),
        search('{"query": null}'),
        search('{"query": []}'),
        search('{"query": null, "queries": ["a"]}'),
        search("{}"),
        visit('{"url": ["u"], "goal": 7}'),
        visit('{"url": ["u"], "goal": null}'),
        visit('{"url": ["u"], "goal": []}'),
        visit('{"url": ["u"], "goal": ["a", 1]}'),
        visit('{"goal": "g", "url": ["u"], "note": {"a": null}}'),
        '{"name": "abacus", "arguments": {"query": "a", "x": null}}',
    ],
)
def test_a_call_that_needs_no_mending_or_has_none_is_left_alone(text: str) -> None:
    assert mend(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "expected", "reasons"),
    [
        (
            '{"name": "SEARCH", "arguments": {"query": ["a"]}}',
            search('{"query": ["a"]}'),
            ["tool_name_alias"],
        ),
        (
            '{"arguments": {"urls": ["u"], "goal": "g"}, "name" : "browse"}',
            '{"arguments": {"url": ["u"], "goal": "g"}, "name" : "visit"}',
            ["argument_alias", "tool_name_alias"],
        ),
        (search('{"queries": ["a"]}'), search('{"query": ["a"]}'), ["argument_alias"]),
        (search('{"Query": ["a"]}'), search('{"query": ["a"]}'), ["argument_alias"]),
        (
            search('{"queries": ["a"], "q": ["b"]}'),
            search('{"query": ["a"], "q": ["b"]}'),
            ["argument_alias"],
        ),
        (
            search('{"queries": null, "q": ["b"]}'),
            search('{"query": ["b"]}'),
            ["argument_null", "argument_alias"],
        ),
        (
            search('{"goal": null, "query": ["a"], "url":null , "x": 1}'),
            search('{"query": ["a"] , "x": 1}'),
            ["argument_null", "argument_null"],
        ),
        (search('{ "a": null,\n"b": null }'), search("{  }"), ["argument_null"] * 2),
        (
            search('{"query": "a\\u76d0\\"b"}'),
            search('{"query": ["a\\u76d0\\"b"]}'),
            ["argument_not_list"],
        ),
        (
            search('{"query": "[\\"a\\", \\"\\\\u76d0\\"]"}'),
            search('{"query": ["a", "\\u76d0"]}'),
            ["argument_list_in_string"],
        ),
        (
            search('{"query": " [ ] "}'),
            search('{"query": [ ]}'),
            ["argument_list_in_string"],
        ),
        # Neither strict JSON nor a list of strings: one query.
        (search('{"query": "[a]"}'), search('{"query": ["[a]"]}'), ["argument_not_list"]),
        (search('{"query": "[1]"}'), search('{"query": ["[1]"]}'), ["argument_not_list"]),
        (
            search('{"query": "[\\"a\\"] b"}'),
            search('{"query": ["[\\"a\\"] b"]}'),
            ["argument_not_list"],
        ),
        # What was no tag in the text is none afterwards.
        (
            search('{"query": "[\\"\\u003c/tool_call>\\"]"}'),
            search('{"query": ["\\u003c/tool_call>"]}'),
            ["argument_list_in_string"],
        ),
        (
            search('{"query": "[\\"\\ud83d\\"]"}'),
            search('{"query": ["\\ud83d"]}'),
            ["argument_list_in_string"],
        ),
        (
            visit('{"url": ["u"], "goal": ["g\\u76d0"]}'),
            visit('{"url": ["u"], "goal": "g\\u76d0"}'),
            ["argument_not_string"],
        ),
        (
            visit('{"url": "u", "goal": ["g\\"", "", "h"], "n": 1.10}'),
            visit('{"url": ["u"], "goal": "g\\"\\n\\nh", "n": 1.10}'),
            ["argument_not_list", "argument_not_string"],
        ),
        (
            '{"name": "Browse", "arguments": {"link": "u", "goal": ["g"], "q": null}, "id": 1e5}',
            '{"name": "visit", "arguments": {"url": ["u"], "goal": "g"}, "id": 1e5}',
            [
                "tool_name_alias",
                "argument_alias",
                "argument_not_list",
                "argument_not_string",
                "argument_null",
            ],
        ),
    ],
)
def test_each_mending_changes_what_it_must_and_no_more(
    text: str, expected: str, reasons: list[str]
) -> None:
    assert mend(text) == (expected, reasons)
    assert mend(expected) == (expected, [])


@pytest.mark.parametrize(
    ("text", "expected", "count"),
    [
        (search('{"query": ["a"], "topn": 20}'), search('{"query": ["a"]}'), 1),
        (search('{"topn": 20, "query": ["a"], "k": 1}'), search('{"query": ["a"]}'), 2),
        ('{"id": 1, "name": "search", "arguments": {}, "k": 2}', search("{}"), 2),
        (search('{"queries": ["a"], "q": "b"}'), search('{"query": ["a"]}'), 1),
    ],
)
def test_what_is_not_declared_goes_when_asked_for(text: str, expected: str, count: int) -> None:
    mended, reasons = mend(text, drop_extra=True)
    assert mended == expected
    assert reasons.count("argument_extra") == count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A tool that does not say what its arguments are has them all.
        ('{"name": "note", "arguments": {"a": null, "b": "c"}}', None),
        ('{"name": "pick", "arguments": {"either": ["a"]}}', None),
        ('{"name": "pick", "arguments": {"either": "a"}}', None),
        ('{"name": "pick", "arguments": {"anything": ["a"], "numbers": "5"}}', None),
        (
            '{"name": "pick", "arguments": {"some": "a", "n": [5]}}',
            '{"name": "pick", "arguments": {"some": ["a"], "numbers": [5]}}',
        ),
    ],
)
def test_the_schema_says_what_is_wanted(text: str, expected: str | None) -> None:
    assert mend(text, FREE, drop_extra=True)[0] == (expected or text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"arguments":{"topn":1.10,"query":["\\u76d0"]},"name":"search","id":1}',
            '{"name": "search", "arguments": {"query": ["盐"], "topn": 1.10}, "id": 1}',
        ),
        (
            '{"name":"abacus","arguments":{"b":1,"a":2}}',
            '{"name": "abacus", "arguments": {"b": 1, "a": 2}}',
        ),
    ],
)
def test_a_call_is_written_anew_name_first_and_arguments_as_declared(
    text: str, expected: str
) -> None:
    content = turn(text)
    (call,) = parse_message(content).calls
    assert isinstance(call, ToolCall)
    assert encode_call(content, call, search_visit().get(call.name)) == expected


STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = (
    STRINGS
    | st.lists(STRINGS | st.none() | st.integers(), max_size=3)
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.lists(STRINGS, max_size=3).map(json.dumps)
)
KEYS = st.sampled_from(["query", "queries", "q", "url", "urls", "goal", "Goal", "other", "x"])


def said(text: str) -> list[str]:
    """All strings and numbers of JSON text in order, keys left out; a list in a string as one."""
    found: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, dict):
            for item in value.values():
                collect(item)
        elif isinstance(value, list):
            for item in value:
                collect(item)
        elif isinstance(value, str):
            try:
                inner = json.loads(value)
            except ValueError:
                inner = None
            collect(inner) if isinstance(inner, list) else found.append(value.replace("\n", ""))
        elif value is not None:
            found.append(str(value))

    collect(json.loads(text)["arguments"])
    return found


@unhurried
@given(
    st.sampled_from(["search", "Search", "visit", "browse", "abacus"]),
    st.dictionaries(KEYS, VALUES, max_size=5),
    st.booleans(),
)
def test_a_mending_keeps_every_character_of_every_string_and_number(
    name: str, arguments: dict[str, object], is_ascii: bool
) -> None:
    text = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=is_ascii)
    mended, _ = mend(text)
    assert "".join(said(mended)) == "".join(said(text))
    assert mend(mended) == (mended, [])
