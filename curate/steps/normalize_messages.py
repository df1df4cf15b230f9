"""Settle roles, order and borders of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from trajcurate.curate.settle.draft import Draft
from trajcurate.curate.settle.observations import (
    Orders,
    reads_as_call_turn,
    settle_observations,
)
from trajcurate.curate.settle.opening import (
    differs_from_question,
    opening_length,
    question_index,
    settle_question,
    settle_system,
)
from trajcurate.curate.step import Keep, Outcome, Quarantine, RejectingStep, TextEdit
from trajcurate.schemas.audit import Finding
from trajcurate.schemas.form import response_shape
from trajcurate.schemas.orders import ends_in_known_order
from trajcurate.schemas.tools import ToolSet
from trajcurate.schemas.trajectory import AssistantMessage, Message, Trajectory
from trajcurate.schemas.wire import is_wrapped


class NormalizeMessages(RejectingStep):
    """Make messages system, user (the question), then assistant and user in turn.

    Settled in this order: role names, roles that are swapped, the system message, the question,
    assistant messages cut in two, and what answers an assistant message: every response in its
    `<tool_response>` wrapper, several of them in one message, an order to answer as its last block.
    A message that is neither the question nor a known response nor an order is not understood, and
    its row is quarantined.

    Why: logs name, cut and order messages in many ways; a trainer and a template know one.
    Safety: no text is lost or changed inside a message; white space goes only outside a wrapper.
        A response without tags is known by its role, its head, or a tool that may say anything.
    """

    reasons: ClassVar[dict[str, str]] = {
        "role_tool": "an observation under a role of its own, such as `tool` or `observation`",
        "role_alias": "a role under another name, such as `human` or `gpt`",
        "role_unknown": "a role of which nothing is known",
        "roles_swapped": "a response under `assistant`, or a turn with a call under `user`",
        "system_misplaced": "the system message was not the first",
        "system_split": "more than one system message before the first turn",
        "question_absent": "the question stood in its own field only, not among the messages",
        "question_missing": "the row holds no question",
        "message_unexplained": "a message that is no question, known response or order to answer",
        "assistant_split": "two assistant messages in a row, the first without call or answer",
        "response_untagged": "an observation without its `<tool_response>` tags",
        "response_tag_missing": "an observation with one of its two tags only",
        "response_spaced": "white space around the wrapper of an observation",
        "response_split": "an observation in more than one message",
        "tag_case": "a tag in other than lower case",
        "order_to_answer": "the agent loop's order to answer now",
    }
    finding_reasons: ClassVar[dict[str, str]] = {
        "question_differs": "the question among the messages is another than the row's",
        "order_to_answer": "an order to answer that was left as it is (`orders: keep`)",
    }
    may_change_turns: ClassVar[bool] = True

    orders: Orders = Field(
        "wrap",
        description="An order to answer: write it as a `<tool_response>` block of its own, leave "
        "it and note it, or quarantine the row.",
    )

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Settle the messages, or quarantine a row with one that is not understood."""
        messages = trajectory.messages
        if _is_settled(messages):
            finding = _find_other_question(trajectory, messages)
            return Keep(trajectory, (), (finding,)) if finding else Keep(trajectory)
        draft = Draft(trajectory)
        rejection = _settle_roles(draft)
        if rejection is not None:
            return rejection
        _unswap_roles(draft)
        if opening_length(draft.messages) == len(messages):
            return Keep(
                trajectory
            )  # no turn to settle anything by: `require_well_formed` rejects it
        rejection = self._settle(draft, tools)
        if rejection is not None:
            return rejection
        finding = _find_other_question(trajectory, draft.messages)
        if finding:
            draft.findings.append(finding)
        return draft.done()

    def _settle(self, draft: Draft, tools: ToolSet) -> Quarantine | None:
        rejection = settle_system(draft)
        if rejection is None:
            rejection = settle_question(draft)
        if rejection is not None:
            return rejection
        _join_assistants(draft)
        return settle_observations(draft, tools, self.orders)


def _is_settled(messages: tuple[Message, ...]) -> bool:
    """Whether the messages plainly need nothing; False asks for a closer look."""
    first = question_index(messages)
    if len(messages) < first + 2 or messages[first].role != "user":
        return False
    if response_shape(messages[first].content).is_tagged:
        return False
    is_turn = True
    for message in messages[first + 1 :]:
        if isinstance(message, AssistantMessage):
            if not is_turn or (message.defects and _reads_as_response(message)):
                return False
        elif is_turn or message.role != "user" or not _is_plain_response(message):
            return False
        is_turn = not is_turn
    return True


def _is_plain_response(message: Message) -> bool:
    content = message.content
    return is_wrapped(content) and not message.ends_in_order and not ends_in_known_order(content)


def _find_other_question(trajectory: Trajectory, messages: Sequence[Message]) -> Finding | None:
    index = question_index(messages)
    if index == len(messages) or not differs_from_question(trajectory, messages[index]):
        return None
    return Finding("question_differs", None, f"$.messages[{index}]")


# --- roles --------------------------------------------------------------------------------------

_KNOWN_ROLES = ("system", "user", "assistant")
_TOOL_ROLES = frozenset(
    ("tool", "observation", "function", "ipython", "environment", "tool_response", "tool_result")
)
_ROLE_NAMES = {
    "human": "user",
    "gpt": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "developer": "system",
} | {role: role for role in _KNOWN_ROLES}


def _settle_roles(draft: Draft) -> Quarantine | None:
    for index, message in enumerate(draft.messages):
        if message.role in _KNOWN_ROLES:
            continue
        role = message.role.strip().lower()
        if role in _TOOL_ROLES:
            draft.set_role(index, "user", "role_tool", is_from_tool=True)
        elif role in _ROLE_NAMES:
            draft.set_role(index, _ROLE_NAMES[role], "role_alias")
        else:
            return draft.quarantine("role_unknown", index)
    return None


def _unswap_roles(draft: Draft) -> None:
    """Give responses and turns with a call their roles, where their form says what they are."""
    first = question_index(draft.messages)
    for index, message in enumerate(draft.messages):
        if isinstance(message, AssistantMessage):
            if message.defects and _reads_as_response(message):
                draft.set_role(index, "user", "roles_swapped")
        elif index > first and message.role == "user" and _is_swapped_turn(draft, index):
            draft.set_role(index, "assistant", "roles_swapped")


def _reads_as_response(message: AssistantMessage) -> bool:
    if message.calls or message.answer is not None:
        return False
    shape = response_shape(message.content)
    return shape.has_opening and shape.has_closing


def _is_swapped_turn(draft: Draft, index: int) -> bool:
    """Whether a user message is a turn with a call, and its neighbours leave a place for one."""
    message = draft.messages[index]
    if draft.sources[index].is_from_tool or message.ends_in_order:
        return False
    if isinstance(draft.messages[index - 1], AssistantMessage):
        return False
    if index + 1 < len(draft.messages):
        following = draft.messages[index + 1]
        if isinstance(following, AssistantMessage) and not _reads_as_response(following):
            return False
    return reads_as_call_turn(message.content)


# --- assistant messages in a row ----------------------------------------------------------------

_JOIN_TRIES = 8  # a joined message is read again: bounded, so that hostile rows cost linear time


def _join_assistants(draft: Draft) -> None:
    """Join assistant messages in a row as long as the earlier has neither call nor answer."""
    index = 0
    while index < len(draft.messages):
        for _ in range(_JOIN_TRIES):
            end = _end_of_split(draft.messages, index)
            if end == index + 1 or not _join(draft, index, end):
                break
        index += 1


def _end_of_split(messages: list[Message], start: int) -> int:
    end = start
    while end + 1 < len(messages):
        message = messages[end]
        if not isinstance(message, AssistantMessage) or not isinstance(
            messages[end + 1], AssistantMessage
        ):
            break
        if message.calls or message.answer is not None:
            break
        end += 1
    return end + 1


def _join(draft: Draft, start: int, end: int) -> bool:
    """Make one message of several, of which blank ones leave no trace in the text.

    Returns False, and changes nothing, where the pieces make a response and no turn.
    """
    texts = [message.content for message in draft.messages[start:end]]
    shape = response_shape("\n".join(text for text in texts if text.strip()))
    if shape.has_opening and shape.has_closing:
        return False
    for index in range(end - 1, start - 1, -1):
        if end - start > 1 and not texts[index - start].strip():
            draft.remove(index, "assistant_split")
            end -= 1
    if end - start > 1:
        at = len(draft.messages[start].content)
        text = "".join(f"\n{message.content}" for message in draft.messages[start + 1 : end])
        draft.replace_text(start, [TextEdit(at, at, text, "assistant_split")])
        for index in range(end - 1, start, -1):
            draft.remove(index, "assistant_split")
    return True
