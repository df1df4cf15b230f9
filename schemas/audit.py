"""What happened to a row: edits of kept rows, findings, and why a row was rejected.

An edit replaces a span of one text by another. Edits of a row are in the order in which they were
made; undone last to first they give back the row as it was read, as long as `before` is stored
(`edits: full`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa


class Edit(NamedTuple):
    """One change.

    With `start` set, the text ``[start, start + length)`` of the message `message` (or of the
    column `column`, when that is set) became `after`; the span of the new text starts at the same
    place. With `start` None the message itself changed: `before` and `after` are JSON objects of
    the fields that changed, null where there was or is no message (removed, inserted).

    Attributes:
        reason: what was found.
        safe: False for a change that rests on a guess.
        message: the message's index when the edit was made.
        turn: the turn's index then; None before the first turn.
        is_reencoding: the same content in another form: its text is stored with `edits: full` only.
    """

    reason: str
    message: int | None = None
    turn: int | None = None
    start: int | None = None
    length: int | None = None
    before: str | None = None
    after: str | None = None
    column: str | None = None
    safe: bool = True
    is_reencoding: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Something noticed and not changed."""

    reason: str
    turn: int | None = None
    where: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a row is not among the data. `outcome` is `dropped` (understood, not wanted) or
    `quarantined` (not understood or not repairable).
    """

    step: str
    reason: str
    outcome: str
    where: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


_KEY = [
    pa.field("id", pa.string()),
    pa.field("source", pa.string()),
    pa.field("source_file", pa.string()),
    pa.field("source_row", pa.int64()),
]

REJECTED_SCHEMA = pa.schema(
    [
        *_KEY,
        pa.field("row", pa.large_string()),
        pa.field("row_checksum", pa.string()),
        pa.field("step", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("where", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("detail", pa.string()),
    ]
)

EDITS_SCHEMA = pa.schema(
    [
        *_KEY,
        pa.field("seq", pa.int32()),
        pa.field("step", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("safe", pa.bool_()),
        pa.field("column", pa.string()),
        pa.field("message", pa.int32()),
        pa.field("turn", pa.int32()),
        pa.field("start", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("before", pa.large_string()),
        pa.field("after", pa.large_string()),
        pa.field("before_checksum", pa.string()),
    ]
)

FINDINGS_SCHEMA = pa.schema(
    [
        *_KEY,
        pa.field("turn", pa.int32()),
        pa.field("step", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("where", pa.string()),
        pa.field("detail", pa.string()),
    ]
)
