"""A whole JSON file: one object is one record, a list of objects is a record each.

The list is cut into the texts of its elements as it streams by, so memory does not grow with it,
and an element that is broken costs itself alone. Other wrappers (`{"data": [...]}`) are not opened:
such a file is one record.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

import xxhash

from trajcurate.curate.read.lines import BYTE_ORDER_MARK, Oversized
from trajcurate.curate.read.storage import BLOCK_BYTES

_NOT_SPACE = re.compile(rb"[^ \t\r\n]")
_QUOTE_OR_BRACKET = re.compile(rb'["{}\[\]]')
_QUOTE, _BACKSLASH = b'"\\'
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_END_OF_SCALAR = re.compile(rb"[,\]\s]")


def document_records(stream: BinaryIO, max_bytes: int) -> Iterator[bytes | Oversized]:
    """The text of each record of a JSON file, in order; none for an empty file.

    Args:
        stream: stands at the start of the file.
        max_bytes: a longer record is passed over without holding it.

    Raises:
        OSError: the file ends inside a record or the list, or what stands between the records is
            not JSON.
    """
    text = _Window(stream)
    first = text.peek()
    if first == b"[":
        text.skip(1)
        yield from _elements(text, max_bytes)
    elif first:
        yield _element(text, max_bytes, 0)
    if text.peek():
        raise OSError("json: more text after the end of the document")


class _Window:
    """The part of a stream that is being looked at: `data` from position `at`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.data = stream.read(BLOCK_BYTES).removeprefix(BYTE_ORDER_MARK)
        self.at = 0

    def peek(self) -> bytes:
        """The next byte that is not white space, nothing at the end; stands before it."""
        while True:
            found = _NOT_SPACE.search(self.data, self.at)
            if found:
                self.at = found.start()
                return found.group()
            self.at = len(self.data)
            if not self.more():
                return b""

    def skip(self, count: int) -> None:
        self.at += count

    def more(self) -> bool:
        """Reads on and forgets what stands before `at`; False at the end of the stream."""
        kept = self.data[self.at :]
        # As much again as is kept: the copying stays linear in the length of a record.
        block = self._stream.read(max(BLOCK_BYTES, len(kept)))
        self.data = kept + block
        self.at = 0
        return bool(block)


def _elements(text: _Window, max_bytes: int) -> Iterator[bytes | Oversized]:
    number = 0
    while True:
        mark = text.peek()
        if mark == b"]":
            text.skip(1)
            return
        if not mark:
            raise OSError(f"json: the file ends before the list does, after {number} records")
        yield _element(text, max_bytes, number)
        number += 1
        mark = text.peek()
        if mark == b",":
            text.skip(1)
        elif mark not in (b"]", b""):
            raise OSError(f"json: expected `,` or `]` after record {number - 1}")


def _element(text: _Window, max_bytes: int, number: int) -> bytes | Oversized:
    """The text of the value that starts at the window's position; stands behind it."""
    scan = _Scan(text.data[text.at])
    let_go = xxhash.xxh3_128()  # of the part that was too much to hold
    passed = 0
    seen = text.at
    while (end := scan.end(text.data, seen)) is None:
        if passed or len(text.data) - text.at > max_bytes:
            let_go.update(text.data[text.at :])
            passed += len(text.data) - text.at
            text.at = len(text.data)
        seen = len(text.data) - text.at
        if not text.more():
            if not scan.is_scalar:
                raise OSError(f"json: the file ends inside record {number}")
            end = seen
            break
    record = text.data[text.at : end]
    text.at = end
    if not passed and len(record) <= max_bytes:
        return record
    let_go.update(record)
    return Oversized(passed + len(record), str(let_go.hexdigest()))


class _Scan:
    """Finds where a JSON value ends, block by block, in linear time.

    It knows strings and brackets and nothing else: whether the value is sound is not its business.
    """

    def __init__(self, first: int) -> None:
        self.is_scalar = first not in b'"{['
        self._depth = 0
        self._is_in_string = False
        self._is_escaped = False  # the last byte seen was a backslash that escapes the next one

    def end(self, data: bytes, at: int) -> int | None:
        """Where the value ends, scanning `data` from `at` on; None when it goes on behind it."""
        if self.is_scalar:
            found = _END_OF_SCALAR.search(data, at)
            return found.start() if found else None
        while at < len(data):
            if self._is_in_string:
                at = self._string_end(data, at)
                if not self._is_in_string and not self._depth:
                    return at
                continue
            found = _QUOTE_OR_BRACKET.search(data, at)
            if not found:
                return None
            at = found.end()
            mark = found.group()
            if mark == b'"':
                self._is_in_string = True
            elif mark in b"{[":
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    return at
        return None

    def _string_end(self, data: bytes, at: int) -> int:
        if self._is_escaped:
            at += 1
            self._is_escaped = False
        end = data.find(b'"', at)  # in most strings the first quote is the last
        if end < 0 or data[end - 1] == _BACKSLASH:
            rest = _REST_OF_STRING.match(data, at)
            end = rest.end() if rest else at
        if end < len(data) and data[end] == _QUOTE:
            self._is_in_string = False
            return end + 1
        self._is_escaped = end < len(data)
        return len(data)
