from __future__ import annotations

import pytest
from generated_turns import ANSWER, assert_nothing_is_orphaned, trajectories, turn, unhurried, wrap
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
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
from trajcurate.curate.steps.prune_tools import PruneTools
from trajcurate.schemas.audit import Finding
from trajcurate.schemas.trajectory import AssistantMessage, ToolCall, Trajectory

SEARCH = '{"name": "search", "arguments": {"query": ["tide"]}}'
VISIT = '{"name": "visit", "arguments": {"url": ["u"], "goal": "g"}}'
PYTHON = '{"name": "PythonInterpreter", "arguments": {}}\n<code>\nprint(1)\n</code>'
SCHOLAR = '{"name": "google_scholar", "arguments": {"query": ["tide"]}}'


def prune(*contents: str, allowed: tuple[str, ...] = ("search", "visit")) -> Keep:
    outcome = check_kept(PruneTools(allowed=allowed), make_trajectory(pairs(*contents)))
    assert outcome is not None
    return outcome


def contents(outcome: Keep) -> list[str]:
    return [message.content for message in outcome.trajectory.messages[1:]]


@pytest.mark.parametrize("sample", zoo("prune_tools"))
def test_a_sample_comes_out_as_written(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert set(PruneTools.reasons) <= reasons_with_sample("prune_tools")


def test_prune_tools_removes_a_call_with_its_observation() -> None:
    outcome = prune(turn(SEARCH), wrap("1"), turn(PYTHON), wrap("2"), turn(VISIT), wrap("3"))
    assert contents(outcome) == [turn(SEARCH), wrap("1"), turn(VISIT), wrap("3")]
    assert [(e.reason, e.message, e.turn) for e in outcome.edits] == [
        ("tool_not_allowed", 4, 1),
        ("tool_not_allowed", 3, 1),
    ]


def test_of_a_turn_of_several_tools_only_the_unwanted_call_goes() -> None:
    outcome = prune(turn(PYTHON, SEARCH, SCHOLAR), wrap("1", "2", "3"), ANSWER)
    assert contents(outcome) == [turn(SEARCH), wrap("2"), ANSWER]


def test_a_turn_whose_observation_does_not_pair_goes_whole() -> None:
    outcome = prune(turn(PYTHON, SEARCH), wrap("both"), turn(SEARCH), wrap("3"))
    assert contents(outcome) == [turn(SEARCH), wrap("3")]


def test_the_turn_behind_a_removed_observation_is_noted() -> None:
    outcome = prune(
        turn(SEARCH),
        wrap("1"),
        turn(PYTHON),
        wrap("2"),
        turn(SCHOLAR),
        wrap("3"),
        turn(SEARCH, PYTHON),
        wrap("4", "5"),
        ANSWER,
    )
    assert outcome.findings == (
        Finding(
            "observation_removed",
            1,
            "$.turns[1]",
            {"tools": ["PythonInterpreter", "google_scholar"]},
        ),
        Finding("observation_removed", 2, "$.turns[2]", {"tools": ["PythonInterpreter"]}),
    )


def test_a_call_that_nothing_answered_leaves_nothing_to_mention() -> None:
    outcome = prune(turn(SEARCH), wrap("1"), turn(PYTHON))
    assert contents(outcome) == [turn(SEARCH), wrap("1")]
    assert outcome.findings == ()
    messages = [*pairs(turn(PYTHON)), *pairs(turn(SEARCH), wrap("1"))[1:]]
    found = PruneTools().apply(make_trajectory(messages), search_visit())
    assert isinstance(found, Keep)
    assert (contents(found), found.findings) == ([turn(SEARCH), wrap("1")], ())


@pytest.mark.parametrize(
    ("name", "allowed", "stays"),
    [
        ("Search", ("search",), True),
        ("web_search", ("search",), True),
        ("search", ("Web_Search",), True),
        ("SEARCH", ("visit",), False),
        ("Abacus", ("abacus",), True),
        ("abacus", ("search", " ABACUS "), True),
        ("abacus2", ("abacus",), False),
    ],
)
def test_tools_are_compared_by_what_they_mean(
    name: str, allowed: tuple[str, ...], stays: bool
) -> None:
    row = make_trajectory(pairs(turn(SEARCH.replace("search", name)), wrap("1"), ANSWER))
    outcome = PruneTools(allowed=allowed).apply(row, search_visit())
    dropped = Drop("no_turns_left", detail={"tools": [name]})
    assert outcome == (Keep(row) if stays else dropped)


def test_a_row_without_an_unwanted_call_is_the_same_row() -> None:
    row = make_trajectory(pairs(turn(SEARCH), wrap("1"), turn('{"name": '), wrap("2"), ANSWER))
    outcome = PruneTools().apply(row, search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is row


def test_a_row_that_called_nothing_is_not_rejected_for_it() -> None:
    row = make_trajectory(pairs(ANSWER))
    assert PruneTools().apply(row, search_visit()) == Keep(row)


def test_a_call_that_cannot_be_read_is_a_call_that_is_left() -> None:
    broken = turn('{"name": "search"')
    assert contents(prune(turn(PYTHON), wrap("1"), broken, wrap("2"))) == [broken, wrap("2")]


def test_no_tool_at_all_cannot_be_meant() -> None:
    with pytest.raises(ValidationError):
        PruneTools(allowed=())


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": ""}],
        [{"role": "assistant", "content": turn(PYTHON)}],
        [{"role": "assistant", "content": turn(PYTHON)}] * 2,
        [{"role": "system", "content": PYTHON}],
    ],
)
def test_no_row_is_too_odd(messages: list[dict[str, str]]) -> None:
    PruneTools().apply(make_trajectory(messages), search_visit())


@unhurried
@given(
    trajectories(),
    st.sampled_from([("search", "visit"), ("search",), ("visit",), ("pythoninterpreter",)]),
)
def test_what_is_kept_is_whole_and_calls_only_what_is_allowed(
    row: Trajectory, allowed: tuple[str, ...]
) -> None:
    outcome = check_kept(PruneTools(allowed=allowed), row)
    if outcome is None:
        return
    assert_nothing_is_orphaned(row, outcome.trajectory)
    tools = search_visit()
    names = {
        tools.resolve(call.name) or call.name.lower()
        for message in outcome.trajectory.messages
        if isinstance(message, AssistantMessage)
        for call in message.calls
        if isinstance(call, ToolCall)
    }
    assert names <= set(allowed)
