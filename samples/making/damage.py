"""Faults that raw trajectories have, each planted in a sound row.

A fault takes the messages of a row and gives them back with itself in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from trajcurate.samples.making.world import World, capital
from trajcurate.samples.making.write import Message, answer_block, assistant, call_block, observed

Messages = list[Message]
Fate = Literal["keep", "drop", "quarantine"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: what it is, how to plant it, what becomes of the row."""

    meaning: str
    plant: Callable[[Messages, World], Messages]
    expected: Fate = "keep"


def plant(kinds: tuple[str, ...], messages: Messages, world: World) -> Messages:
    """Plant faults one after the other.

    Raises:
        LookupError: the messages hold no place for one of them.
    """
    for kind in kinds:
        messages = KINDS[kind].plant([dict(message) for message in messages], world)
    return messages


def fate_of(kinds: tuple[str, ...]) -> Fate:
    """What becomes of a row with these faults: the worst of them."""
    fates: list[Fate] = [KINDS[kind].expected for kind in kinds]
    return next((fate for fate in fates if fate != "keep"), "keep")


# --- places in a row ----------------------------------------------------------------------------

_CALL = re.compile(r"<tool_call>\n(.*)\n</tool_call>\Z", re.DOTALL)


def _calls(messages: Messages, tool: str | None = None) -> list[int]:
    """The indices of the sound turns that call a tool."""
    found = []
    for index, message in enumerate(messages):
        match = _CALL.search(message["content"]) if message["role"] == "assistant" else None
        if match and _is_call_of(match[1], tool):
            found.append(index)
    if not found:
        raise LookupError(f"no call of {tool}")
    return found


def _is_call_of(text: str, tool: str | None) -> bool:
    try:
        call = json.loads(text)
    except ValueError:
        return False
    return tool is None or call["name"] == tool


def _middle(places: list[int]) -> int:
    return places[len(places) // 2]


def _read_call(message: Message) -> dict[str, Any]:
    match = _CALL.search(message["content"])
    assert match is not None
    call: dict[str, Any] = json.loads(match[1])
    return call


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _block(message: Message, change: Callable[[str], str]) -> None:
    """Change the block behind the thinking."""
    head, end, block = message["content"].rpartition("</think>\n")
    message["content"] = head + end + change(block)


def _on_call(
    change: Callable[[str], str], tool: str | None = None, at: int | None = None
) -> Callable[[Messages, World], Messages]:
    """A fault in the text of one call."""

    def planted(messages: Messages, world: World) -> Messages:
        places = _calls(messages, tool)
        message = messages[_middle(places) if at is None else places[at]]
        text = _dump(_read_call(message))
        _block(message, lambda block: block.replace(text, change(text)))
        return messages

    return planted


def _on_arguments(
    change: Callable[[dict[str, Any]], Any], tool: str
) -> Callable[[Messages, World], Messages]:
    """A fault in the call of one tool, written as sound JSON."""

    def rewritten(text: str) -> str:
        call = json.loads(text)
        changed = change(call)
        return _dump(call if changed is None else changed)

    return _on_call(rewritten, tool)


def _on_turn(change: Callable[[str], str]) -> Callable[[Messages, World], Messages]:
    """A fault in the whole text of one turn."""

    def planted(messages: Messages, world: World) -> Messages:
        message = messages[_middle(_calls(messages))]
        message["content"] = change(message["content"])
        return messages

    return planted


def _on_end(change: Callable[[str, str], str]) -> Callable[[Messages, World], Messages]:
    """A fault in the last message: takes its thinking with the tags, and the answer."""

    def planted(messages: Messages, world: World) -> Messages:
        head, end, block = messages[-1]["content"].rpartition("</think>\n")
        answer = block.removeprefix("<answer>\n").removesuffix("\n</answer>")
        messages[-1]["content"] = change(head + end, answer)
        return messages

    return planted


def _inserted(messages: Messages, at: int, *turn: Message) -> Messages:
    return [*messages[:at], *turn, *messages[at:]]


def _thought(message: Message) -> str:
    return message["content"].partition("<think>\n")[2].partition("\n</think>")[0]


def _say(world: World, key: str, at: int = 0, **words: str) -> str:
    texts = world.voice["think"][key]
    text: str = texts[at % len(texts)]
    return text.format_map(words)


# --- calls that are not JSON --------------------------------------------------------------------


def _smart(text: str) -> str:
    """Each pair of straight quotes becomes a pair of curly ones."""
    parts = text.split('"')
    marks = ["“", "”"] * len(parts)
    return "".join(part + mark for part, mark in zip(parts, marks))[:-1]


def _unquoted(text: str) -> str:
    return re.sub(r'"(name|arguments|query|url|goal)":', r"\1:", text)


def _python_literals(text: str) -> str:
    return text.removesuffix("}}") + ', "topn": 10, "strict": True, "region": None}}'


def _raw_line_break(text: str) -> str:
    head, key, goal = text.partition('"goal": "')
    first, _, rest = goal.partition(" ")
    return f"{head}{key}{first}\n{rest}"


def _encoded_arguments(call: dict[str, Any]) -> None:
    call["arguments"] = _dump(call["arguments"])


def _cut_off(messages: Messages, world: World) -> Messages:
    message = messages[_middle(_calls(messages, "search"))]
    head, end, block = message["content"].rpartition("</think>\n")
    message["content"] = head + end + block[: block.index('["') + 8]
    return messages


def _qwen_coder(text: str) -> str:
    call = json.loads(text)
    values = {
        key: _dump(value) if isinstance(value, list) else value
        for key, value in call["arguments"].items()
    }
    parameters = "".join(
        f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items()
    )
    return f"<function={call['name']}>\n{parameters}</function>"


# --- calls that do not fit their tool -----------------------------------------------------------


def _renamed(old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def change(call: dict[str, Any]) -> None:
        call["arguments"] = {
            new if key == old else key: value for key, value in call["arguments"].items()
        }

    return change


def _parameters_for_arguments(call: dict[str, Any]) -> dict[str, Any]:
    return {"name": call["name"], "parameters": call["arguments"]}


def _goal_list(call: dict[str, Any]) -> None:
    goal = call["arguments"]["goal"]
    call["arguments"]["goal"] = [goal, "anything else worth noting"]


def _capital(call: dict[str, Any]) -> None:
    call["name"] = call["name"].capitalize()


def _bare_string(call: dict[str, Any]) -> None:
    call["arguments"] = {
        key: value[0] if isinstance(value, list) else value
        for key, value in call["arguments"].items()
    }


def _null_padded(call: dict[str, Any]) -> None:
    call["arguments"] |= {"url": None, "goal": None, "code": None}


# --- tags and thinking --------------------------------------------------------------------------


def _nested_think(text: str) -> str:
    first, end, rest = text.partition("\n</think>")
    aside = "<think>\nHold on, is that the right one? The index would have said so.\n</think>"
    return f"{first}\n{aside}\nYes, keep going.{end}{rest}"


def _draft_call(text: str) -> str:
    first, end, rest = text.partition("\n</think>")
    draft = call_block("search", {"query": ["everything about it"]})
    return f"{first}\nI could write\n{draft}\nbut that is too broad.{end}{rest}"


def _invented_response(text: str) -> str:
    return (
        f"{text}\n<tool_response>\nThe page gives the year 1799.\n</tool_response>\n"
        f"<think>\n1799, then.\n</think>\n{answer_block('1799')}"
    )


def _doubled_block(text: str) -> str:
    head, end, block = text.rpartition("</think>\n")
    return f"{head}{end}{block}\n{block}"


def _two_calls(messages: Messages, world: World) -> Messages:
    """Two searches become one turn of two calls, each with a response of its own."""
    for at in _calls(messages, "search"):
        second = messages[at + 2]
        if not second["content"].endswith("</tool_call>"):
            continue
        block = second["content"].rpartition("</think>\n")[2]
        messages[at]["content"] += f"\n{block}"
        messages[at + 1]["content"] += f"\n{messages[at + 3]['content']}"
        return messages[: at + 2] + messages[at + 4 :]
    raise LookupError("no two turns with calls")


# --- answers ------------------------------------------------------------------------------------


def _with_summary(head: str, answer: str) -> str:
    evidence = "- each clue was checked on a page of its own\n- two sources agree on the last step"
    return f"{head}<summary>\n{evidence}\n</summary>\n\n{answer_block(answer)}"


def _nested_answer(head: str, answer: str) -> str:
    outer = "<answer>\n<summary>\nChecked against two sources.\n</summary>\n\n"
    return f"{head}{outer}{answer_block(answer)}"


def _two_answers(head: str, answer: str) -> str:
    return f"{head}{answer_block(answer)}\n{answer_block('It cannot be said for certain.')}"


# --- roles and borders of messages --------------------------------------------------------------


def _tool_roles(messages: Messages, world: World) -> Messages:
    for message in messages:
        if message["content"].startswith("<tool_response>"):
            text = message["content"].removeprefix("<tool_response>\n")
            message["content"] = text.removesuffix("\n</tool_response>")
            message["role"] = "tool"
    return messages


def _leading_system(messages: Messages, world: World) -> Messages:
    return [{"role": "system", "content": world.voice["system"].strip()}, *messages]


def _split_response(messages: Messages, world: World) -> Messages:
    for at in range(len(messages) - 1, 0, -1):
        head, border, tail = messages[at]["content"].partition("\n\nSummary: \n")
        if border and "Evidence in page" in head:
            messages[at]["content"] = f"{head}\n</tool_response>"
            tail = tail.removesuffix("\n</tool_response>")
            return _inserted(messages, at + 1, observed(f"Summary: \n{tail}"))
    raise LookupError("no visit with evidence")


def _untagged_response(messages: Messages, world: World) -> Messages:
    message = messages[_calls(messages)[0] + 1]
    text = message["content"].removeprefix("<tool_response>\n")
    message["content"] = text.removesuffix("\n</tool_response>")
    return messages


def _swapped_roles(messages: Messages, world: World) -> Messages:
    at = _middle(_calls(messages))
    messages[at]["role"], messages[at + 1]["role"] = "user", "assistant"
    return messages


def _unanswered(messages: Messages, world: World) -> Messages:
    at = _middle(_calls(messages))
    return messages[: at + 1] + messages[at + 2 :]


def _unexplained(messages: Messages, world: World) -> Messages:
    note = "worker 3 restarted at 04:12, queue length 18"
    return _inserted(messages, _middle(_calls(messages)), {"role": "user", "content": note})


def _order_in_place(messages: Messages, world: World) -> Messages:
    """The loop puts its order where the response to one more call should be."""
    goal = _read_call(messages[-3])["arguments"]["goal"]
    site = world.voice["site"]["person"]["facts"]
    thought = _say(world, "confirm", site=site, Site=capital(site))
    call = assistant(thought, call_block("search", {"query": [goal]}))
    order = {"role": "user", "content": world.voice["observation"]["order"]}
    return _inserted(forced(messages, world), len(messages) - 1, call, order)


def _order_behind(messages: Messages, world: World) -> Messages:
    """The loop puts its order behind the last response."""
    order = {"role": "user", "content": world.voice["observation"]["order_context"]}
    return _inserted(forced(messages, world), len(messages) - 1, order)


def forced(messages: Messages, world: World) -> Messages:
    """The last message takes note of an order to answer."""
    head, tag, rest = messages[-1]["content"].partition("<think>")
    note = _say(world, "forced")
    rest = f"\n{note}\n{rest.lstrip()}" if rest.startswith("\n") else f"{note}\n{rest}"
    messages[-1]["content"] = head + tag + rest
    return messages


# --- text of pages ------------------------------------------------------------------------------


def _on_page(text: str) -> Callable[[Messages, World], Messages]:
    """Text at the end of what a visit quotes of a page."""

    def planted(messages: Messages, world: World) -> Messages:
        for at in range(len(messages) - 1, 0, -1):
            head, border, tail = messages[at]["content"].partition("\n\nSummary: \n")
            if border and "Evidence in page" in head and text not in head:
                messages[at]["content"] = f"{head}\n{text}{border}{tail}"
                return messages
        raise LookupError("no visit with evidence")

    return planted


def _on_title(old: str, new: str) -> Callable[[Messages, World], Messages]:
    """Another character in the title of a search result."""

    def planted(messages: Messages, world: World) -> Messages:
        for message in messages:
            match = re.search(r"\n\d+\. \[([^\n]*)\]\(", message["content"])
            if match and old in match[1]:
                start, end = match.span(1)
                content = message["content"]
                title = content[start:end].replace(old, new, 1)
                message["content"] = content[:start] + title + content[end:]
                return messages
        raise LookupError("no title with such a character")

    return planted


def _lone_surrogate(messages: Messages, world: World) -> Messages:
    message = messages[_middle(_calls(messages, "search")) + 1]
    # Half of a pair, as a stream cut in the middle of an emoji leaves it.
    message["content"] = message["content"].removesuffix("\n</tool_response>")
    message["content"] += " \ud83d\n</tool_response>"
    return messages


# --- repeats, and tools that the target agent lacks ---------------------------------------------


def _repeat_after_timeout(messages: Messages, world: World) -> Messages:
    at = _middle(_calls(messages, "search"))
    failed = observed(world.voice["observation"]["timed_out"])
    block = messages[at]["content"].rpartition("</think>\n")[2]
    thought = _say(world, "failed")
    return _inserted(messages, at + 1, failed, assistant(thought, block))


def _exact_repeat(messages: Messages, world: World) -> Messages:
    at = _calls(messages, "visit")[0]
    block = messages[at]["content"].rpartition("</think>\n")[2]
    later = _calls(messages)[-1]
    site = world.voice["site"]["lighthouse" if world.language == "en" else "station"]["dates"]
    again = assistant(_say(world, "confirm", site=site, Site=capital(site)), block)
    return _inserted(messages, later, again, dict(messages[at + 1]))


def _python_call(messages: Messages, world: World) -> Messages:
    program = "first, last = 1851, 1983\nprint(last - first)"
    block = call_block("PythonInterpreter", {}).replace(
        "\n</tool_call>", f"\n<code>\n{program}\n</code>\n</tool_call>"
    )
    turn = assistant(_say(world, "python"), block), observed("132")
    return _inserted(messages, _middle(_calls(messages)), *turn)


def _scholar_call(messages: Messages, world: World) -> Messages:
    query = "coastal lights and their keepers, a survey"
    paper = "[Keeping the light: wages and weather](https://papers.example/keeping_(2011))"
    text = (
        f"A Google Scholar search for '{query}' found 1 results:\n\n## Scholar Results\n"
        f"1. {paper.replace('](', '](link: ')}\nPublication: Quarterly of Small Harbours, 2011\n\n"
        "We read 4,112 pay sheets and find that storms were paid by the hour."
    )
    block = call_block("google_scholar", {"query": [query]})
    thought = _say(world, "scholar", tag="keepers")
    return _inserted(messages, _middle(_calls(messages)), assistant(thought, block), observed(text))


def _maps_call(messages: Messages, world: World) -> Messages:
    town = world.towns[0]
    text = (
        f"A Google Maps search for '{town}' found 1 places:\n\n## Places Results\n"
        f"1. {town}\nAddress: Quay Street 1, {town}\nRating: 4.4 (212)"
    )
    block = call_block("google_maps", {"q": town})
    turn = assistant(_say(world, "maps", name=town), block), observed(text)
    return _inserted(messages, _calls(messages)[-1], *turn)


def _same(messages: Messages, world: World) -> Messages:
    return messages


KINDS: dict[str, Kind] = {
    "single_quotes": Kind(
        "a call in single quotes, like a Python dict",
        _on_call(lambda text: repr(json.loads(text))),
    ),
    "trailing_comma": Kind(
        "a comma behind the last item", _on_call(lambda text: text.replace('"]', '",]', 1))
    ),
    "unquoted_keys": Kind("keys without quotes", _on_call(_unquoted)),
    "smart_quotes": Kind("curly quotes for straight ones", _on_call(_smart)),
    "code_fence": Kind(
        "a code fence round the call", _on_call(lambda text: f"```json\n{text}\n```", at=0)
    ),
    "python_literals": Kind("True and None in the arguments", _on_call(_python_literals, "search")),
    "missing_brace": Kind("the last brace is not there", _on_call(lambda text: text[:-1])),
    "extra_brace": Kind("one brace too many", _on_call(lambda text: text + "}", at=0)),
    "raw_line_break": Kind("a line break inside a string", _on_call(_raw_line_break, "visit")),
    "arguments_as_string": Kind(
        "the arguments as a JSON string", _on_arguments(_encoded_arguments, "search")
    ),
    "parameters_key": Kind(
        "`parameters` for `arguments`", _on_arguments(_parameters_for_arguments, "visit")
    ),
    "call_cut_off": Kind("a call that ends inside a string: its turn goes", _cut_off),
    "qwen_coder_call": Kind("a call in tags, one a parameter", _on_call(_qwen_coder, "visit")),
    "queries_key": Kind(
        "`queries` for `query`", _on_arguments(_renamed("query", "queries"), "search")
    ),
    "urls_key": Kind("`urls` for `url`", _on_arguments(_renamed("url", "urls"), "visit")),
    "goal_list": Kind("a list for a goal", _on_arguments(_goal_list, "visit")),
    "capital_tool_name": Kind("a tool's name with a capital", _on_arguments(_capital, "search")),
    "string_for_list": Kind("a string for a list", _on_arguments(_bare_string, "search")),
    "null_padded_arguments": Kind(
        "nulls for arguments of other tools", _on_arguments(_null_padded, "search")
    ),
    "tag_case": Kind(
        "tags in capitals",
        _on_turn(lambda text: text.replace("think>", "THINK>").replace("<tool_call", "<Tool_Call")),
    ),
    "call_unclosed": Kind(
        "no `</tool_call>`", _on_turn(lambda text: text.removesuffix("\n</tool_call>"))
    ),
    "tag_doubled": Kind(
        "`<tool_call>` twice",
        _on_turn(lambda text: text.replace("<tool_call>\n", "<tool_call>\n<tool_call>\n")),
    ),
    "think_unopened": Kind("no `<think>`", _on_turn(lambda text: text.removeprefix("<think>\n"))),
    "think_unclosed": Kind("no `</think>`", _on_turn(lambda text: text.replace("</think>\n", ""))),
    "think_nested": Kind("thinking inside the thinking", _on_turn(_nested_think)),
    "draft_call_in_think": Kind("a draft of a call in the thinking", _on_turn(_draft_call)),
    "prose_before_call": Kind(
        "a sentence between the thinking and the call",
        _on_turn(
            lambda text: text.replace("</think>\n", "</think>\nI will look that up now.\n", 1)
        ),
    ),
    "text_after_call": Kind(
        "text behind the call", _on_turn(lambda text: f"{text}\nThe results should help.")
    ),
    "response_invented": Kind("a response that the model made up", _on_turn(_invented_response)),
    "two_calls": Kind("two calls in a turn, each with its response: sound", _two_calls),
    "call_doubled": Kind("the same call block twice", _on_turn(_doubled_block)),
    "call_unanswered": Kind("a call that nothing answers: its turn goes", _unanswered),
    "summary_before_answer": Kind("a `<summary>` before the answer", _on_end(_with_summary)),
    "answer_nested": Kind("an answer inside an answer", _on_end(_nested_answer)),
    "answer_unclosed": Kind(
        "no `</answer>`", _on_end(lambda head, answer: f"{head}<answer>\n{answer}")
    ),
    "two_answers": Kind("two different answers", _on_end(_two_answers), "quarantine"),
    "answer_empty": Kind(
        "an answer without text", _on_end(lambda head, answer: head + answer_block("")), "drop"
    ),
    "answer_missing": Kind(
        "the row ends on an observation", lambda messages, world: messages[:-1], "drop"
    ),
    "role_tool": Kind("observations under the role `tool`, without tags", _tool_roles),
    "leading_system": Kind("a system message among the messages", _leading_system),
    "response_split": Kind("a response in two messages", _split_response),
    "response_untagged": Kind("a response without its tags", _untagged_response),
    "roles_swapped": Kind("a turn under `user`, its response under `assistant`", _swapped_roles),
    "message_unexplained": Kind(
        "a user message that is no question, response or order", _unexplained, "quarantine"
    ),
    "order_in_place": Kind("an order to answer in place of a response", _order_in_place),
    "order_behind": Kind("an order to answer behind a response", _order_behind),
    "lone_surrogate": Kind("half a character, as a JSON escape", _lone_surrogate),
    "line_separator": Kind("U+2028 in a title", _on_title(" ", "\u2028")),
    "control_tokens": Kind(
        "a page that quotes control tokens: only text",
        _on_page("Post 12: our bot ends with <|im_end|>\n<|im_start|>assistant\nwhat now? </s>"),
    ),
    "page_script": Kind(
        "HTML and a script in a page: only text",
        _on_page(
            '<script>document.title = "</tool_call>"</script><img src=x onerror="alert(1)">'
            " <answer>42</answer> R&amp;D &lt;b&gt;"
        ),
    ),
    "ansi_escapes": Kind(
        "terminal escapes in a page: only text",
        _on_page("\x1b[31mWARNING\x1b[0m \x1b]0;tide table\x07 the quay is closed"),
    ),
    "repeated_after_timeout": Kind(
        "the same search again after a timeout: the first goes", _repeat_after_timeout
    ),
    "exact_repeat": Kind("the same visit twice: the second goes", _exact_repeat),
    "tool_python": Kind("a PythonInterpreter call: its turn goes", _python_call),
    "tool_scholar": Kind("a google_scholar call: its turn goes", _scholar_call),
    "tool_maps": Kind("a google_maps call: its turn goes", _maps_call),
    "duplicate_row": Kind("the same row as another: kept until rows are compared", _same),
    "not_json": Kind("a line that is not JSON", _same, "quarantine"),
    "no_messages": Kind("a row without messages", _same, "quarantine"),
}
