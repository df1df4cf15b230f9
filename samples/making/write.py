"""Research as messages: the raw form of REDSearcher, and the form of an agent's own rollouts."""

from __future__ import annotations

import json
from typing import Any

from trajcurate.samples.making.browse import Results, search_json, search_text, visit_text
from trajcurate.samples.making.research import Research, Turn
from trajcurate.samples.making.world import World

Message = dict[str, str]
Row = dict[str, Any]


def raw_row(world: World, research: Research, *, first: int = 1) -> Row:
    """A row as REDSearcher publishes them; search results are numbered from `first`."""
    messages = [{"role": "user", "content": research.question.text}]
    for turn in research.turns:
        messages.append(assistant(turn.thought, call_block(turn.tool, turn.arguments)))
        messages.append(observed(_text(turn, first)))
    messages.append(assistant(research.final_thought, answer_block(research.answer)))
    return {
        "meta": {"question": research.question.text, "answer": research.question.answer},
        "messages": messages,
        "system_prompt": world.voice["system"].strip(),
    }


def rollout(research: Research, system: str, request_id: str, sample: int) -> Row:
    """A rollout as a trainer writes it: the prompt first, search results as JSON."""
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": research.question.text},
    ]
    for turn in research.turns:
        block = call_block(turn.tool, turn.arguments)
        messages.append(_generated(turn.thought, block))
        messages.append(observed(_json(turn)))
    messages.append(_generated(research.final_thought, answer_block(research.answer)))
    turns = len(research.turns) + 1
    return {
        "request_id": request_id,
        "sample_idx": sample,
        "turn": turns - 1,
        "num_turns": turns,
        "messages": messages,
        "finished": True,
        "gt": research.question.answer,
        "reward": float(research.is_right),
    }


def assistant(thought: str, block: str) -> Message:
    """An assistant message in the raw form."""
    return {"role": "assistant", "content": f"<think>\n{thought}\n</think>\n{block}"}


def observed(text: str) -> Message:
    """An observation in its tags."""
    return {"role": "user", "content": f"<tool_response>\n{text}\n</tool_response>"}


def call_block(tool: str, arguments: dict[str, Any]) -> str:
    """A call in its tags."""
    call = json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def answer_block(answer: str) -> str:
    """An answer in its tags."""
    return f"<answer>\n{answer}\n</answer>"


def _generated(thought: str, block: str) -> Message:
    # The template of the model writes `<think>`; what the model writes begins right behind it.
    return {"role": "assistant", "content": f"<think>{thought}\n</think>\n\n{block}"}


def _text(turn: Turn, first: int) -> str:
    results = [found for found in turn.observation if isinstance(found, Results)]
    if results:
        return search_text(results, first=first)
    return visit_text([read for read in turn.observation if not isinstance(read, Results)])


def _json(turn: Turn) -> str:
    results = [found for found in turn.observation if isinstance(found, Results)]
    return search_json(results) if results else _text(turn, 1)
