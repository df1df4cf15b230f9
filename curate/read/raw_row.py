"""What reading a file yields: a row as it stands there, or a row that cannot be read."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RawRow:
    """One record as read.

    `source_row` is the 0-based record number in its file, `size` its bytes there: the line for
    JSON, the text in all columns for parquet. Texts may hold lone surrogate halves that a JSON
    file spelled out; integers may be longer than 64 bits.
    """

    source_row: int
    record: dict[str, Any]
    size: int


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    r"""An input row that is no record; its neighbours are not touched by it.

    `why` starts with a code: `row_too_large`, `not_utf8`, `json`, `not_an_object` or
    `repeated_key`, then `: ` and details. `raw` is None above the size limit. From JSON it is the
    bytes of the record; from parquet it is ASCII JSON in which a byte 0xNN that is not UTF-8 is
    spelled `\\udcNN` (decode with `surrogateescape` to get the bytes back). `checksum` covers all
    bytes, also those that were not kept.
    """

    source_row: int
    why: str
    raw: bytes | None
    size: int
    checksum: str
