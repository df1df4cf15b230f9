"""Raw rows for tests: small, sound, invented; faults are planted by the tests themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Messages = list[dict[str, str]]


def call(name: str, **arguments: Any) -> str:
    """A well-formed call block."""
    text = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{text}\n</tool_call>"


def tool_turn(thought: str, *calls: str) -> dict[str, str]:
    """An assistant message that calls."""
    return {
        "role": "assistant",
        "content": f"<think>\n{thought}\n</think>\n" + "\n".join(calls),
    }


def answer_turn(thought: str, answer: str) -> dict[str, str]:
    """An assistant message that answers."""
    return {
        "role": "assistant",
        "content": f"<think>\n{thought}\n</think>\n<answer>\n{answer}\n</answer>",
    }


def observation(*texts: str) -> dict[str, str]:
    """A user message with one response block a text."""
    blocks = [f"<tool_response>\n{text}\n</tool_response>" for text in texts]
    return {"role": "user", "content": "\n".join(blocks)}


def search_text(query: str, count: int = 2) -> str:
    """A search response in the text form."""
    entries = [
        f"{i}. [{query} page {i}](https://site{i}.example/{i})\nDate published: May {i + 1}, 2020\n"
        f"\nWhat page {i} says about {query}."
        for i in range(count)
    ]
    head = f"A Google search for '{query}' found {count} results:\n\n## Web Results\n"
    return head + "\n\n".join(entries)


def visit_text(url: str, goal: str) -> str:
    """A visit response."""
    return (
        f"The useful information in {url} for user goal {goal} as follows: \n\n"
        f"Evidence in page: \nThe page speaks of {goal}.\n\nSummary: \n{goal} is on the page."
    )


def trajectory_messages(topic: str, turns: int = 4) -> Messages:
    """A sound dialogue of `turns` assistant messages, question first, without system message."""
    messages: Messages = [{"role": "user", "content": f"Which year did {topic} open?"}]
    for turn in range(turns - 1):
        if turn % 3 == 2:
            url, goal = f"https://site0.example/{topic}-{turn}", f"opening of {topic} {turn}"
            messages.append(tool_turn(f"Read page {turn}.", call("visit", url=[url], goal=goal)))
            messages.append(observation(visit_text(url, goal)))
        else:
            query = f"{topic} opening {turn}"
            messages.append(tool_turn(f"Search {turn}.", call("search", query=[query])))
            messages.append(observation(search_text(query)))
    messages.append(answer_turn(f"It was 19{len(topic):02d}.", f"19{len(topic):02d}"))
    return messages


def raw_row(topic: str, turns: int = 4, **changes: Any) -> dict[str, Any]:
    """A raw REDSearcher row."""
    row: dict[str, Any] = {
        "meta": {"question": f"Which year did {topic} open?", "answer": f"19{len(topic):02d}"},
        "messages": trajectory_messages(topic, turns),
        "system_prompt": "You research.",
    }
    return row | changes


def write_jsonl(path: Path, rows: Sequence[Any]) -> Path:
    """Rows as JSON Lines; a bytes row is written as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=True).encode()
        for row in rows
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def many_rows(count: int, prefix: str = "bridge") -> list[dict[str, Any]]:
    """Sound rows of 2 to 60 turns, with a fault here and there that recipes repair or reject."""
    rows = []
    for number in range(count):
        row = raw_row(f"{prefix} {number}", turns=2 + (number * 7) % 59)
        messages = row["messages"]
        if number % 5 == 1:
            messages[1]["content"] = messages[1]["content"].replace("<think>", "<THINK>")
        if number % 7 == 2 and len(messages) > 4:
            broken = '<tool_call>\n{"name": "search", "arguments": {"query": ["cut\n</tool_call>'
            messages[3]["content"] = "<think>\nhm\n</think>\n" + broken
        if number % 11 == 3:
            messages[-1]["content"] = "<think>\nno idea\n</think>\nnothing"
        if number % 13 == 4:
            row["messages"] = "none"
        rows.append(row)
    return rows
