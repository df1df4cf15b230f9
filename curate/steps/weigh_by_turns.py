"""Weigh rows by how many turns they take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from trajcurate.curate.step import Keep, Outcome, Step
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import Trajectory


class TurnBucket(BaseModel):
    """Rows of up to `max_turns` turns, and what they weigh."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_turns: int | None = Field(
        None, ge=1, description="The most turns of a row in this bucket; the last one has no limit."
    )
    weight: float = Field(
        ge=0, allow_inf_nan=False, description="What a row of this bucket weighs, 0 or more."
    )


class WeighByTurns(Step):
    """Multiply a row's weight by that of the bucket its turns fall into.

    Turns are assistant messages, the answer turn included. A bucket holds the rows up to its
    `max_turns` that no bucket before it holds; the last bucket holds the rest.

    Why: long trajectories are rare and hard; without a weight the short ones drown them.
    Safety: changes no text. A weight of 0 takes rows out of the data, as `weight_zero`.
    """

    sets_weight: ClassVar[bool] = True

    buckets: tuple[TurnBucket, ...] = Field(
        (
            TurnBucket(max_turns=50, weight=1),
            TurnBucket(max_turns=100, weight=2),
            TurnBucket(weight=5),
        ),
        description="Weights by turns: `max_turns` ascending, the last bucket without.",
    )

    @field_validator("buckets")
    @classmethod
    def _check_limits(cls, buckets: tuple[TurnBucket, ...]) -> tuple[TurnBucket, ...]:
        if not buckets:  # a bound on the field would be reported beside every wrong bucket, too
            raise ValueError("there is no bucket")
        limits = [bucket.max_turns for bucket in buckets]
        if limits[-1] is not None:
            raise ValueError(
                f"rows of more than {limits[-1]} turns fall into no bucket; "
                "end with one that has no `max_turns`"
            )
        bounded = [limit for limit in limits[:-1] if limit is not None]
        if len(bounded) < len(limits) - 1:
            raise ValueError("only the last bucket goes without `max_turns`")
        for limit, following in pairwise(bounded):
            if following <= limit:
                raise ValueError(f"`max_turns` must ascend: {following} stands behind {limit}")
        return buckets

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Weigh one row."""
        weight = trajectory.weight * _weight_of(self.buckets, trajectory.turn_count)
        if weight == trajectory.weight:
            return Keep(trajectory)
        return Keep(replace(trajectory, weight=weight))


def _weight_of(buckets: Iterable[TurnBucket], turn_count: int) -> float:
    return next(
        bucket.weight
        for bucket in buckets
        if bucket.max_turns is None or turn_count <= bucket.max_turns
    )
