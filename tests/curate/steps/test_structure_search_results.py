from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from generated_turns import ANSWER, trajectories, turn, unhurried, wrap
from hypothesis import given
from hypothesis import strategies as st
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
from trajcurate.curate.steps.structure_search_results import StructureSearchResults
from trajcurate.schemas.trajectory import Message, Trajectory

SEARCH = '{"name": "search", "arguments": {"query": ["tide"]}}'
VISIT = '{"name": "visit", "arguments": {"url": ["u"], "goal": "g"}}'

TEXT = """A Google search for 'tide' found 2 results:

## Web Results
0. [Tides](https://tides.example)
Date published: May 3, 2019

High at noon.

Low at six.

1. [Moon](https://moon.example)

Full."""
JSON = (
    '[{"query": "tide", "web_page_info_list": ['
    '{"title": "Tides", "url": "https://tides.example", '
    '"snippet": "High at noon.\\n\\nLow at six.", "date": "May 3, 2019"}, '
    '{"title": "Moon", "url": "https://moon.example", "snippet": "Full."}]}]'
)
OTHER_TEXT = TEXT.replace("'tide'", "'moon'")
OTHER_JSON = JSON.replace('"query": "tide"', '"query": "moon"')
PAGE = f"The useful information in u for user goal g as follows: \n\nSummary: \n{TEXT}"


def structure(*contents: str, **options: Any) -> Keep:
    outcome = check_kept(StructureSearchResults(**options), make_trajectory(pairs(*contents)))
    assert outcome is not None
    return outcome


def contents(outcome: Keep) -> list[str]:
    return [message.content for message in outcome.trajectory.messages[1:]]


@pytest.mark.parametrize("sample", zoo("structure_search_results"))
def test_a_sample_comes_out_as_written(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert set(StructureSearchResults.reasons) <= reasons_with_sample("structure_search_results")


def test_the_text_of_a_search_becomes_a_list_of_results() -> None:
    outcome = structure(turn(SEARCH), wrap(TEXT), ANSWER)
    assert contents(outcome) == [turn(SEARCH), wrap(JSON), ANSWER]
    (edit,) = outcome.edits
    assert (edit.reason, edit.message, edit.turn) == ("search_results_as_text", 2, 0)
    assert (edit.start, edit.before, edit.after) == (16, TEXT, JSON)
    assert edit.is_reencoding
    assert outcome.findings == ()


@pytest.mark.parametrize("name", ["Search", "web_search"])
def test_a_tool_is_known_by_what_its_name_means(name: str) -> None:
    outcome = structure(turn(SEARCH.replace("search", name)), wrap(TEXT))
    assert contents(outcome)[1] == wrap(JSON)


@pytest.mark.parametrize("call", [VISIT, SEARCH.replace("search", "google_scholar"), '{"name": '])
@pytest.mark.parametrize("text", [PAGE, TEXT])
def test_what_no_search_returned_is_not_touched_whatever_it_says(call: str, text: str) -> None:
    outcome = structure(turn(call), wrap(text), ANSWER)
    assert outcome.edits == ()
    assert outcome.findings == ()


def test_dates_and_snippet_lines_can_be_left_out() -> None:
    outcome = structure(turn(SEARCH), wrap(TEXT), dates="drop", snippet_lines="join")
    expected = JSON.replace(', "date": "May 3, 2019"', "").replace("\\n\\n", "\\n")
    assert contents(outcome)[1] == wrap(expected)


def test_notes_can_be_left_out() -> None:
    outcome = structure(turn(SEARCH), wrap("Failed to search for 'tide'"), notes="drop")
    assert contents(outcome)[1] == wrap('[{"query": "tide", "web_page_info_list": []}]')


def test_responses_are_read_block_by_block_beside_their_calls() -> None:
    outcome = structure(turn(SEARCH, VISIT, SEARCH), wrap(TEXT, PAGE, OTHER_TEXT), ANSWER)
    assert contents(outcome)[1] == wrap(JSON, PAGE, OTHER_JSON)
    assert [(edit.before, edit.after) for edit in outcome.edits] == [
        (OTHER_TEXT, OTHER_JSON),
        (TEXT, JSON),
    ]


def test_a_block_that_does_not_read_leaves_its_neighbours_alone() -> None:
    outcome = structure(turn(SEARCH, SEARCH), wrap("High at noon.", TEXT))
    assert contents(outcome)[1] == wrap("High at noon.", JSON)
    assert [finding.reason for finding in outcome.findings] == ["search_text_unread"]


def test_one_text_may_answer_several_searches() -> None:
    outcome = structure(turn(SEARCH, SEARCH), wrap(f"{TEXT}\n=======\n{OTHER_TEXT}"))
    assert contents(outcome)[1] == wrap(f"{JSON[:-1]}, {OTHER_JSON[1:]}")


def test_one_text_for_a_search_and_a_visit_is_not_read() -> None:
    outcome = structure(turn(SEARCH, VISIT), wrap(TEXT))
    assert (outcome.edits, outcome.findings) == ((), ())


def test_the_parts_of_a_split_response_are_all_read_or_none() -> None:
    assert contents(structure(turn(SEARCH), wrap(TEXT, OTHER_TEXT)))[1] == wrap(JSON, OTHER_JSON)
    assert contents(structure(turn(SEARCH), wrap(JSON, OTHER_TEXT)))[1] == wrap(JSON, OTHER_JSON)
    outcome = structure(turn(SEARCH), wrap(TEXT, "High at noon."))
    assert outcome.edits == ()
    assert [finding.reason for finding in outcome.findings] == ["search_text_unread"]


def test_each_of_several_observations_is_read() -> None:
    row = [*pairs(turn(SEARCH), wrap(TEXT)), {"role": "user", "content": wrap(OTHER_TEXT)}]
    outcome = check_kept(StructureSearchResults(), make_trajectory(row))
    assert outcome is not None
    assert contents(outcome)[1:] == [wrap(JSON), wrap(OTHER_JSON)]


def test_an_order_behind_the_results_is_not_read() -> None:
    editor = Editor(make_trajectory(pairs(turn(SEARCH), wrap(TEXT, TEXT), ANSWER)))
    editor.mark_order(2)
    outcome = check_kept(StructureSearchResults(), editor.done().trajectory)
    assert outcome is not None
    assert outcome.trajectory.messages[2] == Message("user", wrap(JSON, TEXT), ends_in_order=True)


def test_an_order_alone_is_not_read() -> None:
    row = make_trajectory(pairs(turn(SEARCH), wrap(TEXT), ANSWER))
    ordered = replace(row.messages[2], ends_in_order=True)
    row = replace(row, messages=(*row.messages[:2], ordered, row.messages[3]))
    assert StructureSearchResults().apply(row, search_visit()) == Keep(row)


@pytest.mark.parametrize(
    "text",
    [JSON, f" {JSON}\n", '[{"query": "tide", "web_page_info_list": []}]', "[{\"query\": 'tide'}]"],
)
def test_what_is_structured_stays_byte_for_byte(text: str) -> None:
    row = make_trajectory(pairs(turn(SEARCH), wrap(text), ANSWER))
    outcome = StructureSearchResults(dates="drop").apply(row, search_visit())
    assert outcome == Keep(row)
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is row


def test_a_text_that_fits_nothing_stays_and_is_noted() -> None:
    outcome = structure(
        turn(SEARCH), wrap(TEXT), turn(SEARCH), wrap(TEXT.replace("found 2", "found 3"))
    )
    assert contents(outcome)[1] == wrap(JSON)
    (finding,) = outcome.findings
    assert (finding.reason, finding.turn, finding.where) == (
        "search_text_unread",
        1,
        "$.turns[1]",
    )
    assert finding.detail == {"begins": "A Google search for 'tide' found 3 results:"}


@pytest.mark.parametrize("text", ["", "Tool execution timed out.", "[Search] Error"])
def test_a_failed_search_stays_text_and_is_nothing_to_note(text: str) -> None:
    outcome = structure(turn(SEARCH), wrap(text), ANSWER)
    assert (outcome.edits, outcome.findings) == ((), ())


def test_a_query_without_results_gives_an_empty_list_and_a_note() -> None:
    outcome = structure(turn(SEARCH), wrap(f"Failed to search for 'moon'\n=======\n{TEXT}"))
    failed = '{"query": "moon", "web_page_info_list": [], "note": "Failed to search for \'moon\'"}'
    assert contents(outcome)[1] == wrap(f"[{failed}, {JSON[1:]}")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": ""}],
        [{"role": "assistant", "content": turn(SEARCH)}],
        [{"role": "assistant", "content": turn(SEARCH)}, {"role": "user", "content": ""}],
        [{"role": "assistant", "content": turn(SEARCH)}, {"role": "tool", "content": TEXT}],
        [{"role": "user", "content": wrap(TEXT)}],
    ],
)
def test_no_row_is_too_odd(messages: list[dict[str, str]]) -> None:
    check_kept(StructureSearchResults(), make_trajectory(messages))


@unhurried
@given(
    trajectories(),
    st.lists(st.sampled_from([TEXT, OTHER_TEXT, JSON, PAGE, "r0 High at noon.", ""]), max_size=24),
)
def test_only_responses_to_searches_change(row: Trajectory, texts: list[str]) -> None:
    left = iter(texts)
    messages = [
        message
        if message.role == "assistant" or message.ends_in_order
        else replace(message, content=message.content.replace("\nr", f"\n{next(left, TEXT)}\nr", 1))
        for message in row.messages
    ]
    row = replace(row, messages=tuple(messages))
    outcome = check_kept(StructureSearchResults(), row)
    assert outcome is not None
    changed = {edit.message for edit in outcome.edits}
    for index, (before, after) in enumerate(
        zip(row.messages, outcome.trajectory.messages, strict=True)
    ):
        assert (before == after) == (index not in changed)
    for edit in outcome.edits:
        assert edit.message is not None
        assert "search" in row.messages[edit.message - 1].content.lower()
        assert isinstance(json.loads(edit.after or ""), list)
