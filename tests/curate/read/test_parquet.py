import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trajcurate.curate.read import parquet
from trajcurate.curate.read.parquet import parquet_rows
from trajcurate.curate.read.raw_row import RawRow, UnreadableRow

SCHEMA = pa.schema(
    [
        ("meta", pa.struct([("question", pa.string()), ("answer", pa.string())])),
        ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("system_prompt", pa.string()),
    ]
)


def row(number: int, content: str = "c") -> dict[str, Any]:
    return {
        "meta": {"question": f"q{number}", "answer": "007"},
        "messages": [{"role": "user", "content": f"q{number}"}, {"role": "a", "content": content}],
        "system_prompt": None,
    }


def stream_of(rows: list[dict[str, Any]], schema: Any = SCHEMA, **options: Any) -> io.BytesIO:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), stream, **options)
    return stream


def read(stream: io.BytesIO, **options: Any) -> list[RawRow | UnreadableRow]:
    return list(parquet_rows(stream, **{"max_row_bytes": 1 << 20, **options}))


def test_rows_are_read_as_written_with_their_number_and_text_size() -> None:
    rows = [row(0), row(1, "é" * 10)]
    sizes = [2 + 3 + 4 + 2 + 1 + 1, 2 + 3 + 4 + 2 + 1 + 20]
    assert read(stream_of(rows)) == [RawRow(i, rows[i], sizes[i]) for i in (0, 1)]


@pytest.mark.parametrize("rows_a_group", [1, 3, 100])
@pytest.mark.parametrize("batch_rows", [1, 2, 7, 64])
def test_row_ranges_join_to_the_whole_file(rows_a_group: int, batch_rows: int) -> None:
    rows = [row(i) for i in range(10)]
    stream = stream_of(rows, row_group_size=rows_a_group)
    for cut in range(11):
        parts = [(0, cut), (cut, 10)]
        read_rows = [
            item for start, stop in parts
            for item in read(stream, start=start, stop=stop, batch_rows=batch_rows)
        ]  # fmt: skip
        assert [item.source_row for item in read_rows] == list(range(10))
        assert [item.record for item in read_rows if isinstance(item, RawRow)] == rows


def test_one_row_that_is_not_utf8_costs_itself_only() -> None:
    content = [b"fine", b"caf\xe9 \xff", None, "é".encode()]
    column = pa.array(content, pa.binary()).view(pa.string())
    messages = pa.StructArray.from_arrays([pa.array(["a"] * 4), column], ["role", "content"])
    table = pa.table(
        {
            "id": ["0", "1", "2", "3"],
            "messages": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), messages),
        }
    )
    stream = io.BytesIO()
    pq.write_table(table, stream)

    rows = read(stream)

    assert [type(item) for item in rows] == [RawRow, UnreadableRow, RawRow, RawRow]
    assert [item.source_row for item in rows] == [0, 1, 2, 3]
    bad = rows[1]
    assert isinstance(bad, UnreadableRow)
    assert bad.why == "not_utf8: byte 0xe9 in column `messages`"
    assert bad.raw is not None
    kept = json.loads(bad.raw)
    assert kept["id"] == "1"
    text = kept["messages"][0]["content"]
    assert text.encode("utf-8", "surrogateescape") == b"caf\xe9 \xff"
    last = rows[3]
    assert isinstance(last, RawRow)
    assert last.record["messages"] == [{"role": "a", "content": "é"}]


def test_a_row_above_the_limit_is_passed_over_by_reference() -> None:
    rows = [row(0), row(1, "x" * 500), row(2)]
    first, large, last = read(stream_of(rows), max_row_bytes=100)
    assert isinstance(large, UnreadableRow)
    assert large.why == "row_too_large: 512 bytes, more than 100"
    assert (large.source_row, large.raw, large.size) == (1, None, 512)
    assert (first.source_row, last.source_row) == (0, 2)
    assert isinstance(first, RawRow)
    assert isinstance(last, RawRow)


def test_the_checksum_of_a_large_row_depends_on_its_text_alone() -> None:
    def checksum(rows: list[dict[str, Any]], at: int, **options: Any) -> str:
        large = read(stream_of(rows, **options), max_row_bytes=100)[at]
        assert isinstance(large, UnreadableRow)
        return large.checksum

    alone = checksum([row(1, "x" * 500)], 0)
    assert checksum([row(0), row(1, "x" * 500)], 1) == alone
    assert checksum([row(0), row(1, "x" * 500)], 1, row_group_size=1) == alone
    assert checksum([row(1, "x" * 499 + "y")], 0) != alone


def test_a_struct_padded_with_nulls_is_passed_on_as_it_is() -> None:
    rows: list[dict[str, Any]] = [
        {"arguments": {"query": ["x"]}},
        {"arguments": {"url": "u"}},
        {"arguments": None},
    ]
    found = read(stream_of(rows, pa.Table.from_pylist(rows).schema))
    assert [item.record for item in found if isinstance(item, RawRow)] == [
        {"arguments": {"query": ["x"], "url": None}},
        {"arguments": {"query": None, "url": "u"}},
        {"arguments": None},
    ]


def test_batches_shrink_when_the_metadata_hide_how_long_the_texts_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The dictionary holds the long text once, so the footer counts it once for all rows.
    rows = [{"n": i, "prompt": "x" * 10_000} for i in range(60)]
    stream = stream_of(rows, pa.schema([("n", pa.int64()), ("prompt", pa.string())]))
    lengths = recorded_batches(monkeypatch)
    found = read(stream, batch_bytes=21_000, batch_rows=50)
    assert [item.source_row for item in found] == list(range(60))
    assert lengths[0] == 50
    assert set(lengths[1:]) == {2}


def test_few_bytes_of_a_batch_are_python_values_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []
    records_of_part: Callable[..., Any] = parquet._records

    def record(part: Any, *arguments: Any) -> Any:
        lengths.append(len(part))
        return records_of_part(part, *arguments)

    monkeypatch.setattr(parquet, "_records", record)
    rows = [{"text": "x" * size} for size in (10, 10, 10, 90, 10, 10, 500, 10)]
    found = list(parquet._rows(pa.RecordBatch.from_pylist(rows), 7, 1000, 100))
    assert found == [RawRow(7 + i, row, len(row["text"])) for i, row in enumerate(rows)]
    assert lengths == [3, 2, 1, 1, 1]


def recorded_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    lengths = []
    rows_of_batch: Callable[..., Any] = parquet._rows

    def record(batch: Any, *arguments: Any) -> Any:
        lengths.append(len(batch))
        return rows_of_batch(batch, *arguments)

    monkeypatch.setattr(parquet, "_rows", record)
    return lengths


def test_a_file_without_rows_or_columns_is_read() -> None:
    assert read(stream_of([])) == []
    stream = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}).select([]), stream)
    assert read(stream) == []


def test_a_column_name_that_is_not_utf8_is_an_error() -> None:
    stream = io.BytesIO()
    nested = pa.table({"messages": [{"content": "a"}]})
    pq.write_table(nested, stream, store_schema=False, write_statistics=False)
    broken = io.BytesIO(stream.getvalue().replace(b"content", b"conten\xff"))
    with pytest.raises(pa.ArrowInvalid, match="the name of a column is not UTF-8"):
        read(broken)


def test_a_page_that_does_not_fit_its_checksum_is_an_error() -> None:
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    stream = stream_of([row(0, "intact")], write_page_checksum=True, **options)
    broken = io.BytesIO(stream.getvalue().replace(b"intact", b"broken"))
    with pytest.raises(OSError, match="CRC checksum verification failed"):
        read(broken)


def test_a_column_that_stands_twice_is_an_error() -> None:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), stream)
    with pytest.raises(pa.ArrowInvalid, match="more than one column `a`"):
        read(stream)
