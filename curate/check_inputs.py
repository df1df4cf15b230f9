"""`curate check`: judge rows against the wire format and change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajcurate.curate.adapt.adapted import UNFIT_REASONS, Unfit
from trajcurate.curate.adapt.detect import ADAPTERS
from trajcurate.curate.adapt.trajectory import is_copy, to_trajectory
from trajcurate.curate.collect_inputs import collect_inputs
from trajcurate.curate.errors import UnreadableFile
from trajcurate.curate.load_pipeline import load_pipeline
from trajcurate.curate.pipeline import Pipeline
from trajcurate.curate.read.raw_row import RawRow, UnreadableRow
from trajcurate.curate.read.rows import read_slice
from trajcurate.curate.step import Keep
from trajcurate.curate.steps.normalize_messages import NormalizeMessages
from trajcurate.curate.terminal import with_caret
from trajcurate.schemas.form import form_problems
from trajcurate.schemas.trajectory import (
    AssistantMessage,
    MalformedCall,
    Message,
    Origin,
    Trajectory,
)
from trajcurate.schemas.wire import pair_responses

_EXAMPLES = 3
_CONTROL_TOKENS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")


@dataclass(frozen=True, slots=True)
class Example:
    """One place: file, row, turn and column (counted from 0 and 1 as in the text)."""

    file: str
    row: int
    message: int | None
    turn: int | None
    column: int | None
    line: str
    caret: str


@dataclass
class Kind:
    """What was found, how often, and where first."""

    reason: str
    level: str
    count: int = 0
    rows: int = 0
    examples: list[Example] = field(default_factory=list)


@dataclass
class CheckResult:
    """What `check` found."""

    rows: int = 0
    sound_rows: int = 0
    kinds: dict[tuple[str, str], Kind] = field(default_factory=dict)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    ignored: list[tuple[str, str]] = field(default_factory=list)

    @property
    def errors(self) -> list[Kind]:
        """Kinds of error, the most frequent first."""
        return self._of("error")

    @property
    def notes(self) -> list[Kind]:
        """Kinds of note, the most frequent first."""
        return self._of("note")

    @property
    def exit_code(self) -> int:
        """1 with errors or unreadable files, else 0."""
        return 1 if self.errors or self.unreadable else 0

    def _of(self, level: str) -> list[Kind]:
        found = [kind for kind in self.kinds.values() if kind.level == level]
        return sorted(found, key=lambda kind: (-kind.count, kind.reason))


def check(inputs: Sequence[str | Path], pipeline: str = "audit") -> CheckResult:
    """Judge every row of the inputs.

    On raw input, what the adapter and `normalize_messages` settle for every row of that format is
    no error. On a run folder `data/` is judged as it stands.

    Args:
        inputs: files, folders, globs or URLs.
        pipeline: a recipe or YAML file whose tools and input options are used.

    Raises:
        CurateError: the inputs cannot be used.
    """
    loaded = load_pipeline(pipeline)
    collected = collect_inputs(loaded, [str(item) for item in inputs])
    result = CheckResult(
        unreadable=list(collected.unreadable),
        ignored=[(item.path, item.why) for item in collected.ignored],
    )
    for _, unit, formats in collected.units:
        for part in unit.slices:
            name = formats.get(part.file.path)
            try:
                for raw in read_slice(part, max_row_bytes=loaded.input.max_row_bytes):
                    _check_row(raw, part.file.source_file, name, loaded, result)
            except UnreadableFile as error:
                result.unreadable.append((error.path, error.why))
    return result


def _check_row(
    raw: RawRow | UnreadableRow,
    file: str,
    format_name: str | None,
    pipeline: Pipeline,
    result: CheckResult,
) -> None:
    if isinstance(raw, UnreadableRow):
        result.rows += 1
        found = [_Found("row_unreadable", "error", None, None, None, raw.why, "")]
    else:
        unfit = Unfit("messages_missing", "$", {})
        adapted = ADAPTERS[format_name](raw.record) if format_name else unfit
        if isinstance(adapted, Unfit):
            result.rows += 1
            text = UNFIT_REASONS.get(adapted.reason, "")
            found = [
                _Found(adapted.reason, "error", None, None, None, f"{adapted.where}: {text}", "")
            ]
        elif is_copy(adapted):
            return
        else:
            result.rows += 1
            origin = Origin(format_name or "", file, raw.source_row)
            trajectory = to_trajectory(adapted, origin)
            found = list(_judge(trajectory, pipeline, is_ours=adapted.carried is not None))
    if not any(item.level == "error" for item in found):
        result.sound_rows += 1
    _count(found, file, raw.source_row, result)


@dataclass(frozen=True, slots=True)
class _Found:
    reason: str
    level: str
    message: int | None
    turn: int | None
    column: int | None
    line: str
    caret: str


def _judge(trajectory: Trajectory, pipeline: Pipeline, *, is_ours: bool) -> Iterator[_Found]:
    messages = trajectory.messages
    if not is_ours:
        outcome = NormalizeMessages().apply(trajectory, pipeline.tools)
        if not isinstance(outcome, Keep):
            yield _Found(outcome.reason, "error", None, None, None, outcome.where, "")
            return
        messages = outcome.trajectory.messages
        for edit in outcome.edits:
            if edit.reason in _NOTED_EDITS:
                yield _Found(edit.reason, "note", edit.message, edit.turn, None, "", "")
        for finding in outcome.findings:
            yield _Found(finding.reason, "note", None, finding.turn, None, finding.where, "")
    for reason, index, start, _ in form_problems(messages, pipeline.tools):
        yield _at(reason, "error", messages, index, _place(messages, index, start))
    yield from _notes(messages, pipeline)


def _place(messages: Sequence[Message], index: int, start: int) -> int:
    """Where to put the caret: in a call that cannot be read, where reading stopped."""
    message = messages[index] if index < len(messages) else None
    if isinstance(message, AssistantMessage):
        for call in message.calls:
            if isinstance(call, MalformedCall) and call.start == start:
                return call.at
    return start


_NOTED_EDITS = frozenset(
    {"order_to_answer", "response_split", "assistant_split", "roles_swapped", "question_misplaced"}
)


def _notes(messages: Sequence[Message], pipeline: Pipeline) -> Iterator[_Found]:
    turns = [i for i, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    if turns:
        last = messages[turns[-1]]
        assert isinstance(last, AssistantMessage)
        if turns[-1] != len(messages) - 1 or last.answer is None:
            yield _Found("unfinished", "note", turns[-1], len(turns) - 1, None, "", "")
    for index, message in enumerate(messages):
        if message.role != "user" or index == 0:
            continue
        for token in _CONTROL_TOKENS:
            at = message.content.find(token)
            if at >= 0:
                yield _at("control_token_in_observation", "note", messages, index, at)
                break
    for index in turns:
        message = messages[index]
        assert isinstance(message, AssistantMessage)
        calls = message.calls
        reply = messages[index + 1] if index + 1 < len(messages) else None
        if (
            len(calls) > 1
            and reply is not None
            and not pair_responses(len(calls), reply).are_paired
        ):
            yield _at("responses_not_paired", "note", messages, index, calls[0].start)


def _at(reason: str, level: str, messages: Sequence[Message], index: int, at: int) -> _Found:
    text = messages[index].content if index < len(messages) else ""
    turn = sum(isinstance(message, AssistantMessage) for message in messages[: index + 1]) - 1
    line, caret = with_caret(text, at)
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return _Found(reason, level, index, turn if turn >= 0 else None, column, line, caret)


def _count(found: list[_Found], file: str, row: int, result: CheckResult) -> None:
    seen: set[tuple[str, str]] = set()
    for item in found:
        key = (item.level, item.reason)
        kind = result.kinds.setdefault(key, Kind(item.reason, item.level))
        kind.count += 1
        if key not in seen:
            seen.add(key)
            kind.rows += 1
        if len(kind.examples) < _EXAMPLES:
            kind.examples.append(
                Example(file, row, item.message, item.turn, item.column, item.line, item.caret)
            )


def as_document(result: CheckResult) -> dict[str, Any]:
    """The result as plain data for `--json`."""

    def kinds(found: list[Kind]) -> list[dict[str, Any]]:
        return [
            {
                "reason": kind.reason,
                "count": kind.count,
                "rows": kind.rows,
                "examples": [
                    {
                        "file": e.file,
                        "row": e.row,
                        "message": e.message,
                        "turn": e.turn,
                        "column": e.column,
                        "text": e.line,
                    }
                    for e in kind.examples
                ],
            }
            for kind in found
        ]

    return {
        "rows": result.rows,
        "sound_rows": result.sound_rows,
        "errors": kinds(result.errors),
        "notes": kinds(result.notes),
        "unreadable": [{"path": path, "why": why} for path, why in result.unreadable],
        "ignored": [{"path": path, "why": why} for path, why in result.ignored],
    }
