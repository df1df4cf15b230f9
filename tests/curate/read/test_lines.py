import io

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from trajcurate.curate.read.lines import Oversized, RecordCounter, record_lines

BOM = b"\xef\xbb\xbf"


def lines_of(content: bytes, max_bytes: int = 1000) -> list[bytes | Oversized]:
    return list(record_lines(io.BytesIO(content), max_bytes))


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a\r", b"b\r"]),
        (b"\n\na\n \t\r\n\nb\n\n", [b"a", b"b"]),
        ("a\u2028b\u2029c\u0085d\x0b\x0c\n".encode(), ["a\u2028b\u2029c\u0085d\x0b\x0c".encode()]),
        (b"a\rb\n", [b"a\rb"]),
        (BOM + b"a\n" + BOM + b"b\n", [b"a", BOM + b"b"]),
        (BOM, []),
        (BOM + b"\r\na", [b"a"]),
        (b"\x00\n", [b"\x00"]),
    ],
)
def test_only_a_line_feed_ends_a_record(content: bytes, records: list[bytes]) -> None:
    assert lines_of(content) == records


def test_a_line_at_the_limit_is_kept_and_a_longer_one_is_passed_over() -> None:
    content = b"12345\n123456\n12345\n1234567"
    assert lines_of(content, max_bytes=5) == [
        b"12345",
        Oversized(6, xxhash.xxh3_128_hexdigest(b"123456")),
        b"12345",
        Oversized(7, xxhash.xxh3_128_hexdigest(b"1234567")),
    ]


def test_a_range_ends_where_it_should_behind_a_line_above_the_limit() -> None:
    found = list(record_lines(io.BytesIO(b"a\n1234567\nb\n"), 5, length=10))
    assert found == [b"a", Oversized(7, xxhash.xxh3_128_hexdigest(b"1234567"))]


def test_a_long_line_of_white_space_is_still_blank() -> None:
    assert lines_of(b"a\n" + b" " * 50 + b"\nb\n", max_bytes=5) == [b"a", b"b"]


def test_a_range_that_has_become_shorter_is_an_error() -> None:
    with pytest.raises(OSError, match="it has become shorter, by 3 bytes"):
        list(record_lines(io.BytesIO(b"a\n"), 10, length=5))


@given(st.binary(max_size=60).map(lambda b: bytes(b"\n\n\n \r\ta"[c % 7] for c in b)), st.data())
def test_counting_in_blocks_agrees_with_reading(content: bytes, data: st.DataObject) -> None:
    counter = RecordCounter()
    rest = content
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        counter.feed(rest[:size])
        rest = rest[size:]
    assert counter.count == len(lines_of(content))
