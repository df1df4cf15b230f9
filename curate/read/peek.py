"""The first records of a file, for telling its format."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from trajcurate.curate.read.discover import InputFile
from trajcurate.curate.read.parquet import parquet_rows
from trajcurate.curate.read.raw_row import RawRow, UnreadableRow
from trajcurate.curate.read.rows import MAX_ROW_BYTES, read_slice
from trajcurate.curate.read.storage import open_file, reading
from trajcurate.curate.read.units import Slice

# A file whose first rows cannot be read may still hold records: this far it is worth looking.
_MAX_ROWS_LOOKED_AT = 100


def peek(
    file: InputFile, n: int = 5, *, max_row_bytes: int = MAX_ROW_BYTES
) -> list[dict[str, Any]]:
    """The first `n` records of a file, without the rows that cannot be read.

    Returns:
        Fewer than `n` where the file holds fewer, none for an empty file.

    Raises:
        UnreadableFile: the file cannot be opened or read on.
    """
    if file.container == "parquet":
        with reading(file.path), open_file(file.path) as stream:
            rows = parquet_rows(stream, max_row_bytes=max_row_bytes, batch_rows=n)
            return _records(rows, n)
    return _records(read_slice(Slice(file), max_row_bytes=max_row_bytes), n)


def _records(rows: Iterator[RawRow | UnreadableRow], n: int) -> list[dict[str, Any]]:
    looked_at = islice(rows, _MAX_ROWS_LOOKED_AT)
    return list(islice((row.record for row in looked_at if isinstance(row, RawRow)), n))
