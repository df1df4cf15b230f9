from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import Pairs, pairs, search_visit

from trajcurate.schemas.form import Problem, form_problems, response_defect, response_shape
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.wire import from_messages

CALL = (
    "<think>\nx\n</think>\n"
    '<tool_call>\n{"name": "search", "arguments": {"query": ["a"]}}\n</tool_call>'
)
ANSWER = "<think>\nx\n</think>\n<answer>A</answer>"
REPLY = "<tool_response>\nx\n</tool_response>"
SYSTEM = {"role": "system", "content": "S"}


def problems(messages: Pairs, tools: ToolSet | None = None) -> list[tuple[str, int]]:
    return [(p.reason, p.message_index) for p in form_problems(from_messages(messages), tools)]


@pytest.mark.parametrize(
    "messages",
    [
        pairs(CALL, REPLY, ANSWER),
        [SYSTEM, *pairs(CALL, REPLY, CALL, REPLY, ANSWER)],
        pairs(ANSWER),
        pairs(CALL),
        pairs(CALL, REPLY),
    ],
)
def test_whole_and_unfinished_trajectories_are_well_formed(messages: Pairs) -> None:
    assert problems(messages, search_visit()) == []


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], [("question_missing", 0), ("assistant_missing", 0)]),
        ([SYSTEM], [("question_missing", 1), ("assistant_missing", 1)]),
        (pairs(), [("assistant_missing", 1)]),
        (pairs(CALL, REPLY)[1:], [("question_missing", 0)]),
        ([SYSTEM, SYSTEM, *pairs(ANSWER)[1:]], [("question_missing", 1)]),
        ([{"role": "user", "content": " "}, *pairs(ANSWER)[1:]], [("question_missing", 0)]),
        ([SYSTEM, *pairs(CALL, REPLY), SYSTEM], [("system_misplaced", 4)]),
        (pairs(ANSWER, REPLY), [("answer_before_end", 1)]),
        (pairs(CALL, "x"), [("response_untagged", 2)]),
        ([*pairs(CALL, REPLY), *pairs()], [("message_unexplained", 3)]),
        ([*pairs(), *pairs(CALL, REPLY)[2:], *pairs(ANSWER)[1:]], [("message_unexplained", 1)]),
        ([*pairs(CALL, REPLY), *pairs(CALL, REPLY)[2:]], [("response_split", 3)]),
        ([*pairs(CALL), *pairs(ANSWER)[1:]], [("call_unanswered", 1)]),
        ([*pairs(CALL), {"role": "tool", "content": REPLY}], [("role_unknown", 2)]),
    ],
)
def test_each_break_of_the_form_is_named_once(
    messages: Pairs, found: list[tuple[str, int]]
) -> None:
    assert problems(messages, search_visit()) == found


def test_all_problems_are_told_message_by_message() -> None:
    thought = "<think>\nx\n</think>"
    messages = [*pairs(thought), {"role": "assistant", "content": CALL + " y"}, *pairs()]
    assert problems(messages) == [
        ("assistant_split", 1),
        ("call_missing", 1),
        ("text_after_call", 2),
        ("response_untagged", 3),
    ]


def test_a_problem_says_where_in_its_message() -> None:
    (problem,) = form_problems(from_messages(pairs(CALL, REPLY, ANSWER + "\nDone.")))
    assert problem == Problem("text_after_answer", 3, len(ANSWER), len(ANSWER) + 6)


@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("search", '{"query": ["a"]}', []),
        ("search", '{"query": ["a"], "topn": 20}', []),
        ("Search", '{"query": ["a"]}', ["tool_name_alias"]),
        ("web_search", '{"q": "a"}', ["tool_name_alias", "argument_missing"]),
        ("search", '{"query": "a"}', ["argument_type"]),
        ("visit", '{"url": ["u"]}', ["argument_missing"]),
        ("calculator", "{}", ["tool_undeclared"]),
    ],
)
def test_calls_are_judged_by_their_tools(name: str, arguments: str, found: list[str]) -> None:
    call = f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'
    messages = pairs(f"<think>\nx\n</think>\n{call}")
    assert [reason for reason, _ in problems(messages, search_visit())] == found
    assert problems(messages) == []


def test_a_code_body_is_the_argument_that_the_tool_declares() -> None:
    schema = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    python = {"kind": "compute", "body": "code", "schema": schema}
    tools = ToolSet.model_validate({"tools": {"python": python}})
    head = '<think>\nx\n</think>\n<tool_call>\n{"name": "python", "arguments": {}}\n'
    assert problems(pairs(head + "<code>\n1\n</code>\n</tool_call>"), tools) == []
    assert problems(pairs(head + "</tool_call>"), tools) == [("argument_missing", 1)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (REPLY, None),
        ("<tool_response></tool_response>", None),
        (f"{REPLY}\n{REPLY}", None),
        (f" {REPLY}", "response_spaced"),
        (f"{REPLY}\n", "response_spaced"),
        (REPLY.upper(), "tag_case"),
        (f" {REPLY.upper()}", "tag_case"),
        ("<tool_response>x", "response_tag_missing"),
        ("x</tool_response>", "response_tag_missing"),
        (f"{REPLY} x", "response_tag_missing"),
        ("<tool_response>", "response_tag_missing"),
        ("<tool_response</tool_response>", "response_tag_missing"),
        ("x", "response_untagged"),
        ("", "response_untagged"),
        (f"x {REPLY} x", "response_untagged"),
    ],
)
def test_a_wrapper_is_exact_or_what_is_wrong_with_it_is_named(
    content: str, reason: str | None
) -> None:
    assert response_defect(content) == reason


@given(st.lists(st.sampled_from([" ", "x", "<tool_response>", "</TOOL_RESPONSE>", "İ"])))
def test_the_shape_of_any_text_lies_within_it(parts: list[str]) -> None:
    content = "".join(parts)
    shape = response_shape(content)
    assert 0 <= shape.start <= shape.end <= len(content)
    assert content[shape.start : shape.end] == content.strip()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.builds(
            lambda role, content: {"role": role, "content": content},
            st.sampled_from(["system", "user", "assistant", "tool"]),
            st.sampled_from(
                ["", "x", CALL, ANSWER, REPLY, "<think>", "</think>" + CALL, " " + REPLY]
            ),
        ),
        max_size=8,
    )
)
def test_any_messages_are_judged_and_each_problem_lies_in_its_message(messages: Pairs) -> None:
    for problem in form_problems(from_messages(messages), search_visit()):
        if problem.message_index == len(messages):
            assert problem.start == problem.end == 0
        else:
            content = messages[problem.message_index]["content"]
            assert 0 <= problem.start <= problem.end <= len(content)
