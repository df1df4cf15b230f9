"""From rows to the tables of a run folder, column by column.

Each table is gathered as flat lists and becomes Arrow when it is large enough: that is several
times faster than a list of dicts and lets no engine infer a type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from trajcurate.curate.apply_steps import Kept, Rejected
from trajcurate.curate.identity import checksum, storable_json
from trajcurate.curate.language import guess_language
from trajcurate.schemas.audit import EDITS_SCHEMA, FINDINGS_SCHEMA, REJECTED_SCHEMA, Edit, Finding
from trajcurate.schemas.shard import CALLS_SCHEMA, DATA_SCHEMA, TURNS_SCHEMA
from trajcurate.schemas.tools import ToolSet, ToolSpec
from trajcurate.schemas.trajectory import MalformedCall, Message, ToolCall, Trajectory, Turn
from trajcurate.schemas.wire import Responses, pair_responses


class TableBuilder:
    """Gathers the rows of one table and turns them into columns."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.rows: list[tuple[Any, ...]] = []
        self.characters = 0  # of the long texts, counted by who adds them

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, *values: Any) -> None:
        """Add a row; values in the order of the schema."""
        self.rows.append(values)

    def take(self) -> pa.RecordBatch:
        """The rows gathered since the last call, as Arrow."""
        columns = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.schema)
        arrays = [
            _messages_array(column) if field.name == "messages" else pa.array(column, field.type)
            for column, field in zip(columns, self.schema, strict=True)
        ]
        self.rows, self.characters = [], 0
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _messages_array(rows: Sequence[tuple[list[str], list[str]]]) -> pa.Array:
    offsets, roles, contents = [0], [], []
    for row_roles, row_contents in rows:
        roles += row_roles
        contents += row_contents
        offsets.append(len(roles))
    texts = [pa.array(roles, pa.string()), pa.array(contents, pa.string())]
    fields = list(DATA_SCHEMA.field("messages").type.value_type)
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.StructArray.from_arrays(texts, fields=fields)
    )


class RunTables:
    """The tables that one unit of input fills."""

    def __init__(self, edits: str, rejected: str) -> None:
        self.keep_all_texts = edits == "full"
        self.keep_rejected_rows = rejected == "whole"
        self.data = TableBuilder(DATA_SCHEMA)
        self.turns = TableBuilder(TURNS_SCHEMA)
        self.calls = TableBuilder(CALLS_SCHEMA)
        self.edits = TableBuilder(EDITS_SCHEMA)
        self.findings = TableBuilder(FINDINGS_SCHEMA)
        self.rejected = TableBuilder(REJECTED_SCHEMA)

    def add_kept(self, row: Kept, tools: ToolSet, copy: int = 0) -> None:
        """A kept row: its line in data/, its turns and calls, its edits and findings."""
        trajectory = row.trajectory
        counts = self._add_index(trajectory, tools)
        self._add_data(trajectory, tools, counts, copy)
        key = (trajectory.id, *trajectory.origin)
        for seq, (step, edit) in enumerate(row.edits):
            self._add_edit(key, seq, step, edit)
        self._add_findings(key, row.findings)

    def add_rejected(
        self,
        row: Rejected,
        key: tuple[str, str, str, int],
        record: str | None,
        record_checksum: str,
    ) -> None:
        """A rejected row, with the record as it was read."""
        rejection = row.rejection
        self.rejected.characters += len(record or "")
        self.rejected.add(
            *key,
            record if self.keep_rejected_rows else None,
            record_checksum,
            rejection.step,
            rejection.reason,
            rejection.where,
            rejection.outcome,
            storable_json(rejection.detail),
        )
        self._add_findings(key, row.findings)

    def _add_findings(
        self, key: tuple[str, str, str, int], findings: list[tuple[str, Finding]]
    ) -> None:
        for step, finding in findings:
            self.findings.add(
                *key,
                finding.turn,
                step,
                finding.reason,
                finding.where,
                storable_json(finding.detail),
            )

    def _add_edit(self, key: tuple[str, str, str, int], seq: int, step: str, edit: Edit) -> None:
        keep_text = self.keep_all_texts or not edit.is_reencoding
        before = edit.before
        if keep_text:
            self.edits.characters += len(before or "") + len(edit.after or "")
        self.edits.add(
            *key,
            seq,
            step,
            edit.reason,
            edit.safe,
            edit.column,
            edit.message,
            edit.turn,
            edit.start,
            edit.length,
            _storable(before) if keep_text else None,
            _storable(edit.after) if keep_text else None,
            None if before is None else checksum(before),
        )

    def _add_data(
        self, row: Trajectory, tools: ToolSet, counts: Mapping[str, int], copy: int
    ) -> None:
        messages = row.messages
        call_count = counts["calls"]
        self.data.add(
            row.id,
            row.question_id,
            row.origin.source,
            row.question,
            row.answer,
            list(row.answer_aliases),
            ([m.role for m in messages], [m.content for m in messages]),
            tools.declarations_json,
            row.turn_count,
            call_count,
            counts["search"],
            counts["visit"],
            counts["visit"] / call_count if call_count else None,
            row.final_answer,
            row.termination,
            row.sample_index,
            row.verdict,
            row.verdict_by,
            row.verdict_score,
            guess_language(row.question or ""),
            row.token_count,
            row.edit_count,
            list(row.flags),
            row.weight,
            None if row.turn_weights is None else list(row.turn_weights),
            copy,
            row.origin.source_file,
            row.origin.source_row,
            _meta_with_orders(row),
        )

    def _add_index(self, row: Trajectory, tools: ToolSet) -> dict[str, int]:
        counts = {"calls": 0, "search": 0, "visit": 0}
        seen: set[str] = set()
        for turn in row.turns:
            calls = turn.assistant.calls
            reply = turn.replies[0] if turn.replies else None
            self.turns.add(
                row.id,
                *row.origin,
                turn.index,
                turn.message_index,
                turn.assistant.thought_end - turn.assistant.thought_start,
                len(calls),
                turn.assistant.answer is not None,
                turn.assistant.is_well_formed,
                sum(len(message.content) for message in turn.replies),
                bool(turn.replies) and turn.replies[-1].ends_in_order,
            )
            if calls:
                self._add_calls(row, turn, calls, reply, tools, seen, counts)
        return counts

    def _add_calls(
        self,
        row: Trajectory,
        turn: Turn,
        calls: list[ToolCall | MalformedCall],
        reply: Message | None,
        tools: ToolSet,
        seen: set[str],
        counts: dict[str, int],
    ) -> None:
        content = turn.assistant.content
        responses = pair_responses(len(calls), reply)
        for number, call in enumerate(calls):
            counts["calls"] += 1
            name: str | None = None
            kind, spec = "other", None
            if type(call) is ToolCall:
                name = tools.resolve(call.name)
                if name is None:
                    name = call.name
                else:
                    spec = tools.tools[name]
                    kind = spec.kind
                arguments = content[call.json_start : call.json_end]
            else:
                assert isinstance(call, MalformedCall)
                arguments = content[call.body_start : call.body_end]
            if kind in counts:
                counts[kind] += 1
            self.calls.add(
                row.id,
                *row.origin,
                turn.index,
                number,
                turn.message_index,
                call.start,
                call.end,
                name,
                kind,
                arguments,
                *_response_values(number, spec, responses, turn, reply),
                arguments in seen,
            )
            seen.add(arguments)


def _response_values(
    number: int,
    spec: ToolSpec | None,
    responses: Responses,
    turn: Turn,
    reply: Message | None,
) -> tuple[int | None, int | None, int | None, int | None, bool | None, bool | None]:
    """response_message, response_start, response_length, result_count, failed, empty."""
    if reply is None or not responses.blocks:
        return None, None, None, None, None, None
    message = turn.message_index + 1
    if not responses.are_paired:
        return message, None, None, None, None, None
    block = responses.blocks[number]
    text = reply.content[block.text_start : block.text_end]
    if text.startswith('[{"query": '):
        result_count = text.count('{"title": ')
        is_empty = failed = result_count == 0
    else:
        result_count, is_empty = None, not text or text.isspace()
        failed = is_empty or (spec is not None and spec.has_failed(text))
    return message, block.text_start, len(text), result_count, failed, is_empty


def _meta_with_orders(row: Trajectory) -> str | None:
    """The meta column: what the source held, and which observations end in an order to answer."""
    orders = [i for i, message in enumerate(row.messages) if message.ends_in_order]
    if not orders:
        return row.meta
    text = f'"orders":{orders}'.replace(" ", "")
    return "{" + text + "}" if row.meta is None else row.meta[:-1] + "," + text + "}"


def _storable(text: str | None) -> str | None:
    """The text with lone surrogate halves, which no table can hold, spelled as escapes."""
    if text is None or text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
