"""Rows of a parquet file, a batch of bounded bytes at a time."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from trajcurate.curate.read.arrow_values import python_values, text_marks, texts_in
from trajcurate.curate.read.raw_row import RawRow, UnreadableRow
from trajcurate.curate.read.storage import BLOCK_BYTES, checksum_bytes

BATCH_BYTES = 16 << 20

# Where a few large rows follow many small ones, the average says nothing: this many at most.
MAX_BATCH_ROWS = 32


def open_parquet(stream: BinaryIO) -> Any:
    """The parquet file in a stream, set to read page by page, so that memory stays bounded.

    Raises:
        pa.ArrowInvalid: it is no parquet file, is cut off, or has a bad column name.
    """
    try:
        parquet = pq.ParquetFile(
            stream,
            pre_buffer=False,
            buffer_size=BLOCK_BYTES,
            page_checksum_verification=True,  # where the writer left checksums
        )
        names = parquet.schema_arrow.names
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid("the name of a column is not UTF-8") from error
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise pa.ArrowInvalid(f"it has more than one column `{repeated[0]}`")
    return parquet


def parquet_rows(
    stream: BinaryIO,
    *,
    start: int = 0,
    stop: int | None = None,
    max_row_bytes: int,
    batch_bytes: int = BATCH_BYTES,
    batch_rows: int = MAX_BATCH_ROWS,
) -> Iterator[RawRow | UnreadableRow]:
    """The rows `start` to `stop` of a file, numbered from the start of the file.

    Args:
        stream: the file, seekable.
        start: the first row.
        stop: one behind the last row; the end of the file when None.
        max_row_bytes: a row with more text is passed over.
        batch_bytes: about how much text is held at a time.
        batch_rows: how many rows are held at most.

    Raises:
        OSError, pa.ArrowException: the file is broken.
    """
    with open_parquet(stream) as parquet:
        stop = parquet.metadata.num_rows if stop is None else stop
        first = 0
        for group in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(group).num_rows
            begin, end = max(start - first, 0), min(stop - first, count)
            if begin < end:
                batches = _batches(parquet, group, begin, end, batch_bytes, batch_rows)
                for at, batch in batches:
                    yield from _rows(batch, first + at, max_row_bytes, batch_bytes)
            first += count


def _batches(
    parquet: Any, group: int, begin: int, end: int, batch_bytes: int, batch_rows: int
) -> Iterator[tuple[int, Any]]:
    """Rows `begin` to `end` of a row group in batches, each with the position of its first row."""
    metadata = parquet.metadata.row_group(group)
    expected = batch_bytes * metadata.num_rows // max(metadata.total_byte_size, 1)
    rows = min(max(expected, 1), batch_rows)
    done = begin
    while done < end:
        read = 0
        batches = parquet.iter_batches(batch_size=rows, row_groups=[group], use_threads=False)
        for batch in batches:
            at, read = read, read + len(batch)
            if read <= done:
                continue
            part = batch.slice(done - at, min(read, end) - done)
            yield done, part
            done += len(part)
            if done >= end:
                return
            if len(batch) > 1 and batch.nbytes > 4 * batch_bytes:
                # A dictionary of long texts: the metadata count each once. Begin anew, in
                # smaller batches; what is skipped on the way costs its decoding only.
                rows = max(1, len(batch) * batch_bytes // batch.nbytes)
                break
        else:
            raise OSError(f"row group {group} holds fewer rows than the footer says")


def _rows(
    batch: Any, first: int, max_row_bytes: int, batch_bytes: int
) -> Iterator[RawRow | UnreadableRow]:
    sizes = _text_sizes(batch)
    start = 0
    while start < len(sizes):
        stop, held = start + 1, sizes[start]
        while stop < len(sizes) and held + sizes[stop] <= batch_bytes:
            held += sizes[stop]
            stop += 1
        part = batch.slice(start, stop - start)
        yield from _part_rows(part, first + start, sizes[start:stop], max_row_bytes)
        start = stop


def _text_sizes(batch: Any) -> list[int]:
    marks = [text_marks(column, range(len(batch) + 1)) for column in batch.columns]
    ends = [sum(mark) for mark in zip(*marks)] if marks else [0] * (len(batch) + 1)
    return [end - start for start, end in pairwise(ends)]


def _part_rows(
    part: Any, first: int, sizes: list[int], max_row_bytes: int
) -> Iterator[RawRow | UnreadableRow]:
    if max(sizes) <= max_row_bytes:
        try:
            records = _records(part)
        except UnicodeDecodeError:
            pass  # find out which row it is
        else:
            yield from map(RawRow, range(first, first + len(records)), records, sizes)
            return
    for i, size in enumerate(sizes):
        yield _row(part.slice(i, 1), first + i, size, max_row_bytes)


def _row(row: Any, number: int, size: int, max_row_bytes: int) -> RawRow | UnreadableRow:
    """The only row of a batch that holds something unusual."""
    if size > max_row_bytes:
        why = f"row_too_large: {size} bytes, more than {max_row_bytes}"
        return UnreadableRow(number, why, None, size, _checksum(row))
    try:
        return RawRow(number, _records(row)[0], size)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        why = f"not_utf8: byte 0x{byte:02x} in column `{_undecodable_column(row)}`"
    [record] = _records(row, "surrogateescape")
    raw = json.dumps(record).encode("ascii")
    return UnreadableRow(number, why, raw, size, checksum_bytes(raw))


def _records(batch: Any, errors: str = "strict") -> list[dict[str, Any]]:
    names = batch.schema.names
    if not names:
        return [{} for _ in range(len(batch))]
    columns = [python_values(column, errors) for column in batch.columns]
    return [dict(zip(names, values)) for values in zip(*columns)]


def _undecodable_column(row: Any) -> str:
    for name, column in zip(row.schema.names, row.columns):
        try:
            python_values(column)
        except UnicodeDecodeError:
            return str(name)
    return "?"


def _checksum(row: Any) -> str:
    state = xxhash.xxh3_128()
    for column in row.columns:
        for text in texts_in(column):
            state.update(text)
    return str(state.hexdigest())
