"""Each damage beside the call it must become, or the reason why it is left alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajcurate.curate.mend.call import Mended, Unmendable, mend_call
from trajcurate.schemas.strict_json import decode_json, skip_space

SEARCH = '{"name": "search", "arguments": {"query": ["a", "b"]}}'
SCHEMAS = {
    "visit": {
        "properties": {
            "url": {"type": "array"},
            "goal": {"type": "string"},
            "limit": {"type": "integer"},
            "deep": {"type": "boolean"},
            "either": {"type": ["string", "array", "integer"]},
        }
    }
}


def search(query: str) -> str:
    """A search call whose query list holds this JSON text."""
    return '{"name": "search", "arguments": {"query": [' + query + "]}}"


def visit(goal: str) -> str:
    """A visit call whose goal is this JSON text."""
    return '{"name": "visit", "arguments": {"goal": ' + goal + ', "limit": 5}}'


# --- what is mended -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "text", "mendings"),
    [
        # Brackets: the rest of the text stays as it is.
        ("\n" + SEARCH + "}}\n", "\n" + SEARCH + "\n", "call_brace_surplus"),
        (SEARCH + " ]\n}", SEARCH + " \n", "call_brace_surplus"),
        (SEARCH[:-1] + "\n", SEARCH + "\n", "call_brace_missing"),
        (SEARCH[:-3], SEARCH, "call_brace_missing"),
        (SEARCH[:-3] + "}}", SEARCH, "call_brace_missing"),
        (SEARCH[1:], SEARCH, "call_brace_missing"),
        (SEARCH[1:-1], SEARCH, "call_brace_missing"),
        (SEARCH[:-2] + "]}", SEARCH, "call_brace_surplus call_brace_missing"),
        (
            '{"name": "visit", "arguments": {"url": ["u", "goal": "g"}}',
            '{"name": "visit", "arguments": {"url": ["u"], "goal": "g"}}',
            "call_brace_missing",
        ),
        # Commas and keys.
        (
            '{"name": "search", "arguments": {"query": ["a", "b",],},}',
            SEARCH,
            "call_trailing_comma",
        ),
        ('{"name": "search" "arguments": {"query": ["a", "b"]}}', SEARCH, "call_comma_missing"),
        (search("{}\n [1]"), search("{},\n [1]"), "call_comma_missing"),
        (search('"a",, "b"'), SEARCH, "call_comma_surplus"),
        ('{name: "search", arguments: {query: ["a", "b"]}}', SEARCH, "call_keys_unquoted"),
        (
            '{"name": "search", "name": "search", "arguments": {"query": [1], "query": [1]}}',
            search("1"),
            "call_key_repeated",
        ),
        # Quotes.
        ("{'name': 'search', 'arguments': {'query': ['a', 'b']}}", SEARCH, "call_single_quoted"),
        (
            search("'the keeper's log', 'it\\'s \"x\"'"),
            search('"the keeper\'s log", "it\'s \\"x\\""'),
            "call_single_quoted call_quote_unescaped",
        ),
        (
            visit("'the states' capitals'"),
            visit('"the states\' capitals"'),
            "call_single_quoted call_quote_unescaped",
        ),
        (
            visit("'find 'a', 'b' and c'"),
            visit("\"find 'a', 'b' and c\""),
            "call_single_quoted call_quote_unescaped",
        ),
        (
            search('"who said "stop" there", "b"'),
            search('"who said \\"stop\\" there", "b"'),
            "call_quote_unescaped",
        ),
        (
            search('""salt road" "lock 1911""'),
            search('"\\"salt road\\" \\"lock 1911\\""'),
            "call_quote_unescaped",
        ),
        (search('"查询"盐路"历史"'), search('"查询\\"盐路\\"历史"'), "call_quote_unescaped"),
        (
            '{“name”: “search”, “arguments”: {“query”: [“a”, “it’s "b" “c” d”]}}',
            search('"a", "it’s \\"b\\" “c” d"'),
            "call_smart_quoted call_quote_unescaped",
        ),
        (
            "｛“name”：“search”，“arguments”：｛“query”：［“盐路”，“历史，续”］｝｝",
            '{"name":"search","arguments":{"query":["盐路","历史，续"]}}',
            "call_fullwidth_punctuation call_smart_quoted",
        ),
        # Strings.
        (search('"a\nb\tc"'), search('"a\\nb\\tc"'), "call_line_break_in_string"),
        (
            search(r'"\frac{1}{2} and \alpha"'),
            search(r'"\\frac{1}{2} and \\alpha"'),
            "call_backslash_unescaped",
        ),
        (
            search(r'"C:\Users\new", "\n"'),
            search(r'"C:\\Users\\new", "\n"'),
            "call_backslash_unescaped",
        ),
        # Python.
        (
            "{'name': 'f', 'arguments': {'a': True, 'b': None, 'c': \"it's \\xa0\", 'd': '\\x41'}}",
            '{"name": "f", "arguments": {"a": true, "b": null, "c": "it\'s \\u00a0", "d": "'
            '\\u0041"}}',
            "call_single_quoted call_python_literal",
        ),
        # Text that is not the call.
        ("```json\n" + SEARCH + "\n```", SEARCH + "\n", "call_fenced"),
        (
            "I'll look:\n```json\n" + SEARCH + "\n```\nThat is it.",
            SEARCH + "\n\n",
            "call_fenced call_text_around",
        ),
        ("json\n" + SEARCH, SEARCH, "call_text_around"),
        (SEARCH + ";", SEARCH, "call_trailing_comma"),
        (search('"a", // first\n"b" /* last */'), search('"a", \n"b" '), "call_comment"),
        ("\ufeff" + SEARCH.replace(" [", "\u00a0["), SEARCH, "call_space_not_json"),
        (SEARCH + "\n" + SEARCH, SEARCH + "\n", "call_repeated"),
        # The shape of a call.
        (SEARCH.replace("arguments", "parameters"), SEARCH, "call_parameters_key"),
        ("[" + SEARCH + "]", SEARCH, "call_wrapped"),
        ('{"tool_calls": [{"function": ' + SEARCH + "}]}", SEARCH, "call_wrapped"),
        (
            '{"id": "c1", "type": "function", "function": ' + SEARCH + "}",
            '{"id": "c1", "type": "function", ' + SEARCH[1:],
            "call_wrapped",
        ),
        (
            r'{"name": "search", "arguments": "{\"query\": [\"a\", \"b\"]}"}',
            SEARCH,
            "call_arguments_encoded",
        ),
        (
            json.dumps({"name": "f", "arguments": json.dumps(json.dumps({"a": 'x "y"'}))}),
            '{"name": "f", "arguments": {"a": "x \\"y\\""}}',
            "call_arguments_encoded",
        ),
        (
            '{"name": "search", "arguments": "{"query": ["a", "b"]}"}',
            SEARCH,
            "call_arguments_encoded",
        ),
        (
            '{"name": "search", "arguments": "{\'query\': [\'a\', \'b\'"}',
            SEARCH,
            "call_arguments_encoded call_single_quoted call_brace_missing",
        ),
        (json.dumps(SEARCH), SEARCH, "call_encoded"),
        (json.dumps(SEARCH)[1:-1], SEARCH, "call_encoded"),
        # A code body stays as it is.
        (
            "{'name': 'py', 'arguments': {}\n<code>\nprint('}')\n</code>\n}",
            '{"name": "py", "arguments": {}}\n<code>\nprint(\'}\')\n</code>\n',
            "call_single_quoted call_brace_missing call_brace_surplus",
        ),
        (
            '{"name": "py", "arguments": {},\n<code>\nx = "```"\n',
            '{"name": "py", "arguments": {}}\n<code>\nx = "```"\n</code>\n',
            "call_brace_missing call_trailing_comma call_code_unclosed",
        ),
    ],
)
def test_damage_is_mended_and_named(body: str, text: str, mendings: str) -> None:
    assert mend_call(body) == Mended(text, tuple(mendings.split()))


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        (
            '<function=visit>\n<parameter=url>\n["https://a/q?x=1&y=2"]\n<parameter=goal>\n'
            'depth < 5 && "R&amp;D"\n</parameter>\n</function>',
            {"url": ["https://a/q?x=1&y=2"], "goal": 'depth < 5 && "R&amp;D"'},
        ),
        ("<function=visit>\n<parameter=goal>\n\n x \n\n", {"goal": "\n x \n\n"}),
        (
            '<function_calls>\n<invoke name="Visit">\n<parameter name="limit">5</parameter>\n'
            '<parameter name="deep">true</parameter>\n</invoke>\n</function_calls>',
            {"limit": 5, "deep": True},
        ),
        ("<function=visit><parameter=goal>[5]</parameter></function>", {"goal": "[5]"}),
        ("<function=visit><parameter=limit>5.5</parameter></function>", {"limit": "5.5"}),
        ("<function=visit><parameter=deep>5</parameter></function>", {"deep": "5"}),
        ("<function=visit><parameter=url>[5] is\n</parameter></function>", {"url": "[5] is"}),
        ("<function=visit><parameter=url>['u']</parameter></function>", {"url": ["u"]}),
        ('<function=visit><parameter=either>["u"]</parameter></function>', {"either": ["u"]}),
        ("<function=visit><parameter=either>5</parameter></function>", {"either": "5"}),
        ("<function=visit><parameter=other>[5]</parameter></function>", {"other": "[5]"}),
        ("<function=visit><parameter=goal>x<parameter=limit>5", {"goal": "x", "limit": 5}),
        ('<function=visit>{"goal": "x",}</function>', {"goal": "x"}),
        ("<function=visit></function>", {}),
    ],
)
def test_a_call_in_tags_is_read_literally_and_decoded_by_schema(
    body: str, arguments: dict[str, Any]
) -> None:
    mended = mend_call(f"\n{body}\n", SCHEMAS)
    assert isinstance(mended, Mended)
    assert mended.mendings[0] == "call_dialect"
    call = json.loads(mended.text)
    assert call["name"].lower() == "visit"
    assert call["arguments"] == arguments
    assert mended.text.startswith("\n{")


@pytest.mark.parametrize(
    "body",
    [
        SEARCH,
        "\n" + SEARCH + "\n",
        search(
            r'"C:\\temp\\", "say \"hi\", then {x}", "50% } // no comment", "it\'s"'.replace(
                "\\'", "'"
            )
        ),
        search('"“quoted”，ok", "</tool_call> and <code>", "\\u76d0 \\ud83d"'),
        '{"arguments": {}, "id": 1.50, "name": "py"}\n<code>\nprint("}}")\n</code>',
    ],
)
def test_a_sound_call_is_not_touched(body: str) -> None:
    assert mend_call(body) == Mended(body, ())


# --- what is left alone -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "reason", "at"),
    [
        ("", "call_empty", 0),
        (" \n", "call_empty", 0),
        ("no call", "call_not_json", 0),
        ("[]", "call_empty", 0),
        ("[1]", "call_not_object", 1),
        # Cut off: nothing is completed.
        ('{"name": "search", "arguments": {"query": ["a", "b', "call_cut_off", 48),
        ('{"name": "search", "arguments": {"query": ["a",', "call_cut_off", 47),
        ('{"name": "search", "arguments": {"query": [', "call_cut_off", 43),
        ('{"name": "search", "arguments": {"n": 1', "call_cut_off", 39),
        ('{"name": "search", "arguments": ', "call_cut_off", 32),
        ('{"name": "search", "argu', "call_cut_off", 19),
        ("{'name': 'search', 'arguments': {'query': ['a', 'b", "call_cut_off", 48),
        # A call without its parts.
        ("{}", "call_name_missing", 0),
        ('{"name": " ", "arguments": {}}', "call_name_missing", 0),
        ('{"name": "search", "query": ["a"]}', "call_arguments_missing", 0),
        ('search\n{"query": ["a"]}', "call_name_missing", 7),
        ('{"name": "search", "arguments": null}', "call_arguments_not_object", 0),
        ('{"name": "search", "arguments": "salt"}', "call_arguments_not_object", 32),
        ('{"name": "search", "arguments": ""}', "call_arguments_not_object", 32),
        ('{"name": "search", "arguments": "[1]"}', "call_arguments_not_object", 32),
        ('{"name": "search", "arguments": "{\\"a\\": \\"x"}', "call_cut_off", 32),
        # Two readings.
        (search('"a" "b"'), "call_comma_missing", 47),
        (search("1 2"), "call_not_json", 45),
        (search("'find 'a', 'b' and c'"), "call_ambiguous", 49),
        (search("'the states', 'names' list'"), "call_ambiguous", 63),
        (search('"a, "b"'), "call_ambiguous", 47),
        (visit('"x'), "call_ambiguous", 44),
        (visit('"what "Orlo": is"'), "call_ambiguous", 51),
        (search(r'"a \"b\" \alpha"'), "call_ambiguous", 46),
        (search(r'"\\frac \alpha"'), "call_ambiguous", 44),
        (search(r'"the keeper\'s"'), "call_ambiguous", 54),
        (search(r"'a\/b'"), "call_ambiguous", 45),
        (search('"a", // "b",\n"c"'), "call_ambiguous", 48),
        (search("'the keepers', // it's\n5"), "call_ambiguous", 58),
        ('{"name": "visit", "arguments": {"url": ["u"]}, "goal": "g"}}', "call_ambiguous", 47),
        (
            '{"name": "visit", "arguments": {"url": ["u"}, "goal": "g"}}',
            "call_brackets_mismatched",
            43,
        ),
        ('{"name": "search", "arguments": {"query": [["a"]}}', "call_brackets_mismatched", 42),
        ('{"name": "f", "arguments": {"a": [1, "b": 2]}}', "call_brackets_mismatched", 43),
        ('{"name": "f", "arguments": "{"a": "x\\"y"}"}', "call_ambiguous", 28),
        ('{"name": "f", "arguments": {"a": 1, "a": 2}}', "call_key_repeated", 36),
        (SEARCH + search('"c"'), "call_several", len(SEARCH)),
        ("[" + SEARCH + ", " + search('"c"') + "]", "call_several", len(SEARCH) + 3),
        (SEARCH + ', "goal": "g"', "call_text_around", len(SEARCH)),
        (SEARCH + ", 'goal': 5", "call_text_around", len(SEARCH)),
        (SEARCH + ' see "x"', "call_text_around", len(SEARCH) + 1),
        ('{"name": "py", "arguments": {}}\nprint(1)', "call_text_around", 32),
        (SEARCH + "\n```python\nx\n```\n```", "call_text_around", len(SEARCH) + 1),
        ('{"name": "py", "arguments": {}}<code>x</code> y', "call_text_around", 46),
        ('{"name": "py", "arguments": {}}<code>x</cde>', "call_ambiguous", 31),
        # Values that JSON does not have.
        (search("NaN"), "call_number_not_json", 43),
        (search("+5"), "call_number_not_json", 43),
        (search("-.5"), "call_number_not_json", 43),
        (search("007"), "call_number_not_json", 43),
        (search("salt"), "call_value_unquoted", 43),
        (visit(""), "call_value_missing", 40),
        ('{"name": "search", "arguments": {"query": [}}', "call_value_missing", 43),
        ('{"name" "search"}', "call_colon_missing", 8),
        # Calls in tags.
        ("<function=>\n</function>", "call_not_json", 0),
        ("<function=f>", "call_cut_off", 12),
        ("<function=f> x", "call_text_around", 13),
        ("<function=f>\n<parameter=a>1</parameter>2</function>", "call_text_around", 39),
        ("<function=f><parameter=a>x <parameter=b> y</parameter></function>", "call_ambiguous", 27),
        (
            "<function=f><parameter=a>1</parameter><parameter=a>2</parameter></function>",
            "call_key_repeated",
            38,
        ),
        (
            "<function=f><parameter=a>1</function><function=f><parameter=a>2</function>",
            "call_several",
            37,
        ),
    ],
)
def test_what_cannot_be_mended_is_named_with_its_place(body: str, reason: str, at: int) -> None:
    assert mend_call(body) == Unmendable(reason, at)


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"function": ' * 50 + SEARCH + "}" * 50,
        '{"name": "f", "arguments": ' + '{"a":' * 150 + "1,",
        search('"' * 100_000),
        search("\\" * 100_000),
        search('"a" ' + " " * 100_000 + '"'),
        search("“" * 50_000),
        search("," * 200_000),
        "<function=" * 50_000,
        "<function=f><parameter=a" + " " * 100_000,
        SEARCH + "<code>" * 50_000 + "</code>}" * 50_000 + "x",
        "\"'" * 50_000,
    ],
    ids=range(13),
)
def test_hostile_text_is_refused_without_an_error(body: str) -> None:
    assert isinstance(mend_call(body), Unmendable)


def test_a_big_damaged_call_is_mended() -> None:
    mended = mend_call("{'name': 'f', 'arguments': {'a': ['" + "it's so, x" * 100_000 + "\n']}}")
    assert isinstance(mended, Mended)
    assert json.loads(mended.text)["arguments"]["a"] == ["it's so, x" * 100_000 + "\n"]


# --- the law ------------------------------------------------------------------------------------


# Characters that mean something to some reader, between ones that do not.
PIECES = st.sampled_from(
    [*"{}[]:,\"'\\“”‘’，：`/#<>=+-.0 19aet\n", "\\n", "\\u0041", "\ud83d", "\u00a0", "True", "null"]
)
PARTS = st.sampled_from(
    ['"name"', '"arguments"', "'query'", "parameters", "```json\n", "<code>", "</code>", "//"]
) | st.sampled_from(
    ["<function=f>", "<parameter=a>", "</parameter>", "</function>", '"name": "f", ', '": "']
)
ANY_TEXT = st.lists(PIECES | PARTS, max_size=40).map("".join)
NEAR_CALLS = st.tuples(
    st.sampled_from([SEARCH, visit('"x"'), repr(json.loads(SEARCH)), SEARCH.replace('"', "“")]),
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 2), ANY_TEXT), max_size=3),
)


def cut(drawn: tuple[str, list[tuple[int, int, str]]]) -> str:
    text, cuts = drawn
    for at, length, inserted in cuts:
        text = text[:at] + inserted[:3] + text[at + length :]
    return text


def require_strict_call(text: str) -> None:
    value, end = decode_json(text, skip_space(text, 0))
    code = text[end:].strip()
    assert not code or (code.startswith("<code>") and code.endswith("</code>"))
    assert isinstance(value["name"], str)
    assert value["name"].strip()
    assert isinstance(value["arguments"], dict)


@settings(max_examples=250, deadline=None)
@given(ANY_TEXT | NEAR_CALLS.map(cut) | st.text())
def test_every_text_is_mended_to_a_strict_call_or_refused(body: str) -> None:
    mended = mend_call(body, SCHEMAS)
    if isinstance(mended, Unmendable):
        assert 0 <= mended.at <= len(body)
        return
    require_strict_call(mended.text)
    assert mend_call(mended.text) == Mended(mended.text, ())
    assert mended.mendings or mended.text == body


# With these nothing but structure is taken out.
STRUCTURAL = {
    "call_brace_missing",
    "call_brace_surplus",
    "call_comma_missing",
    "call_comma_surplus",
    "call_fullwidth_punctuation",
    "call_keys_unquoted",
    "call_quote_unescaped",
    "call_single_quoted",
    "call_smart_quoted",
    "call_trailing_comma",
}


@settings(max_examples=250, deadline=None)
@given(NEAR_CALLS.map(cut))
def test_no_letter_or_digit_is_lost_or_made_up(body: str) -> None:
    mended = mend_call(body)
    if isinstance(mended, Unmendable) or not STRUCTURAL.issuperset(mended.mendings):
        return
    if "\\" in body:
        return
    assert re.findall(r"\w", mended.text) == re.findall(r"\w", body)


NASTY = st.lists(
    st.sampled_from(["a", "it's", '"', "'", ", ", ": ", "{", "}", "]", "\\", "\n", "\x00", "\x0c"])
    | st.sampled_from(
        ["', '", '", "', "//", "“", "’", "，", "\u00a0", "🔥", "\ud83d", "</code>", "#"]
    ),
    max_size=8,
).map("".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | NASTY
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["query", "url", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)
CALLS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["search", "visit"]),
        "arguments": st.dictionaries(st.sampled_from(["query", "url", "goal"]), VALUES, max_size=3),
    }
)


def write(call: dict[str, Any]) -> str:
    return json.dumps(call, ensure_ascii=False)


def outside_strings(pattern: str, replace: Callable[[str], str]) -> Callable[[dict[str, Any]], str]:
    """An operator on the JSON of a call that leaves the strings of its values alone."""
    token = re.compile(rf'({pattern})|"(?:[^"\\]|\\.)*"', re.DOTALL)
    return lambda call: token.sub(
        lambda match: replace(match[0]) if match[1] is not None else match[0], write(call)
    )


OTHERWISE = {"true": "True", "false": "False", "null": "None", ",": "，", ":": "："}
DAMAGES: dict[str, Callable[[dict[str, Any]], str]] = {
    "closing brackets dropped": lambda call: write(call).rstrip("]}"),
    "one brace dropped": lambda call: write(call)[:-1],
    "opening brace dropped": lambda call: write(call)[1:],
    "brackets added": lambda call: write(call) + "}]}",
    "written by repr": repr,
    "keys unquoted": outside_strings(r'"\w+"(?=:)', lambda key: key.strip('"')),
    "trailing commas": outside_strings(r"(?<![\[{])[\]}]", lambda closer: "," + closer),
    "python literals": outside_strings("true|false|null", OTHERWISE.__getitem__),
    "full-width": outside_strings("[,:]", OTHERWISE.__getitem__),
    "wide space": outside_strings(" ", lambda _: "\u3000"),
    "fenced": lambda call: f"```json\n{write(call)}\n```",
    "raw line breaks": lambda call: write(call).replace("\\n", "\n"),
    "arguments encoded": lambda call: write(call | {"arguments": write(call["arguments"])}),
    "encoded": lambda call: write(write(call)),  # type: ignore[arg-type]
    "encoded, unquoted": lambda call: write(write(call))[1:-1],  # type: ignore[arg-type]
    "said twice": lambda call: write(call) + write(call),
    "wrapped": lambda call: write({"tool_calls": [{"function": call}]}),
    "key repeated": lambda call: write(call)[:-1] + ', "name": ' + json.dumps(call["name"]) + "}",
}
# What these leave always shows what it was.
NEVER_REFUSED = set(DAMAGES) - {
    "closing brackets dropped",  # an empty container at the end is cut off
    "written by repr",  # some strings hold what Python and JSON read differently
    "raw line breaks",
}


@pytest.mark.parametrize("damage", DAMAGES)
@settings(max_examples=25, deadline=None)
@given(call=CALLS)
def test_known_damage_becomes_the_call_it_was_or_is_refused(
    damage: str, call: dict[str, Any]
) -> None:
    mended = mend_call(DAMAGES[damage](call))
    if isinstance(mended, Mended):
        assert json.loads(mended.text) == call
    else:
        assert damage not in NEVER_REFUSED, mended


WORDS = st.sampled_from(["salt", "road", "1911", "lock,", "keeper's", "R&D", "a:b", "{x}", "盐路"])


@pytest.mark.parametrize("quote", "\"'")
@settings(max_examples=100, deadline=None)
@given(
    strings=st.lists(
        st.lists(st.tuples(st.booleans(), WORDS), min_size=1, max_size=5), min_size=1, max_size=3
    )
)
def test_quotes_inside_a_quoted_text_are_kept_or_refused(
    quote: str, strings: list[list[tuple[bool, str]]]
) -> None:
    texts = [
        " ".join(f"{quote}{word}{quote}" if is_quoted else word for is_quoted, word in words)
        for words in strings
    ]
    inside = ", ".join(f"{quote}{text}{quote}" for text in texts)
    mended = mend_call(search(inside))
    if isinstance(mended, Mended):
        assert json.loads(mended.text)["arguments"]["query"] == texts


@pytest.mark.parametrize(
    "text",
    [
        search('"river length km", "it\'s [sic], 1931"'),
        visit('"who said \\"stop\\", when: 1911?", "url": ["https://a/q?x=1"]'),
    ],
)
def test_a_lost_quote_or_bracket_never_moves_text_to_another_place(text: str) -> None:
    call = json.loads(text)
    for at, character in enumerate(text):
        if character not in '"[]{},:':
            continue
        mended = mend_call(text[:at] + text[at + 1 :])
        if isinstance(mended, Mended) and mended.mendings:
            assert json.loads(mended.text) == call


# --- the open cases -----------------------------------------------------------------------------


CASES = Path(__file__).parents[3] / "shared" / "cases" / "open_cases.jsonl"


def test_the_open_cases_of_repairable_calls_are_met() -> None:
    if not CASES.exists():
        pytest.skip("the open cases are not here")
    seen = 0
    for line in CASES.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["area"] != "tool_call" or case["expect"]["verdict"] != "repaired":
            continue
        if "tool_calls" not in case["expect"]["data"] or "schema" in case["input"]:
            continue
        body = re.search(r"<tool_call>(.*)</tool_call>", case["input"]["assistant"], re.DOTALL)
        assert body is not None
        mended = mend_call(body[1])
        assert isinstance(mended, Mended), case["id"]
        assert [json.loads(mended.text)] == case["expect"]["data"]["tool_calls"], case["id"]
        seen += 1
    assert seen >= 5
