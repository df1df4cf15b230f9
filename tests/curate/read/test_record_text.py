import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajcurate.curate.read.record_text import MAX_DEPTH, NotARecord, parse_record

texts = st.text(st.sampled_from('ab"\\/:,{}[]\n\x00\x7fé\u2028\ud800\U0001f600'), max_size=5)
json_values = st.recursive(
    st.sampled_from([None, True, 0, -1, 2**64, -(2**63) - 1, 10**30, 0.1, 1e30, -1e300]) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("text", "record"),
    [
        (b'{"gt": "1931-05-04", "id": "007"}', {"gt": "1931-05-04", "id": "007"}),
        (b'{"gt": 7, "ok": true, "none": null}', {"gt": 7, "ok": True, "none": None}),
        (b'{"n": 18446744073709551616}', {"n": 2**64}),
        (b'{"n": -9223372036854775809}', {"n": -(2**63) - 1}),
        (b'{"n": 1e30}', {"n": 1e30}),
        (rb'{"t": "\ud83d"}', {"t": "\ud83d"}),
        (rb'{"t": "ok \ud83d\ude00 bad \udcb2 end"}', {"t": "ok \U0001f600 bad \udcb2 end"}),
        (rb'{"t": "\u0000\u0022\\"}', {"t": '\x00"\\'}),
        ('{"t": "one\u2028two\u0085"}'.encode(), {"t": "one\u2028two\u0085"}),
        (b' {"t": 1}\r', {"t": 1}),
        (rb'{"a\\": 1, "b": {"a\\": "\":"}}', {"a\\": 1, "b": {"a\\": '":'}}),
    ],
)
def test_values_are_taken_as_they_stand(text: bytes, record: dict[str, Any]) -> None:
    parsed = parse_record(text)
    assert parsed == record
    assert [type(value) for value in parsed.values()] == [type(v) for v in record.values()]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a": 1 "b": 2}', "json: expecting ',' delimiter at column 9"),
        (b'{"a": 1', "json: expecting ',' delimiter at column 8"),
        (b'{"a":\n 1 "b"}', "json: expecting ',' delimiter at line 2 column 4"),
        (b"{'a': 1}", "json: expecting property name enclosed in double quotes at column 2"),
        (b'{"a": 1} {"a": 2}', "json: extra data at column 10"),
        (b"\x00\x00\x00", "json: expecting value at column 1"),
        (b'{"a": "\x00"}', "json: invalid control character at column 8"),
        (b'{"a": NaN}', "json: NaN is not JSON"),
        (b'{"a": 1e999}', "json: number 1e999 is out of range"),
        (b'{"a": "caf\xe9"}', "not_utf8: byte 0xe9 at byte 11"),
        (b'{"a": "\xed\xa0\xbd"}', "not_utf8: byte 0xed at byte 8"),
        (b"[1]", "not_an_object: list"),
        (b'"text"', "not_an_object: text"),
        (b"12", "not_an_object: number"),
        (b"1.5", "not_an_object: number"),
        (b"null", "not_an_object: null"),
        (b"true", "not_an_object: boolean"),
        (b'{"a": 1, "b": 2, "a": 1}', 'repeated_key: "a"'),
        (b'{"m": [{"role" : "x", "role":"y"}]}', 'repeated_key: "role"'),
        (rb'{"a\\": 1, "b": 2, "b": 3}', 'repeated_key: "b"'),
        (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", "json: nested deeper than 200 levels"),
        (b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", "json: nested deeper than 200 levels"),
        (b'{"a": ' + b"1" * 5000 + b"}", None),
    ],
)
def test_what_is_no_record_is_named_with_its_place(text: bytes, why: str | None) -> None:
    with pytest.raises(NotARecord) as caught:
        parse_record(text)
    if why:
        assert str(caught.value) == why
    else:
        assert str(caught.value).startswith("json: exceeds the limit")


def test_the_deepest_record_that_is_read_can_be_written_again() -> None:
    levels = MAX_DEPTH - 1
    text = b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"
    assert orjson.dumps(parse_record(text)) == text


@given(st.dictionaries(texts, json_values, max_size=3))
def test_a_record_is_read_back_as_it_was_written(record: dict[str, Any]) -> None:
    assert repr(parse_record(json.dumps(record, indent=1).encode())) == repr(record)
    try:
        text = json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return  # a lone surrogate has no bytes
    assert repr(parse_record(text)) == repr(record)


@given(st.dictionaries(texts, json_values, min_size=1, max_size=3), st.data())
def test_a_repeated_key_is_never_dropped_silently(record: dict[str, Any], data: Any) -> None:
    key = data.draw(st.sampled_from(sorted(record)))
    again = f"{json.dumps(key)}: {json.dumps(data.draw(json_values))}"
    text = json.dumps(record)[:-1] + f", {again}}}"
    with pytest.raises(NotARecord, match="repeated_key"):
        parse_record(text.encode())
