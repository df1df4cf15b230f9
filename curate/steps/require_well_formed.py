"""Reject trajectories that are not in the wire format."""

from __future__ import annotations

from itertools import islice
from typing import Any, ClassVar, Literal

from pydantic import Field

from trajcurate.curate.step import Drop, Keep, Outcome, Quarantine, RejectingStep
from trajcurate.schemas.form import Problem, form_problems
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import AssistantMessage, Trajectory


class RequireWellFormed(RejectingStep):
    """Reject a trajectory with anything in it that is not in the wire format.

    Judges the whole of it: roles and their order, each assistant message, each wrapper, and whether
    every call is of a declared tool and fits its schema. The first problem names the reason, up to
    20 stand in the detail.

    Why: what is kept is well formed; a trainer need not look again.
    Safety: changes nothing. A trajectory without a whole answer was understood and is dropped; one
        with any other problem is quarantined.
    """

    reasons: ClassVar[dict[str, str]] = {
        "question_missing": "the first message behind the system prompt is not the question",
        "system_misplaced": "a system message that is not the first message",
        "role_unknown": "a role other than system, user and assistant",
        "message_unexplained": "a user message behind another one that is no response",
        "assistant_missing": "no assistant message",
        "assistant_split": "two assistant messages in a row, the first without call or answer",
        "call_unanswered": "calls that no message answers, before the end",
        "response_untagged": "an observation without its `<tool_response>` tags",
        "response_tag_missing": "an observation with one of its two tags only",
        "response_spaced": "white space around the wrapper of an observation",
        "response_split": "an observation in more than one message",
        "response_invented": "an assistant message that goes on with a response of its own",
        "answer_missing": "the trajectory ends without an answer (`answer: required`)",
        "answer_empty": "an answer without text",
        "answer_unclosed": "an answer without its closing tag",
        "answer_before_end": "an answer that is not in the last message",
        "two_answers": "two different answers in one message",
        "call_and_answer": "a call and an answer in one message",
        "call_missing": "an assistant message without call or answer",
        "call_empty": "a call block without text",
        "call_not_json": "a call that is not strict JSON",
        "call_key_repeated": "a call with a key that occurs twice in one object",
        "call_name_missing": "a call without a name",
        "call_arguments_missing": "a call without arguments",
        "call_arguments_not_object": "a call whose arguments are not an object",
        "call_text_around": "text beside the JSON of a call",
        "call_unclosed": "a call without its closing tag",
        "call_unopened": "a call without its opening tag",
        "call_untagged": "a call without its tags",
        "message_empty": "an assistant message without text",
        "tag_case": "a tag in other than lower case",
        "tag_stray": "a tag that opens or closes nothing",
        "text_before_think": "text before the thinking",
        "text_before_call": "text between the thinking and a call",
        "text_after_call": "text behind the last call",
        "text_before_answer": "text between the thinking and the answer",
        "text_after_answer": "text behind the answer",
        "text_without_call": "text behind the thinking, and no call or answer",
        "think_missing": "no thinking",
        "think_unopened": "thinking without its opening tag",
        "think_unclosed": "thinking without its closing tag",
        "think_nested": "a think tag inside the thinking",
        "tool_undeclared": "a call of a tool that is not declared",
        "tool_name_alias": "a call of a tool by an alias or with other capitals",
        "argument_missing": "a required argument is absent, null or empty",
        "argument_type": "an argument does not fit its tool's schema",
    }

    answer: Literal["required", "optional"] = Field(
        "required",
        description="Whether a trajectory must end in an answer, or may be unfinished.",
    )

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Judge one trajectory."""
        problems = list(islice(form_problems(trajectory.messages, tools), _LISTED_COUNT))
        if problems:
            named = _naming(problems)
            detail = {"problems": [_describe(problem) for problem in problems]}
            rejection = Drop if named.reason in _UNDERSTOOD else Quarantine
            return rejection(named.reason, _place(named), detail)
        if self.answer == "required" and not _ends_in_answer(trajectory):
            return Drop("answer_missing", f"$.messages[{len(trajectory.messages) - 1}]")
        return Keep(trajectory)


_LISTED_COUNT = 20
_UNDERSTOOD = frozenset({"answer_empty", "assistant_missing"})


def _ends_in_answer(trajectory: Trajectory) -> bool:
    last = trajectory.messages[-1]
    return isinstance(last, AssistantMessage) and bool(last.answer)


def _naming(problems: list[Problem]) -> Problem:
    """The first problem; but two answers say more than the text and tags that they consist of."""
    first = problems[0]
    return next(
        (
            p
            for p in problems
            if (p.reason, p.message_index) == ("two_answers", first.message_index)
        ),
        first,
    )


def _place(problem: Problem) -> str:
    return f"$.messages[{problem.message_index}]"


def _describe(problem: Problem) -> dict[str, Any]:
    return {
        "reason": problem.reason,
        "where": _place(problem),
        "start": problem.start,
        "end": problem.end,
    }
