import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trajcurate.curate.errors import UnreadableFile
from trajcurate.curate.read.discover import InputFile
from trajcurate.curate.read.peek import peek

Written = Callable[[str, bytes], Path]
FileAt = Callable[[Path], InputFile]


def numbered(count: int) -> list[dict[str, Any]]:
    return [{"n": i} for i in range(count)]


@pytest.mark.parametrize("count", [0, 3, 5, 9])
def test_the_first_records_are_seen(written: Written, file_at: FileAt, count: int) -> None:
    records = numbered(count)
    expected = records[:5]
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    assert peek(file_at(written("a.jsonl", lines))) == expected
    assert peek(file_at(written("a.json", json.dumps(records).encode()))) == expected
    path = written("a.parquet", b"")
    schema = pa.schema([("n", pa.int64())])
    pq.write_table(pa.Table.from_pylist(records, schema=schema), path, row_group_size=2)
    assert peek(file_at(path)) == expected


def test_rows_that_cannot_be_read_are_passed_over_but_not_for_ever(
    written: Written, file_at: FileAt
) -> None:
    assert peek(file_at(written("a.jsonl", b'bad\n{"n": 0}\n'))) == [{"n": 0}]
    assert peek(file_at(written("b.jsonl", b"bad\n" * 100 + b'{"n": 0}\n'))) == []


def test_a_broken_file_is_an_error(written: Written, file_at: FileAt) -> None:
    with pytest.raises(UnreadableFile):
        peek(file_at(written("a.parquet", b"PAR1")))
