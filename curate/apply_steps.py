"""One row through all steps: kept with its edits, or rejected with its reason."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from trajcurate.curate.pipeline import Pipeline
from trajcurate.curate.step import Drop, Keep, RejectingStep
from trajcurate.schemas.audit import Edit, Finding, Rejection
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import Trajectory


@dataclass
class StepCount:
    """What a step did to the rows of one source."""

    rows_in: int = 0
    rows_kept: int = 0
    rows_edited: int = 0
    turns_in: int = 0
    turns_kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Kept:
    """A row that every step kept; edits and findings stand with the label of their step."""

    trajectory: Trajectory
    edits: list[tuple[str, Edit]]
    findings: list[tuple[str, Finding]]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that a step rejected, with what was found until then."""

    rejection: Rejection
    findings: list[tuple[str, Finding]]


def apply_steps(
    pipeline: Pipeline,
    tools: ToolSet,
    trajectory: Trajectory,
    counts: dict[str, StepCount],
) -> Kept | Rejected:
    """Apply the steps in order until one rejects the row; counts go to `counts` by step label."""
    edits: list[tuple[str, Edit]] = []
    findings: list[tuple[str, Finding]] = []
    for label, step in zip(pipeline.step_labels, pipeline.steps, strict=True):
        count = counts[label]
        count.rows_in += 1
        count.turns_in += trajectory.turn_count
        outcome = step.apply(trajectory, tools)
        for finding in outcome.findings:
            findings.append((label, finding))
            count.findings[finding.reason] += 1
        if isinstance(outcome, Keep):
            trajectory = outcome.trajectory
            if outcome.edits:
                count.rows_edited += 1
                count.edits.update(edit.reason for edit in outcome.edits)
                edits += [(label, edit) for edit in outcome.edits]
            rejection = _weight_zero(label, trajectory) if step.sets_weight else None
        elif isinstance(step, RejectingStep) and step.action == "flag":
            trajectory = _flag(trajectory, outcome.reason)
            finding = Finding(outcome.reason, None, outcome.where, outcome.detail)
            findings.append((label, finding))
            count.findings[outcome.reason] += 1
            rejection = None
        else:
            kind = "dropped" if isinstance(outcome, Drop) else "quarantined"
            rejection = Rejection(label, outcome.reason, kind, outcome.where, outcome.detail)
        if rejection is not None:
            count.rejected[rejection.reason] += 1
            return Rejected(rejection, findings)
        count.rows_kept += 1
        count.turns_kept += trajectory.turn_count
    if edits:
        trajectory = replace(trajectory, edit_count=trajectory.edit_count + len(edits))
    return Kept(trajectory, edits, findings)


def _weight_zero(label: str, trajectory: Trajectory) -> Rejection | None:
    if not math.isfinite(trajectory.weight) or trajectory.weight < 0:
        raise ValueError(f"step `{label}` gave the weight {trajectory.weight}")
    return Rejection(label, "weight_zero", "dropped") if trajectory.weight == 0 else None


def _flag(trajectory: Trajectory, reason: str) -> Trajectory:
    if reason in trajectory.flags:
        return trajectory
    return replace(trajectory, flags=(*trajectory.flags, reason))


def count_document(counts: dict[str, StepCount]) -> dict[str, Any]:
    """The counts as plain data, reasons sorted."""
    return {
        label: {
            "rows_in": count.rows_in,
            "rows_kept": count.rows_kept,
            "rows_edited": count.rows_edited,
            "turns_in": count.turns_in,
            "turns_kept": count.turns_kept,
            "rejected": dict(sorted(count.rejected.items())),
            "edits": dict(sorted(count.edits.items())),
            "findings": dict(sorted(count.findings.items())),
        }
        for label, count in counts.items()
    }
