from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from generated_turns import ANSWER, assert_nothing_is_orphaned, trajectories, turn, unhurried, wrap
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from shared_data import shared
from zoo import (
    Sample,
    check_kept,
    make_trajectory,
    pairs,
    reasons_with_sample,
    search_visit,
    zoo,
)

from trajcurate.curate.step import Editor, Keep
from trajcurate.curate.steps.drop_repeated_calls import DropRepeatedCalls
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import AssistantMessage, ToolCall, Trajectory

FAILED = wrap("Tool execution timed out after 120 seconds.")


def search(*queries: str, **more: Any) -> str:
    return json.dumps({"name": "search", "arguments": {"query": list(queries), **more}})


def visit(url: str, goal: str) -> str:
    return json.dumps({"name": "visit", "arguments": {"url": [url], "goal": goal}})


def drop(*contents: str, **options: Any) -> list[str]:
    """The contents of the messages behind the question afterwards."""
    outcome = check_kept(DropRepeatedCalls(**options), make_trajectory(pairs(*contents)))
    assert outcome is not None
    return [message.content for message in outcome.trajectory.messages[1:]]


@pytest.mark.parametrize("sample", zoo("drop_repeated_calls"))
def test_a_sample_comes_out_as_written(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert set(DropRepeatedCalls.reasons) <= reasons_with_sample("drop_repeated_calls")


@pytest.mark.parametrize(
    ("again", "is_repeat"),
    [
        (search("tide", "moon"), True),
        (search("moon", "tide"), True),
        (search(" tide\n", "moon", "tide", ""), True),
        (search("tide", "moon", topn=20), True),
        ('{"name": "Web_Search", "arguments": {"queries": ["tide", "moon"]}}', True),
        (search("tide"), False),
        (search("Tide", "moon"), False),
        (search("tide moon"), False),
        ('{"name": "visit", "arguments": {"url": ["tide", "moon"], "goal": "g"}}', False),
        ('{"name": "google_scholar", "arguments": {"query": ["tide", "moon"]}}', False),
    ],
)
def test_a_search_repeats_another_of_the_same_queries_as_a_set(again: str, is_repeat: bool) -> None:
    row = [turn(search("tide", "moon")), wrap("1"), turn(again), wrap("2"), ANSWER]
    assert drop(*row) == ([*row[:2], ANSWER] if is_repeat else row)


@pytest.mark.parametrize(
    ("same", "goal", "is_repeat"),
    [
        (("arguments", "goal"), "g", True),
        (("arguments", "goal"), " g ", True),
        (("arguments", "goal"), "h", False),
        (("arguments",), "h", True),
    ],
)
def test_a_visit_has_a_goal_too_unless_it_is_left_out(
    same: tuple[str, ...], goal: str, is_repeat: bool
) -> None:
    row = [turn(visit("u", "g")), wrap("1"), turn(visit("u", goal)), wrap("2")]
    assert drop(*row, same=same) == (row[:2] if is_repeat else row)


@pytest.mark.parametrize(
    ("first", "again", "is_repeat"),
    [
        ('{"name": "py", "arguments": {"a": 1, "b": 2}}', '{"b": 2, "a": 1}', True),
        ('{"name": "py", "arguments": {"a": "1"}}', '{"a": 1}', False),
        ('{"name": "py", "arguments": {"a": ["x", "y"]}}', '{"a": ["y", "x"]}', False),
    ],
)
def test_calls_of_other_tools_repeat_when_all_arguments_are_equal(
    first: str, again: str, is_repeat: bool
) -> None:
    second = f'{{"name": "py", "arguments": {again}}}'
    row = [turn(first), wrap("1"), turn(second), wrap("2")]
    assert drop(*row) == (row[:2] if is_repeat else row)


def test_calls_with_another_code_body_are_other_calls() -> None:
    head = '{"name": "PythonInterpreter", "arguments": {}}\n<code>\n'
    one, two = f"{head}print(1)\n</code>", f"{head}print(2)\n</code>"
    row = [turn(one), wrap("1"), turn(two), wrap("2")]
    assert drop(*row, turn(one), wrap("3")) == row


@pytest.mark.parametrize(
    "failure",
    [
        "Tool execution timed out after 120 seconds.",
        "",
        " \n ",
        "Failed to search for 'tide'",
        '[{"query": "tide", "web_page_info_list": []}]',
        '[{"query": "tide", "web_page_info_list": [], "note": "found 3 results"}]',
        "A Google search for 'tide' found 0 results:\n\n## Web Results\n",
    ],
)
def test_a_failed_attempt_gives_way_to_the_one_that_worked(failure: str) -> None:
    retry = [turn(search(" tide ")), wrap("High at noon.")]
    row = [turn(search("tide")), wrap(failure), *retry, turn(search("tide")), wrap("More."), ANSWER]
    assert drop(*row) == [*retry, ANSWER]
    assert drop(*row, keep="first") == [*row[:2], ANSWER]


def test_of_attempts_that_all_failed_the_first_stays() -> None:
    row = [turn(search("tide")), FAILED, turn(search("tide")), wrap(""), ANSWER]
    assert drop(*row) == [*row[:2], ANSWER]


def test_one_query_with_results_makes_a_search_that_worked() -> None:
    some = (
        '[{"query": "a", "web_page_info_list": []}, '
        '{"query": "b", "web_page_info_list": [{"title": "t", "url": "u", "snippet": "s"}]}]'
    )
    row = [turn(search("a", "b")), wrap(some), turn(search("b", "a")), wrap("Plain text.")]
    assert drop(*row) == row[:2]


def test_a_long_page_that_quotes_a_failure_has_not_failed() -> None:
    page = "Error messages of old machines. " + "They were short. " * 200
    row = [turn(visit("u", "g")), wrap(page), turn(visit("u", "g")), wrap("Another text.")]
    assert drop(*row) == row[:2]


def test_of_a_turn_of_several_calls_only_the_repeat_goes() -> None:
    row = [turn(search("a")), wrap("1"), turn(search("a"), search("b")), wrap("2", "3"), ANSWER]
    assert drop(*row) == [*row[:2], turn(search("b")), wrap("3"), ANSWER]


def test_a_call_repeated_in_its_own_turn_goes() -> None:
    row = [turn(search("a"), search("a")), "\n".join([FAILED, wrap("2")]), ANSWER]
    assert drop(*row) == [turn(search("a")), wrap("2"), ANSWER]


def test_a_turn_whose_observation_does_not_pair_goes_only_with_all_its_calls() -> None:
    first = [turn(search("a")), wrap("1")]
    mixed = [turn(search("a"), search("b")), wrap("both")]
    assert drop(*first, *mixed, ANSWER) == [*first, *mixed, ANSWER]
    second = [turn(search("b")), wrap("2")]
    assert drop(*first, *second, *mixed, ANSWER) == [*first, *second, ANSWER]


def test_first_goes_by_turn() -> None:
    first = [turn(search("a")), wrap("1")]
    mixed = [turn(search("a"), search("b")), wrap("2", "3")]
    again = [turn(search("b"), search("a")), wrap("4", "5")]
    row = [*first, *mixed, *again, ANSWER]
    assert drop(*row, keep="first") == [*first, *mixed, ANSWER]


def test_a_call_that_cannot_be_read_keeps_its_turn() -> None:
    broken = '{"name": "search"'
    both = [turn(search("a"), broken), wrap("both")]
    row = [turn(search("a")), wrap("1"), *both, *both, ANSWER]
    assert drop(*row) == row
    assert drop(*row, keep="first") == row


def test_a_call_that_cannot_be_read_keeps_its_response() -> None:
    broken = '{"name": "search"'
    row = [turn(search("a")), wrap("1"), turn(broken, search("a")), wrap("2", "3"), ANSWER]
    assert drop(*row) == [*row[:2], turn(broken), wrap("2"), ANSWER]


def test_calls_that_say_nothing_their_tool_knows_are_compared_by_all_they_say() -> None:
    one, two = (f'{{"name": "search", "arguments": {{"text": "{x}"}}}}' for x in "ab")
    row = [turn(one), wrap("1"), turn(two), wrap("2")]
    assert drop(*row, turn(two), wrap("3")) == row


def apply(change: Callable[[Editor], None], *contents: str, **options: Any) -> Keep:
    editor = Editor(make_trajectory(pairs(*contents)))
    change(editor)
    outcome = check_kept(DropRepeatedCalls(**options), editor.done().trajectory)
    assert outcome is not None
    return outcome


@pytest.mark.parametrize("keep", ["best", "first"])
def test_a_call_answered_only_by_an_order_takes_no_part(keep: str) -> None:
    ordered = [turn(search("a")), wrap("Answer now!")]
    row = [*ordered, turn(search("a")), wrap("1"), ANSWER]
    outcome = apply(lambda editor: editor.mark_order(2), *row, keep=keep)
    assert outcome.edits == ()
    row = [turn(search("a")), wrap("1"), *ordered, ANSWER]
    outcome = apply(lambda editor: editor.mark_order(4), *row, keep=keep)
    assert outcome.edits == ()


def test_an_order_behind_a_response_says_nothing_about_it() -> None:
    row = [turn(search("a")), wrap("", "Answer now!"), turn(search("a")), wrap("1"), ANSWER]
    outcome = apply(lambda editor: editor.mark_order(2), *row)
    assert [m.content for m in outcome.trajectory.messages[1:]] == row[2:]


@pytest.mark.parametrize("keep", ["best", "first"])
def test_a_call_that_nothing_answers_takes_no_part(keep: str) -> None:
    row = [turn(search("a")), wrap("1"), turn(search("a"))]
    assert drop(*row, keep=keep) == row


def test_a_row_without_a_repeat_is_the_same_row() -> None:
    row = make_trajectory(pairs(turn(search("a")), wrap("1"), turn(search("b")), wrap("2")))
    outcome = DropRepeatedCalls().apply(row, search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is row


def test_what_a_tool_declares_beside_its_list_tells_calls_apart() -> None:
    tools = ToolSet.model_validate(
        {
            "tools": {
                "search": {
                    "kind": "search",
                    "schema": {
                        "properties": {"query": {"type": "array"}, "page": {"type": "integer"}}
                    },
                }
            }
        }
    )
    row = [turn(search("a", page=1)), wrap("1"), turn(search("a", page=2)), wrap("2")]
    outcome = check_kept(DropRepeatedCalls(), make_trajectory(pairs(*row)), tools)
    assert outcome is not None
    assert outcome.edits == ()


def test_calls_cannot_be_the_same_by_their_goal_alone() -> None:
    with pytest.raises(ValidationError, match="arguments"):
        DropRepeatedCalls(same=("goal",))


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": ""}] * 2,
        [{"role": "assistant", "content": turn(search("a"))}] * 2,
        [{"role": "tool", "content": search("a")}] * 2,
        [{"role": "assistant", "content": turn(search("a"), search("a"))}, *pairs()],
        [{"role": "assistant", "content": turn('{"name": "search", "arguments": {}}')}, *pairs()]
        * 2,
    ],
)
def test_no_row_is_too_odd(messages: list[dict[str, str]]) -> None:
    for keep in ("best", "first"):
        step = DropRepeatedCalls.model_validate({"keep": keep})
        check_kept(step, make_trajectory(messages))


def test_many_repeats_in_one_turn_take_linear_time() -> None:
    calls = [search("a"), search("b")] * 1_500
    row = make_trajectory(pairs(turn(*calls), wrap(*map(str, range(3_000))), ANSWER))
    outcome = DropRepeatedCalls().apply(row, search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory.messages[2].content == wrap("0", "1")


@unhurried
@given(
    trajectories(),
    st.sampled_from([("arguments",), ("arguments", "goal")]),
    st.sampled_from(["best", "first"]),
)
def test_what_is_kept_is_whole_and_no_call_is_lost_altogether(
    row: Trajectory, same: tuple[str, ...], keep: str
) -> None:
    outcome = check_kept(DropRepeatedCalls.model_validate({"same": same, "keep": keep}), row)
    assert outcome is not None
    assert_nothing_is_orphaned(row, outcome.trajectory)
    assert tools_called(outcome.trajectory) == tools_called(row)


def tools_called(row: Trajectory) -> set[str | None]:
    return {
        search_visit().resolve(call.name)
        for message in row.messages
        if isinstance(message, AssistantMessage)
        for call in message.calls
        if isinstance(call, ToolCall)
    }


@unhurried
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("gh"), st.booleans()), max_size=8))
def test_arguments_and_first_is_the_rule_of_the_public_script(
    calls: list[tuple[str, str, bool]],
) -> None:
    """One call a turn, the first of each list of queries or URLs stays, whatever came back."""
    contents, expected, seen = [], [], set()
    for number, (what, goal, is_search) in enumerate(calls):
        call = search(what, f" {what} ") if is_search else visit(what, goal)
        one = [turn(call), FAILED if number % 2 else wrap(str(number))]
        contents += one
        if (what, is_search) not in seen:
            seen.add((what, is_search))
            expected += one
    assert drop(*contents, ANSWER, same=("arguments",), keep="first") == [*expected, ANSWER]


def test_open_case_of_a_retry_that_worked() -> None:
    lines = shared("cases", "open_cases.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(case for line in lines if (case := json.loads(line))["id"] == "DD-10")
    messages = case["input"]["messages"]
    outcome = check_kept(DropRepeatedCalls(), make_trajectory(messages))
    assert outcome is not None
    left = [message.content for message in outcome.trajectory.messages]
    assert left == [message["content"] for message in messages[:2] + messages[4:]]
    assert case["expect"]["data"]["must_keep_text"] in left[3]
