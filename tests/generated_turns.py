"""Rows of turns with several calls, paired and unpaired observations, for tests of steps.

Each call carries a number of its own and its observation repeats it, so that a test can see
whether a call and what answers it were ever parted.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from zoo import make_trajectory

from trajcurate.schemas.trajectory import AssistantMessage, Message, Trajectory, Turn
from trajcurate.schemas.wire import read_message

# No test fails because the machine has other work.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

CALLS = (
    '{"name": "search", "arguments": {"query": ["tide"], "number": %d}}',
    '{"name": "search", "arguments": {"number": %d, "query": [" tide ", "tide"]}}',
    '{"name":"Web_Search","arguments":{"q":"tide tables","number":%d}}',
    '{"name": "search", "arguments": {"query": ["moon", "tide"], "number": %d, "goal": null}}',
    '{"name": "visit", "arguments": {"url": ["https://a.example"], "goal": "x", "number": %d}}',
    '{"name": "visit", "arguments": {"urls": "https://a.example", "goal": ["y"], "number": %d}}',
    '{"name": "visit", "arguments": {"url": ["https://a.example"], "goal": null, "number": %d}}',
    '{"name": "search", "arguments": {"query": [], "number": %d}}',
    '{"name": "PythonInterpreter", "arguments": {"number": %d}}\n<code>\nprint(1)\n</code>',
    '{"name": "search", "arguments": {"query": ["tide"] "number": %d}}',
)
RESPONSES = ("r%d", "Tool execution timed out, r%d", "", "\nr%d\n\n")
SPACES = st.sampled_from(["\n", "", "\n\n", " "])


def wrap(*texts: str) -> str:
    """An observation of these blocks."""
    return "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in texts)


def turn(*calls: str) -> str:
    """An assistant message that thinks and calls."""
    blocks = "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)
    return f"<think>\nThink.\n</think>\n{blocks}"


ANSWER = "<think>\nDone.\n</think>\n<answer>\n42\n</answer>"


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    """Rows in which each turn but perhaps the last has one observation."""
    messages = [Message("user", "Q")]
    number = 0
    for _ in range(draw(st.integers(1, 5))):
        calls, answers, numbers = "", [], []
        for _ in range(draw(st.integers(1, 4))):
            call = draw(st.sampled_from(CALLS)) % number
            response = draw(st.sampled_from(RESPONSES))
            calls += f"{draw(SPACES)}<tool_call>\n{call}\n</tool_call>"
            answers.append(response % number if "%d" in response else response)
            numbers.append(number)
            number += 1
        messages.append(read_message("assistant", f"<think>\nt\n</think>{calls}{draw(SPACES)}"))
        messages.append(_observation(draw, answers, numbers))
    ending = draw(st.sampled_from(["answer", "observation", "call", "malformed"]))
    if ending == "call":
        messages.append(read_message("assistant", turn(CALLS[0] % number)))
    elif ending != "observation":
        text = ANSWER if ending == "answer" else "<think>\nt\n</think>\nNothing more."
        messages.append(read_message("assistant", text))
    return replace(make_trajectory([]), messages=tuple(messages))


def _observation(draw: st.DrawFn, answers: list[str], numbers: list[int]) -> Message:
    form = draw(st.sampled_from(["paired", "one", "order", "paired_order", "split"]))
    order = "Please answer now."
    if form == "order":
        return Message("user", wrap(order), ends_in_order=True)
    together = " ".join(f"r{number}" for number in numbers)
    if form == "one":
        return Message("user", wrap(together))
    if form == "split":
        return Message("user", wrap(*([together] * (len(numbers) + 1))))
    if form == "paired_order":
        return Message("user", wrap(*answers, order), ends_in_order=True)
    return Message("user", wrap(*answers))


def numbers_of_calls(message: AssistantMessage) -> list[int]:
    """The numbers of the calls of a message, sound or not."""
    blocks = [message.content[call.start : call.end] for call in message.calls]
    return [int(match[1]) for text in blocks if (match := re.search(r'"number": ?(\d+)', text))]


def responses_by_number(row: Trajectory) -> dict[int, list[int]]:
    """For each call the numbers of the calls that its observation names."""
    return {
        number: [int(found) for reply in one.replies for found in _NAMED.findall(reply.content)]
        for one in row.turns
        for number in numbers_of_calls(one.assistant)
    }


_NAMED = re.compile(r"\br(\d+)")


def assert_nothing_is_orphaned(before: Trajectory, after: Trajectory) -> None:
    """Calls keep what answers them, and no observation outlives its call."""
    assert after.messages[0] == before.messages[0]
    numbers_before = [number for one in before.turns for number in numbers_of_calls(one.assistant)]
    numbers_after = [number for one in after.turns for number in numbers_of_calls(one.assistant)]
    assert set(numbers_after) <= set(numbers_before)
    assert numbers_after == sorted(numbers_after)
    for one in after.turns:
        _assert_turn_is_whole(one, responses_by_number(before))
    roles = [message.role for message in after.messages]
    assert all(a != b for a, b in pairwise(roles))


def _assert_turn_is_whole(one: Turn, named_before: dict[int, list[int]]) -> None:
    numbers = numbers_of_calls(one.assistant)
    named = [int(found) for reply in one.replies for found in _NAMED.findall(reply.content)]
    assert set(named) <= set(numbers)
    for number in numbers:
        if number in named_before[number]:
            assert number in named
