from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trajcurate.curate.read.discover import InputFile, discover
from trajcurate.curate.read.raw_row import RawRow, UnreadableRow
from trajcurate.curate.read.rows import read_slice
from trajcurate.curate.read.units import Slice

Row = RawRow | UnreadableRow


@pytest.fixture
def file_at() -> Callable[[Path | str], InputFile]:
    def find(path: Path | str) -> InputFile:
        [file] = discover([path]).files
        return file

    return find


@pytest.fixture
def rows_of(file_at: Callable[[Path | str], InputFile]) -> Callable[..., list[Row]]:
    """All rows of one file, read whole."""

    def read(path: Path | str, **options: Any) -> list[Row]:
        return list(read_slice(Slice(file_at(path)), **options))

    return read


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def memory() -> Iterator[Any]:
    """The store behind `memory://`, empty."""
    from fsspec.implementations.memory import MemoryFileSystem

    system = MemoryFileSystem()
    system.store.clear()
    yield system
    system.store.clear()
