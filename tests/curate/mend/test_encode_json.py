from __future__ import annotations

import json

import pytest
from generated_turns import unhurried
from hypothesis import given
from hypothesis import strategies as st

from trajcurate.curate.mend.encode_json import encode_string, escape_surrogates, reencode


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":1}', '{"a": 1}'),
        ('{ "a" :[ 1,2 ]\n, "b" : { } }', '{"a": [1, 2], "b": {}}'),
        ("[]", "[]"),
        (' "x" ', '"x"'),
        ('"\\u76d0\\u8def"', '"盐路"'),
        ('"\\ud83d\\udd25"', '"🔥"'),
        ('"\\ud83d"', '"\\ud83d"'),
        ('"a\\/b, c: {\\"d\\"} \\\\"', '"a/b, c: {\\"d\\"} \\\\"'),
        ('"tab\\u0009 del\\u007f"', '"tab\\t del\x7f"'),
        ('"\u2028"', '"\u2028"'),
        ("[1.10,1e5,-0.0,1E+2,123456789012345678901234567890]", None),
        ("[true,false,null]", "[true, false, null]"),
    ],
)
def test_json_is_written_as_python_writes_it_and_numbers_stay(
    text: str, expected: str | None
) -> None:
    assert reencode(text) == (expected or text.replace(",", ", "))


def test_no_nesting_is_too_deep() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert reencode(text) == text


def test_half_a_surrogate_pair_stays_an_escape() -> None:
    assert encode_string("a\ud83d潮") == '"a\\ud83d潮"'
    assert escape_surrogates('["\udd25"]') == '["\\udd25"]'


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


@unhurried
@given(JSON, st.booleans(), st.sampled_from([None, 0, 2]), st.sampled_from([",", " , "]))
def test_the_form_is_that_of_json_dumps(
    value: object, is_ascii: bool, indent: int | None, comma: str
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent, separators=(comma, ":"))
    written = reencode(text)
    assert written == json.dumps(value, ensure_ascii=False)
    assert reencode(written) == written
