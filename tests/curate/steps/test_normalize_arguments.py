from __future__ import annotations

import json
from typing import Any

import pytest
from generated_turns import ANSWER, assert_nothing_is_orphaned, trajectories, turn, unhurried, wrap
from hypothesis import given
from hypothesis import strategies as st
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

from trajcurate.curate.step import Drop, Keep
from trajcurate.curate.steps.normalize_arguments import NormalizeArguments
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import AssistantMessage, ToolCall, Trajectory

GOOD = '{"name": "search", "arguments": {"query": ["tide"]}}'
NO_GOAL = '{"name": "visit", "arguments": {"url": ["u"]}}'
NUMBER_GOAL = '{"name": "visit", "arguments": {"url": ["u"], "goal": 7}}'
ABACUS = '{"name": "abacus", "arguments": {}}'


def apply(row: Trajectory, **options: Any) -> Keep | Drop:
    outcome = NormalizeArguments(**options).apply(row, search_visit())
    assert isinstance(outcome, Keep | Drop)
    return outcome


def keep(*contents: str, **options: Any) -> Keep:
    outcome = check_kept(NormalizeArguments(**options), make_trajectory(pairs(*contents)))
    assert outcome is not None
    return outcome


def contents(outcome: Keep) -> list[str]:
    return [message.content for message in outcome.trajectory.messages[1:]]


@pytest.mark.parametrize("sample", zoo("normalize_arguments"))
def test_a_sample_comes_out_as_written(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert set(NormalizeArguments.reasons) <= reasons_with_sample("normalize_arguments")


@pytest.mark.parametrize(
    "call",
    [
        GOOD,
        '{"name":"search","arguments":{"query":["\\u76d0"],"topn":2e1}}',
        '{"arguments": {"goal": "g", "url": ["u"], "note": {"x": null}}, "name": "visit", "id": 1}',
    ],
)
def test_a_call_that_fits_stays_byte_for_byte(call: str) -> None:
    row = make_trajectory(pairs(turn(call), wrap("1"), ANSWER))
    outcome = apply(row)
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is row
    assert outcome.edits == ()


def test_each_mending_is_an_edit_of_its_own() -> None:
    call = '{"name": "Search", "arguments": {"queries": "tide", "goal": null}}'
    outcome = keep(turn(call), wrap("1"))
    assert contents(outcome) == [turn(GOOD), wrap("1")]
    assert [(e.reason, e.before, e.after) for e in outcome.edits] == [
        ("argument_null", ', "goal": null', ""),
        ("argument_not_list", '"tide"', '["tide"]'),
        ("argument_alias", '"queries"', '"query"'),
        ("tool_name_alias", '"Search"', '"search"'),
    ]
    assert {(e.message, e.turn, e.safe, e.is_reencoding) for e in outcome.edits} == {
        (1, 0, True, False)
    }


def test_a_call_that_does_not_fit_goes_with_its_own_response() -> None:
    outcome = keep(turn(NO_GOAL, GOOD, ABACUS), wrap("1", "2", "3"), ANSWER)
    assert contents(outcome) == [turn(GOOD), wrap("2"), ANSWER]
    assert [edit.reason for edit in outcome.edits] == [
        "argument_missing",
        "argument_missing",
        "tool_undeclared",
        "tool_undeclared",
    ]


def test_the_turn_goes_with_its_last_call() -> None:
    outcome = keep(turn(NUMBER_GOAL, ABACUS), wrap("1", "2"), turn(GOOD), wrap("3"))
    assert contents(outcome) == [turn(GOOD), wrap("3")]
    assert [edit.reason for edit in outcome.edits] == ["argument_type", "argument_type"]


def test_a_turn_whose_observation_does_not_pair_goes_whole() -> None:
    outcome = keep(turn(ABACUS, GOOD), wrap("both"), turn(GOOD), wrap("3"))
    assert contents(outcome) == [turn(GOOD), wrap("3")]


def test_a_row_goes_with_its_last_call() -> None:
    row = make_trajectory(pairs(turn(NO_GOAL), wrap("1"), turn(ABACUS), wrap("2"), ANSWER))
    removed = ["argument_missing", "tool_undeclared"]
    assert apply(row) == Drop("no_turns_left", detail={"removed": removed})


def test_a_call_that_cannot_be_read_is_left_for_others() -> None:
    broken = turn('{"name": "search"')
    outcome = keep(turn(ABACUS), wrap("1"), broken, wrap("2"))
    assert contents(outcome) == [broken, wrap("2")]


def test_a_row_is_rejected_for_its_first_unfit_call_when_told_so() -> None:
    row = make_trajectory(pairs(turn(GOOD), wrap("1"), turn(GOOD, NUMBER_GOAL), wrap("2"), ANSWER))
    assert apply(row, unfit="reject") == Drop(
        "argument_type",
        "$.turns[1].calls[1]",
        {"tool": "visit", "argument": "goal", "rule": "type"},
    )


def test_an_unfit_call_is_kept_and_noted_when_told_so() -> None:
    row = make_trajectory(pairs(turn(GOOD, NO_GOAL), wrap("1"), turn(ABACUS), wrap("2")))
    outcome = apply(row, unfit="keep")
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is row
    assert [(f.reason, f.turn, f.where, f.detail["tool"]) for f in outcome.findings] == [
        ("argument_missing", 0, "$.turns[0].calls[1]", "visit"),
        ("tool_undeclared", 1, "$.turns[1].calls[0]", "abacus"),
    ]


def test_an_optional_null_is_neither_changed_nor_unfit() -> None:
    tools = ToolSet.model_validate(
        {
            "tools": {
                "search": {
                    "schema": {
                        "type": "object",
                        "properties": {"query": {"type": "array"}, "limit": {"type": "integer"}},
                        "required": ["query"],
                    }
                }
            }
        }
    )
    call = '{"name": "search", "arguments": {"query": ["tide"], "limit": null}}'
    row = make_trajectory(pairs(turn(call), wrap("1")))
    outcome = NormalizeArguments().apply(row, tools)
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is row
    assert outcome.findings == ()


def test_a_code_body_counts_as_the_argument_that_it_is() -> None:
    tools = ToolSet.model_validate(
        {
            "tools": {
                "python": {
                    "body": "code",
                    "aliases": ["PythonInterpreter"],
                    "schema": {
                        "type": "object",
                        "properties": {"code": {"type": "string"}},
                        "required": ["code"],
                    },
                }
            }
        }
    )
    call = '{"name": "PythonInterpreter", "arguments": {}}\n<code>\nprint("}")\n</code>'
    row = make_trajectory(pairs(turn(call), wrap("1"), turn(call[:46]), wrap("2")))
    outcome = NormalizeArguments().apply(row, tools)
    assert isinstance(outcome, Keep)
    assert contents(outcome) == [turn(call.replace("PythonInterpreter", "python")), wrap("1")]
    assert [edit.reason for edit in outcome.edits if edit.start is None] == ["argument_missing"] * 2


def test_every_call_is_written_anew_when_told_so() -> None:
    odd = '{"arguments":{"goal":"\\u76d0","url":"u","n":1.10},"name":"visit"}'
    new = '{"name": "visit", "arguments": {"url": ["u"], "goal": "盐"}}'
    outcome = keep(turn(odd), wrap("1"), turn(GOOD), wrap("2"), encode="always", extra="drop")
    assert contents(outcome) == [turn(new), wrap("1"), turn(GOOD), wrap("2")]
    assert [(e.reason, e.is_reencoding) for e in outcome.edits] == [
        ("argument_extra", False),
        ("argument_not_list", False),
        ("call_encoding", True),
    ]


def test_a_call_in_the_form_of_json_dumps_is_not_written_anew() -> None:
    row = make_trajectory(pairs(turn(GOOD), wrap("1"), turn(GOOD, GOOD), wrap("2", "3"), ANSWER))
    outcome = apply(row, encode="always", extra="drop")
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is row


def test_many_unfit_calls_in_one_turn_take_linear_time() -> None:
    calls = [NO_GOAL, NUMBER_GOAL.replace("visit", "Visit"), GOOD] * 1_000
    row = make_trajectory(pairs(turn(*calls), wrap(*map(str, range(3_000)))))
    outcome = apply(row)
    assert isinstance(outcome, Keep)
    assert outcome.trajectory.turns[0].assistant.content == turn(*[GOOD] * 1_000)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": ""}],
        [{"role": "assistant", "content": "<tool_call></tool_call><answer>"}],
        [{"role": "tool", "content": GOOD}],
        [{"role": "assistant", "content": turn(ABACUS)}],
    ],
)
@pytest.mark.parametrize("unfit", ["drop_turn", "reject", "keep"])
def test_no_row_is_too_odd(messages: list[dict[str, str]], unfit: str) -> None:
    apply(make_trajectory(messages), unfit=unfit)


def test_a_call_nested_as_deep_as_it_can_be_read_is_no_trouble() -> None:
    for depth in (100, 300, 400, 450, 480, 900):
        deep = '{"name": "Search", "arguments": {"x": %s}}' % ("[" * depth + "]" * depth)
        apply(make_trajectory(pairs(turn(deep), wrap("1"))), encode="always")


@unhurried
@given(
    trajectories(),
    st.sampled_from(["drop_turn", "reject", "keep"]),
    st.sampled_from(["changed", "always"]),
    st.sampled_from(["keep", "drop"]),
)
def test_what_is_kept_is_whole_fits_and_is_left_alone_next_time(
    row: Trajectory, unfit: str, encode: str, extra: str
) -> None:
    step = NormalizeArguments.model_validate({"unfit": unfit, "encode": encode, "extra": extra})
    outcome = check_kept(step, row)
    if outcome is None:
        return
    if extra == "keep":  # else the numbers of the calls are gone
        assert_nothing_is_orphaned(row, outcome.trajectory)
    if unfit == "drop_turn":
        names = {
            call.name
            for message in outcome.trajectory.messages
            if isinstance(message, AssistantMessage)
            for call in message.calls
            if isinstance(call, ToolCall)
        }
        assert names <= {"search", "visit"}


def open_case(name: str) -> dict[str, Any]:
    lines = shared("cases", "open_cases.jsonl").read_text(encoding="utf-8").splitlines()
    return next(case for line in lines if (case := json.loads(line))["id"] == name)


def test_open_case_of_arguments_padded_with_null() -> None:
    case = open_case("IO-02")
    for given_row in case["input"]["rows"]:
        calls = [json.dumps(call) for call in given_row["tool_calls"]]
        outcome = apply(make_trajectory(pairs(turn(*calls), wrap("1"))), unfit="keep")
        assert isinstance(outcome, Keep)
        expected = case["expect"]["data"][given_row["id"]]
        assert [
            {"name": call.name, "arguments": call.arguments}
            for call in outcome.trajectory.turns[0].assistant.calls
            if isinstance(call, ToolCall)
        ] == expected["tool_calls"]
        is_flagged = expected["verdict"] == "flagged"
        assert [f.reason for f in outcome.findings] == ["argument_missing"] * is_flagged
