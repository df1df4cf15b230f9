from __future__ import annotations

import json

import pytest
from generated_turns import ANSWER, turn, unhurried, wrap
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from zoo import make_trajectory, pairs, undo

from trajcurate.curate.step import Editor, RejectingStep, Step, TextEdit
from trajcurate.schemas.audit import Edit, Finding
from trajcurate.schemas.trajectory import AssistantMessage, Message, ToolCall
from trajcurate.schemas.wire import to_messages

CALL = '{"name": "search", "arguments": {"query": ["tide"]}}'


def make_editor(*contents: str) -> Editor:
    return Editor(make_trajectory(pairs(*contents)))


class DropEverySecondURL(RejectingStep):
    """A step for these tests."""


def test_a_step_is_named_after_its_class() -> None:
    assert DropEverySecondURL.name() == "drop_every_second_url"


def test_a_step_refuses_options_that_it_does_not_have() -> None:
    with pytest.raises(ValidationError, match="treshold"):
        DropEverySecondURL.model_validate({"treshold": 1})


def test_a_rejecting_step_rejects_unless_told_to_flag() -> None:
    assert DropEverySecondURL().action == "reject"
    assert DropEverySecondURL(action="flag").action == "flag"


def test_a_step_does_nothing_by_itself() -> None:
    with pytest.raises(NotImplementedError):
        Step().apply(None, None)  # type: ignore[arg-type]


def test_an_editor_that_changes_nothing_gives_the_same_row_back() -> None:
    editor = make_editor(turn(CALL), wrap("1"))
    done = editor.done()
    assert done.trajectory is editor.trajectory
    assert (done.edits, done.findings) == ((), ())


def test_spans_of_one_text_are_replaced_last_to_first() -> None:
    editor = make_editor(turn(CALL), "one two three")
    editor.replace_text(
        2,
        [TextEdit(0, 3, "1", "digits"), TextEdit(8, 13, "3", "digits"), TextEdit(4, 7, "", "gone")],
    )
    assert editor.messages[2].content == "1  3"
    assert editor.edits == [
        Edit("digits", 2, 0, 8, 5, "three", "3"),
        Edit("gone", 2, 0, 4, 3, "two", ""),
        Edit("digits", 2, 0, 0, 3, "one", "1"),
    ]


def test_text_can_be_put_in_where_other_text_begins() -> None:
    editor = make_editor(turn(CALL), "world")
    editor.replace_text(2, [TextEdit(0, 0, "hello ", "greeting"), TextEdit(0, 5, "tide", "other")])
    assert editor.messages[2].content == "hello tide"


def test_an_edited_assistant_message_is_read_anew() -> None:
    editor = make_editor(turn(CALL), wrap("1"))
    start = editor.messages[1].content.index('["tide"]')
    editor.replace_text(1, [TextEdit(start, start + 8, '["moon"]', "other_word")])
    message = editor.messages[1]
    assert isinstance(message, AssistantMessage)
    (call,) = message.calls
    assert isinstance(call, ToolCall)
    assert call.arguments == {"query": ["moon"]}


def test_an_edited_observation_still_ends_in_its_order() -> None:
    editor = make_editor(turn(CALL), wrap("1", "Answer!"))
    editor.mark_order(2)
    editor.replace_text(2, [TextEdit(16, 17, "2", "other_word")])
    assert editor.messages[2] == Message("user", wrap("2", "Answer!"), ends_in_order=True)


def test_marking_an_order_is_no_edit_but_changes_the_row() -> None:
    editor = make_editor(turn(CALL), wrap("Answer!"))
    editor.mark_order(2)
    done = editor.done()
    assert done.edits == ()
    assert done.trajectory.messages[2].ends_in_order
    assert done.trajectory is not editor.trajectory


def test_an_edit_says_whether_it_is_safe_and_whether_it_only_encodes() -> None:
    editor = make_editor(turn(CALL), "one")
    editor.replace_text(2, [TextEdit(0, 3, "1", "digits")], safe=False, is_reencoding=True, turn=7)
    assert editor.edits == [Edit("digits", 2, 7, 0, 3, "one", "1", safe=False, is_reencoding=True)]


def test_turns_are_counted_as_the_messages_stand_now() -> None:
    editor = make_editor(turn(CALL), wrap("1"), turn(CALL), wrap("2"))
    assert [editor.turn_of(index) for index in range(5)] == [None, 0, 0, 1, 1]
    editor.remove_turn(1, "unwanted")
    assert [editor.turn_of(index) for index in range(3)] == [None, 0, 0]
    editor.insert(1, Message("user", "more"), "added")
    assert [editor.turn_of(index) for index in range(4)] == [None, None, 0, 0]
    editor.set_role(1, "assistant", "other_role")
    assert [editor.turn_of(index) for index in range(4)] == [None, 0, 1, 1]


def test_a_turn_goes_with_all_that_answers_it() -> None:
    row = make_trajectory([*pairs(turn(CALL), "1"), *pairs(ANSWER)])
    editor = Editor(row)
    editor.remove_turn(1, "unwanted")
    assert [m.content for m in editor.messages] == ["Q", ANSWER]
    assert [(e.message, e.turn, json.loads(e.before or "")["content"]) for e in editor.edits] == [
        (3, 0, "Q"),
        (2, 0, "1"),
        (1, 0, turn(CALL)),
    ]


def test_a_message_that_goes_stands_whole_in_its_edit() -> None:
    editor = make_editor(turn(CALL), "潮\n")
    editor.mark_order(2)
    editor.remove(2, "unwanted", safe=False)
    (edit,) = editor.edits
    assert (edit.start, edit.after, edit.safe) == (None, None, False)
    assert json.loads(edit.before or "") == {
        "role": "user",
        "content": "潮\n",
        "ends_in_order": True,
    }


def test_a_new_role_is_an_edit_of_the_role_alone() -> None:
    editor = make_editor(turn(CALL), wrap("1"))
    editor.set_role(1, "tool", "swapped")
    assert editor.messages[1] == Message("tool", turn(CALL))
    assert editor.edits == [
        Edit("swapped", 1, 0, before='{"role":"assistant"}', after='{"role":"tool"}')
    ]


def test_a_changed_column_is_an_edit_of_its_whole_text() -> None:
    editor = make_editor(turn(CALL))
    editor.set_column("question", "Q", "Question", "short")
    done = editor.done(question="Question")
    assert done.trajectory.question == "Question"
    assert done.edits == (
        Edit("short", start=0, length=1, before="Q", after="Question", column="question"),
    )


def test_a_finding_changes_nothing() -> None:
    editor = make_editor(turn(CALL))
    editor.find("odd", 0, "$.turns[0]", words=3)
    done = editor.done()
    assert done.trajectory is editor.trajectory
    assert done.findings == (Finding("odd", 0, "$.turns[0]", {"words": 3}),)


CONTENTS = st.sampled_from([turn(CALL), ANSWER, wrap("1"), "", "x\u2028y", "<think>a</think>"])
ROLES = st.sampled_from(["assistant", "user", "system", "tool"])


@unhurried
@given(
    st.lists(st.fixed_dictionaries({"role": ROLES, "content": CONTENTS}), min_size=1, max_size=6),
    st.lists(st.integers(0, 5), max_size=8),
    st.data(),
)
def test_edits_undone_last_to_first_give_the_messages_back(
    messages: list[dict[str, str]], kinds: list[int], data: st.DataObject
) -> None:
    editor = Editor(make_trajectory(messages))
    for kind in kinds:
        if not editor.messages:
            break
        index = data.draw(st.integers(0, len(editor.messages) - 1))
        length = len(editor.messages[index].content)
        start = data.draw(st.integers(0, length))
        middle = data.draw(st.integers(start, length))
        if kind == 0:
            editor.remove(index, "r")
        elif kind == 1:
            editor.insert(index, Message("user", data.draw(st.text(max_size=3))), "r")
        elif kind == 2:
            editor.set_role(index, data.draw(ROLES), "r")
        elif kind == 3 and isinstance(editor.messages[index], AssistantMessage):
            editor.remove_turn(index, "r")
        else:
            after = data.draw(st.text(max_size=3))
            changes = [TextEdit(start, middle, after, "r"), TextEdit(middle, length, "", "r")]
            editor.replace_text(index, changes[: data.draw(st.integers(1, 2))])
    done = editor.done()
    assert undo(done.trajectory.messages, done.edits) == to_messages(editor.trajectory.messages)


def test_half_a_surrogate_pair_can_be_removed_and_comes_back() -> None:
    row = make_trajectory(pairs(turn(CALL), "a\ud83d"))
    editor = Editor(row)
    editor.remove(2, "unwanted")
    done = editor.done()
    assert undo(done.trajectory.messages, done.edits) == to_messages(row.messages)


def test_replacing_nothing_changes_nothing() -> None:
    editor = make_editor(turn(CALL), "one")
    editor.replace_text(1, [])
    assert editor.done().trajectory is editor.trajectory


def test_turns_of_many_messages_are_counted_once() -> None:
    editor = make_editor(*[turn(CALL), "1"] * 5_000)
    for index in range(9_999, 0, -2):
        editor.remove_turn(index, "unwanted")
    assert [edit.turn for edit in editor.edits[::2]] == list(range(4_999, -1, -1))
