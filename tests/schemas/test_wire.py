"""Any text into a message and back; what counts as thinking, call, answer and response block."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trajcurate.schemas import wire
from trajcurate.schemas.read_assistant import AssistantReader
from trajcurate.schemas.tags import TAG
from trajcurate.schemas.trajectory import AssistantMessage, MalformedCall, Message, ToolCall
from trajcurate.schemas.wire import (
    from_messages,
    is_wrapped,
    pair_responses,
    parse_message,
    pieces,
    read_message,
    render,
    response_blocks,
    to_messages,
    wrap_response,
)

CALL = '{"name": "search", "arguments": {"query": ["tide"]}}'
OTHER = '{"name": "visit", "arguments": {"url": ["https://a.example"], "goal": "g"}}'
THINK = "<think>\nplan\n</think>\n"


def block(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


FRAGMENTS = [
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<answer>", "</answer>"),
    *("<tool_response>", "</tool_response>", "<summary>", "</summary>", "<code>", "</code>"),
    *("<THINK>", "</Think>", "<Tool_Call>", "</TOOL_CALL>", "<ANSWER>", "</think", "tool_call>"),
    *(CALL, CALL[:-1], CALL.replace('"', "'"), '{"name": "', '"}}', "{", "}", "[", '"', "\\"),
    *("\n", " ", "\t", "\u00a0", "\u2028", "\ud83d", "word", "a < b && c > d"),
    *(THINK, block(CALL), block(OTHER), "<answer>\nX\n</answer>"),
]
FRAGMENT_TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
# Any character, halves of surrogate pairs as well.
TEXTS = FRAGMENT_TEXTS | st.text(st.characters(codec=None, exclude_categories=()))


ROLES = st.sampled_from(["system", "user", "assistant", "tool", "observation", ""]) | st.text()


# --- nothing is lost --------------------------------------------------------------------------


@given(TEXTS)
@example("")
@example("<think>")
@example(THINK + block(CALL) + "\n<tool_response>\ninvented")
def test_rendering_a_parsed_text_gives_the_text(text: str) -> None:
    assert render(parse_message(text)) == text


@given(TEXTS)
def test_pieces_name_every_part_of_a_text_in_order(text: str) -> None:
    message = parse_message(text)
    assert "".join(piece for _, piece in pieces(message)) == text
    kinds = [kind for kind, _ in pieces(message)]
    assert kinds[:4] == ["lead", "think_open", "thought", "think_close"]
    assert set(kinds[4:]) <= {"call", "malformed_call", "answer", "loose"}


@given(st.lists(st.fixed_dictionaries({"role": ROLES, "content": TEXTS}), max_size=6))
def test_messages_are_written_back_as_they_were_read(messages: list[dict[str, str]]) -> None:
    assert to_messages(from_messages(messages)) == messages


def test_only_messages_of_the_assistant_are_parsed() -> None:
    text = THINK + block(CALL)
    assert isinstance(read_message("assistant", text), AssistantMessage)
    assert read_message("tool", text) == Message("tool", text)
    assert read_message("Assistant", text) == Message("Assistant", text)


# --- two ways to one reading ------------------------------------------------------------------


@given(TEXTS | st.builds("{}{}{}".format, st.just(THINK), FRAGMENT_TEXTS, FRAGMENT_TEXTS))
@example(THINK + block(CALL))
@example(THINK + "<answer>a <b> c</answer>\n")
@example(THINK + block('{"name": "a", "arguments": {"x": "</think> <tool_call>"}}'))
def test_the_plain_reading_agrees_with_the_careful_one(text: str) -> None:
    plain = wire._parse_plain(text)
    if plain is not None:
        assert plain == AssistantReader(text, TAG).read()
        assert plain.is_well_formed


@pytest.mark.parametrize(
    "text",
    [
        THINK + block(CALL),
        THINK + "\n" + block(CALL) + "\n\n",
        "<think></think>" + block(CALL).replace("\n", ""),
        THINK + "<answer>\nX\n</answer>",
        "<think>a < b, <b>bold</b>, <answer>draft</answer>\n</think>\n\n<answer>a<b</answer>\n",
    ],
)
def test_the_plain_reading_takes_plain_messages(text: str) -> None:
    assert wire._parse_plain(text) is not None


@given(FRAGMENT_TEXTS)
def test_defects_lie_in_the_text_and_in_order(text: str) -> None:
    message = parse_message(text)
    assert all(0 <= defect.start <= defect.end <= len(text) for defect in message.defects)
    starts = [defect.start for defect in message.defects]
    assert starts == sorted(starts)


@given(FRAGMENT_TEXTS)
def test_a_well_formed_message_is_exactly_thinking_and_then_calls_or_an_answer(text: str) -> None:
    message = parse_message(text)
    if not message.is_well_formed:
        return
    around = [text[: message.lead_end]]
    around += [piece for kind, piece in pieces(message) if kind == "loose"]
    assert not "".join(around).strip()
    assert text[message.lead_end : message.thought_start] == "<think>"
    assert text[message.thought_end : message.body_start] == "</think>"
    assert bool(message.calls) != (message.answer is not None)
    assert all(isinstance(call, ToolCall) for call in message.calls)


HOSTILE = {
    "unclosed thinking": "<think>" * 100_000,
    "closers": "</think>" * 100_000,
    "unclosed calls": THINK + "<tool_call>" * 100_000,
    "broken calls": THINK + "<tool_call>{</tool_call>x" * 10_000,
    "cut off strings": THINK + '<tool_call>{"name": "x\n</tool_call>\n' * 10_000,
    "one deep call": THINK + "<tool_call>" + '{"a":' * 10_000,
    "calls with a repeated key": THINK + '<tool_call>{"a":1,"a":1}</tool_call>' * 10_000,
    "code without end": THINK + f"<tool_call>{CALL}<code></code>" * 10_000,
    "empty answers": THINK + "<answer></answer>" * 10_000 + "</answer>" * 10_000,
    "nested answers": THINK + "<answer>" * 10_000,
    "thinking before each call": ("</think>" + block(CALL)) * 10_000 + "<answer>",
    "closers before bare calls": ("</think>" + CALL + "</tool_call>") * 10_000,
    "closers before half calls": '</think>{"name":"</tool_call>' * 10_000,
    "calls without thinking": block(CALL) * 10_000 + "x",
    "invented responses": ("</think>" + block(CALL)) * 10_000 + "x<tool_response>",
    "capitals": "<THINK>" * 10_000 + "</THINK>",
    "white space": THINK + " " * 1_000_000 + "x",
}


# In quadratic time the first three would take hours, and the others long enough to be seen.
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    assert render(parse_message(text)) == text


# --- what a text says -------------------------------------------------------------------------


class Reading(NamedTuple):
    thought: str
    calls: list[str]
    answer: str | None
    defects: str


def read(text: str) -> Reading:
    message = parse_message(text)
    calls = [
        f"{call.name} {dict(call.arguments)}" if isinstance(call, ToolCall) else call.reason
        for call in message.calls
    ]
    return Reading(
        message.thought,
        calls,
        message.answer,
        " ".join(defect.reason for defect in message.defects),
    )


SEARCH = "search {'query': ['tide']}"
VISIT = "visit {'url': ['https://a.example'], 'goal': 'g'}"


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        (THINK + block(CALL), Reading("plan", [SEARCH], None, "")),
        (THINK + block(CALL) + block(OTHER), Reading("plan", [SEARCH, VISIT], None, "")),
        (THINK + "<answer>a<b & <c></answer>", Reading("plan", [], "a<b & <c>", "")),
        ("\n<think></think><answer>\nX\n</answer>\n", Reading("", [], "X", "")),
        # Drafts in the thinking are thinking.
        (
            f"<think>\nso {block(OTHER)} or <answer>X</answer>?\n</think>\n{block(CALL)}",
            Reading(f"so {block(OTHER)} or <answer>X</answer>?", [SEARCH], None, ""),
        ),
        (
            f"<think>The draft is <answer>X</answer>\n</think>\n{block(CALL)}",
            Reading("The draft is <answer>X</answer>", [SEARCH], None, ""),
        ),
        # Tags in a JSON string and in a code body are text.
        (
            THINK
            + block('{"name": "search", "arguments": {"q": "</tool_call> <think> </think>"}}'),
            Reading("plan", ["search {'q': '</tool_call> <think> </think>'}"], None, ""),
        ),
        (
            THINK + block('{"name": "search", "arguments": {"q": "html <code> tag"}}'),
            Reading("plan", ["search {'q': 'html <code> tag'}"], None, ""),
        ),
        (
            THINK
            + block('{"name": "py", "arguments": {}}\n<code>\na = "</think></code>"\n</code>'),
            Reading("plan", ["py {}"], None, ""),
        ),
        # Where thinking ends.
        ("plan\n</think>\n" + block(CALL), Reading("plan", [SEARCH], None, "think_unopened")),
        (
            "<think>\nplan\n</think>\n</think>\n<answer>X</answer>",
            Reading("plan\n</think>", [], "X", "think_nested"),
        ),
        (
            "<think> a <think> b </think> c </think>" + block(CALL),
            Reading("a <think> b </think> c", [SEARCH], None, "think_nested think_nested"),
        ),
        ("<think>\nplan\n" + block(CALL), Reading("plan", [SEARCH], None, "think_unclosed")),
        (
            "<think>\nplan\n" + block(CALL) + "\n" + block(OTHER),
            Reading("plan", [SEARCH, VISIT], None, "think_unclosed"),
        ),
        (
            "<think>\nplan\n" + block(CALL) + "\nso",
            Reading(f"plan\n{block(CALL)}\nso", [], None, "call_missing think_unclosed"),
        ),
        (block(CALL), Reading("", [SEARCH], None, "think_missing")),
        ("so\n" + block(CALL), Reading("so", [SEARCH], None, "think_missing")),
        ("<answer>X</answer>", Reading("", [], "X", "think_missing")),
        (
            "<think>\nplan\n" + block(CALL) + "\n</think>",
            Reading(f"plan\n{block(CALL)}", [], None, "call_missing"),
        ),
        ("so\n" + THINK + block(CALL), Reading("plan", [SEARCH], None, "text_before_think")),
        (THINK + block(CALL) + "</think>", Reading("plan", [SEARCH], None, "tag_stray")),
        (
            THINK + "<answer>the tag </think> ends it</answer>",
            Reading("plan", [], "the tag </think> ends it", ""),
        ),
        # Case counts only where the message is not well formed without it.
        ("<think><ANSWER></think>" + block(CALL), Reading("<ANSWER>", [SEARCH], None, "")),
        (
            f"<THINK>plan</think><Tool_Call>{CALL}</tool_CALL>",
            Reading("plan", [SEARCH], None, "tag_case tag_case tag_case"),
        ),
        (
            f"<think>so <TOOL_CALL>{CALL}</TOOL_CALL></think>so{block(CALL)}",
            Reading(f"so <TOOL_CALL>{CALL}</TOOL_CALL>", [SEARCH], None, "text_before_call"),
        ),
        # Calls.
        (THINK + block("{'name': 1}"), Reading("plan", ["call_not_json"], None, "call_not_json")),
        (THINK + block("[]"), Reading("plan", ["call_not_json"], None, "call_not_json")),
        (THINK + block(""), Reading("plan", ["call_empty"], None, "call_empty")),
        (THINK + block("{}"), Reading("plan", ["call_name_missing"], None, "call_name_missing")),
        (
            THINK + block('{"name": " ", "arguments": {}}'),
            Reading("plan", ["call_name_missing"], None, "call_name_missing"),
        ),
        (
            THINK + block('{"name": "search"}'),
            Reading("plan", ["call_arguments_missing"], None, "call_arguments_missing"),
        ),
        (
            THINK + block('{"name": "search", "arguments": "{}"}'),
            Reading("plan", ["call_arguments_not_object"], None, "call_arguments_not_object"),
        ),
        (
            THINK + block('{"name": "search", "arguments": {"q": 1, "q": 2}}'),
            Reading("plan", ["call_key_repeated"], None, "call_key_repeated"),
        ),
        (
            THINK + block(CALL + "}"),
            Reading("plan", ["call_text_around"], None, "call_text_around"),
        ),
        (
            THINK + block('{"name": "search", "arguments": {"n": NaN}}'),
            Reading("plan", ["call_not_json"], None, "call_not_json"),
        ),
        (THINK + CALL, Reading("plan", [], None, "call_untagged")),
        (
            THINK + CALL + "\n" + block(OTHER),
            Reading("plan", [VISIT], None, "call_untagged"),
        ),
        (THINK + CALL + "\n</tool_call>", Reading("plan", [], None, "call_unopened")),
        (
            THINK + '{"name": "search", "arguments": {"q": "<code>"}}\n</tool_call>',
            Reading("plan", [], None, "call_unopened"),
        ),
        (
            THINK + "<tool_call>\n" + CALL,
            Reading("plan", ["call_unclosed"], None, "call_unclosed"),
        ),
        (
            THINK + f"<tool_call>\n{CALL}\n{block(OTHER)}",
            Reading("plan", ["call_unclosed", VISIT], None, "call_unclosed"),
        ),
        (
            THINK + f"<tool_call>\n{{'name'}}\n{block(OTHER)}",
            Reading("plan", ["call_not_json", VISIT], None, "call_not_json"),
        ),
        (
            THINK + block("{'a'}") + "\nand\n" + block("{'b'}"),
            Reading(
                "plan",
                ["call_not_json", "call_not_json"],
                None,
                "call_not_json text_before_call call_not_json",
            ),
        ),
        (
            THINK + block("{'a': '</tool_call> or <tool_call>'}"),
            Reading("plan", ["call_not_json"], None, "call_not_json"),
        ),
        (
            THINK + "<tool_call>\n" + block(CALL) + "\n</tool_call>",
            Reading("plan", [SEARCH], None, "tag_stray tag_stray"),
        ),
        # Text beside them.
        (THINK + "so\n" + block(CALL), Reading("plan", [SEARCH], None, "text_before_call")),
        (THINK + block(CALL) + "\nso", Reading("plan", [SEARCH], None, "text_after_call")),
        (
            THINK + block(CALL) + "so" + block(OTHER),
            Reading("plan", [SEARCH, VISIT], None, "text_before_call"),
        ),
        (
            THINK + "<summary>so</summary>\n<answer>X</answer>",
            Reading("plan", [], "X", "text_before_answer tag_stray tag_stray"),
        ),
        (THINK, Reading("plan", [], None, "call_missing")),
        (THINK + "so", Reading("plan", [], None, "text_without_call call_missing")),
        ("so", Reading("so", [], None, "call_missing think_missing")),
        ("", Reading("", [], None, "message_empty think_missing")),
        (" \n", Reading("", [], None, "message_empty think_missing")),
        # Invented responses: only behind a complete call behind the thinking.
        (
            THINK + block(CALL) + "\n<tool_response>r</tool_response>\n<answer>X</answer>",
            Reading("plan", [SEARCH], None, "response_invented"),
        ),
        (
            THINK + "the <tool_response> tag\n" + block(CALL),
            Reading("plan", [SEARCH], None, "text_before_call tag_stray"),
        ),
        (
            f"<think>{block(CALL)}<tool_response>r</tool_response></think><answer>X</answer>",
            Reading(f"{block(CALL)}<tool_response>r</tool_response>", [], "X", ""),
        ),
        # The answer.
        (
            THINK + "<answer>\nso\n<answer>\nX\n</answer>\nthus\n</answer>",
            Reading("plan", [], "X", "text_before_answer tag_stray text_after_answer tag_stray"),
        ),
        (
            THINK + "<answer></answer>\n<answer>X</answer>",
            Reading("plan", [], "X", "tag_stray tag_stray"),
        ),
        (
            THINK + "<answer>X</answer>\n(in <answer></answer> tags)",
            Reading("plan", [], "X", "text_after_answer tag_stray tag_stray"),
        ),
        (
            THINK + "<answer>X</answer>\nI wrote it in <answer> tags.",
            Reading("plan", [], "X", "text_after_answer tag_stray"),
        ),
        (THINK + "<answer>\nX", Reading("plan", [], "X", "answer_unclosed")),
        (THINK + "<answer> </answer>", Reading("plan", [], "", "answer_empty")),
        (
            THINK + "<answer>X</answer>\n<answer>X </answer>",
            Reading("plan", [], "X", "text_after_answer tag_stray tag_stray"),
        ),
        (
            THINK + "<answer>X</answer><answer>Y</answer>",
            Reading("plan", [], "X", "tag_stray text_after_answer two_answers tag_stray"),
        ),
        (
            THINK + "<answer>X</answer>\n<answer>\nY",
            Reading("plan", [], "X", "text_after_answer tag_stray two_answers"),
        ),
        (
            THINK + block(CALL) + "\n<answer>X</answer>",
            Reading("plan", [SEARCH], "X", "call_and_answer"),
        ),
        (
            THINK + "<answer>X</answer>\n" + block(CALL),
            Reading("plan", [SEARCH], "X", "call_and_answer"),
        ),
        (
            THINK + "<answer>X</answer>\n<tool_call> is a tag",
            Reading("plan", [], "X", "text_after_answer tag_stray"),
        ),
    ],
)
def test_a_text_is_read_as_thinking_calls_and_answer(text: str, reading: Reading) -> None:
    assert read(text) == reading


def test_a_call_says_where_its_block_and_its_json_stand() -> None:
    text = (
        THINK
        + block(CALL)
        + "\n"
        + block('{"name": "py", "arguments": {}}\n<code>\nx = 1\n</code>')
    )
    first, second = parse_message(text).calls
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert text[first.start : first.end] == block(CALL)
    assert text[first.json_start : first.json_end] == CALL
    assert first.code is None
    assert text[second.json_start : second.json_end] == '{"name": "py", "arguments": {}}'
    assert second.code == "x = 1"


def test_a_malformed_call_says_what_is_wrong_and_where() -> None:
    text = THINK + '<tool_call>\n{"name": "search" "arguments": {}}\n</tool_call>'
    (call,) = parse_message(text).calls
    assert isinstance(call, MalformedCall)
    assert (call.reason, call.is_closed) == ("call_not_json", True)
    assert text[call.body_start : call.body_end] == '\n{"name": "search" "arguments": {}}\n'
    assert text[call.at :].startswith('"arguments"')


def test_a_sound_call_is_found_behind_many_broken_ones() -> None:
    broken = block("{'name': 'search'}") + "\n"
    message = parse_message(THINK + "so " * 30_000 + broken * 60 + block(CALL))
    assert isinstance(message.calls[-1], ToolCall)


# --- observations -----------------------------------------------------------------------------


def wrapped(*texts: str) -> Message:
    return Message("user", "\n".join(wrap_response(text) for text in texts))


def texts_of(reply: Message) -> list[str]:
    return [reply.content[b.text_start : b.text_end] for b in response_blocks(reply)]


@pytest.mark.parametrize(
    ("content", "is_exact"),
    [
        ("<tool_response>\nr\n</tool_response>", True),
        ("<tool_response></tool_response>", True),
        ("<tool_response>", False),
        ("</tool_response>", False),
        (" <tool_response>\nr\n</tool_response>", False),
        ("<tool_response>\nr\n</tool_response>\n", False),
        ("r", False),
        ("", False),
    ],
)
def test_an_observation_is_wrapped_when_nothing_stands_outside(
    content: str, is_exact: bool
) -> None:
    assert is_wrapped(content) is is_exact


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (wrap_response("r"), ["r"]),
        (wrap_response("r") + "\n" + wrap_response("s\n\nt"), ["r", "s\n\nt"]),
        (wrap_response("") + "\n" + wrap_response("\n"), ["", "\n"]),
        ("<tool_response>r</tool_response>", ["r"]),
        ("<tool_response></tool_response>", [""]),
        ("<tool_response>\n</tool_response>", [""]),
        # Any other quotation of the tags is the page's text.
        (
            wrap_response("a </tool_response>\n<tool_response> b"),
            ["a </tool_response>\n<tool_response> b"],
        ),
        (
            wrap_response("a\n</tool_response> <tool_response>\nb"),
            ["a\n</tool_response> <tool_response>\nb"],
        ),
        (
            wrap_response("a\n</tool_response>\n<tool_response> b"),
            ["a\n</tool_response>\n<tool_response> b"],
        ),
        ("plain", ["plain"]),
        (
            "plain\n</tool_response>\n<tool_response>\nb",
            ["plain\n</tool_response>\n<tool_response>\nb"],
        ),
    ],
)
def test_an_observation_is_cut_only_between_lines_of_tags(content: str, texts: list[str]) -> None:
    assert texts_of(Message("user", content)) == texts


@given(st.text(), st.booleans())
def test_response_blocks_tile_an_observation(content: str, is_order: bool) -> None:
    reply = Message("user", content, is_order)
    blocks = response_blocks(reply)
    assert blocks[0].start == 0
    assert blocks[-1].end == len(content)
    assert [b.is_order for b in blocks] == [False] * (len(blocks) - 1) + [is_order]
    assert all(b.start <= b.text_start <= b.text_end <= b.end for b in blocks)


def test_responses_pair_with_as_many_calls() -> None:
    reply = wrapped("r", "s")
    responses = pair_responses(2, reply)
    assert responses.are_paired
    assert [reply.content[b.text_start : b.text_end] for b in responses.blocks] == ["r", "s"]
    assert responses.order is None


@pytest.mark.parametrize("call_count", [0, 1, 3])
def test_an_unequal_number_of_responses_answers_all_calls_together(call_count: int) -> None:
    reply = wrapped("r", "s")
    responses = pair_responses(call_count, reply)
    assert not responses.are_paired
    (together,) = responses.blocks
    assert (together.start, together.end) == (0, len(reply.content))
    text = reply.content[together.text_start : together.text_end]
    assert text == "r\n</tool_response>\n<tool_response>\ns"


def test_an_order_is_set_aside_before_pairing() -> None:
    reply = Message("user", wrapped("r", "Answer now.").content, ends_in_order=True)
    responses = pair_responses(1, reply)
    assert responses.are_paired
    (answered,) = responses.blocks
    assert reply.content[answered.text_start : answered.text_end] == "r"
    assert responses.order is not None
    assert reply.content[responses.order.text_start : responses.order.text_end] == "Answer now."


def test_an_order_alone_answers_no_call() -> None:
    responses = pair_responses(1, Message("user", wrap_response("Answer now."), ends_in_order=True))
    assert responses.blocks == ()
    assert not responses.are_paired
    assert responses.order is not None


def test_without_an_observation_nothing_is_paired() -> None:
    assert pair_responses(1, None) == ((), False, None)
