"""Settle the tags, the calls and the thinking of every assistant message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from trajcurate.curate.mend import prose, tags, thinking
from trajcurate.curate.mend.call import Unmendable
from trajcurate.curate.mend.call_reasons import MENDINGS, REFUSALS
from trajcurate.curate.mend.tags import Surroundings
from trajcurate.curate.remove_calls import remove_calls
from trajcurate.curate.step import Drop, Editor, Keep, Outcome, Quarantine, RejectingStep, TextEdit
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import (
    AssistantMessage,
    Loose,
    MalformedCall,
    Message,
    ToolCall,
    Trajectory,
)
from trajcurate.schemas.wire import parse_message, response_blocks

_TAG_REASONS: dict[str, str] = {
    "answer_nested": "an answer stands inside another; the first inner one with text is the answer",
    "answer_unclosed": "the answer lacks its closing tag",
    "call_and_answer": "one message calls and answers",
    "call_block_repeated": "a call block stands twice and has one response",
    "call_unclosed": "a complete call lacks its closing tag",
    "call_unopened": "a complete call lacks its opening tag",
    "call_untagged": "a complete call lacks its tags",
    "response_invented": "the model wrote a response to its own call and went on",
    "tag_case": "a tag is not in lower case",
    "tag_misplaced": "a call is closed before its code body",
    "tag_stray": "a tag opens or closes nothing",
    "text_after_answer": "text stands behind the answer",
    "text_after_call": "text stands behind the last call",
    "text_before_answer": "text stands between the thinking and the answer",
    "text_before_call": "text stands between the thinking and a call",
    "text_before_think": "text stands before the thinking",
    "think_closed_after_call": "the thinking is closed behind the call that ends it",
    "think_missing": "neither tag of the thinking is there",
    "think_nested": "think tags stand within the thinking",
    "think_unclosed": "the thinking is not closed",
    "think_unopened": "the thinking is not opened",
}


class RepairToolCalls(RejectingStep):
    """Bring every assistant message into the wire format, or do what `unrepairable` says.

    Form alone is judged: one JSON object with a name and an object of arguments. Sound messages
    stay byte for byte. Of a call every string and number is kept, in order; thinking, prose and
    the answer keep their words. A message that holds two answers or an empty one is left for
    `require_well_formed` to name. A mended call is one edit with the first reason found. Stands
    behind `normalize_messages`.

    Why: what a parser cannot read teaches a model to write it, and silent losses hide in repairs.
    Safety: a repair is made only where it is the one that fits; nothing cut off is completed.
    """

    reasons: ClassVar[dict[str, str]] = {
        **MENDINGS,
        **REFUSALS,
        **_TAG_REASONS,
        "call_missing": "the message neither calls nor answers",
        "message_empty": "the message is empty",
        "no_turns_left": "no turn with a call is left",
    }
    finding_reasons: ClassVar[dict[str, str]] = {
        **MENDINGS,
        **REFUSALS,
        **_TAG_REASONS,
        "call_missing": "the message neither calls nor answers",
        "message_empty": "the message is empty",
        "text_without_call": "text stands behind the thinking, and no call or answer",
    }
    may_change_turns: ClassVar[bool] = True

    level: Literal["off", "safe"] = Field(
        "safe", description="`safe` makes the repairs that leave no choice, `off` makes none."
    )
    unrepairable: Literal["drop_turn", "quarantine", "keep"] = Field(
        "drop_turn",
        description="A message that stays malformed: remove it with what answers it (of several "
        "paired calls only the malformed ones), set the row aside, or leave it with a finding.",
    )

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Settle the messages that are not sound, first to last."""
        suspects = [
            index
            for index, message in enumerate(trajectory.messages)
            if isinstance(message, AssistantMessage) and (message.defects or _holds_calls(message))
        ]
        return self._settle(trajectory, suspects, tools) if suspects else Keep(trajectory)

    def _settle(self, trajectory: Trajectory, suspects: list[int], tools: ToolSet) -> Outcome:
        editor = Editor(trajectory)
        schemas = _schemas(tools)
        had_calls = any(_calls(trajectory.messages))
        removed: list[str] = []
        for suspect in suspects:
            index = suspect - (len(trajectory.messages) - len(editor.messages))
            refusal = self._settle_message(editor, index, schemas)
            if refusal is None:
                continue
            if self.unrepairable == "quarantine":
                return Quarantine(refusal.reason, refusal.where, findings=tuple(editor.findings))
            had_calls = had_calls or _count_responses(editor.messages, index) > 0
            removed.append(refusal.reason)
            editor.remove_turn(index, refusal.reason)
        has_turns = any(isinstance(message, AssistantMessage) for message in editor.messages)
        if not has_turns or (had_calls and not any(_calls(editor.messages))):
            detail, findings = {"removed": removed}, tuple(editor.findings)
            return Drop("no_turns_left", detail=detail, findings=findings)
        return editor.done()

    def _settle_message(self, editor: Editor, index: int, schemas: _Schemas) -> _Problem | None:
        """Repair one message, or return why its turn cannot stay."""
        message = editor.messages[index]
        assert isinstance(message, AssistantMessage)
        around = _look_around(editor.messages, index, schemas)
        batches: list[list[TextEdit]] = []
        if self.level == "safe":
            mended, batches = repair_message(message, around)
        else:
            mended = message
        turn = editor.turn_of(index) or 0
        if not _unsettled(mended):
            _commit(editor, index, batches, turn)
            return None
        problems = list(_find_problems(message, turn, around))
        if self.unrepairable == "keep":
            for problem in problems:
                editor.find(problem.reason, turn, problem.where)
            return None
        malformed = _malformed_calls_alone(mended, around)
        if self.unrepairable == "drop_turn" and malformed:
            _commit(editor, index, batches, turn)
            reason = next(_find_problems(mended, turn, around)).reason
            remove_calls(editor, index, malformed, reason)
            return None
        return min(problems, key=_rank)


# --- one message ------------------------------------------------------------------------------

_Schemas = Mapping[str, Mapping[str, Any]]
Stage = Callable[[AssistantMessage, Surroundings], list[TextEdit]]

STAGES: tuple[Stage, ...] = (
    thinking.cut_invented_response,
    tags.lower_tags,
    thinking.mend_hidden_call,
    thinking.cut_invented_response,
    thinking.move_closer_before_calls,
    thinking.close_thinking,
    thinking.open_thinking,
    prose.move_text_before_think,
    thinking.flatten_thinking,
    tags.tag_bare_calls,
    tags.close_calls,
    tags.join_code,
    tags.mend_calls,
    tags.split_calls,
    tags.remove_empty_calls,
    prose.remove_fences,
    tags.remove_repeated_calls,
    prose.move_prose,
    prose.cut_text_behind,
    prose.close_answer,
)

# Reasons that `require_well_formed` names: nothing is chosen or removed here.
_LEFT_ALONE = frozenset({"two_answers", "answer_empty"})

# Beyond these a message is no slip of a model, and mending it would not take linear time.
_MAX_BLOCKS = 500
_MAX_EDITS = 200  # of one stage


def repair_message(
    message: AssistantMessage, around: Surroundings
) -> tuple[AssistantMessage, list[list[TextEdit]]]:
    """Apply the stages to one message; returns what it becomes, and the changes in batches.

    Each batch holds changes of the text that the batches before it made.
    """
    if len(message.blocks) > _MAX_BLOCKS:
        return message, []
    if not message.defects:
        return _run((tags.remove_repeated_calls,), message, around)
    settled, batches = _run((prose.settle_call_and_answer,), message, around)
    if any(defect.reason == "two_answers" for defect in settled.defects):
        return message, []
    mended, later = _run(STAGES, settled, around)
    return mended, batches + later


def _run(
    stages: tuple[Stage, ...], message: AssistantMessage, around: Surroundings
) -> tuple[AssistantMessage, list[list[TextEdit]]]:
    batches = []
    for stage in stages:
        edits = stage(message, around)
        if 0 < len(edits) <= _MAX_EDITS:
            batches.append(edits)
            message = parse_message(_apply(message.content, edits))
    return message, batches


def _apply(text: str, edits: list[TextEdit]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, after, _ in sorted(edits):
        pieces += text[at:start], after
        at = end
    return "".join([*pieces, text[at:]])


def _commit(editor: Editor, index: int, batches: list[list[TextEdit]], turn: int) -> None:
    for edits in batches:
        editor.replace_text(index, edits, turn=turn)


def _unsettled(message: AssistantMessage) -> bool:
    reasons = {defect.reason for defect in message.defects}
    if "answer_empty" in reasons:
        reasons.discard("answer_unclosed")
    return "two_answers" not in reasons and not reasons <= _LEFT_ALONE


def _malformed_calls_alone(message: AssistantMessage, around: Surroundings) -> list[int]:
    """The numbers of malformed calls that can go while others stay: all else is sound by now."""
    calls = message.calls
    numbers = [n for n, call in enumerate(calls) if isinstance(call, MalformedCall)]
    is_free = around.response_count in (0, len(calls))
    is_alone = len(numbers) == len(message.defects)
    return numbers if is_free and is_alone and len(numbers) < len(calls) else []


# --- what is wrong and where ------------------------------------------------------------------


class _Problem(NamedTuple):
    reason: str
    where: str


def _find_problems(
    message: AssistantMessage, turn: int, around: Surroundings
) -> Iterator[_Problem]:
    """Every defect with its place; that of a malformed call is why it cannot be mended."""
    text = message.content
    calls = {call.start: (number, call) for number, call in enumerate(message.calls)}
    for reason, start, _ in message.defects:
        number, call = calls.get(start, (0, None))
        if not isinstance(call, MalformedCall) or call.reason != reason:
            if reason not in _LEFT_ALONE:
                yield _Problem(reason, f"$.turns[{turn}]")
            continue
        at = call.at
        mended = tags.mend_block(text, call, around)
        if isinstance(mended, Unmendable):
            reason, at = mended.reason, call.body_start + mended.at
        yield _Problem(reason, f"$.turns[{turn}].calls[{number}] {_column(text, call, at)}")


def _column(text: str, call: MalformedCall, at: int) -> str:
    """The place in the text of the call, lines and columns counted from 1."""
    body = text[call.body_start : call.body_end]
    start = call.body_start + len(body) - len(body.lstrip())
    at = max(start, min(at, call.body_start + len(body.rstrip())))
    line = text.count("\n", start, at) + 1
    column = at - max(text.rfind("\n", start, at) + 1, start) + 1
    return f"column {column}" if line == 1 else f"line {line} column {column}"


def _rank(problem: _Problem) -> int:
    """The problem that says most comes first."""
    if problem.reason in ("message_empty", "think_unclosed", "think_missing"):
        return 0
    if problem.reason in REFUSALS or problem.reason in MENDINGS:
        return 1
    return 2 if problem.reason == "call_missing" else 3


# --- the messages round it --------------------------------------------------------------------


def _holds_calls(message: AssistantMessage) -> bool:
    """Whether a sound message may hold more than one call."""
    blocks = message.blocks
    return len(blocks) > 2 or (len(blocks) == 2 and not isinstance(blocks[0], Loose))


def _calls(messages: tuple[Message, ...] | list[Message]) -> Iterator[ToolCall | MalformedCall]:
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from message.calls


def _count_responses(messages: list[Message], index: int) -> int:
    reply = messages[index + 1] if index + 1 < len(messages) else None
    if reply is None or isinstance(reply, AssistantMessage) or reply.role == "system":
        return 0
    return len(response_blocks(reply)) - reply.ends_in_order


def _look_around(messages: list[Message], index: int, schemas: _Schemas) -> Surroundings:
    return Surroundings(
        is_last=index == len(messages) - 1,
        response_count=_count_responses(messages, index),
        schemas=schemas,
    )


def _schemas(tools: ToolSet) -> dict[str, dict[str, Any]]:
    return {
        name: spec.schema_
        for declared, spec in tools.tools.items()
        for name in (declared, *spec.aliases)
    }
