"""From a slice of a file to its rows, whatever the container."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from trajcurate.curate.read.compressed import EXPANSION_LIMIT, ExpansionLimit, open_decompressed
from trajcurate.curate.read.document import document_records
from trajcurate.curate.read.lines import Oversized, record_lines
from trajcurate.curate.read.parquet import parquet_rows
from trajcurate.curate.read.raw_row import RawRow, UnreadableRow
from trajcurate.curate.read.record_text import NotARecord, parse_record
from trajcurate.curate.read.storage import checksum_bytes, open_file, reading
from trajcurate.curate.read.units import Slice

MAX_ROW_BYTES = 64 << 20


def read_slice(
    part: Slice,
    *,
    max_row_bytes: int = MAX_ROW_BYTES,
    expansion: ExpansionLimit = EXPANSION_LIMIT,
) -> Iterator[RawRow | UnreadableRow]:
    """The rows of a slice in order, each as it is read; memory is bounded by the largest row.

    Args:
        part: what to read.
        max_row_bytes: a row above it is passed over and reported without its text.
        expansion: the limit for compressed files.

    Raises:
        UnreadableFile: the file cannot be opened or read on. Rows before the break may have been
            yielded; they count for nothing, since the file is read again when it is mended.
    """
    path = part.file.path
    with reading(path):
        if part.file.container == "parquet":
            with open_file(path) as stream:
                yield from parquet_rows(
                    stream, start=part.start, stop=part.stop, max_row_bytes=max_row_bytes
                )
        else:
            with _record_texts(part, max_row_bytes, expansion) as texts:
                yield from _text_rows(texts, part.first_row, max_row_bytes)


@contextmanager
def _record_texts(
    part: Slice, max_row_bytes: int, expansion: ExpansionLimit
) -> Iterator[Iterator[bytes | Oversized]]:
    path = part.file.path
    if part.file.container == "jsonl.gz":
        with open_decompressed(path, "gzip", expansion) as stream:
            yield record_lines(stream, max_row_bytes)
    elif part.file.container == "jsonl.zst":
        with open_decompressed(path, "zstd", expansion) as stream:
            yield record_lines(stream, max_row_bytes)
    else:
        with open_file(path) as stream:
            if part.file.container == "json":
                yield document_records(stream, max_row_bytes)
            else:
                stream.seek(part.start)
                length = None if part.stop is None else part.stop - part.start
                at_start = part.start == 0
                yield record_lines(stream, max_row_bytes, length=length, at_start=at_start)


def _text_rows(
    texts: Iterable[bytes | Oversized], first_row: int, max_row_bytes: int
) -> Iterator[RawRow | UnreadableRow]:
    for number, text in enumerate(texts, first_row):
        if isinstance(text, Oversized):
            why = f"row_too_large: {text.size} bytes, more than {max_row_bytes}"
            yield UnreadableRow(number, why, None, text.size, text.checksum)
            continue
        try:
            record = parse_record(text)
        except NotARecord as error:
            yield UnreadableRow(number, str(error), text, len(text), checksum_bytes(text))
        else:
            yield RawRow(number, record, len(text))
