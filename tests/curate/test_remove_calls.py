from __future__ import annotations

import pytest
from generated_turns import (
    ANSWER,
    assert_nothing_is_orphaned,
    numbers_of_calls,
    trajectories,
    unhurried,
    wrap,
)
from hypothesis import given
from hypothesis import strategies as st
from zoo import make_trajectory, pairs, undo

from trajcurate.curate.remove_calls import remove_calls
from trajcurate.curate.step import Editor
from trajcurate.schemas.trajectory import AssistantMessage, Trajectory
from trajcurate.schemas.wire import to_messages

THINK = "<think>\nt\n</think>"


def call(name: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{}}}}\n</tool_call>'


def remove(content: str, reply: str, *numbers: int, **options: bool) -> tuple[str, list[str]]:
    """Remove calls of the first turn of a row of two; what was done, and the contents."""
    editor = Editor(make_trajectory(pairs(content, reply, ANSWER)))
    done = remove_calls(editor, 1, numbers, "unwanted", **options)
    return done, [message.content for message in editor.messages[1:-1]]


@pytest.mark.parametrize(
    ("content", "numbers", "expected"),
    [
        (f"{THINK}\n{call('a')}\n{call('b')}", [0], f"{THINK}\n{call('b')}"),
        (f"{THINK}\n{call('a')}\n{call('b')}", [1], f"{THINK}\n{call('a')}"),
        (f"{THINK}{call('a')}{call('b')}\n", [1], f"{THINK}{call('a')}\n"),
        (
            f"{THINK}\n{call('a')}\n\n{call('b')} {call('c')}\n",
            [1],
            f"{THINK}\n{call('a')} {call('c')}\n",
        ),
        # Two neighbours with gaps of different length between and behind them.
        (f"{THINK}\n{call('a')}\n\n\n{call('b')}{call('c')}", [0, 1], f"{THINK}\n{call('c')}"),
        (f"{THINK}\n{call('a')}{call('b')}\n\n\n{call('c')}", [0, 1], f"{THINK}\n{call('c')}"),
        (f"{THINK}\n{call('a')} {call('b')}\n\n{call('c')}", [1, 2], f"{THINK}\n{call('a')}"),
        (f"{THINK}\n{call('a')} {call('b')}\n\n{call('c')}", [2, 0], f"{THINK}\n{call('b')}"),
        # Prose between calls is not white space and stays.
        (f"{THINK}\n{call('a')} then {call('b')}", [0], f"{THINK}\n then {call('b')}"),
        (f"{THINK}\n{call('a')} then {call('b')}", [1], f"{THINK}\n{call('a')} then "),
    ],
)
def test_a_call_goes_with_the_space_that_joins_it(
    content: str, numbers: list[int], expected: str
) -> None:
    responses = wrap(*"123"[: content.count("<tool_call>")])
    done, (left, _) = remove(content, responses, *numbers)
    assert (done, left) == ("calls", expected)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0], wrap("2", "3")),
        ([1], wrap("1", "3")),
        ([2], wrap("1", "2")),
        ([0, 1], wrap("3")),
        ([1, 2], wrap("1")),
        ([0, 2], wrap("2")),
        ([1, 1], wrap("1", "3")),
    ],
)
def test_a_call_takes_its_own_response_along(numbers: list[int], expected: str) -> None:
    content = f"{THINK}\n{call('a')}\n{call('b')}\n{call('c')}"
    assert remove(content, wrap("1", "2", "3"), *numbers)[1][1] == expected


def test_an_order_behind_the_responses_stays_with_the_turn() -> None:
    row = make_trajectory(pairs(f"{THINK}\n{call('a')}\n{call('b')}", wrap("1", "2", "Answer!")))
    editor = Editor(row)
    editor.mark_order(2)
    assert remove_calls(editor, 1, [1], "unwanted") == "calls"
    assert editor.messages[2].content == wrap("1", "Answer!")
    assert editor.messages[2].ends_in_order


def test_the_turn_goes_with_its_last_call() -> None:
    done, left = remove(f"{THINK}\n{call('a')}\n{call('b')}", wrap("1", "2"), 0, 1)
    assert (done, left) == ("turn", [])


@pytest.mark.parametrize("reply", [wrap("both"), wrap("1", "2", "3"), "no tags"])
def test_a_turn_whose_observation_does_not_pair_is_one_thing(reply: str) -> None:
    content = f"{THINK}\n{call('a')}\n{call('b')}"
    assert remove(content, reply, 0) == ("turn", [])
    assert remove(content, reply, 0, keep_unpaired=True) == ("nothing", [content, reply])
    assert remove(content, reply, 0, 1, keep_unpaired=True) == ("turn", [])


def test_a_page_that_quotes_the_response_tags_is_not_cut() -> None:
    page = "Write <tool_response>…</tool_response>\nor <tool_response>"
    done, left = remove(f"{THINK}\n{call('a')}\n{call('b')}", wrap(page, "2"), 1)
    assert (done, left[1]) == ("calls", wrap(page))


def test_an_empty_response_block_is_a_block() -> None:
    reply = "<tool_response>\n</tool_response>\n<tool_response>\n2\n</tool_response>"
    assert remove(f"{THINK}\n{call('a')}\n{call('b')}", reply, 0)[1][1] == wrap("2")
    kept = "<tool_response>\n</tool_response>"
    assert remove(f"{THINK}\n{call('a')}\n{call('b')}", reply, 1)[1][1] == kept


def test_an_unanswered_turn_loses_only_the_call() -> None:
    editor = Editor(make_trajectory(pairs(f"{THINK}\n{call('a')}\n{call('b')}")))
    assert remove_calls(editor, 1, [0], "unwanted") == "calls"
    assert [m.content for m in editor.messages[1:]] == [f"{THINK}\n{call('b')}"]


def test_an_answer_beside_the_calls_keeps_the_message() -> None:
    content = f"{THINK}\n{call('a')}\n<answer>x</answer>"
    done, left = remove(content, wrap("1"), 0)
    assert (done, left) == ("calls", [f"{THINK}\n<answer>x</answer>"])


def test_an_order_is_all_that_may_be_left_of_an_observation() -> None:
    content = f"{THINK}\n{call('a')}\n{call('b')}\n<answer>x</answer>"
    editor = Editor(make_trajectory(pairs(content, wrap("1", "2", "Answer!"))))
    editor.mark_order(2)
    assert remove_calls(editor, 1, [0, 1], "unwanted") == "calls"
    assert editor.messages[2].content == wrap("Answer!")


def test_removing_no_call_changes_nothing() -> None:
    editor = Editor(make_trajectory(pairs(f"{THINK}\n{call('a')}", wrap("1"))))
    assert remove_calls(editor, 1, [], "unwanted") == "nothing"
    assert editor.edits == []


@unhurried
@given(trajectories(), st.data(), st.booleans())
def test_what_is_left_is_whole_and_every_removal_can_be_undone(
    row: Trajectory, data: st.DataObject, keep_unpaired: bool
) -> None:
    editor = Editor(row)
    removed: set[int] = set()
    for turn in reversed(row.turns):
        count = len(turn.assistant.calls)
        if count == 0:
            continue
        numbers = data.draw(st.lists(st.integers(0, count - 1)), label=f"turn {turn.index}")
        done = remove_calls(
            editor, turn.message_index, numbers, "unwanted", keep_unpaired=keep_unpaired
        )
        here = numbers_of_calls(turn.assistant)
        if done == "calls":
            removed |= {here[number] for number in numbers}
        elif done == "turn":
            removed |= set(here)
    after = editor.done().trajectory
    assert undo(after.messages, editor.edits) == to_messages(row.messages)
    assert_nothing_is_orphaned(row, after)
    left = [
        number
        for message in after.messages
        if isinstance(message, AssistantMessage)
        for number in numbers_of_calls(message)
    ]
    assert removed.isdisjoint(left)
