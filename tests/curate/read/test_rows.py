import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from trajcurate.curate.errors import UnreadableFile
from trajcurate.curate.read.compressed import ExpansionLimit
from trajcurate.curate.read.discover import InputFile, discover
from trajcurate.curate.read.raw_row import RawRow, UnreadableRow
from trajcurate.curate.read.rows import read_slice
from trajcurate.curate.read.storage import checksum_bytes
from trajcurate.curate.read.units import Slice

Written = Callable[[str, bytes], Path]
RowsOf = Callable[..., list[RawRow | UnreadableRow]]

CASES = Path(__file__).parents[4] / "shared" / "cases" / "inputs"

RECORDS: list[dict[str, Any]] = [
    {
        "question": "When?",
        "gt": "1931-05-04",
        "messages": [{"role": "user", "content": "a\u2028b"}],
    },
    {"question": "How many?", "gt": "007", "messages": []},
]
LINES = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)


def as_parquet(records: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), stream)
    return stream.getvalue()


CONTAINERS = {
    "a.jsonl": LINES,
    "a.ndjson": LINES,
    "a.jsonl.gz": gzip.compress(LINES),
    "two-members.jsonl.gz": b"".join(gzip.compress(line) for line in LINES.splitlines(True)),
    "a.jsonl.zst": zstandard.compress(LINES),
    "two-frames.jsonl.zst": b"".join(zstandard.compress(x) for x in LINES.splitlines(True)),
    "a.json": json.dumps(RECORDS, indent=2).encode(),
    "lines.json": LINES,
    "a.parquet": as_parquet(RECORDS),
    "odd \n%20#?*[é'.PARQUET": as_parquet(RECORDS),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_holds_the_same_records(
    written: Written, rows_of: RowsOf, name: str
) -> None:
    rows = rows_of(written(name, CONTAINERS[name]))
    assert [row.record for row in rows if isinstance(row, RawRow)] == RECORDS
    assert [row.source_row for row in rows] == [0, 1]


@pytest.mark.parametrize("name", [name for name in CONTAINERS if "\n" not in name])
def test_every_container_is_read_through_a_url(memory: Any, rows_of: RowsOf, name: str) -> None:
    memory.pipe(f"/in/{name}", CONTAINERS[name])
    rows = rows_of(f"memory://in/{name}")
    assert [row.record for row in rows if isinstance(row, RawRow)] == RECORDS


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst"])
def test_an_empty_file_holds_no_records(written: Written, rows_of: RowsOf, name: str) -> None:
    assert rows_of(written(name, b"")) == []


def test_a_bad_line_costs_itself_only_and_keeps_its_bytes(
    written: Written, rows_of: RowsOf
) -> None:
    bad = [b'{"a": "caf\xe9"}', b'{"a": 1', b"[]", b"\x00\x00", b'{"a": 1, "a": 2}\r']
    lines = [line for text in bad for line in (b'{"good": 1}', text)]
    rows = rows_of(written("a.jsonl", b"\n".join([*lines, b'{"good": 1}'])))
    assert [row.source_row for row in rows] == list(range(11))
    assert all(isinstance(row, RawRow) and row.record == {"good": 1} for row in rows[::2])
    unreadable = [row for row in rows if isinstance(row, UnreadableRow)]
    assert [row.raw for row in unreadable] == bad
    assert [row.checksum for row in unreadable] == [checksum_bytes(text) for text in bad]
    assert [row.why.partition(":")[0] for row in unreadable] == [
        "not_utf8", "json", "not_an_object", "json", "repeated_key",
    ]  # fmt: skip


def test_a_bad_record_of_a_list_costs_itself_only(written: Written, rows_of: RowsOf) -> None:
    rows = rows_of(written("a.json", b'[{"a": 1}, {"b": \xff}, {\'c\': 1}, {"d": 1}]'))
    assert [type(row) for row in rows] == [RawRow, UnreadableRow, UnreadableRow, RawRow]
    assert [row.source_row for row in rows] == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.json"])
def test_a_giant_record_is_passed_over_by_reference(
    written: Written, rows_of: RowsOf, name: str
) -> None:
    giant = b'{"x": "' + b"y" * 3_000_000 + b'"}'
    content = b'{"a": 1}\n' + giant + b'\n{"b": 2}\n'
    if name == "a.json":
        content = b"[" + b",".join(content.splitlines()) + b"]"
    if name == "a.jsonl.gz":
        content = gzip.compress(content)
    if name == "a.jsonl.zst":
        content = zstandard.compress(content)
    first, large, last = rows_of(written(name, content), max_row_bytes=1_000_000)
    assert (first, last) == (RawRow(0, {"a": 1}, 8), RawRow(2, {"b": 2}, 8))
    why = f"row_too_large: {len(giant)} bytes, more than 1000000"
    assert large == UnreadableRow(1, why, None, len(giant), checksum_bytes(giant))


BROKEN = {
    "gone.jsonl": None,
    "cut.parquet": as_parquet(RECORDS)[:-10],
    "hollow.parquet": as_parquet(RECORDS)[:4] + b"\0" * 200 + as_parquet(RECORDS)[204:],
    "empty.parquet": b"",
    "text.parquet": b"not parquet at all",
    "cut.jsonl.gz": gzip.compress(LINES)[:-10],
    "cut.jsonl.zst": zstandard.compress(LINES)[:-3],
    "text.jsonl.gz": LINES,
    "text.jsonl.zst": LINES,
    "cut.json": json.dumps(RECORDS).encode()[:-4],
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_read_on_is_named_with_the_reason_and_the_remedy(
    written: Written, file_at: Callable[[Path], InputFile], name: str
) -> None:
    path = written(name, BROKEN[name] or b"")
    file = file_at(path)
    if BROKEN[name] is None:
        path.unlink()
    with pytest.raises(UnreadableFile) as caught:
        list(read_slice(Slice(file)))
    error = caught.value
    assert error.path == str(path)
    assert error.why
    assert str(path) not in error.why
    assert "\n" not in error.why
    assert str(error) == f"`{path}` cannot be read: {error.why}"
    assert error.describe().endswith("\n  hint: " + str(error.hint))
    assert error.exit_code == 1


def test_a_stream_that_expands_without_bound_is_refused(written: Written, rows_of: RowsOf) -> None:
    bomb = zstandard.compress(b"\n" * 1_000_000)
    limit = ExpansionLimit(factor=10, free_bytes=500_000)
    with pytest.raises(UnreadableFile, match="it expands to more than 10 times its size"):
        rows_of(written("a.jsonl.zst", bomb), expansion=limit)
    assert rows_of(written("b.jsonl.zst", bomb)) == []


@pytest.mark.skipif(not CASES.exists(), reason="the cases from practice are not here")
def test_cases_gold_answers_stay_text(rows_of: RowsOf) -> None:
    dates = rows_of(CASES / "io03_dates.jsonl")
    assert [row.record["gt"] for row in dates if isinstance(row, RawRow)] == [
        "1931-05-04", "1932-07-01",
    ]  # fmt: skip
    digits = rows_of(CASES / "io03_digits.jsonl")
    records = [row.record for row in digits if isinstance(row, RawRow)]
    assert [(r["id"], r["gt"]) for r in records] == [("0012", "007"), ("0013", "42")]


@pytest.mark.skipif(not CASES.exists(), reason="the cases from practice are not here")
def test_cases_unicode_line_separators_do_not_end_a_record(rows_of: RowsOf) -> None:
    first, second = rows_of(CASES / "io06_separators.jsonl")
    assert isinstance(first, RawRow)
    assert first.record["text"] == "one\u2028two\u2029three\u0085four"
    assert isinstance(second, RawRow)


@pytest.mark.skipif(not CASES.exists(), reason="the cases from practice are not here")
def test_cases_shards_with_different_schemas_keep_their_own_values() -> None:
    files = discover([CASES / "io08"]).files
    assert [file.source_file for file in files] == [f"part-0000{i}.jsonl" for i in range(3)]
    rows = [row for file in files for row in read_slice(Slice(file))]
    records = [row.record for row in rows if isinstance(row, RawRow)]
    assert [record.get("date") for record in records] == [None, None, None, "2019-01-02", None]
    assert ["date" in record for record in records] == [True, True, True, True, False]
