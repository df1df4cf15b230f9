from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest
from generated_turns import assert_nothing_is_orphaned, trajectories
from hypothesis import given
from hypothesis import strategies as st
from zoo import (
    REPOSITORY,
    Pairs,
    Sample,
    check_kept,
    make_trajectory,
    pairs,
    reasons_with_sample,
    search_visit,
    zoo,
)

from trajcurate.curate.mend.call_reasons import MENDINGS, REFUSALS
from trajcurate.curate.step import Drop, Keep, Quarantine
from trajcurate.curate.steps.repair_tool_calls import RepairToolCalls
from trajcurate.schemas.audit import Finding
from trajcurate.schemas.trajectory import AssistantMessage, Message, ToolCall, Trajectory
from trajcurate.schemas.wire import to_messages

THINK = "<think>\nplan\n</think>\n"
SEARCH = '{"name": "search", "arguments": {"query": ["tide"]}}'
VISIT = '{"name": "visit", "arguments": {"url": ["https://a.example"], "goal": "g"}}'
SINGLE = SEARCH.replace('"', "'")
CUT_OFF = '{"name": "search", "arguments": {"query": ["ti'
ANSWER = "<answer>\nX\n</answer>"
FINAL = "<think>\ndone\n</think>\n<answer>\n42\n</answer>"


def block(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


def wrap(*texts: str) -> str:
    return "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in texts)


def repair(*contents: str, **options: Any) -> Keep:
    """Repair a question with these messages behind it, and check what holds for all."""
    given = make_trajectory(pairs(*contents))
    outcome = check_kept(RepairToolCalls(**options), given)
    assert outcome is not None
    return outcome


def contents(outcome: Keep) -> list[str]:
    return [message.content for message in outcome.trajectory.messages[1:]]


def reasons(outcome: Keep) -> list[str]:
    return [edit.reason for edit in outcome.edits]


@pytest.mark.parametrize("sample", zoo("repair_tool_calls"))
def test_a_sample_comes_out_as_written(sample: Sample) -> None:
    sample.check()
    if isinstance(sample.apply(), Keep):
        check_kept(sample.make_step(), sample.trajectory())


def test_every_reason_has_a_sample() -> None:
    assert reasons_with_sample("repair_tool_calls") == set(RepairToolCalls.reasons)


def test_every_code_of_the_mending_is_declared() -> None:
    names = ("call", "call_shape", "call_dialect", "loose_json", "loose_string")
    sources = [(REPOSITORY / "curate" / "mend" / f"{name}.py").read_text("utf-8") for name in names]
    codes = set(re.findall(r'"(call_[a-z_]+)"', "".join(sources)))
    codes -= {"call_too_damaged"}  # becomes `call_not_json`
    assert codes == set(MENDINGS) | set(REFUSALS)


# --- what is sound stays ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        THINK + block(SEARCH),
        f"<think></think>{block(SEARCH)}{block(VISIT)}",
        f"<think>\nso {block(SEARCH)}, or {block(VISIT)}?\n</think>\n\n{block(VISIT)}\n",
        THINK
        + block('{"name": "search", "arguments": {"query": ["</tool_call> and <tool_call>"]}}'),
        THINK
        + block('{"name": "search", "arguments": {"query": ["html <code> tag", "it\'s“x”"]}}'),
        THINK
        + block('{"name":"search","arguments":{"query":["\\u76d0 \\ud83d\\udd25 \\\\frac"]}}'),
        THINK + block('{"name": "py", "arguments": {}}\n<code>\nx = "</think>}"\n</code>'),
        THINK + block('{"name": "unknown", "arguments": {"query": 7}}'),
        "<think>\n<ANSWER> is the tag, as is <answer>.\n</think>\n" + block(SEARCH),
    ],
)
def test_a_sound_call_turn_stays_byte_for_byte(text: str) -> None:
    given = make_trajectory(pairs(text, wrap("1"), FINAL))
    assert RepairToolCalls().apply(given, search_visit()) == Keep(given)


@pytest.mark.parametrize(
    "text",
    [
        THINK + ANSWER,
        THINK + "<answer>a<b & <i>c</i>, see https://a.example/?x=1&lt=2 (R&D)</answer>",
        THINK + "<answer>the tag </think> ends it</answer>\n",
    ],
)
def test_a_sound_answer_stays_byte_for_byte(text: str) -> None:
    given = make_trajectory(pairs(THINK + block(SEARCH), wrap("1"), text))
    assert RepairToolCalls().apply(given, search_visit()).trajectory is given  # type: ignore[union-attr]


def test_as_many_responses_as_equal_calls_keep_all_calls() -> None:
    assert reasons(repair(THINK + block(SEARCH) + block(SEARCH), wrap("1", "2"), FINAL)) == []


def test_observations_that_quote_tags_are_never_read() -> None:
    page = "<think>hm</think> <answer>from the page</answer> <tool_call>{</tool_call>"
    assert reasons(repair(THINK + block(SEARCH), wrap(page), FINAL)) == []


# --- an answered call turn --------------------------------------------------------------------


def thought(*lines: str) -> str:
    return "<think>\n" + "\n".join(lines) + "\n</think>\n"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        # Thinking.
        ("plan\n</think>\n" + block(SEARCH), THINK + block(SEARCH), "think_unopened"),
        ("\nplan\n</think>\n" + block(SEARCH), THINK + block(SEARCH), "think_unopened"),
        ("\n</think>\n" + block(SEARCH), "<think>\n</think>\n" + block(SEARCH), "think_unopened"),
        ("<think>\nplan\n" + block(SEARCH), THINK + block(SEARCH), "think_unclosed"),
        ("<think>\nplan" + block(SEARCH), THINK + block(SEARCH), "think_unclosed"),
        (
            f"<think>\nplan\n{block(SINGLE)}",
            THINK + block(SEARCH),
            "call_single_quoted think_unclosed",
        ),
        ("plan\n" + block(SEARCH), THINK + block(SEARCH), "think_missing think_missing"),
        (block(SEARCH), "<think>\n</think>\n" + block(SEARCH), "think_missing"),
        (
            "\n" + block(SEARCH),
            "<think>\n</think>\n" + block(SEARCH),
            "think_missing think_missing",
        ),
        (
            f"<think>\nplan\n{block(SEARCH)}\n</think>\n",
            THINK + block(SEARCH),
            "think_closed_after_call think_closed_after_call",
        ),
        (
            f"plan\n{block(SEARCH)}</think>",
            THINK + block(SEARCH),
            "think_closed_after_call think_closed_after_call think_unopened",
        ),
        (
            f"Well.\n\n{THINK}{block(SEARCH)}",
            thought("plan", "", "Well.") + block(SEARCH),
            "text_before_think text_before_think",
        ),
        (
            f"one\n</think>\n<think>\ntwo\n</think>\n{block(SEARCH)}",
            thought("one", "two") + block(SEARCH),
            "think_unopened think_nested think_nested",
        ),
        (
            f"<think>\n<think>\nplan\n</think>\n</think>\n{block(SEARCH)}",
            THINK + block(SEARCH),
            "think_nested think_nested",
        ),
        (
            f"<think> a <think> b </think> c tail </think>{block(SEARCH)}",
            f"<think> a  b  c tail </think>{block(SEARCH)}",
            "think_nested think_nested",
        ),
        (
            f"<think>one</think>two<think>three</think>{block(SEARCH)}",
            f"<think>one\ntwo\nthree</think>{block(SEARCH)}",
            "think_nested think_nested",
        ),
        # Case.
        (
            f"<THINK>\nplan\n</Think>\n<TOOL_CALL>\n{SEARCH}\n</TOOL_CALL>",
            THINK + block(SEARCH),
            "tag_case tag_case tag_case tag_case",
        ),
        (
            f"{THINK}<Tool_call>\n{SINGLE}\n</tool_Call>",
            THINK + block(SEARCH),
            "tag_case tag_case call_single_quoted",
        ),
        # The tags of calls.
        (THINK + SEARCH, THINK + block(SEARCH), "call_untagged call_untagged"),
        (
            f"{THINK}```json\n{SEARCH}\n```",
            THINK + block(SEARCH),
            "call_untagged call_untagged call_fenced",
        ),
        (THINK + SINGLE, THINK + block(SEARCH), "call_untagged call_untagged call_single_quoted"),
        (f"{THINK}{SEARCH}\n</tool_call>", THINK + block(SEARCH), "call_unopened"),
        (
            f"{THINK}{SINGLE}\n</tool_call>",
            THINK + block(SEARCH),
            "call_unopened call_single_quoted",
        ),
        (
            f'{THINK}<function=search>\n<parameter=query>\n["tide"]\n</parameter>\n</function>'
            "\n</tool_call>",
            THINK + block(SEARCH),
            "call_unopened call_dialect",
        ),
        (f"{THINK}<tool_call>\n{SEARCH}\n", THINK + block(SEARCH) + "\n", "call_unclosed"),
        (
            f"{THINK}<tool_call>\n{SINGLE}",
            THINK + block(SEARCH),
            "call_unclosed call_single_quoted",
        ),
        (
            f"{THINK}<tool_call>\n{SEARCH}}}",
            THINK + block(SEARCH),
            "call_unclosed call_brace_surplus",
        ),
        (
            f"{THINK}<tool_call>\n{SEARCH}\n</think>",
            THINK + block(SEARCH),
            "call_unclosed tag_stray",
        ),
        (
            f"{THINK}<tool_call>\n{SEARCH}\nI wait <now>.",
            THINK + block(SEARCH),
            "call_unclosed text_after_call",
        ),
        (
            f"{THINK}<tool_call>\n{SEARCH}\nI wait.",
            THINK + block(SEARCH),
            "call_unclosed text_after_call",
        ),
        (
            f"{THINK}<tool_call>\n{block(SEARCH)}\n</tool_call>",
            THINK + block(SEARCH),
            "tag_stray tag_stray",
        ),
        (
            f"{THINK}<tool_call>\n{SEARCH}\n<tool_call>",
            THINK + block(SEARCH),
            "call_unclosed tag_stray",
        ),
        (f"{THINK}{block('')}\n{block(SEARCH)}", THINK + block(SEARCH), "tag_stray"),
        (
            f"{THINK}```xml\n{block(SEARCH)}\n```\n",
            THINK + block(SEARCH),
            "call_fenced call_fenced",
        ),
        (
            f"{THINK}Like this:\n```\n{block(SEARCH)}\n```",
            thought("plan", "", "Like this:") + block(SEARCH),
            "call_fenced call_fenced text_before_call",
        ),
        (
            f"{THINK}So\n```\nx = 1\n```\n{block(SEARCH)}",
            thought("plan", "", "So", "```", "x = 1", "```") + block(SEARCH),
            "text_before_call",
        ),
        # Prose.
        (
            f"{THINK}I look.\n\n{block(SEARCH)}",
            thought("plan", "", "I look.") + block(SEARCH),
            "text_before_call",
        ),
        (
            f"<think>plan</think>I look.{block(SEARCH)}",
            f"<think>plan\n\nI look.</think>\n{block(SEARCH)}",
            "text_before_call",
        ),
        (
            f"<think>plan</think>I look.\n\n{block(SEARCH)}",
            f"<think>plan\n\nI look.</think>\n\n{block(SEARCH)}",
            "text_before_call",
        ),
        (
            f"<think>\n</think>\n\nI look.\n{block(SEARCH)}",
            f"<think>\nI look.\n</think>\n\n{block(SEARCH)}",
            "text_before_call",
        ),
        (
            f"<think></think>I look.\n{block(SEARCH)}",
            f"<think>I look.</think>\n{block(SEARCH)}",
            "text_before_call",
        ),
        (
            f"{THINK}Of the <code> element.\n{block(SEARCH)}",
            thought("plan", "", "Of the <code> element.") + block(SEARCH),
            "text_before_call",
        ),
        (
            f"{THINK}<summary>so</summary>far\n{block(SEARCH)}",
            thought("plan", "", "so", "far") + block(SEARCH),
            "text_before_call",
        ),
        (
            f"{thought('plan', 'I look.')}I look.\n{block(SEARCH)}",
            thought("plan", "I look.") + block(SEARCH),
            "text_before_call",
        ),
        (f"{THINK}{block(SEARCH)}\n\nNow wait.\n", THINK + block(SEARCH), "text_after_call"),
        # Calls and answer.
        (f"{THINK}{block(SEARCH)}\n{ANSWER}\nso", THINK + block(SEARCH), "call_and_answer"),
        (
            f"{THINK}{block(SEARCH)}\n<answer>X</answer><answer>Y</answer>",
            THINK + block(SEARCH),
            "call_and_answer",
        ),
        (
            f"{THINK}{ANSWER}\n{block(SEARCH)}",
            thought("plan", "", "X") + "\n" + block(SEARCH),
            "call_and_answer call_and_answer",
        ),
        # Invented responses.
        (
            f"{THINK}{block(SEARCH)}\n<tool_response>\nr\n</tool_response>\n{FINAL}",
            THINK + block(SEARCH),
            "response_invented",
        ),
        (
            f"{THINK}{block(SINGLE)}\n<tool_response>\nr\n</tool_response>\n{FINAL}",
            THINK + block(SEARCH),
            "call_single_quoted response_invented",
        ),
        # A code body outside its call.
        (
            f'{THINK}<tool_call>\n{{"name": "py", "arguments": {{}}}}\n</tool_call>\n'
            "<code>\nx = 1\n</code>\n</tool_call>",
            THINK + block('{"name": "py", "arguments": {}}\n<code>\nx = 1\n</code>'),
            "tag_misplaced",
        ),
        (f"{THINK}{block(SEARCH)}\n<code>x</code>", THINK + block(SEARCH), "text_after_call"),
        # The same call twice.
        (f"{THINK}{block(SEARCH)}\n{block(SEARCH)}", THINK + block(SEARCH), "call_block_repeated"),
        (
            f"{THINK}{block(SEARCH)}\n<tool_call>{SINGLE}</tool_call>",
            THINK + block(SEARCH),
            "call_single_quoted call_block_repeated",
        ),
    ],
)
def test_an_answered_call_turn_is_repaired(before: str, after: str, found: str) -> None:
    outcome = repair(before, wrap("1"), FINAL)
    assert contents(outcome) == [after, wrap("1"), FINAL]
    assert sorted(reasons(outcome)) == sorted(found.split())


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        # With two responses two calls were made.
        (
            f"{THINK}<tool_call>\n{SEARCH}\n{block(VISIT)}",
            f"{THINK}{block(SEARCH)}\n{block(VISIT)}",
            "call_unclosed",
        ),
        (
            f"{THINK}{SEARCH}\n{block(VISIT)}",
            f"{THINK}{block(SEARCH)}\n{block(VISIT)}",
            "call_untagged call_untagged",
        ),
        (
            THINK + block(f"[{SEARCH}, {VISIT}]"),
            f"{THINK}{block(SEARCH)}\n{block(VISIT)}",
            "call_several",
        ),
        (
            f"{THINK}{block(SEARCH)}\nand\n{block(VISIT)}",
            thought("plan", "", "and") + f"{block(SEARCH)}\n{block(VISIT)}",
            "text_before_call text_before_call",
        ),
        (
            f"{THINK}```\n{block(SEARCH)}\n```\n```\n{block(VISIT)}\n```",
            f"{THINK}{block(SEARCH)}\n{block(VISIT)}",
            "call_fenced call_fenced call_fenced call_fenced",
        ),
        (
            "plan\n" + block(SEARCH) + block(VISIT),
            f"{THINK}{block(SEARCH)}{block(VISIT)}",
            "think_missing think_missing",
        ),
        (
            f"{THINK}{block(SEARCH)}\n{block(VISIT)}\n{block(SEARCH)}",
            f"{THINK}{block(SEARCH)}\n{block(VISIT)}",
            "call_block_repeated",
        ),
    ],
)
def test_a_turn_of_two_responses_is_repaired(before: str, after: str, found: str) -> None:
    outcome = repair(before, wrap("1", "2"), FINAL)
    assert contents(outcome) == [after, wrap("1", "2"), FINAL]
    assert reasons(outcome) == found.split()


def test_a_bare_object_that_nothing_answers_is_prose() -> None:
    outcome = repair(f"{THINK}{SEARCH}\n{block(VISIT)}", wrap("1"), FINAL)
    assert contents(outcome)[0] == thought("plan", "", SEARCH) + block(VISIT)


def test_which_of_two_repeated_calls_was_made_thrice_is_not_guessed() -> None:
    text = THINK + block(SEARCH) * 2 + block(VISIT) * 2
    assert reasons(repair(text, wrap("1", "2", "3"), FINAL)) == []


def test_of_a_call_made_twice_and_written_thrice_two_stay() -> None:
    outcome = repair(THINK + block(SEARCH) * 3, wrap("1", "2"), FINAL)
    assert contents(outcome)[0] == THINK + block(SEARCH) * 2


def test_a_call_that_only_an_order_follows_is_not_answered() -> None:
    given = make_trajectory(
        pairs(THINK + block(VISIT), wrap("1"), "<think>\nplan\n" + block(SEARCH))
    )
    order = Message("user", wrap("Answer now."), ends_in_order=True)
    row = _with_messages(given, *given.messages, order)
    outcome = RepairToolCalls().apply(row, search_visit())
    assert isinstance(outcome, Keep)
    assert contents(outcome) == [THINK + block(VISIT), wrap("1")]
    assert reasons(outcome) == ["think_unclosed", "think_unclosed"]


def _with_messages(row: Trajectory, *messages: Message) -> Trajectory:
    return Trajectory(row.origin, row.id, row.question_id, row.question, None, messages)


# --- the last message -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (
            f"{THINK}<summary>\nS\n</summary>\n\n{ANSWER}",
            thought("plan", "", "S") + ANSWER,
            "text_before_answer",
        ),
        (f"{THINK}I know.{ANSWER}", thought("plan", "", "I know.") + ANSWER, "text_before_answer"),
        (
            f"{THINK}One\n<summary>\nTwo\n</summary>\nThree\n{ANSWER}",
            thought("plan", "", "One", "", "Two", "", "Three") + ANSWER,
            "text_before_answer",
        ),
        (
            f"{THINK}<answer>\n<summary>\nS\n</summary>\n\n{ANSWER}",
            thought("plan", "", "S") + ANSWER,
            "answer_nested",
        ),
        (
            f"{thought('plan', '', 'S')}<answer>\n<summary>\nS\n</summary>\n\n{ANSWER}\n</answer>",
            thought("plan", "", "S") + ANSWER,
            "answer_nested tag_stray",
        ),
        (
            f"{THINK}<answer>so\n{ANSWER}\nthus</answer>",
            thought("plan", "", "so") + ANSWER,
            "answer_nested text_after_answer",
        ),
        (f"{THINK}<answer>\n</answer>\n{ANSWER}", THINK + ANSWER, "answer_nested"),
        (f"{THINK}{ANSWER}\n(in <answer></answer> tags)", THINK + ANSWER, "text_after_answer"),
        (f"{THINK}{ANSWER}\n\n{ANSWER}", THINK + ANSWER, "text_after_answer"),
        (f"{THINK}{ANSWER}\n</answer>", THINK + ANSWER, "tag_stray"),
        (f"{THINK}{ANSWER}" + "</answer>" * 1000, THINK + ANSWER, "tag_stray"),
        (f"{THINK}```\n{ANSWER}\n```", THINK + ANSWER, "call_fenced call_fenced"),
        (f"{THINK}<answer>\nX", THINK + ANSWER, "answer_unclosed"),
        (f"{THINK}<answer>X\n", f"{THINK}<answer>X</answer>\n", "answer_unclosed"),
        (f"{THINK}<Answer>\nX\n</ANSWER>", THINK + ANSWER, "tag_case tag_case"),
        ("<think>\nplan\n</think>\n</think>\n" + ANSWER, THINK + ANSWER, "think_nested"),
        (f"{THINK}{ANSWER}</think>", THINK + ANSWER, "tag_stray"),
        ("plan\n</think>\n" + ANSWER, THINK + ANSWER, "think_unopened"),
        # Calls that were never made.
        (f"{THINK}{block(VISIT)}\n\n{ANSWER}", THINK + ANSWER, "call_and_answer"),
        (f"{THINK}{block(CUT_OFF)}\n{ANSWER}", THINK + ANSWER, "call_and_answer"),
        (
            f"{THINK}{block(VISIT)}\nor\n{block(SEARCH)}\n{ANSWER}",
            thought("plan", "", "or") + ANSWER,
            "call_and_answer call_and_answer text_before_answer",
        ),
        (f"{THINK}{ANSWER}\n{block(VISIT)}", THINK + ANSWER, "call_and_answer"),
        # A call that ends an unfinished row, with an empty answer.
        (f"{THINK}{block(VISIT)}\n<answer>", THINK + block(VISIT), "call_and_answer"),
        (
            f"{THINK}{block(VISIT)}\n<tool_response>\nr\n</tool_response>\n{FINAL}",
            THINK + block(VISIT),
            "response_invented",
        ),
    ],
)
def test_a_last_message_is_repaired(before: str, after: str, found: str) -> None:
    outcome = repair(THINK + block(SEARCH), wrap("1"), before)
    assert contents(outcome) == [THINK + block(SEARCH), wrap("1"), after]
    assert sorted(reasons(outcome)) == sorted(found.split())


@pytest.mark.parametrize(
    "text",
    [
        f"{THINK}<answer>X</answer>\n<answer>Y</answer>",
        f"{THINK}so <answer>X</answer>\n<answer>\nY",
        f"{THINK}<answer>\n</answer>",
        f"{THINK}<answer>",
    ],
)
def test_two_answers_or_an_empty_one_are_left_for_another_step(text: str) -> None:
    assert reasons(repair(THINK + block(SEARCH), wrap("1"), text)) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<think>\nplan\n" + block(SEARCH), "think_unclosed"),
        ("<think>\nplan\n" + block(SINGLE), "think_unclosed"),
        (block(SEARCH), "think_missing"),
        (f"<think>\nplan\n{block(SEARCH)}\n</think>", "call_missing"),
        (THINK + SINGLE, "call_missing"),
    ],
)
def test_what_only_an_observation_could_show_to_be_a_call_is_none_without_it(
    text: str, reason: str
) -> None:
    outcome = repair(THINK + block(VISIT), wrap("1"), text)
    assert contents(outcome) == [THINK + block(VISIT), wrap("1")]
    assert reasons(outcome) == [reason]


# --- what cannot be repaired ------------------------------------------------------------------

TURN, REPLY = THINK + block(VISIT), wrap("1")

UNREPAIRABLE = [
    (THINK + block(CUT_OFF), "call_cut_off", "$.turns[1].calls[0] column 44"),
    # Nothing says that the text did not go on.
    (f"{THINK}<tool_call>\n{SEARCH[:-1]}", "call_cut_off", "$.turns[1].calls[0] column 52"),
    (
        f'{THINK}<tool_call>\n{{"name": "py", "arguments": {{}}}}\n<code>\nx = ',
        "call_cut_off",
        "$.turns[1].calls[0] line 3 column 4",
    ),
    (
        f'{THINK}<tool_call>\n<function=search>\n<parameter=query>\n["ti',
        "call_cut_off",
        "$.turns[1].calls[0] line 3 column 5",
    ),
    (
        THINK + block('{"name": "search",\n "arguments": {"query": ["a"}, "page": [1]]}}'),
        "call_brackets_mismatched",
        "$.turns[1].calls[0] line 2 column 29",
    ),
    (THINK + block(f"{SEARCH}\n{VISIT}"), "call_several", "$.turns[1].calls[0] line 2 column 1"),
    (THINK + block(""), "call_empty", "$.turns[1].calls[0] column 1"),
    (THINK, "call_missing", "$.turns[1]"),
    (THINK + "I will search.", "call_missing", "$.turns[1]"),
    (f"{THINK}I search: {SINGLE}", "call_missing", "$.turns[1]"),
    ("I will search.", "think_missing", "$.turns[1]"),
    (ANSWER, "think_missing", "$.turns[1]"),
    (f"<think>\nplan\n{block(SEARCH)}\nso", "think_unclosed", "$.turns[1]"),
    (f"<think>\nplan\n{ANSWER}", "think_unclosed", "$.turns[1]"),
    ("", "message_empty", "$.turns[1]"),
    # Several turns in one, with a response of the model's own.
    (
        f"<think>\nplan\n{block(SEARCH)}\n<tool_response>\nr\n</tool_response>\n{FINAL}",
        "think_nested",
        "$.turns[1]",
    ),
    (f"{THINK}<answer>\nX\n{block(SEARCH)}", "answer_unclosed", "$.turns[1]"),
    ("<think>" * 1000 + "plan</think>" + block(SEARCH), "think_nested", "$.turns[1]"),
]


@pytest.mark.parametrize(("text", "reason", "where"), UNREPAIRABLE)
def test_a_turn_that_cannot_be_repaired_goes_with_its_observation(
    text: str, reason: str, where: str
) -> None:
    outcome = repair(TURN, REPLY, text, wrap("2"), FINAL)
    assert contents(outcome) == [TURN, REPLY, FINAL]
    assert [(e.reason, e.message, e.turn) for e in outcome.edits] == [
        (reason, 4, 1),
        (reason, 3, 1),
    ]
    assert json.loads(outcome.edits[1].before or "") == {"role": "assistant", "content": text}


@pytest.mark.parametrize(("text", "reason", "where"), UNREPAIRABLE)
def test_a_row_with_such_a_turn_is_set_aside_where_asked(
    text: str, reason: str, where: str
) -> None:
    row = make_trajectory(pairs(TURN, REPLY, text, wrap("2"), FINAL))
    outcome = RepairToolCalls(unrepairable="quarantine").apply(row, search_visit())
    assert outcome == Quarantine(reason, where)


@pytest.mark.parametrize(("text", "reason", "where"), UNREPAIRABLE)
def test_such_a_turn_is_kept_with_a_finding_where_asked(text: str, reason: str, where: str) -> None:
    row = make_trajectory(pairs(TURN, REPLY, text, wrap("2"), FINAL))
    outcome = RepairToolCalls(unrepairable="keep").apply(row, search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is row
    assert Finding(reason, 1, where) in outcome.findings
    assert {finding.reason for finding in outcome.findings} <= set(RepairToolCalls.finding_reasons)


def test_of_paired_calls_only_the_malformed_one_goes() -> None:
    text = f"{THINK}so\n{block(SEARCH)}\n{block(CUT_OFF)}\n{block(SINGLE)}"
    outcome = repair(text, wrap("1", "2", "3"), FINAL)
    assert contents(outcome) == [
        thought("plan", "", "so") + f"{block(SEARCH)}\n{block(SEARCH)}",
        wrap("1", "3"),
        FINAL,
    ]


def test_unpaired_calls_of_which_one_is_malformed_go_as_one() -> None:
    text = f"{THINK}so\n{block(SEARCH)}\n{block(CUT_OFF)}"
    outcome = repair(TURN, REPLY, text, wrap("both"), FINAL)
    assert contents(outcome) == [TURN, REPLY, FINAL]
    assert reasons(outcome) == ["call_cut_off", "call_cut_off"]


def test_an_empty_call_goes_with_the_response_that_stands_for_it() -> None:
    outcome = repair(f"{THINK}{block('')}\n{block(SEARCH)}", wrap("empty", "2"), FINAL)
    assert contents(outcome) == [THINK + block(SEARCH), wrap("2"), FINAL]
    assert set(reasons(outcome)) == {"call_empty"}


def test_a_turn_with_more_than_malformed_calls_goes_whole() -> None:
    thinking = f"<think>{block(VISIT)}\n<tool_response>r</tool_response>\n<think>so</think>"
    text = f"{thinking}{block(SEARCH)}{block(CUT_OFF)}"
    outcome = repair(TURN, REPLY, text, wrap("2", "3"), FINAL)
    assert contents(outcome) == [TURN, REPLY, FINAL]


def test_an_unpaired_turn_is_repaired_where_all_its_calls_are() -> None:
    outcome = repair(f"{THINK}{block(SEARCH)}\n{block(VISIT + '}')}", wrap("both"), FINAL)
    assert contents(outcome)[0] == f"{THINK}{block(SEARCH)}\n{block(VISIT)}"


def test_an_unrepairable_last_message_goes_and_the_row_is_unfinished() -> None:
    outcome = repair(TURN, REPLY, THINK + "It is X.")
    assert contents(outcome) == [TURN, REPLY]


@pytest.mark.parametrize(
    "texts",
    [
        (THINK + block(CUT_OFF), REPLY, FINAL),
        (THINK + block(CUT_OFF), REPLY),
        ("<think>\nplan\nSearch.", REPLY, FINAL),
        ("It is X.",),
        # The only call was never made.
        (f"{THINK}{block(SEARCH)}\n{ANSWER}",),
    ],
)
def test_a_row_that_loses_its_last_call_is_dropped(texts: tuple[str, ...]) -> None:
    outcome = RepairToolCalls().apply(make_trajectory(pairs(*texts)), search_visit())
    assert isinstance(outcome, Drop)
    assert outcome.reason == "no_turns_left"


def test_a_row_that_never_called_keeps_its_repaired_answer() -> None:
    assert contents(repair(f"{THINK}so\n{ANSWER}")) == [thought("plan", "", "so") + ANSWER]


def test_at_level_off_nothing_is_repaired() -> None:
    outcome = repair(TURN, REPLY, THINK + block(SINGLE), wrap("2"), FINAL, level="off")
    assert contents(outcome) == [TURN, REPLY, FINAL]
    assert reasons(outcome) == ["call_not_json", "call_not_json"]


def test_turns_removed_before_do_not_shift_the_repair_of_later_ones() -> None:
    outcome = repair(THINK + block(CUT_OFF), wrap("0"), TURN + "\nso", REPLY, "", "x", FINAL)
    assert contents(outcome) == [TURN, REPLY, FINAL]


# --- whatever comes ---------------------------------------------------------------------------

FRAGMENTS = [
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<answer>", "</answer>"),
    *("<tool_response>", "</tool_response>", "<summary>", "</summary>", "<code>", "</code>"),
    *("<THINK>", "</Tool_call>", "<TOOL_CALL>", "<Answer>", "```json\n", "```", "\n", " "),
    *(SEARCH, SINGLE, SEARCH[:-1], SEARCH + "}", CUT_OFF, "word", "[", "]", ", ", '"'),
    *(THINK, block(SEARCH), block(VISIT), ANSWER, "<function=visit>\n<parameter=goal>g"),
]
TEXTS = st.builds(
    "{}{}".format,
    st.sampled_from(["", THINK, "<think>\nplan\n"]),
    st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join),
)
REPLIES = st.sampled_from([wrap("1"), wrap("1", "2"), wrap("1", "2", "3"), "plain", ""])
MESSAGES: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.builds(dict, role=st.just("assistant"), content=TEXTS),
    st.builds(dict, role=st.sampled_from(["user", "tool"]), content=REPLIES),
    st.builds(dict, role=st.sampled_from(["system", "narrator"]), content=st.just("x")),
)
Action = Literal["drop_turn", "quarantine", "keep"]


@given(st.lists(MESSAGES, max_size=6), st.sampled_from(["drop_turn", "quarantine", "keep"]))
def test_any_row_is_settled_and_can_be_given_back(messages: Pairs, unrepairable: Action) -> None:
    step = RepairToolCalls(unrepairable=unrepairable)
    outcome = check_kept(step, make_trajectory(messages))
    if outcome is None or unrepairable == "keep":
        return
    for message in outcome.trajectory.messages:
        if isinstance(message, AssistantMessage) and message.defects:
            left = {defect.reason for defect in message.defects}
            left -= {"answer_unclosed"} if "answer_empty" in left else set()
            assert "two_answers" in left or left == {"answer_empty"}


@given(TEXTS)
def test_every_word_of_a_repaired_message_is_there_or_in_an_edit(text: str) -> None:
    row = make_trajectory(pairs(text, wrap("1"), FINAL))
    outcome = RepairToolCalls().apply(row, search_visit())
    if not isinstance(outcome, Keep):
        return
    after = "".join(to_messages(outcome.trajectory.messages)[1]["content"])
    edits = "".join(edit.before or "" for edit in outcome.edits)
    for word in re.findall(r"\w+", text):
        assert word in after or word in edits or word.lower() in after


@given(trajectories())
def test_no_call_is_parted_from_what_answers_it(row: Trajectory) -> None:
    outcome = check_kept(RepairToolCalls(), row)
    if outcome is not None:
        assert_nothing_is_orphaned(row, outcome.trajectory)


# --- cases and data from outside the repository -----------------------------------------------

OUTSIDE = REPOSITORY.parent / "shared"


def _read_cases() -> list[Any]:
    path = OUTSIDE / "cases" / "open_cases.jsonl"
    if not path.exists():
        return [pytest.param({}, marks=pytest.mark.skip(reason="the open cases are not here"))]
    cases = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [pytest.param(c, id=c["id"]) for c in cases if c["area"] in ("tool_call", "xml")]


@pytest.mark.parametrize("case", _read_cases())
def test_an_open_case_comes_out_as_expected(case: dict[str, Any]) -> None:
    messages = _case_messages(case["input"])
    outcome = check_kept(RepairToolCalls(), make_trajectory(messages))
    assert outcome is not None
    assert (outcome.edits == ()) == (case["expect"]["verdict"] == "valid")
    assistants = [turn.assistant for turn in outcome.trajectory.turns]
    first = assistants[0] if assistants else None
    got = {
        "tool_calls": [_call(call) for call in first.calls] if first else None,
        "tool_calls_by_assistant_turn": [[_call(c) for c in a.calls] for a in assistants],
        "think": first.thought if first else None,
        "answer": first.answer if first else None,
        "assistant_1": first.content if first else None,
        "final_answer": outcome.trajectory.final_answer,
        "bytes_unchanged": to_messages(outcome.trajectory.messages) == messages,
    }
    expected = case["expect"]["data"]
    shared = expected.keys() & got.keys()
    assert shared
    assert {key: got[key] for key in shared} == {key: expected[key] for key in shared}


def _case_messages(given: dict[str, Any]) -> Pairs:
    if "messages" in given:
        messages: Pairs = given["messages"]
        return messages
    text = given["assistant"]
    return pairs(text) if "<answer>" in text else pairs(text, wrap("1"))


def _call(call: object) -> dict[str, Any]:
    assert isinstance(call, ToolCall)
    arguments = dict(call.arguments)
    return {
        "name": call.name,
        "arguments": arguments if call.code is None else {**arguments, "code": call.code},
    }


def _read_examples(folder: str) -> list[Any]:
    paths = sorted((OUTSIDE / "data" / "drvenus_examples" / folder).glob("*.json"))
    if not paths:
        return [pytest.param(Path(), marks=pytest.mark.skip(reason="the examples are not here"))]
    return [pytest.param(path, id=path.stem) for path in paths]


@pytest.mark.parametrize("path", _read_examples("sft"))
def test_published_examples_are_sound_but_for_two_nested_answers(path: Path) -> None:
    outcome = check_kept(RepairToolCalls(), _example(path))
    assert outcome is not None
    assert reasons(outcome) == (["answer_nested"] if path.stem in ("0001", "0008") else [])
    last = outcome.trajectory.messages[-1].content
    assert last.count("<answer>") == 1
    assert outcome.trajectory.turns[-1].assistant.is_well_formed
    summary = re.search(r"<summary>(.*)</summary>", _example(path).messages[-1].content, re.DOTALL)
    assert summary is None or summary[1].strip() in last


@pytest.mark.parametrize("path", _read_examples("rl_rollouts"))
def test_published_rollouts_are_sound(path: Path) -> None:
    row = _example(path)
    assert RepairToolCalls().apply(row, search_visit()) == Keep(row)


def _example(path: Path) -> Trajectory:
    return make_trajectory(json.loads(path.read_text("utf-8"))["messages"])
