from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from shared_data import shared
from zoo import (
    REPOSITORY,
    Sample,
    check_kept,
    make_trajectory,
    pairs,
    reasons_with_sample,
    search_visit,
    zoo,
)

from trajcurate.curate.step import Keep
from trajcurate.curate.steps.set_system_prompt import SetSystemPrompt
from trajcurate.schemas.tools import ToolSet

RESEARCH_ASSISTANT = REPOSITORY / "pipelines" / "prompts" / "research_assistant.md"
SYSTEM = {"role": "system", "content": "S"}


def apply(messages: list[dict[str, str]], **options: Any) -> Keep:
    outcome = SetSystemPrompt(**options).apply(make_trajectory(messages), search_visit())
    assert isinstance(outcome, Keep)
    return outcome


def system_of(prompt: str, **options: Any) -> str:
    return apply(pairs(), prompt=prompt, **options).trajectory.messages[0].content


@pytest.mark.parametrize("sample", zoo("set_system_prompt"))
def test_a_sample_gets_its_prompt(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert reasons_with_sample("set_system_prompt") == set(SetSystemPrompt.reasons)


@pytest.mark.parametrize(
    ("prompt", "current_date", "system"),
    [
        ("a\nDate: {current_date}\nb", "2026-03-01", "a\nDate: 2026-03-01\nb"),
        ("a\nDate: {current_date}\nb", None, "a\nb"),
        ("a\nDate: {current_date}", None, "a\n"),
        ("Date: {current_date}\n\nb\n", None, "\nb\n"),
        ("{current_date} {current_date}", "2026-03-01", "2026-03-01 2026-03-01"),
        ("{other} {{}} {", None, "{other} {{}} {"),
    ],
)
def test_the_date_is_written_or_its_line_left_out(
    prompt: str, current_date: str | None, system: str
) -> None:
    assert system_of(prompt, current_date=current_date) == system


def test_tools_are_declared_one_a_line() -> None:
    tools = search_visit()
    assert system_of("<\n{tools}\n>") == "<\n" + "\n".join(tools.declarations) + "\n>"
    assert [json.loads(line)["function"]["name"] for line in tools.declarations] == [
        "search",
        "visit",
    ]


def test_a_placeholder_in_a_tools_description_is_text() -> None:
    tools = ToolSet.model_validate({"tools": {"clock": {"description": "says {current_date}"}}})
    step = SetSystemPrompt(prompt="{tools}", current_date="2026-03-01")
    outcome = step.apply(make_trajectory(pairs()), tools)
    assert isinstance(outcome, Keep)
    assert "says {current_date}" in outcome.trajectory.messages[0].content


@pytest.mark.parametrize(
    ("mode", "messages", "found"),
    [
        ("template", [{"role": "system", "content": "P"}, *pairs()], []),
        ("template", [SYSTEM, *pairs()], ["system_prompt_differs"]),
        ("template", pairs(), ["system_prompt_missing"]),
        ("template", [], ["system_prompt_missing"]),
        ("prompts/own.md", pairs(), ["system_prompt_missing"]),
        ("keep", [SYSTEM, *pairs()], []),
        ("keep", pairs(), []),
        ("none", [SYSTEM, *pairs()], ["system_prompt_present"]),
        ("none", pairs(), []),
    ],
)
def test_each_mode_finds_what_it_changes(
    mode: str, messages: list[dict[str, str]], found: list[str]
) -> None:
    outcome = apply(messages, mode=mode, prompt="P")
    assert [edit.reason for edit in outcome.edits] == found


def test_a_prompt_in_place_of_another_is_a_reencoding_of_the_whole_text() -> None:
    (edit,) = apply([SYSTEM, *pairs()], prompt="P").edits
    assert (edit.message, edit.turn, edit.start, edit.length) == (0, None, 0, 1)
    assert (edit.before, edit.after, edit.is_reencoding) == ("S", "P", True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "P", "current_date": "today"}, "`today` is no date; write it like 2026-03-01"),
        ({"prompt": "P", "current_date": "20260301"}, "`20260301` is no date"),
        ({"prompt": "P", "current_date": "2026-02-30"}, "`2026-02-30` is no date"),
        ({}, "mode `template` has no prompt text to write"),
        ({"mode": ""}, "at least 1 character"),
    ],
)
def test_wrong_options_are_refused_in_words(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SetSystemPrompt(**options)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(["system", "user", "assistant"]), max_size=4),
    st.sampled_from(["template", "keep", "none"]),
)
def test_any_row_gets_it_once_and_can_be_undone(roles: list[str], mode: str) -> None:
    if mode == "none" and roles[:2] == ["system", "system"]:
        return  # a second system message is for normalize_messages
    row = make_trajectory([{"role": role, "content": "x"} for role in roles])
    assert check_kept(SetSystemPrompt(mode=mode, prompt="P {tools}"), row) is not None


def test_the_shipped_prompt_is_that_of_the_published_examples() -> None:
    prompt = RESEARCH_ASSISTANT.read_text(encoding="utf-8")
    paths = sorted(shared("data", "drvenus_examples", "sft").glob("*.json"))
    assert len(paths) == 10
    for path in paths:
        record = json.loads(path.read_text(encoding="utf-8"))
        assert system_of(prompt, current_date="2026-03-01") == record["messages"][0]["content"]
