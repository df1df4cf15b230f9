import io
import json
from typing import Any
from unittest import mock

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from trajcurate.curate.read import document
from trajcurate.curate.read.document import document_records
from trajcurate.curate.read.lines import Oversized


def records_of(content: bytes, max_bytes: int = 10_000) -> list[bytes | Oversized]:
    return list(document_records(io.BytesIO(content), max_bytes))


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (b"", []),
        (b" \n\t", []),
        (b"\xef\xbb\xbf", []),
        (b'{"a": [1, "]}"]}\n', [b'{"a": [1, "]}"]}']),
        (b'\xef\xbb\xbf\n{\n"a": 1\n}', [b'{\n"a": 1\n}']),
        (b"[]", []),
        (b' [ {"a": 1} ,\n{"b": "x\\"}]"} ] \n', [b'{"a": 1}', b'{"b": "x\\"}]"}']),
        (b'[{"a": "\\\\"}, {}]', [b'{"a": "\\\\"}', b"{}"]),
        (b'[1, "two, ]", null,[3,[4]]]', [b"1", b'"two, ]"', b"null", b"[3,[4]]"]),
        (b"[{'a': 1}, {}]", [b"{'a': 1}", b"{}"]),
        (b'[{"a": \xff}, {}]', [b'{"a": \xff}', b"{}"]),
        (b"3.5", [b"3.5"]),
    ],
)
def test_one_object_or_a_list_of_objects_is_cut_into_records(
    content: bytes, records: list[bytes]
) -> None:
    assert records_of(content) == records


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"a": 1', "the file ends inside record 0"),
        (b'{"a": "1}', "the file ends inside record 0"),
        (b'[{}, {"a": 1', "the file ends inside record 1"),
        (b"[{}, {}", "the file ends before the list does, after 2 records"),
        (b"[{}, {},", "the file ends before the list does, after 2 records"),
        (b"[{} {}]", "expected `,` or `]` after record 0"),
        (b"{} {}", "more text after the end of the document"),
        (b"[{}] x", "more text after the end of the document"),
        (b"plain text", "more text after the end of the document"),
    ],
)
def test_a_document_that_is_cut_off_or_no_json_is_an_error(content: bytes, why: str) -> None:
    with pytest.raises(OSError, match=f"^json: {why}$".replace("[", r"\[")):
        records_of(content)


def test_a_record_above_the_limit_is_passed_over_and_its_neighbours_are_read() -> None:
    large = json.dumps({"a": 'x\\"]}' * 50}).encode()
    content = b'[{"b": 1}, ' + large + b', {"c": 2}]'
    expected = Oversized(len(large), xxhash.xxh3_128_hexdigest(large))
    assert records_of(content, max_bytes=100) == [b'{"b": 1}', expected, b'{"c": 2}']
    with mock.patch.object(document, "BLOCK_BYTES", 7):
        assert records_of(content, max_bytes=100) == [b'{"b": 1}', expected, b'{"c": 2}']


texts = st.text(st.sampled_from('a"\\[]{},\n é'), max_size=12)
values = st.recursive(
    texts | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(values, max_size=5),
    st.sampled_from([None, 1]),
    st.integers(1, 40),
    st.integers(1, 60),
)
def test_the_cut_does_not_depend_on_the_blocks_it_is_read_in(
    items: list[Any], indent: int | None, block: int, max_bytes: int
) -> None:
    content = json.dumps(items, indent=indent, ensure_ascii=False).encode()
    with mock.patch.object(document, "BLOCK_BYTES", block):
        found = records_of(content, max_bytes)
    assert found == records_of(content, max_bytes)
    assert len(found) == len(items)
    for item, text in zip(items, found, strict=True):
        if isinstance(text, bytes):
            assert json.loads(text) == item
        else:
            assert text.size > max_bytes
