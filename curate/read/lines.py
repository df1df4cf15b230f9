"""JSON Lines: streams cut at line feeds, and nowhere else.

Only byte 0x0A ends a record; a line of nothing but white space is no record and has no number. A
byte order mark at the start of a file is no part of its first record.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import xxhash

from trajcurate.curate.read.storage import BLOCK_BYTES

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# The white space of bytes.isspace(): the counter and the reader must agree on blank lines.
_BLANK_LINE = re.compile(rb"\n[ \t\r\x0b\x0c]*(?=\n)")


@dataclass(frozen=True, slots=True)
class Oversized:
    """A record above the size limit, passed over without holding it."""

    size: int
    checksum: str


def record_lines(
    stream: BinaryIO, max_bytes: int, *, length: int | None = None, at_start: bool = True
) -> Iterator[bytes | Oversized]:
    """The records of a stream, one a line, without their line feeds.

    Args:
        stream: stands at the start of a line.
        max_bytes: a longer line is passed over in pieces.
        length: how many bytes to read; they end with a line feed or with the file.
        at_start: whether the stream stands at the start of its file.

    Raises:
        OSError: the stream ends before `length`.
    """
    left = length
    while left is None or left > 0:
        line = stream.readline(max_bytes + 1)
        if not line:
            if left:
                raise OSError(f"it has become shorter, by {left} bytes or more")
            return
        left = None if left is None else left - len(line)
        if at_start:
            line = line.removeprefix(BYTE_ORDER_MARK)
            at_start = False
        if len(line) > max_bytes and line[-1:] != b"\n":
            oversized, passed = _pass_over(line, stream)
            left = None if left is None else left - passed
            if oversized:
                yield oversized
        elif not _is_blank(line):
            yield line.removesuffix(b"\n")


def _pass_over(start: bytes, stream: BinaryIO) -> tuple[Oversized | None, int]:
    """Reads to the end of the line that begins with `start`; answers the bytes read, too."""
    state = xxhash.xxh3_128(start)
    blank = _is_blank(start)
    size, passed = len(start), 0
    while piece := stream.readline(BLOCK_BYTES):
        passed += len(piece)
        text = piece.removesuffix(b"\n")
        state.update(text)
        size += len(text)
        blank = blank and _is_blank(text)
        if len(text) < len(piece):
            break
    return (None if blank else Oversized(size, str(state.hexdigest()))), passed


class RecordCounter:
    """Counts the records in blocks of a stream, at the speed of a search for line feeds."""

    def __init__(self) -> None:
        self._ended = 0
        self._is_blank_so_far = True  # the line under way

    @property
    def count(self) -> int:
        """The records fed so far, the one under way included."""
        return self._ended + (not self._is_blank_so_far)

    def feed(self, block: bytes) -> None:
        """Counts on over the next bytes; the caller leaves out the byte order mark."""
        first = block.find(b"\n")
        if first < 0:
            self._is_blank_so_far = self._is_blank_so_far and _is_blank(block)
            return
        last = block.rfind(b"\n")
        starts_blank = self._is_blank_so_far and _is_blank(block[:first])
        inner = block.count(b"\n", first, last)
        blank = len(_BLANK_LINE.findall(block, first, last + 1))
        self._ended += (not starts_blank) + inner - blank
        self._is_blank_so_far = _is_blank(block[last + 1 :])


def _is_blank(text: bytes) -> bool:
    return not text or text.isspace()
