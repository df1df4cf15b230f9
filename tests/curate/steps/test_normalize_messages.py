from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_data import shared
from zoo import (
    Pairs,
    Sample,
    check_kept,
    make_trajectory,
    reasons_with_sample,
    search_visit,
    zoo,
)

from trajcurate.curate.step import Keep, Quarantine
from trajcurate.curate.steps.normalize_messages import NormalizeMessages
from trajcurate.schemas.form import form_problems
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.wire import to_messages

SEARCH = (
    "<think>\nLook.\n</think>\n"
    '<tool_call>\n{"name": "search", "arguments": {"query": ["salt road"]}}\n</tool_call>'
)
VISIT = (
    "<think>\nRead.\n</think>\n"
    '<tool_call>\n{"name": "visit", "arguments": {"url": ["https://a.example"], "goal": "g"}}\n'
    "</tool_call>"
)
PYTHON = (
    "<think>\nCompute.\n</think>\n"
    '<tool_call>\n{"name": "PythonInterpreter", "arguments": {}}\n'
    "<code>\nprint(6 * 7)\n</code>\n</tool_call>"
)
TWO_CALLS = SEARCH + "\n" + VISIT.split("</think>\n")[1]
ANSWER = "<think>\nIt is so.\n</think>\n<answer>\n1911\n</answer>"
BROKEN = "<think>\nLook.\n</think>\n<tool_call>\n{'name': 'search'\n</tool_call>"
HITS = "A Google search for 'salt road' found 0 results:\n\n## Web Results\n"
PAGE = "The useful information in https://a.example for user goal g as follows: \n\nSummary: \nx"
ORDER = "There is no room left. Stop calling tools; think once more and give your best answer."
TONGYI = (
    "You have now reached the maximum context length you can handle. You should stop making tool "
    "calls and, based on all the information above, think again and provide what you consider the "
    "most likely answer in the following format:<think>your final thinking</think>\n"
    "<answer>your answer</answer>"
)


def block(text: str) -> str:
    return f"<tool_response>\n{text}\n</tool_response>"


def row(*messages: tuple[str, str]) -> Pairs:
    """The question, then the messages: roles by their first letter."""
    roles = {"u": "user", "a": "assistant", "s": "system"}
    return [{"role": roles.get(r, r), "content": c} for r, c in (("u", "Q"), *messages)]


def apply(messages: Pairs, orders: str = "wrap", **fields: Any) -> Keep | Quarantine:
    outcome = NormalizeMessages.model_validate({"orders": orders}).apply(
        make_trajectory(messages, **fields), search_visit()
    )
    assert isinstance(outcome, Keep | Quarantine)
    return outcome


def kept(messages: Pairs, **options: Any) -> Pairs:
    outcome = apply(messages, **options)
    assert isinstance(outcome, Keep), outcome
    return to_messages(outcome.trajectory.messages)


def reasons(messages: Pairs, **options: Any) -> list[str]:
    outcome = apply(messages, **options)
    assert isinstance(outcome, Keep), outcome
    return [edit.reason for edit in outcome.edits]


def rejection(messages: Pairs, **options: Any) -> tuple[str, str]:
    outcome = apply(messages, **options)
    assert isinstance(outcome, Quarantine), outcome
    return outcome.reason, outcome.where


@pytest.mark.parametrize("sample", zoo("normalize_messages"))
def test_a_sample_is_settled(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert reasons_with_sample("normalize_messages") == set(NormalizeMessages.reasons)


# --- nothing to do ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [
        row(("a", SEARCH), ("u", block(HITS)), ("a", ANSWER)),
        row(("a", SEARCH), ("u", block(HITS))),
        row(("a", SEARCH)),
        row(("a", TWO_CALLS), ("u", block(HITS) + "\n" + block(PAGE)), ("a", ANSWER)),
        row(("a", BROKEN), ("u", block("no idea")), ("a", ANSWER)),
        [{"role": "system", "content": "S"}, *row(("a", ANSWER))],
    ],
)
def test_a_settled_row_is_the_same_object(messages: Pairs) -> None:
    trajectory = make_trajectory(messages)
    outcome = NormalizeMessages().apply(trajectory, search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is trajectory
    assert outcome.edits == outcome.findings == ()


@pytest.mark.parametrize("messages", [[], row(), [{"role": "system", "content": "S"}]])
def test_a_row_without_assistant_is_left_to_require_well_formed(messages: Pairs) -> None:
    assert kept(messages) == messages


def test_a_page_that_quotes_tags_is_text() -> None:
    page = PAGE + "\nwrite <tool_response>x</tool_response>, then <think>hm</think> <answer>"
    messages = row(("a", VISIT), ("u", block(page)), ("a", ANSWER))
    assert kept(messages) == messages


# --- roles --------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["tool", "observation", "function", "ipython", "Tool", " tool "])
def test_an_observation_under_a_role_of_its_own_becomes_a_user_message(role: str) -> None:
    messages = row(("a", PYTHON), (role, "42"), ("a", ANSWER))
    assert kept(messages) == row(("a", PYTHON), ("u", block("42")), ("a", ANSWER))
    assert reasons(messages) == ["role_tool", "response_untagged", "response_untagged"]


def test_a_tool_message_that_is_wrapped_keeps_its_bytes() -> None:
    messages = row(("a", SEARCH), ("tool", block("anything")), ("a", ANSWER))
    assert kept(messages)[2] == {"role": "user", "content": block("anything")}
    assert reasons(messages) == ["role_tool"]


@pytest.mark.parametrize(
    ("role", "settled"),
    [("human", "user"), ("User", "user")],
)
def test_a_question_under_another_role_name(role: str, settled: str) -> None:
    messages = [{"role": role, "content": "Q"}, {"role": "model", "content": ANSWER}]
    assert [m["role"] for m in kept(messages)] == [settled, "assistant"]
    assert reasons(messages) == ["role_alias", "role_alias"]


def test_an_unknown_role_is_not_understood() -> None:
    assert rejection(row(("a", SEARCH), ("critic", "x"))) == ("role_unknown", "$.messages[2]")


def test_a_call_under_user_and_its_response_under_assistant_swap_back() -> None:
    messages = row(
        ("a", SEARCH), ("u", block(HITS)), ("u", VISIT), ("a", block(PAGE)), ("a", ANSWER)
    )
    assert kept(messages) == row(
        ("a", SEARCH), ("u", block(HITS)), ("a", VISIT), ("u", block(PAGE)), ("a", ANSWER)
    )
    assert reasons(messages) == ["roles_swapped", "roles_swapped"]


def test_a_response_that_quotes_a_turn_is_not_swapped() -> None:
    """It answers a call, and an assistant message follows: there is no place for a turn."""
    messages = row(("a", PYTHON), ("u", VISIT), ("a", ANSWER))
    assert kept(messages) == row(("a", PYTHON), ("u", block(VISIT)), ("a", ANSWER))


@pytest.mark.parametrize(
    "messages",
    [
        row(("a", SEARCH), ("u", VISIT)),  # answers a call
        row(("a", SEARCH), ("u", block(HITS)), ("u", VISIT), ("a", ANSWER)),  # is not answered
        row(("a", SEARCH), ("u", VISIT.replace("Read.", "Answer.")), ("a", ANSWER)),
    ],
)
def test_a_user_message_like_a_turn_is_not_understood_where_none_fits(messages: Pairs) -> None:
    assert rejection(messages)[0] == "message_unexplained"


def test_a_tool_message_that_reads_like_a_turn_is_a_response() -> None:
    messages = row(("a", TWO_CALLS), ("u", block(HITS)), ("tool", VISIT))
    assert kept(messages)[2]["content"] == block(HITS) + "\n" + block(VISIT)


def test_a_question_that_reads_like_a_turn_stays_the_question() -> None:
    messages = [{"role": "user", "content": VISIT}, {"role": "assistant", "content": block(PAGE)}]
    messages += row(("a", SEARCH), ("u", block(HITS)))[1:]
    assert rejection(messages, question=VISIT) == ("message_unexplained", "$.messages[1]")


def test_half_a_response_under_assistant_is_found_where_roles_alternate() -> None:
    messages = row(("a", TWO_CALLS), ("u", block(HITS)), ("a", block(PAGE)))
    assert kept(messages) == row(("a", TWO_CALLS), ("u", block(HITS) + "\n" + block(PAGE)))


def test_a_turn_between_invented_responses_is_no_response() -> None:
    turn = block("a") + "\n" + SEARCH + "\n" + block("b")
    messages = row(("a", turn), ("u", block(HITS)), ("a", ANSWER))
    assert kept(messages) == messages


def test_a_page_with_an_answer_in_it_never_becomes_the_answer() -> None:
    page = "A page quoting <think>hm</think> <answer>from the page</answer>"
    assert rejection(row(("a", BROKEN), ("u", page))) == ("message_unexplained", "$.messages[2]")


# --- system prompt and question ------------------------------------------------------------------


def test_system_messages_of_an_opening_become_one_at_the_front() -> None:
    system = [{"role": "system", "content": text} for text in ("A", " ", "B")]
    messages = [{"role": "user", "content": "Q"}, *system, {"role": "assistant", "content": ANSWER}]
    assert kept(messages) == [
        {"role": "system", "content": "A\n\nB"},
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": ANSWER},
    ]


def test_a_blank_system_message_leaves_no_line() -> None:
    messages = [{"role": "system", "content": text} for text in ("A", " ")] + row(("a", ANSWER))
    assert kept(messages) == [{"role": "system", "content": "A"}, *row(("a", ANSWER))]
    assert reasons(messages) == ["system_split"]


def test_a_system_message_between_turns_is_not_understood() -> None:
    messages = row(("a", SEARCH), ("s", "Now answer."), ("a", ANSWER))
    assert rejection(messages) == ("message_unexplained", "$.messages[2]")


def test_a_leading_system_message_is_not_taken_for_the_question() -> None:
    messages = [{"role": "system", "content": "S"}, *row(("a", SEARCH), ("u", block(HITS)))]
    assert kept(messages) == messages


@pytest.mark.parametrize("question", [None, "", " \n", block("Q")])
def test_a_row_without_a_question_is_quarantined(question: str | None) -> None:
    messages = [{"role": "assistant", "content": ANSWER}]
    assert rejection(messages, question=question) == ("question_missing", "$.messages")


def test_the_question_of_the_row_is_put_in_where_no_message_holds_it() -> None:
    messages = [{"role": "assistant", "content": ANSWER}]
    assert kept(messages, question=" Why? ")[0] == {"role": "user", "content": " Why? "}
    assert reasons(messages, question="Why?") == ["question_absent"]


@pytest.mark.parametrize(
    ("opening", "stray"),
    [
        ([("user", "Hello."), ("user", "Q")], 0),
        ([("user", "Q"), ("user", "Hello.")], 1),
        ([("user", "Q"), ("user", "Q")], 1),
        ([("tool", "x"), ("user", "Q")], 0),
        ([("tool", "Q")], 0),
        ([("user", "Q"), ("user", block("x"))], 1),
        ([("user", block("x"))], 0),
    ],
)
def test_a_message_beside_the_question_is_not_understood(
    opening: list[tuple[str, str]], stray: int
) -> None:
    messages = [{"role": role, "content": content} for role, content in opening]
    messages.append({"role": "assistant", "content": ANSWER})
    assert rejection(messages) == ("message_unexplained", f"$.messages[{stray}]")


def test_the_place_of_a_stray_is_that_of_the_row_as_it_was_read() -> None:
    messages = [
        {"role": "user", "content": "Q"},
        {"role": "user", "content": "Hello."},
        {"role": "system", "content": "S"},
        {"role": "assistant", "content": ANSWER},
    ]
    assert rejection(messages) == ("message_unexplained", "$.messages[1]")


@pytest.mark.parametrize(
    ("question", "is_noted"),
    [("Q", False), (" Q\n", False), ("Another?", True), ("", False), (None, False)],
)
@pytest.mark.parametrize("reply", [block(HITS), HITS])
def test_a_question_that_differs_from_the_rows_is_noted(
    question: str | None, is_noted: bool, reply: str
) -> None:
    outcome = apply(row(("a", SEARCH), ("u", reply), ("a", ANSWER)), question=question)
    found = [(finding.reason, finding.where) for finding in outcome.findings]
    assert found == ([("question_differs", "$.messages[0]")] if is_noted else [])


# --- assistant messages in a row ------------------------------------------------------------------


def test_a_thought_apart_from_its_call_is_joined_with_it() -> None:
    thought, call = SEARCH.split("\n<tool_call>")
    messages = row(("a", thought), ("a", "<tool_call>" + call), ("u", block(HITS)), ("a", ANSWER))
    outcome = apply(messages)
    assert isinstance(outcome, Keep)
    assert to_messages(outcome.trajectory.messages)[1]["content"] == SEARCH
    assert outcome.trajectory.turn_count == 2


def test_several_pieces_of_one_turn_are_joined_and_blank_ones_leave_no_line() -> None:
    messages = row(("a", "<think>"), ("a", ""), ("a", "x"), ("a", "</think>\n<answer>A</answer>"))
    assert kept(messages)[1:] == [
        {"role": "assistant", "content": "<think>\nx\n</think>\n<answer>A</answer>"}
    ]


@pytest.mark.parametrize("first", [SEARCH, BROKEN, ANSWER])
def test_a_message_with_a_call_or_an_answer_is_not_joined(first: str) -> None:
    messages = row(("a", first), ("a", ANSWER))
    assert kept(messages) == messages


def test_pieces_that_make_a_response_are_not_joined() -> None:
    pieces = [("a", "<tool_response>"), ("a", "</tool_response>")]
    messages = row(*pieces, ("u", block(HITS)), ("a", ANSWER))
    assert kept(messages) == messages


# --- observations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turn", "reply"),
    [
        (SEARCH, HITS),
        (VISIT, PAGE),
        (SEARCH, "\n " + HITS),
        (BROKEN, HITS),  # the head alone says what it is
        (PYTHON, "42"),  # an undeclared tool may say anything
        (PYTHON, "The answer is 42"),
        (SEARCH, ""),
        (BROKEN, " \n"),
    ],
)
def test_a_known_response_without_tags_is_wrapped(turn: str, reply: str) -> None:
    messages = row(("a", turn), ("u", reply), ("a", ANSWER))
    assert kept(messages) == row(("a", turn), ("u", block(reply)), ("a", ANSWER))
    assert set(reasons(messages)) == {"response_untagged"}


def test_a_response_of_a_tool_that_declares_no_heads_is_wrapped() -> None:
    tools = ToolSet.model_validate({"tools": {"lookup": {"kind": "other"}}})
    turn = SEARCH.replace('"search"', '"lookup"')
    trajectory = make_trajectory(row(("a", turn), ("u", "seven"), ("a", ANSWER)))
    outcome = NormalizeMessages().apply(trajectory, tools)
    assert isinstance(outcome, Keep)
    assert outcome.trajectory.messages[2].content == block("seven")


@pytest.mark.parametrize(
    ("turn", "reply"),
    [
        (SEARCH, "Some text."),
        (BROKEN, "42"),
        (ANSWER, ""),
        ("<think>\nx\n</think>", ""),
        (SEARCH, "You must call a tool."),
        (VISIT, "text before\n" + block(PAGE)),
        (VISIT, "Please answer now.\n" + block(PAGE)),
        (VISIT, block(PAGE) + "\ntext behind"),
        (VISIT, block(PAGE) + "\nThe answer lies elsewhere."),
        (VISIT, block(HITS) + "\n" + PAGE + " Give your answer now."),
        (VISIT, "<tool_response>\nx </tool_response></tool_response> Give your answer now."),
        (VISIT, "<tool_response>\nquotes </tool_response> tags"),
    ],
)
@pytest.mark.parametrize("end", [[], [("a", ANSWER)]])
def test_any_other_message_is_not_understood(
    turn: str, reply: str, end: list[tuple[str, str]]
) -> None:
    messages = row(("a", turn), ("u", reply), *end)
    assert rejection(messages) == ("message_unexplained", "$.messages[2]")


def test_a_rejection_says_what_the_message_was() -> None:
    outcome = apply(row(("a", SEARCH), ("u", "x" * 300), ("a", ANSWER)))
    assert isinstance(outcome, Quarantine)
    assert outcome.detail == {"role": "user", "content": "x" * 200}


@pytest.mark.parametrize(
    ("reply", "settled", "found"),
    [
        (f" {block('x')}\n", block("x"), ["response_spaced"] * 2),
        (
            "<Tool_Response>\nx\n</TOOL_RESPONSE> ",
            block("x"),
            ["response_spaced"] + ["tag_case"] * 2,
        ),
        ("<tool_response>\nx", block("x"), ["response_tag_missing"]),
        ("<tool_response>\nx\n", block("x"), ["response_tag_missing"]),
        ("x\n</tool_response>", block("x"), ["response_tag_missing"]),
        ("\nx\n</tool_response>", block("x"), ["response_tag_missing"]),
        (" x</tool_response>", "<tool_response>\n x</tool_response>", ["response_tag_missing"]),
        ("<tool_response>", "<tool_response>\n</tool_response>", ["response_tag_missing"]),
        (
            "<tool_response>\n<tool_response>x</tool_response>",
            "<tool_response>\n<tool_response>x</tool_response>",
            [],
        ),
        (
            "<tool_response>\n<tool_response>x</tool_response> y",
            block("<tool_response>x</tool_response> y"),
            ["response_tag_missing"],
        ),
    ],
)
def test_a_wrapper_is_put_right(reply: str, settled: str, found: list[str]) -> None:
    messages = row(("a", SEARCH), ("u", reply), ("a", ANSWER))
    assert kept(messages)[2]["content"] == settled
    assert reasons(messages) == found


def test_responses_in_a_row_become_one_message_each_in_its_wrapper() -> None:
    messages = row(("a", TWO_CALLS), ("u", HITS), ("tool", " " + block("x")), ("a", ANSWER))
    assert kept(messages)[2:] == [
        {"role": "user", "content": block(HITS) + "\n" + block("x")},
        {"role": "assistant", "content": ANSWER},
    ]


def test_an_empty_response_counts_only_for_a_call_that_waits_for_one() -> None:
    two = row(("a", TWO_CALLS), ("u", block(HITS)), ("u", ""), ("a", ANSWER))
    assert kept(two)[2]["content"] == block(HITS) + "\n" + block("")
    one = row(("a", SEARCH), ("u", block(HITS)), ("u", ""), ("a", ANSWER))
    assert rejection(one) == ("message_unexplained", "$.messages[3]")


def test_a_wrapper_cut_between_messages_is_joined() -> None:
    messages = row(
        ("a", VISIT),
        ("u", "<tool_response>\n" + PAGE),
        ("u", "more of the page"),
        ("u", "the end\n</tool_response>"),
        ("a", ANSWER),
    )
    assert kept(messages)[2:] == [
        {"role": "user", "content": block(PAGE + "\nmore of the page\nthe end")},
        {"role": "assistant", "content": ANSWER},
    ]
    assert reasons(messages) == ["response_split"] * 3


@pytest.mark.parametrize(
    ("pieces", "stray"),
    [
        (["<tool_response>\nx", TONGYI, "y\n</tool_response>"], 4),
        (["<tool_response>\nx", "y</tool_response> z</tool_response>"], 3),
    ],
)
def test_pieces_that_do_not_close_one_wrapper_are_not_joined(pieces: list[str], stray: int) -> None:
    messages = row(("a", VISIT), *(("u", piece) for piece in pieces), ("a", ANSWER))
    assert rejection(messages) == ("message_unexplained", f"$.messages[{stray}]")


# --- orders to answer -----------------------------------------------------------------------------


def ordered(outcome: Keep | Quarantine) -> list[int]:
    assert isinstance(outcome, Keep)
    return [i for i, m in enumerate(outcome.trajectory.messages) if m.ends_in_order]


@pytest.mark.parametrize("order", [ORDER, TONGYI, "Give the ANSWER.", "现在请给出答案。", "回答！"])
def test_an_order_after_a_response_becomes_its_last_block(order: str) -> None:
    messages = row(("a", SEARCH), ("u", block(HITS)), ("u", order), ("a", ANSWER))
    outcome = apply(messages)
    assert kept(messages) == row(
        ("a", SEARCH), ("u", block(HITS) + "\n" + block(order)), ("a", ANSWER)
    )
    assert reasons(messages) == ["order_to_answer", "order_to_answer"]
    assert ordered(outcome) == [2]
    assert outcome.trajectory.termination == "ordered"  # type: ignore[union-attr]


def test_an_order_in_place_of_a_response_is_a_block_of_its_own() -> None:
    messages = row(("a", SEARCH), ("u", ORDER), ("a", ANSWER))
    assert kept(messages)[2]["content"] == block(ORDER)
    assert reasons(messages) == ["order_to_answer", "order_to_answer"]
    assert ordered(apply(messages)) == [2]


def test_an_order_behind_the_wrapper_in_one_message_becomes_a_block() -> None:
    messages = row(("a", SEARCH), ("u", block(HITS) + "\n\n" + ORDER + "\n"), ("a", ANSWER))
    assert kept(messages)[2]["content"] == block(HITS) + "\n" + block(ORDER)
    assert ordered(apply(messages)) == [2]


@pytest.mark.parametrize(
    ("order", "is_order"),
    [
        ("a" * 590 + " answer", True),
        ("a" * 594 + " answer", False),
        ("Finish now.", False),
        (HITS + " answer", False),
    ],
)
def test_an_order_is_short_and_asks_for_an_answer(order: str, is_order: bool) -> None:
    outcome = apply(row(("a", SEARCH), ("u", order), ("a", ANSWER)))
    assert (isinstance(outcome, Keep) and ordered(outcome) == [2]) is is_order


def test_an_order_that_nobody_answered_counts_only_if_its_phrase_is_known() -> None:
    assert ordered(apply(row(("a", SEARCH), ("u", TONGYI)))) == [2]
    known, unknown = "Time is up. Answer.", "Let us have the answer."
    assert ordered(apply(row(("a", SEARCH), ("u", known)))) == [2]
    assert rejection(row(("a", SEARCH), ("u", unknown)))[0] == "message_unexplained"


def test_an_order_that_is_wrapped_already_is_marked_and_not_changed() -> None:
    for reply in (block(TONGYI), block(HITS) + "\n" + block(TONGYI)):
        messages = row(("a", SEARCH), ("u", reply), ("a", ANSWER))
        outcome = apply(messages)
        assert isinstance(outcome, Keep)
        assert outcome.edits == ()
        assert kept(messages) == messages
        assert ordered(outcome) == [2]


def test_a_known_order_under_the_role_of_a_tool_is_an_order() -> None:
    messages = row(("a", SEARCH), ("tool", TONGYI), ("a", ANSWER))
    assert reasons(messages) == ["role_tool", "order_to_answer", "order_to_answer"]
    assert ordered(apply(messages)) == [2]


def test_an_order_once_marked_stays_one() -> None:
    first = apply(row(("a", SEARCH), ("u", "Let us have the answer."), ("a", ANSWER)))
    assert isinstance(first, Keep)
    again = NormalizeMessages().apply(first.trajectory, search_visit())
    assert isinstance(again, Keep)
    assert again.trajectory is first.trajectory
    rejected = NormalizeMessages(orders="quarantine").apply(first.trajectory, search_visit())
    assert isinstance(rejected, Quarantine)
    assert rejected.reason == "order_to_answer"


def test_text_of_an_undeclared_tool_is_an_order_only_if_it_demands() -> None:
    printed = row(("a", PYTHON), ("u", "answer = 42"), ("a", ANSWER))
    assert ordered(apply(printed)) == []
    demanded = row(("a", PYTHON), ("u", "You must give an answer to the user."), ("a", ANSWER))
    assert ordered(apply(demanded)) == [2]


def test_two_orders_are_one_block() -> None:
    messages = row(("a", SEARCH), ("u", block(HITS)), ("u", ORDER), ("u", TONGYI), ("a", ANSWER))
    assert kept(messages)[2]["content"] == block(HITS) + "\n" + block(ORDER + "\n" + TONGYI)
    alone = row(("a", SEARCH), ("u", block(TONGYI)), ("u", ORDER), ("a", ANSWER))
    assert kept(alone)[2]["content"] == block(TONGYI + "\n" + ORDER)
    assert reasons(alone) == ["order_to_answer", "order_to_answer"]
    behind = row(
        ("a", SEARCH), ("u", block(HITS) + "\n" + block(TONGYI)), ("u", ORDER), ("a", ANSWER)
    )
    assert kept(behind)[2]["content"] == block(HITS) + "\n" + block(TONGYI + "\n" + ORDER)


def test_a_response_behind_an_order_is_not_understood() -> None:
    messages = row(("a", SEARCH), ("u", ORDER), ("u", block(HITS)), ("a", ANSWER))
    assert rejection(messages) == ("message_unexplained", "$.messages[3]")


def test_an_order_may_be_left_as_it_is_and_noted() -> None:
    messages = row(("a", SEARCH), ("u", HITS), ("u", ORDER), ("a", ANSWER))
    outcome = apply(messages, orders="keep")
    assert isinstance(outcome, Keep)
    assert to_messages(outcome.trajectory.messages) == row(
        ("a", SEARCH), ("u", block(HITS)), ("u", ORDER), ("a", ANSWER)
    )
    assert [(f.reason, f.turn, f.where) for f in outcome.findings] == [
        ("order_to_answer", 0, "$.messages[3]")
    ]
    assert ordered(outcome) == [3]


def test_an_order_behind_a_wrapper_is_left_with_it() -> None:
    messages = row(("a", SEARCH), ("u", block(HITS) + "\n" + ORDER), ("a", ANSWER))
    outcome = apply(messages, orders="keep")
    assert kept(messages, orders="keep") == messages
    assert [finding.reason for finding in outcome.findings] == ["order_to_answer"]
    assert ordered(outcome) == []


@pytest.mark.parametrize("order", [ORDER, block(TONGYI), block(HITS) + "\n" + ORDER])
def test_an_order_may_quarantine_its_row(order: str) -> None:
    messages = row(("a", SEARCH), ("u", order), ("a", ANSWER))
    assert rejection(messages, orders="quarantine") == ("order_to_answer", "$.messages[2]")


# --- what always holds ----------------------------------------------------------------------------

ROLES = ["user", "assistant", "assistant", "user", "system", "tool", "observation", "gpt", "odd"]
FRAGMENTS = [
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<answer>", "</answer>",
    "<tool_response>", "</tool_response>", "<TOOL_RESPONSE>", "</Tool_Response>", "\n", " ",
    "text", "answer", "Please answer now.", "</tool_response>\n<tool_response>", "Q",
    SEARCH, VISIT, PYTHON, ANSWER, BROKEN, HITS, PAGE, ORDER, TONGYI, block("x"), block(HITS),
    block(ORDER), '{"name": "search", "arguments": {}}',
]  # fmt: skip
CONTENTS = st.lists(st.sampled_from(FRAGMENTS), max_size=4).map("".join)
MESSAGES = st.lists(
    st.builds(lambda r, c: {"role": r, "content": c}, st.sampled_from(ROLES), CONTENTS), max_size=9
)
PLAIN = st.lists(
    st.builds(
        lambda r, c: {"role": r, "content": c},
        st.sampled_from(["user", "assistant"]),
        st.sampled_from(FRAGMENTS),
    ),
    max_size=9,
).map(lambda messages: row() + messages)


@settings(max_examples=150, deadline=None)
@given(
    MESSAGES | PLAIN,
    st.sampled_from(["wrap", "keep", "quarantine"]),
    st.sampled_from(["Q", None, "text", block("x")]),
)
def test_any_row_is_settled_once_and_can_be_undone(
    messages: Pairs, orders: str, question: str | None
) -> None:
    step = NormalizeMessages.model_validate({"orders": orders})
    outcome = check_kept(step, make_trajectory(messages, question=question))
    if outcome is None or orders == "keep":
        return
    settled = outcome.trajectory.messages
    if not any(m.role == "assistant" and "<think>" in m.content for m in settled):
        return  # no turn, or none after roles were swapped back
    borders = {
        "response_untagged", "response_tag_missing", "response_spaced", "response_split",
        "message_unexplained", "system_misplaced", "role_unknown",
    }  # fmt: skip
    found = {problem.reason for problem in form_problems(settled)}
    assert not found & borders


@settings(max_examples=60, deadline=None)
@given(PLAIN)
def test_the_marks_of_orders_change_no_text_when_they_are_lost(messages: Pairs) -> None:
    first = NormalizeMessages().apply(make_trajectory(messages), search_visit())
    if isinstance(first, Keep):
        settled = to_messages(first.trajectory.messages)
        again = NormalizeMessages().apply(make_trajectory(settled), search_visit())
        assert isinstance(again, Keep)
        assert again.edits == ()


def test_long_rows_take_linear_time() -> None:
    """Each of 20,000 messages needs edits: a pass over all of them for each would take minutes."""
    turns = [("gpt", SEARCH), ("tool", "x"), ("tool", "</tool_response>")] * 5_000
    orders = [("a", SEARCH)] + [("u", ORDER)] * 5_000
    assert len(kept(row(*turns, *orders))) == 10_003


def test_real_trajectories_are_settled_already() -> None:
    paths = sorted(shared("data", "drvenus_examples").glob("*/*.json"))
    assert len(paths) == 20
    for path in paths:
        record = json.loads(path.read_text(encoding="utf-8"))
        trajectory = make_trajectory(record["messages"], question=record["messages"][1]["content"])
        outcome = NormalizeMessages().apply(trajectory, search_visit())
        assert isinstance(outcome, Keep), path
        assert outcome.trajectory is trajectory, path
        assert outcome.findings == (), path
