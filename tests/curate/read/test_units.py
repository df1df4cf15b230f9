import dataclasses
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajcurate.curate.read.discover import InputFile, discover
from trajcurate.curate.read.raw_row import RawRow
from trajcurate.curate.read.rows import read_slice
from trajcurate.curate.read.units import Slice, plan_units

Written = Callable[[str, bytes], Path]


def read_units(files: tuple[InputFile, ...], unit_bytes: int) -> list[tuple[str, int, object]]:
    return [
        (part.file.source_file, row.source_row, row.record if isinstance(row, RawRow) else row.raw)
        for unit in plan_units(files, unit_bytes)
        for part in unit.slices
        for row in read_slice(part)
    ]


line = st.sampled_from(
    [
        b"",
        b"\r",
        b" \t",
        b'{"a": 1}',
        b'{"a": 1}\r',
        b'{"long": "' + b"x" * 50 + b'"}',
        b"\xef\xbb\xbf{}",
    ]
)


@settings(deadline=None)
@given(
    lines=st.lists(line, max_size=20),
    has_mark=st.booleans(),
    ends=st.booleans(),
    unit_bytes=st.integers(1, 200),
)
def test_byte_ranges_join_to_the_whole_file_with_its_row_numbers(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    has_mark: bool,
    ends: bool,
    unit_bytes: int,
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    content = b"\xef\xbb\xbf" * has_mark + b"\n".join(lines) + b"\n" * ends
    path.write_bytes(content)
    files = discover([path]).files

    found = read_units(files, unit_bytes)

    assert found == read_units(files, 1 << 30)
    assert [row for _, row, _ in found] == list(range(len(found)))
    assert len(found) == sum(1 for text in lines if text.strip(b" \t\r"))
    sizes = [unit.size for unit in plan_units(files, unit_bytes)]
    assert sum(sizes) == len(content)


def test_a_large_file_is_cut_at_line_starts_into_pieces_of_about_a_unit(written: Written) -> None:
    path = written("a.jsonl", b'{"a":1}\n' * 100)
    units = plan_units(discover([path]).files, 200)
    slices = [unit.slices[0] for unit in units]
    assert [(part.kind, part.start, part.stop, part.first_row) for part in slices] == [
        ("bytes", 0, 200, 0),
        ("bytes", 200, 400, 25),
        ("bytes", 400, 600, 50),
        ("bytes", 600, 800, 75),
    ]


def test_small_files_share_units_and_a_large_file_has_its_own(written: Written) -> None:
    sizes = {"a": 30, "b": 30, "c": 30, "d": 90, "e": 100, "f": 210, "g": 10, "h": 0}
    for name, size in sizes.items():
        written(f"in/{name}.jsonl", b" " * size)
    folder = written("in/z.jsonl", b"").parent
    units = plan_units(discover([folder]).files, 100)
    names = ["".join(part.file.source_file[0] for part in unit.slices) for unit in units]
    assert names == ["abc", "d", "e", "f", "ghz"]
    assert [unit.size for unit in units] == [90, 90, 100, 210, 10]


def test_a_change_in_a_large_file_moves_no_other_unit(written: Written) -> None:
    for name in ("a", "c"):
        written(f"in/{name}.jsonl", b"\n" * 10)
    large = written("in/b.jsonl", b"{}\n" * 100)
    before = plan_units(discover([large.parent]).files, 100)
    large.write_bytes(b"{}\n" * 200)
    after = plan_units(discover([large.parent]).files, 100)
    assert (before[0], before[-1]) == (after[0], after[-1])


def test_parquet_is_cut_at_row_groups_and_within_one_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    schema = pa.schema([("t", pa.string())])
    groups = [["x" * 10] * 5, ["y" * 10] * 5, [f"{i:02}" * 500 for i in range(12)], ["z"] * 3]
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for texts in groups:
            writer.write_table(pa.table({"t": texts}, schema=schema))
    files = discover([path]).files

    units = plan_units(files, 4000)

    ranges = [(unit.slices[0].start, unit.slices[0].stop) for unit in units]
    assert ranges == [(0, 10), (10, 13), (13, 16), (16, 19), (19, 22), (22, 25)]
    rows = read_units(files, 4000)
    assert [row for _, row, _ in rows] == list(range(25))
    assert [record for *_, record in rows] == [{"t": t} for texts in groups for t in texts]


def test_one_row_group_is_cut_into_four_parts_at_most(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": list(range(1000))}), path)
    files = discover([path]).files
    units = plan_units(files, 100)
    assert len(units) == 4
    assert [row for _, row, _ in read_units(files, 100)] == list(range(1000))


@pytest.mark.parametrize("name", ["a.json", "a.jsonl.gz", "a.jsonl.zst"])
def test_a_stream_is_never_cut(written: Written, name: str) -> None:
    files = discover([written(name, b"[{}]" * 100)]).files
    assert [unit.slices for unit in plan_units(files, 10)] == [(Slice(files[0]),)]


def test_a_large_file_that_cannot_be_read_is_one_unit_whole(written: Written) -> None:
    files = discover([written("a.parquet", b"PAR1" + b"\0" * 100)]).files
    assert [unit.slices for unit in plan_units(files, 10)] == [(Slice(files[0]),)]
    gone = dataclasses.replace(files[0], path="/nowhere/a.jsonl", container="jsonl")
    assert [unit.slices for unit in plan_units([gone], 10)] == [(Slice(gone),)]
