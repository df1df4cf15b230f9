from __future__ import annotations

import json
from typing import Any

import pytest
from shared_data import shared
from zoo import Pairs, Sample, make_trajectory, pairs, reasons_with_sample, search_visit, zoo

from trajcurate.curate.step import Drop, Keep, Outcome, Quarantine
from trajcurate.curate.steps.require_well_formed import RequireWellFormed

CALL = (
    "<think>\nx\n</think>\n"
    '<tool_call>\n{"name": "search", "arguments": {"query": ["a"]}}\n</tool_call>'
)
ANSWER = "<think>\nx\n</think>\n<answer>A</answer>"
REPLY = "<tool_response>\nx\n</tool_response>"


def apply(messages: Pairs, **options: Any) -> Outcome:
    return RequireWellFormed(**options).apply(make_trajectory(messages), search_visit())


@pytest.mark.parametrize("sample", zoo("require_well_formed"))
def test_a_sample_is_rejected_for_its_reason(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert reasons_with_sample("require_well_formed") == set(RequireWellFormed.reasons)


@pytest.mark.parametrize("answer", ["required", "optional"])
def test_a_whole_trajectory_is_the_same_object(answer: str) -> None:
    trajectory = make_trajectory(pairs(CALL, REPLY, ANSWER))
    step = RequireWellFormed.model_validate({"answer": answer})
    outcome = step.apply(trajectory, search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is trajectory


@pytest.mark.parametrize("messages", [pairs(CALL), pairs(CALL, REPLY), pairs(CALL, REPLY, CALL)])
def test_an_unfinished_trajectory_passes_only_where_an_answer_is_optional(messages: Pairs) -> None:
    assert isinstance(apply(messages, answer="optional"), Keep)
    outcome = apply(messages, answer="required")
    assert isinstance(outcome, Drop)
    assert (outcome.reason, outcome.where) == (
        "answer_missing",
        f"$.messages[{len(messages) - 1}]",
    )


@pytest.mark.parametrize(
    ("messages", "kind", "reason"),
    [
        ([], Quarantine, "question_missing"),
        (pairs(), Drop, "assistant_missing"),
        (pairs("<think>\nx\n</think>\n<answer> </answer>"), Drop, "answer_empty"),
        (pairs(ANSWER + "<answer>B</answer>"), Quarantine, "two_answers"),
        (pairs(CALL, "x", ANSWER + "<answer>B</answer>"), Quarantine, "response_untagged"),
    ],
)
@pytest.mark.parametrize("answer", ["required", "optional"])
def test_what_was_understood_is_dropped_and_the_rest_quarantined(
    messages: Pairs, kind: type[Outcome], reason: str, answer: str
) -> None:
    outcome = apply(messages, answer=answer)
    assert isinstance(outcome, kind)
    assert outcome.reason == reason


def test_the_first_problem_is_the_reason_and_the_others_stand_in_the_detail() -> None:
    outcome = apply(pairs(CALL, "x", CALL + " y"))
    assert outcome == Quarantine(
        "response_untagged",
        "$.messages[2]",
        {
            "problems": [
                {"reason": "response_untagged", "where": "$.messages[2]", "start": 0, "end": 1},
                {
                    "reason": "text_after_call",
                    "where": "$.messages[3]",
                    "start": len(CALL),
                    "end": len(CALL) + 2,
                },
            ]
        },
    )


def test_at_most_20_problems_are_listed() -> None:
    outcome = apply(pairs(*["x"] * 60))
    assert isinstance(outcome, Quarantine)
    assert len(outcome.detail["problems"]) == 20


def test_real_trajectories_are_well_formed_but_for_two_nested_answers() -> None:
    paths = sorted(shared("data", "drvenus_examples").glob("*/*.json"))
    malformed = [
        f"{path.parent.name}/{path.stem}"
        for path in paths
        if not isinstance(apply(json.loads(path.read_text(encoding="utf-8"))["messages"]), Keep)
    ]
    assert len(paths) == 20
    assert malformed == ["sft/0001", "sft/0008"]
