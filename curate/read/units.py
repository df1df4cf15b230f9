"""Units of work: the files of a source cut into pieces of about the same bytes.

Small files are grouped whole, in their order; a large file has units of its own, so that a change
in it moves nothing else. The cut follows from the files alone, not from how many workers run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO, Literal

import pyarrow as pa

from trajcurate.curate.read.discover import InputFile
from trajcurate.curate.read.lines import BYTE_ORDER_MARK, RecordCounter
from trajcurate.curate.read.parquet import open_parquet
from trajcurate.curate.read.storage import BLOCK_BYTES, open_file

UNIT_BYTES = 8 << 20

# Parquet cannot be entered within a row group: each piece decodes all that stands before it. With
# 4 pieces that decodes it 1.5 times more, about an eighth of what the map work on it costs.
_MAX_PIECES_OF_A_ROW_GROUP = 4


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a file that is read in one go.

    Args:
        file: the file it is a part of.
        kind: `whole`, `rows` of parquet, or `bytes` of plain JSON Lines.
        start: first row or byte; a byte is the first of a line.
        stop: one behind the last row or byte, None for the whole file.
        first_row: the number of its first record in the file.
    """

    file: InputFile
    kind: Literal["whole", "rows", "bytes"] = "whole"
    start: int = 0
    stop: int | None = None
    first_row: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """What one task reads; `size` is in bytes of the files."""

    slices: tuple[Slice, ...]
    size: int


def plan_units(files: Sequence[InputFile], unit_bytes: int = UNIT_BYTES) -> list[Unit]:
    """The units of a source, in the order of its files; every record is in exactly one.

    Plain JSON Lines above `unit_bytes` are read once, to count the records ahead of each cut, and
    the footers of parquet files above it. A large file that cannot be read now is one unit whole:
    reading that unit names the error.

    Args:
        files: as `discover` lists them.
        unit_bytes: about how many bytes of files a unit holds.
    """
    units: list[Unit] = []
    group: list[Slice] = []
    size = 0
    for file in files:
        if group and size + file.size > unit_bytes:
            units.append(Unit(tuple(group), size))
            group, size = [], 0
        if file.size > unit_bytes:
            units += _units_of(file, unit_bytes)
        else:
            group.append(Slice(file))
            size += file.size
    if group:
        units.append(Unit(tuple(group), size))
    return units


def _units_of(file: InputFile, unit_bytes: int) -> list[Unit]:
    try:
        if file.container == "jsonl":
            with open_file(file.path) as stream:
                return _cut_lines(file, stream, unit_bytes)
        if file.container == "parquet":
            with open_file(file.path) as stream:
                return _cut_rows(file, stream, unit_bytes)
    except (OSError, pa.ArrowException):
        pass
    return [Unit((Slice(file),), file.size)]


def _cut_lines(file: InputFile, stream: BinaryIO, unit_bytes: int) -> list[Unit]:
    """Byte ranges of about equal length, each from the start of a line to the end of one."""
    pieces = -(-file.size // unit_bytes)
    starts, first_rows = [0], [0]
    counter = RecordCounter()
    if stream.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
        stream.seek(0)
    first_line = stream.tell()
    for piece in range(1, pieces):
        position = _next_line(stream, file.size * piece // pieces, counter)
        if max(starts[-1], first_line) < position < file.size:
            starts.append(position)
            first_rows.append(counter.count)
    stops = [*starts[1:], file.size]
    return [
        Unit((Slice(file, "bytes", start, stop, first_row),), stop - start)
        for start, stop, first_row in zip(starts, stops, first_rows)
    ]


def _next_line(stream: BinaryIO, target: int, counter: RecordCounter) -> int:
    """Counts on to the first line that starts at `target` or behind it; answers where."""
    position = stream.tell()
    if position >= target:
        return position
    while position < target - 1 and (block := stream.read(min(BLOCK_BYTES, target - 1 - position))):
        counter.feed(block)
        position += len(block)
    while block := stream.readline(BLOCK_BYTES):
        counter.feed(block)
        position += len(block)
        if block.endswith(b"\n"):
            break
    return position


def _cut_rows(file: InputFile, stream: BinaryIO, unit_bytes: int) -> list[Unit]:
    with open_parquet(stream) as parquet:
        ranges = _row_ranges(parquet.metadata, unit_bytes)
        return [
            Unit((Slice(file, "rows", start, stop, start),), size) for start, stop, size in ranges
        ]


def _row_ranges(metadata: Any, unit_bytes: int) -> list[tuple[int, int, int]]:
    """Ranges of rows with their bytes: row groups together, or parts of one that is too large."""
    ranges: list[tuple[int, int, int]] = []
    start = stop = size = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = (group.column(i) for i in range(group.num_columns))
        group_bytes = sum(column.total_compressed_size for column in columns)
        if stop > start and size + group_bytes > unit_bytes:
            ranges.append((start, stop, size))
            start, size = stop, 0
        stop += group.num_rows
        size += group_bytes
        if group_bytes > unit_bytes:
            ranges += _parts(start, stop, size, unit_bytes)
            start, size = stop, 0
    if stop > start:
        ranges.append((start, stop, size))
    return ranges


def _parts(start: int, stop: int, size: int, unit_bytes: int) -> list[tuple[int, int, int]]:
    rows = stop - start
    pieces = max(1, min(-(-size // unit_bytes), _MAX_PIECES_OF_A_ROW_GROUP, rows))
    cuts = [start + rows * piece // pieces for piece in range(pieces + 1)]
    return [(first, last, size // pieces) for first, last in pairwise(cuts)]
