from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import (
    Pairs,
    Sample,
    check_kept,
    make_trajectory,
    reasons_with_sample,
    search_visit,
    zoo,
)

from trajcurate.curate.step import Drop, Keep
from trajcurate.curate.steps.drop_unanswered_calls import DropUnansweredCalls
from trajcurate.schemas.wire import to_messages


def call(query: str) -> dict[str, str]:
    text = (
        f"<think>\n{query}?\n</think>\n"
        f'<tool_call>\n{{"name": "search", "arguments": {{"query": ["{query}"]}}}}\n</tool_call>'
    )
    return {"role": "assistant", "content": text}


QUESTION = {"role": "user", "content": "Q"}
REPLY = {"role": "user", "content": "<tool_response>\nx\n</tool_response>"}
ANSWER = {"role": "assistant", "content": "<think>\nx\n</think>\n<answer>A</answer>"}
THOUGHT = {"role": "assistant", "content": "<think>\nx\n</think>"}
BROKEN = {"role": "assistant", "content": "<think>\nx\n</think>\n<tool_call>\n{'\n</tool_call>"}
BOTH = {"role": "assistant", "content": call("q")["content"] + "\n<answer>A</answer>"}
TWO = {"role": "assistant", "content": call("p")["content"] + call("q")["content"][15:]}


def apply(*messages: dict[str, str], **options: Any) -> Keep | Drop:
    step = DropUnansweredCalls(**options)
    outcome = step.apply(make_trajectory([QUESTION, *messages]), search_visit())
    assert isinstance(outcome, Keep | Drop)
    return outcome


def kept(*messages: dict[str, str], **options: Any) -> Pairs:
    outcome = apply(*messages, **options)
    assert isinstance(outcome, Keep), outcome
    return to_messages(outcome.trajectory.messages)[1:]


@pytest.mark.parametrize("sample", zoo("drop_unanswered_calls"))
def test_a_sample_loses_its_turn(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert reasons_with_sample("drop_unanswered_calls") == set(DropUnansweredCalls.reasons)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [ANSWER],
        [call("a"), REPLY, ANSWER],
        [call("a"), REPLY],
        [call("a"), REPLY, call("b")],
        [call("a")],
        [TWO, REPLY, ANSWER],
        [BOTH, ANSWER],
        [THOUGHT, ANSWER],
        [ANSWER, ANSWER],
    ],
)
def test_a_row_whose_calls_are_answered_is_the_same_object(messages: Pairs) -> None:
    trajectory = make_trajectory([QUESTION, *messages])
    outcome = DropUnansweredCalls().apply(trajectory, search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is trajectory


@pytest.mark.parametrize("unanswered", [call("a"), BROKEN, TWO])
def test_an_unanswered_turn_goes_and_its_neighbours_stay(unanswered: dict[str, str]) -> None:
    row = [call("b"), REPLY, unanswered, call("c"), REPLY, ANSWER]
    assert kept(*row) == [call("b"), REPLY, call("c"), REPLY, ANSWER]


def test_several_unanswered_turns_in_a_row_all_go() -> None:
    assert kept(call("a"), call("b"), call("c"), REPLY, call("d"), ANSWER) == [
        call("c"),
        REPLY,
        ANSWER,
    ]


def test_an_edit_holds_the_message_that_went() -> None:
    outcome = apply(call("a"), REPLY, call("b"), ANSWER)
    assert isinstance(outcome, Keep)
    (edit,) = outcome.edits
    assert (edit.reason, edit.message, edit.turn) == ("call_unanswered", 3, 1)
    assert call("b")["content"].split("\n")[1] in (edit.before or "")


def test_calls_at_the_end_go_only_where_that_is_asked_for() -> None:
    row = [call("a"), REPLY, call("b")]
    assert kept(*row, last="keep") == row
    assert kept(*row, last="drop") == [call("a"), REPLY]


@pytest.mark.parametrize(
    ("messages", "last"),
    [
        ([call("a"), ANSWER], "keep"),
        ([call("a"), call("b"), ANSWER], "keep"),
        ([call("a")], "drop"),
    ],
)
def test_a_row_that_loses_its_last_call_is_dropped(messages: Pairs, last: str) -> None:
    outcome = apply(*messages, last=last)
    assert isinstance(outcome, Drop)
    assert (outcome.reason, outcome.where) == ("no_turns_left", "$.messages[1]")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from([call("a"), TWO, BROKEN, BOTH, THOUGHT, ANSWER, REPLY, QUESTION]),
        max_size=10,
    ),
    st.sampled_from(["keep", "drop"]),
)
def test_any_row_loses_them_once_and_can_be_undone(messages: Pairs, last: str) -> None:
    step = DropUnansweredCalls.model_validate({"last": last})
    check_kept(step, make_trajectory([QUESTION, *messages]))
