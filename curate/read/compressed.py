"""Compressed streams, read with a limit on what they may expand to."""

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

import pyarrow as pa

from trajcurate.curate.read.storage import BLOCK_BYTES, open_file

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class ExpansionLimit:
    """A stream is refused when it expands to more than `factor` times its size.

    Up to `free_bytes` nothing is refused: text of one repeated line is small and harmless.
    """

    factor: int = 200
    free_bytes: int = 1 << 30


EXPANSION_LIMIT = ExpansionLimit()


def open_decompressed(path: str, codec: Literal["gzip", "zstd"], limit: ExpansionLimit) -> BinaryIO:
    """The decompressed bytes of a file, as a stream; several members or frames are read on.

    Arrow's decoder, because it says when a stream ends too early: zstandard's reader does not.

    Raises:
        OSError: when opened or while read, the file is missing, broken, cut off or beyond `limit`.
    """
    return cast(BinaryIO, io.BufferedReader(_Expanding(open_file(path), codec, limit), BLOCK_BYTES))


class _Expanding(io.RawIOBase):
    def __init__(self, source: BinaryIO, codec: str, limit: ExpansionLimit) -> None:
        self._source = source
        self._stream = pa.CompressedInputStream(source, codec)
        self._limit = limit
        self._produced = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        size = int(self._stream.readinto(buffer))
        self._produced += size
        allowed = max(self._limit.free_bytes, self._limit.factor * self._source.tell())
        if self._produced > allowed:
            raise OSError(f"it expands to more than {self._limit.factor} times its size")
        return size

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()
