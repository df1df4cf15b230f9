"""The columns of a run folder's tables: what a trainer, an auditor and SQL can rely on.

`data/` holds one line a kept row (or a copy of it), `index/` one line a turn and one a call, so
that questions about turns need not read the long texts.
"""

from __future__ import annotations

import pyarrow as pa

_TEXT = pa.string()
_MESSAGE = pa.struct([pa.field("role", _TEXT), pa.field("content", _TEXT)])


def _column(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return pa.field(name, kind, metadata={"description": meaning})


DATA_SCHEMA = pa.schema(
    [
        _column(
            "id", _TEXT, "hash of the row as read; `-2`, … for a second row of the same content"
        ),
        _column("question_id", _TEXT, "the source's own, else a hash of the normalised question"),
        _column("source", _TEXT, "the declared source, else the input format"),
        _column("question", _TEXT, "the question"),
        _column("answer", _TEXT, "the gold answer; null where there is none"),
        _column("answer_aliases", pa.list_(_TEXT), "other gold answers that count as right"),
        _column("messages", pa.list_(_MESSAGE), "system, user, then assistant and user in turn"),
        _column("tools", _TEXT, "JSON list of the function declarations"),
        _column("turn_count", pa.int32(), "assistant messages, the answer turn included"),
        _column("call_count", pa.int32(), "tool calls"),
        _column("search_count", pa.int32(), "calls of kind search"),
        _column("visit_count", pa.int32(), "calls of kind visit"),
        _column("browse_ratio", pa.float64(), "visit_count / call_count; null without calls"),
        _column("final_answer", _TEXT, "the answer in the last turn; null without one"),
        _column("termination", _TEXT, "answered, ordered (after an order to answer), unfinished"),
        _column("sample_index", pa.int64(), "which rollout of its question this is"),
        _column("verdict", _TEXT, "correct, wrong, undecided, judge_failed, no_gold or null"),
        _column("verdict_by", _TEXT, "who gave the verdict"),
        _column("verdict_score", pa.float64(), "the recorded score or reward"),
        _column("language", _TEXT, "guessed from the question: zh, ja, ko, ru, ar, en, …, und"),
        _column("token_count", pa.int64(), "tokens, where they were counted"),
        _column("edit_count", pa.int32(), "edits made, those of earlier runs included"),
        _column("flags", pa.list_(_TEXT), "reasons noted by steps that flag and do not reject"),
        _column("weight", pa.float64(), "how often the row counts in training"),
        _column("turn_weights", pa.list_(pa.float64()), "a weight a turn, or null"),
        _column("copy", pa.int32(), "which copy of the row this is, from 0"),
        _column("source_file", _TEXT, "the file below the source's root"),
        _column("source_row", pa.int64(), "the record's number in its file, from 0"),
        _column("meta", _TEXT, "JSON text of what the columns do not hold"),
    ]
)

_ROW_KEY = [
    _column("id", _TEXT, "the row"),
    _column("source", _TEXT, "its source"),
    _column("source_file", _TEXT, "its file below the source's root"),
    _column("source_row", pa.int64(), "its record number, from 0"),
]

TURNS_SCHEMA = pa.schema(
    [
        *_ROW_KEY,
        _column("turn", pa.int32(), "the turn, from 0"),
        _column("message", pa.int32(), "its assistant message among the row's messages, from 0"),
        _column("thought_length", pa.int32(), "characters of thinking"),
        _column("call_count", pa.int32(), "calls in the turn"),
        _column("has_answer", pa.bool_(), "whether the turn answers"),
        _column("is_well_formed", pa.bool_(), "whether its message is in the wire format"),
        _column("response_length", pa.int64(), "characters of what answers it"),
        _column("is_ordered_after", pa.bool_(), "whether an order to answer follows it"),
    ]
)

CALLS_SCHEMA = pa.schema(
    [
        *_ROW_KEY,
        _column("turn", pa.int32(), "the turn, from 0"),
        _column("call", pa.int32(), "the call within its turn, from 0"),
        _column("message", pa.int32(), "the message that holds it, from 0"),
        _column("start", pa.int32(), "where its block starts in the message, in characters"),
        _column("end", pa.int32(), "where its block ends"),
        _column("tool", _TEXT, "the tool's name as declared, else as written; null if unreadable"),
        _column("kind", _TEXT, "search, visit, compute or other"),
        _column("arguments", _TEXT, "JSON text of the call as written"),
        _column("response_message", pa.int32(), "the message that answers it; null without one"),
        _column("response_start", pa.int32(), "where the response text starts in that message"),
        _column("response_length", pa.int32(), "characters of the response; null if not paired"),
        _column("result_count", pa.int32(), "search results in the response; null if unstructured"),
        _column("failed", pa.bool_(), "whether the response is empty or says that the call failed"),
        _column("empty", pa.bool_(), "whether the response is blank or lists no result"),
        _column("repeated", pa.bool_(), "whether an earlier call of the row has the same text"),
    ]
)

PLAN_SCHEMA = pa.schema(
    [
        _column("id", _TEXT, "the row"),
        _column("copy", pa.int32(), "which copy, from 0"),
        _column("copies", pa.int32(), "how many copies the plan holds of the row"),
    ]
)
