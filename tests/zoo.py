"""What tests of steps share: the samples of `samples/malformed/`, rows made of pairs, and undo."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from trajcurate.curate.find_step import find_step
from trajcurate.curate.step import Drop, Keep, Outcome, Quarantine, Step
from trajcurate.schemas.audit import Edit
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import Message, Origin, Trajectory
from trajcurate.schemas.wire import from_messages, to_messages

REPOSITORY = Path(__file__).parent.parent
SAMPLES = REPOSITORY / "samples" / "malformed"

Pairs = list[dict[str, str]]


@dataclass(frozen=True)
class Sample:
    """A broken input with what a step makes of it.

    `fields` are columns of the trajectory beside its messages (`question`, `answer`, …).
    """

    step: str
    options: dict[str, Any]
    messages: Pairs
    outcome: str
    reasons: list[str]
    result: Pairs | None
    fields: dict[str, Any]

    def apply(self) -> Outcome:
        """What the step makes of the messages."""
        return self.make_step().apply(self.trajectory(), search_visit())

    def make_step(self) -> Step:
        """The step with the sample's options."""
        return find_step(self.step).model_validate(self.options)

    def trajectory(self) -> Trajectory:
        """The row that holds the messages."""
        return make_trajectory(self.messages, **self.fields)

    def check(self) -> None:
        """Apply the step and compare outcome, reasons and result with what is written."""
        outcome = self.apply()
        kind = {Keep: "keep", Drop: "drop", Quarantine: "quarantine"}[type(outcome)]
        if isinstance(outcome, Keep):
            reasons = [edit.reason for edit in outcome.edits]
            result = to_messages(outcome.trajectory.messages)
        else:
            reasons, result = [outcome.reason], None
        assert (kind, reasons) == (self.outcome, self.reasons), (kind, reasons)
        assert result == self.result, result


def zoo(step: str) -> list[Any]:
    """The samples of one step as pytest parameters, named by reason and file."""
    params = []
    for path in sorted(SAMPLES.glob("*/*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["step"] == step:
            document["messages"] = [_joined(message) for message in document["messages"]]
            sample = Sample(**{"fields": {}, **document})
            params.append(pytest.param(sample, id=f"{path.parent.name}/{path.stem}"))
    return params


def _joined(message: dict[str, Any]) -> dict[str, str]:
    """A content may be a list of parts: JSON cannot hold two halves of a character in one text."""
    return {"role": message["role"], "content": "".join(message["content"])}


def reasons_with_sample(step: str) -> set[str]:
    """The reasons, as folder names, of which there is a sample of the step."""
    return {param.id.split("/")[0] for param in zoo(step)}


@cache
def search_visit() -> ToolSet:
    """The shipped tool set of two tools."""
    path = REPOSITORY / "pipelines" / "tools" / "search_visit.yaml"
    return ToolSet(tools=yaml.safe_load(path.read_text(encoding="utf-8")))


def make_trajectory(messages: Iterable[dict[str, str]], **fields: Any) -> Trajectory:
    """A row of the messages; `fields` are further columns."""
    columns = {"question": "Q", "answer": None, **fields}
    columns["answer_aliases"] = tuple(columns.get("answer_aliases", ()))
    return Trajectory(
        origin=Origin("test", "f.jsonl", 0),
        id="0" * 32,
        question_id="q",
        messages=from_messages(messages),
        **columns,
    )


def pairs(*turns: str) -> Pairs:
    """A question with assistant and user messages in turn behind it."""
    roles = ("assistant", "user")
    return [
        {"role": "user", "content": "Q"},
        *({"role": roles[i % 2], "content": content} for i, content in enumerate(turns)),
    ]


def undo(messages: Sequence[Message], edits: Sequence[Edit]) -> Pairs:
    """The messages as they were before the edits, which are undone last to first."""
    now = to_messages(messages)
    for edit in reversed(edits):
        if edit.column is not None:
            continue
        assert edit.message is not None
        if edit.start is not None:
            assert edit.length is not None
            assert edit.after is not None
            content = now[edit.message]["content"]
            end = edit.start + len(edit.after)
            assert content[edit.start : end] == edit.after
            content = content[: edit.start] + (edit.before or "") + content[end:]
            assert len(edit.before or "") == edit.length
            now[edit.message]["content"] = content
            continue
        before = json.loads(edit.before) if edit.before else None
        after = json.loads(edit.after) if edit.after else None
        if before is None:
            del now[edit.message]
        elif after is None:
            now.insert(edit.message, {key: before[key] for key in ("role", "content")})
        else:
            now[edit.message].update(before)
    return now


def check_kept(step: Step, given: Trajectory, tools: ToolSet | None = None) -> Keep | None:
    """Apply a step and check what holds for all: edits undo, a second time changes nothing.

    Returns None for a row that the step rejects.
    """
    tools = tools or search_visit()
    outcome = step.apply(given, tools)
    if not isinstance(outcome, Keep):
        return None
    kept = outcome.trajectory
    assert undo(kept.messages, outcome.edits) == to_messages(given.messages)
    if not outcome.edits and kept.messages == given.messages and kept == given:
        assert kept is given
    again = step.apply(kept, tools)
    assert isinstance(again, Keep)
    assert again.edits == ()
    assert again.trajectory is kept
    return outcome
