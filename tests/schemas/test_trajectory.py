"""How messages make turns, and what a trajectory says of itself."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajcurate.schemas.trajectory import AssistantMessage, Message, Origin, Trajectory
from trajcurate.schemas.wire import read_message

CALL = (
    "<think>\nplan\n</think>\n<tool_call>\n"
    '{"name": "search", "arguments": {"query": ["tide"]}}\n</tool_call>'
)
ANSWER = "<think>\ndone\n</think>\n<answer>\n X \n</answer>"
RESPONSE = "<tool_response>\nr\n</tool_response>"


def make(*messages: Message) -> Trajectory:
    return Trajectory(
        origin=Origin("test", "f.jsonl", 0),
        id="0" * 32,
        question_id="q",
        question="Q",
        answer=None,
        messages=messages,
    )


SYSTEM, QUESTION = Message("system", "S"), Message("user", "Q")
CALLING, ANSWERING = read_message("assistant", CALL), read_message("assistant", ANSWER)
REPLY = Message("user", RESPONSE)
ORDER = Message("user", RESPONSE, ends_in_order=True)


def test_a_turn_is_an_assistant_message_with_all_that_answers_it() -> None:
    stray = Message("user", "and more")
    row = make(SYSTEM, QUESTION, CALLING, REPLY, stray, ANSWERING)
    first, second = row.turns
    assert (first.index, first.message_index, first.replies) == (0, 2, (REPLY, stray))
    assert (second.index, second.message_index, second.replies) == (1, 5, ())
    assert second.assistant is ANSWERING
    assert row.opening == (SYSTEM, QUESTION)
    assert row.turn_count == 2


def test_assistant_messages_in_a_row_are_turns_of_their_own() -> None:
    row = make(QUESTION, CALLING, CALLING, REPLY)
    assert [turn.replies for turn in row.turns] == [(), (REPLY,)]


def test_a_row_without_assistant_messages_is_all_opening() -> None:
    row = make(SYSTEM, QUESTION)
    assert row.turns == ()
    assert row.opening == (SYSTEM, QUESTION)
    assert row.final_answer is None
    assert row.termination == "unfinished"


@given(st.lists(st.sampled_from([SYSTEM, QUESTION, CALLING, ANSWERING, REPLY]), max_size=8))
def test_opening_and_turns_hold_every_message_once(messages: list[Message]) -> None:
    row = make(*messages)
    rebuilt = list(row.opening)
    for turn in row.turns:
        assert turn.message_index == len(rebuilt)
        rebuilt += [turn.assistant, *turn.replies]
    assert rebuilt == messages


@pytest.mark.parametrize(
    ("messages", "termination", "answer"),
    [
        ((QUESTION, ANSWERING), "answered", "X"),
        ((QUESTION, CALLING, REPLY, ANSWERING), "answered", "X"),
        ((QUESTION, CALLING, ORDER, ANSWERING), "ordered", "X"),
        ((QUESTION, CALLING, ORDER, CALLING, REPLY, ANSWERING), "answered", "X"),
        ((QUESTION, CALLING), "unfinished", None),
        ((QUESTION, CALLING, REPLY), "unfinished", None),
        # An answer that something follows does not end the row.
        ((QUESTION, ANSWERING, REPLY), "unfinished", "X"),
        ((), "unfinished", None),
    ],
)
def test_a_row_ends_answered_ordered_or_unfinished(
    messages: tuple[Message, ...], termination: str, answer: str | None
) -> None:
    row = make(*messages)
    assert row.termination == termination
    assert row.final_answer == answer


def test_a_trajectory_cannot_be_changed_in_place() -> None:
    row = make(QUESTION, ANSWERING)
    with pytest.raises(FrozenInstanceError):
        row.question = "other"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        QUESTION.content = "other"  # type: ignore[misc]


def test_a_changed_copy_groups_its_own_turns() -> None:
    row = make(QUESTION, CALLING, REPLY, ANSWERING)
    assert row.turn_count == 2
    assert replace(row, messages=row.messages[:3]).turn_count == 1


def test_an_assistant_message_gives_thought_calls_and_answer() -> None:
    assert isinstance(CALLING, AssistantMessage)
    assert isinstance(ANSWERING, AssistantMessage)
    assert CALLING.thought == "plan"
    assert [call.end for call in CALLING.calls] == [len(CALL)]
    assert CALLING.answer is None
    assert ANSWERING.calls == []
    assert ANSWERING.answer == "X"
    assert CALLING.is_well_formed
    assert ANSWERING.is_well_formed
