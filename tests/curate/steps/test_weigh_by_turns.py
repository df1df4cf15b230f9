from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from zoo import make_trajectory, pairs, search_visit

from trajcurate.curate.step import Keep
from trajcurate.curate.steps.weigh_by_turns import WeighByTurns


def weight_of(turns: int, step: WeighByTurns | None = None, *, system: bool = False) -> float:
    messages = pairs(*["x"] * (2 * turns - 1)) if turns else pairs()
    if system:
        messages = [{"role": "system", "content": "S"}, *messages]
    outcome = (step or WeighByTurns()).apply(make_trajectory(messages), search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.edits == ()
    return outcome.trajectory.weight


@pytest.mark.parametrize(
    ("turns", "weight"), [(0, 1), (1, 1), (49, 1), (50, 1), (51, 2), (100, 2), (101, 5), (160, 5)]
)
def test_a_bucket_holds_the_rows_up_to_its_limit(turns: int, weight: float) -> None:
    assert weight_of(turns) == weight


def test_the_system_message_is_no_turn() -> None:
    assert weight_of(50, system=True) == weight_of(50) == 1
    assert weight_of(51, system=True) == weight_of(51) == 2


def test_two_assistant_messages_in_a_row_are_two_turns_until_they_are_joined() -> None:
    step = WeighByTurns.model_validate({"buckets": [{"max_turns": 1, "weight": 1}, {"weight": 3}]})
    messages = [*pairs("x"), {"role": "assistant", "content": "y"}]
    outcome = step.apply(make_trajectory(messages), search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory.weight == 3


def test_weights_multiply() -> None:
    step = WeighByTurns.model_validate({"buckets": [{"weight": 0.25}]})
    outcome = step.apply(make_trajectory(pairs("x"), weight=3.0), search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory.weight == 0.75


def test_a_row_of_unchanged_weight_is_the_same_object() -> None:
    trajectory = make_trajectory(pairs("x"))
    outcome = WeighByTurns().apply(trajectory, search_visit())
    assert isinstance(outcome, Keep)
    assert outcome.trajectory is trajectory


def test_a_weight_of_zero_is_left_to_the_run() -> None:
    assert weight_of(1, WeighByTurns.model_validate({"buckets": [{"weight": 0}]})) == 0


@pytest.mark.parametrize(
    ("buckets", "place", "message"),
    [
        ([{"weight": -1}], ("buckets", 0, "weight"), "greater than or equal to 0"),
        ([{"weight": float("nan")}], ("buckets", 0, "weight"), "finite number"),
        ([{"weight": float("inf")}], ("buckets", 0, "weight"), "finite number"),
        ([{"weight": "NaN"}], ("buckets", 0, "weight"), "finite number"),
        ([{"max_turns": 5, "weight": 1}, {}], ("buckets", 1, "weight"), "required"),
        ([{"max_turns": 0, "weight": 1}, {"weight": 1}], ("buckets", 0, "max_turns"), "equal to 1"),
        ([{"weight": 1, "turns": 3}], ("buckets", 0, "turns"), "not permitted"),
        ([], ("buckets",), "there is no bucket"),
        ([{"max_turns": 50, "weight": 1}], ("buckets",), "more than 50 turns fall into no bucket"),
        ([{"weight": 1}, {"weight": 2}], ("buckets",), "only the last bucket"),
        (
            [{"max_turns": 9, "weight": 1}, {"max_turns": 9, "weight": 2}, {"weight": 3}],
            ("buckets",),
            "must ascend: 9 stands behind 9",
        ),
    ],
)
def test_wrong_buckets_are_refused_by_name(
    buckets: list[Any], place: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        WeighByTurns.model_validate({"buckets": buckets})
    (error,) = caught.value.errors()
    assert error["loc"] == place
    assert message in error["msg"]
