"""Mend where the thinking of an assistant message begins and ends, and where the message does.

The stages are as those of `tags.py`: a message in, changes of its text out.
"""

from __future__ import annotations

import re

from trajcurate.curate.mend.tags import Surroundings, find_defect, mend_body
from trajcurate.curate.step import TextEdit
from trajcurate.schemas.tags import CALL_CLOSE, CALL_OPEN, RESPONSE_OPEN, THINK_CLOSE, THINK_OPEN
from trajcurate.schemas.trajectory import AssistantMessage
from trajcurate.schemas.wire import parse_message


def cut_invented_response(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Cut a message before the response that the model wrote itself."""
    defect = find_defect(message, "response_invented")
    if defect is None:
        return []
    text = message.content
    return [TextEdit(len(text[: defect.start].rstrip()), len(text), "", defect.reason)]


_INVENTED_RESPONSE = re.compile(rf"{CALL_CLOSE}\s*{RESPONSE_OPEN}")


def mend_hidden_call(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Mend a call that is read as thinking because its damage hides where thinking ends.

    That is the call before an invented response, and the one that ends a message without
    `</think>`.
    """
    text = message.content
    if find_defect(message, "think_nested"):
        invented = _find_invented_response(message)
        if invented is None:
            return []
        close = invented.start()
        start = text.rfind(CALL_OPEN, message.thought_start, close)
    elif find_defect(message, "think_unclosed", "think_missing"):
        close = len(text.rstrip()) - len(CALL_CLOSE)
        start = text.rfind(CALL_OPEN, message.thought_start)
        if not text.startswith(CALL_CLOSE, close):
            return []
    else:
        return []
    start += len(CALL_OPEN)
    return mend_body(text, start, close, around) if len(CALL_OPEN) <= start <= close else []


def _find_invented_response(message: AssistantMessage) -> re.Match[str] | None:
    return _INVENTED_RESPONSE.search(message.content, message.thought_start, message.thought_end)


# --- the tags of the thinking -----------------------------------------------------------------


def move_closer_before_calls(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Put a `</think>` that stands behind the answered calls in front of them."""
    text = message.content
    if (
        not around.is_answered
        or find_defect(message, "call_missing") is None
        or message.body_start == message.thought_end
        or text[message.body_start :].strip()
    ):
        return []
    inner = parse_message(text[: message.thought_end])
    allowed = {"think_unclosed", "think_missing", "text_before_think"}
    if not inner.calls or not allowed.issuperset(defect.reason for defect in inner.defects):
        return []
    run, end = inner.thought_end, len(text[: message.thought_end].rstrip())
    reason = "think_closed_after_call"
    return [TextEdit(run, run, _closer(text[:run]), reason), TextEdit(end, len(text), "", reason)]


def close_thinking(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """End the thinking before the run of answered calls that ends the message."""
    defect = find_defect(message, "think_unclosed", "think_missing")
    if defect is None or not message.calls or not around.is_answered:
        return []
    at, reason = message.thought_end, defect.reason
    opener = _opener(message.content) if reason == "think_missing" else ""
    if at == 0:
        return [TextEdit(0, 0, opener + _closer(opener), reason)]
    edits = [TextEdit(at, at, _closer(message.content[:at]), reason)]
    return [TextEdit(0, 0, opener, reason), *edits] if opener else edits


def open_thinking(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Add the opening tag where the message begins within the thinking."""
    text = message.content
    is_unopened = find_defect(message, "think_unopened") is not None
    # A first thinking without its opening tag, and a second one with it.
    if is_unopened or THINK_CLOSE in text[: message.lead_end]:
        return [TextEdit(0, 0, _opener(text), "think_unopened")]
    return []


def flatten_thinking(message: AssistantMessage, around: Surroundings) -> list[TextEdit]:
    """Remove think tags within the thinking, each with its line where it stands alone on one.

    Thinking that holds a call with an invented response is several turns in one: it is left.
    """
    nested = [defect for defect in message.defects if defect.reason == "think_nested"]
    if not nested or _find_invented_response(message):
        return []
    text = message.content
    edits = []
    for reason, start, end in nested:
        has_line = text[start - 1] == "\n" and text.startswith("\n", end)
        parts_words = (
            message.thought_start < start
            and end < message.thought_end
            and not (text[start - 1].isspace() or text[end].isspace())
        )
        line_break = "\n" if parts_words else ""
        edits.append(TextEdit(start, end + 1 if has_line else end, line_break, reason))
    return edits


def _opener(text: str) -> str:
    return THINK_OPEN if text.startswith("\n") else THINK_OPEN + "\n"


def _closer(before: str) -> str:
    return THINK_CLOSE + "\n" if before.endswith("\n") else "\n" + THINK_CLOSE + "\n"
