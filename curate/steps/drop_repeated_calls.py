"""Remove calls that the row makes twice, in favour of the attempt that worked."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field, field_validator

from trajcurate.curate.remove_calls import remove_calls
from trajcurate.curate.step import Editor, Keep, Outcome, Step
from trajcurate.schemas.search_results import is_structured, read_search_json, read_search_text
from trajcurate.schemas.tools import ToolSet, ToolSpec
from trajcurate.schemas.trajectory import (
    AssistantMessage,
    MalformedCall,
    ToolCall,
    Trajectory,
    Turn,
)
from trajcurate.schemas.wire import pair_responses, response_blocks


class DropRepeatedCalls(Step):
    """Remove repeated calls with their observations; the first attempt that worked stays.

    A search or visit repeats another of the same tool when the lists of queries or URLs are the
    same once trimmed, as sets, whatever came back; for visits the goal counts too unless `same`
    leaves it out. Arguments that the tool does not declare do not count. Calls of other tools
    repeat when all arguments are equal. An attempt failed when its observation is empty, lists no
    result or matches a failure pattern of the tool. A call that nothing but an order to answer
    follows, or nothing at all, takes no part.

    `keep: best` goes by call; where observations do not pair with the calls of a turn, the turn
    goes only if all its calls do. `keep: first` goes by turn: a turn goes when each of its calls
    was made before. With `same: [arguments]` that is the rule of DR-Venus's cleaning script.

    Why: repeats teach the model to ask again for what it has; the failed first attempt is the one
        to lose.
    Safety: removes observations whose content the kept attempt may not repeat word for word.
    """

    reasons: ClassVar[dict[str, str]] = {"call_repeated": "the row makes the same call elsewhere"}
    may_change_turns: ClassVar[bool] = True

    same: tuple[Literal["arguments", "goal"], ...] = Field(
        ("arguments", "goal"),
        description="What must be equal: `arguments` is the list of queries or URLs, `goal` a "
        "visit's goal.",
    )
    keep: Literal["best", "first"] = Field(
        "best",
        description="`best` keeps the first attempt that worked, else the first; `first` removes "
        "each turn whose calls were all made before.",
    )

    @field_validator("same")
    @classmethod
    def _compare_arguments(cls, same: tuple[str, ...]) -> tuple[str, ...]:
        if "arguments" not in same:
            raise ValueError("must hold `arguments`: calls with one goal are not the same call")
        return same

    def apply(self, trajectory: Trajectory, tools: ToolSet) -> Outcome:
        """Group equal calls, choose whom to keep, remove the others, the last turn first."""
        if not self._makes_a_call_twice(trajectory, tools):
            return Keep(trajectory)
        answers = {turn.index: _answers(turn) for turn in trajectory.turns}
        turns = [turn for turn in trajectory.turns if answers[turn.index]]
        if self.keep == "best":
            repeats = _repeats_of_best(self._group(turns, tools), _Verdicts(tools, answers))
        else:
            repeats = self._turns_made_before(turns, tools)
        editor = Editor(trajectory)
        for index, numbers in sorted(repeats.items(), reverse=True):
            remove_calls(editor, index, numbers, "call_repeated", keep_unpaired=True)
        return editor.done()

    def _makes_a_call_twice(self, trajectory: Trajectory, tools: ToolSet) -> bool:
        seen = set()
        for message in trajectory.messages:
            if isinstance(message, AssistantMessage):
                for block in message.blocks:
                    if type(block) is ToolCall:
                        signature = self._signature(block, tools)
                        if signature in seen:
                            return True
                        seen.add(signature)
        return False

    def _group(self, turns: Iterable[Turn], tools: ToolSet) -> dict[Hashable, list[_Attempt]]:
        """Equal calls together, in the order in which they were made."""
        groups: dict[Hashable, list[_Attempt]] = {}
        for turn in turns:
            number = 0
            for block in turn.assistant.blocks:
                if type(block) is ToolCall:
                    attempt = _Attempt(turn, number, block)
                    groups.setdefault(self._signature(block, tools), []).append(attempt)
                    number += 1
                elif type(block) is MalformedCall:
                    number += 1
        return groups

    def _signature(self, call: ToolCall, tools: ToolSet) -> Hashable:
        """What is equal for calls that count as the same."""
        spec = tools.tools.get(call.name)
        name = call.name if spec is not None else tools.resolve(call.name)
        if name is None:
            return call.name.strip().lower(), _canonical(call.arguments), call.code
        spec = tools.tools[name]
        if spec.kind not in ("search", "visit"):
            return name, _canonical(call.arguments), call.code
        compared = []
        properties = spec.properties
        for key, value in call.arguments.items():
            declared = key if key in properties else spec.argument_aliases.get(key, key)
            if declared not in properties and properties:
                continue
            if declared == "goal" and "goal" not in self.same:
                continue
            if values := _trimmed(value):
                compared.append((declared, values))
        return name, frozenset(compared) if compared else _canonical(call.arguments)

    def _turns_made_before(self, turns: Iterable[Turn], tools: ToolSet) -> dict[int, list[int]]:
        repeats: dict[int, list[int]] = {}
        seen: set[Hashable] = set()
        for turn in turns:
            calls = turn.assistant.calls
            signatures = {
                self._signature(call, tools) if isinstance(call, ToolCall) else None
                for call in calls
            }
            if signatures <= seen:
                repeats[turn.message_index] = list(range(len(calls)))
            else:
                seen |= signatures - {None}
        return repeats


class _Attempt(NamedTuple):
    """Call `number` of a turn."""

    turn: Turn
    number: int
    call: ToolCall


def _canonical(arguments: Any) -> Hashable:
    try:
        return json.dumps(arguments, sort_keys=True)
    except RecursionError:
        return id(arguments)  # nested too deep to compare: equal to no other


def _trimmed(value: Any) -> Hashable:
    """A list as the set of its trimmed strings, blank ones left out; a set of one as its item.

    Falsy if nothing is left.
    """
    if type(value) is list and len(value) == 1 and type(value[0]) is str:
        value = value[0]
    if type(value) is str:
        return value.strip()
    values = value if isinstance(value, list) else [value]
    items = {
        item.strip() if isinstance(item, str) else ("json", _canonical(item))
        for item in values
        if item is not None
    } - {""}
    return items.pop() if len(items) == 1 else frozenset(items)


def _repeats_of_best(
    groups: Mapping[Hashable, list[_Attempt]], verdicts: _Verdicts
) -> dict[int, list[int]]:
    """The numbers of the calls that go, by the index of their message."""
    repeats: dict[int, list[int]] = {}
    for group in groups.values():
        if len(group) == 1:
            continue
        kept = next(filter(verdicts.has_worked, group), group[0])
        for attempt in group:
            if attempt is not kept:
                repeats.setdefault(attempt.turn.message_index, []).append(attempt.number)
    return repeats


class _Verdicts:
    """Which attempts worked. Calls that share an observation share its verdict."""

    def __init__(self, tools: ToolSet, answers: Mapping[int, list[list[str]]]) -> None:
        self._tools = tools
        self._answers = answers
        self._verdicts: dict[tuple[int, str], bool] = {}

    def has_worked(self, attempt: _Attempt) -> bool:
        texts = self._answers[attempt.turn.index][attempt.number]
        key = id(texts), attempt.call.name
        if key not in self._verdicts:
            spec = self._tools.get(attempt.call.name)
            self._verdicts[key] = not all(_has_failed(text, spec) for text in texts)
        return self._verdicts[key]


def _answers(turn: Turn) -> list[list[str]]:
    """The texts that answer each call of a turn, orders to answer left out.

    Calls whose observation does not pair with them have all of it. Nothing at all for a turn
    without an answer.
    """
    count = len(turn.assistant.calls)
    if len(turn.replies) == 1:
        responses = pair_responses(count, turn.replies[0])
        if responses.are_paired:
            content = turn.replies[0].content
            return [[content[b.text_start : b.text_end]] for b in responses.blocks]
    texts = [
        reply.content[block.text_start : block.text_end]
        for reply in turn.replies
        for block in response_blocks(reply)
        if not block.is_order
    ]
    return [texts] * count if texts else []


def _has_failed(response: str, spec: ToolSpec | None) -> bool:
    if spec is None:
        return not response.strip()
    if spec.kind == "search":
        read = read_search_json if is_structured(response) else read_search_text
        results = read(response)
        if results is not None:
            return not any(result.items for result in results)
    return spec.has_failed(response)
