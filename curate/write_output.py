"""The write phase: spilled rows into shards, in their order; tables of units into parts.

Everything is written under a temporary name in the work folder and renamed, so that a file that is
there is whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trajcurate.curate.identity import canonical_json, checksum, storable_json
from trajcurate.curate.job import Job, load_job
from trajcurate.curate.layout import Layout
from trajcurate.curate.map_unit import unit_folder
from trajcurate.curate.read.raw_row import RawRow
from trajcurate.curate.read.rows import read_slice
from trajcurate.schemas.audit import REJECTED_SCHEMA
from trajcurate.schemas.shard import DATA_SCHEMA, PLAN_SCHEMA

# Text gathered before it becomes a row group: large enough to compress well, small enough that a
# reader, and this writer, holds little.
_ROW_GROUP_BYTES = 32 << 20
_PART_FOLDERS = {
    "rejected": "rejected/part",
    "edits": "edits/part",
    "findings": "findings/part",
    "turns": "index/turns",
    "calls": "index/calls",
}


def save_layout(layout: Layout, folder: Path) -> None:
    """Leave the layout where the write tasks find it."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in layout.rows.partition_by("shard", as_dict=True).items():
        rows.write_ipc(folder / f"shard-{number[0]}.arrow")
    layout.renamed.write_ipc(folder / "renamed.arrow")
    layout.late.write_ipc(folder / "late.arrow")
    layout.keys.write_parquet(folder / "keys.parquet")
    (folder / "shards.json").write_bytes(orjson.dumps(layout.shards))
    pq.write_table(layout.plan.to_arrow().cast(PLAN_SCHEMA), folder / "plan.parquet")


def shard_path(work: Path, number: int) -> Path:
    """Where the shard of that number is written."""
    split, index, count = _shards(str(work))[number]
    return work / "out" / "data" / f"{split}-{index:05d}-of-{count:05d}.parquet"


def write_shard(work: str, number: int) -> None:
    """Gather the rows of one shard from the spills and compress them."""
    job, root = load_job(work), Path(work)
    path = shard_path(root, number)
    if path.exists():
        return
    listed = root / "layout" / f"shard-{number}.arrow"
    with (
        _replacing(path, root) as temporary,
        pq.ParquetWriter(temporary, DATA_SCHEMA, compression="zstd", compression_level=3) as writer,
    ):
        if listed.exists():
            for table in _gather(job, root, pl.read_ipc(listed)):
                writer.write_table(table, row_group_size=table.num_rows)


def _gather(job: Job, work: Path, rows: pl.DataFrame) -> Iterator[pa.Table]:
    """The rows in order, as tables of about a row group."""
    spills: dict[int, int] = {}
    batches: list[pa.RecordBatch] = []
    ids: list[str] = []
    copies: list[int] = []
    size = 0
    try:
        for unit, offset, length, row_id, copy, *_ in rows.iter_rows():
            if unit not in spills:
                path = unit_folder(work, job.units[unit]) / "rows.bin"
                spills[unit] = os.open(path, os.O_RDONLY)
            message = pa.py_buffer(os.pread(spills[unit], length, offset))
            batches.append(pa.ipc.read_record_batch(message, DATA_SCHEMA))
            ids.append(row_id)
            copies.append(copy)
            size += length
            if size >= _ROW_GROUP_BYTES:
                yield _table(batches, ids, copies)
                batches, ids, copies, size = [], [], [], 0
        if batches:
            yield _table(batches, ids, copies)
    finally:
        for handle in spills.values():
            os.close(handle)


def _table(batches: list[pa.RecordBatch], ids: list[str], copies: list[int]) -> pa.Table:
    table = pa.Table.from_batches(batches, DATA_SCHEMA).combine_chunks()
    for name, values in (("id", ids), ("copy", copies)):
        field = DATA_SCHEMA.field(name)
        table = table.set_column(
            DATA_SCHEMA.get_field_index(name), field, pa.array(values, field.type)
        )
    return table


def write_parts(work: str, number: int) -> None:
    """Write the rejected, edit, finding and index parts of one unit, with final ids."""
    job, root = load_job(work), Path(work)
    if parts_done(root, number):
        return
    folder = unit_folder(root, job.units[number])
    renamed = _of_unit(root, "renamed", number)
    late = _of_unit(root, "late", number)
    for name, target in _PART_FOLDERS.items():
        mapped = folder / f"{name}.parquet"
        with _replacing(root / "out" / f"{target}-{number:05d}.parquet", root) as temporary:
            if renamed.is_empty() and late.is_empty():
                temporary.unlink(missing_ok=True)
                _link_or_copy(mapped, temporary)
                continue
            table = _with_final_ids(pq.read_table(mapped), renamed)
            if not late.is_empty():
                table = _without_late(table, name, late, job, number)
            pq.write_table(table, temporary, compression="zstd")
    marker = _parts_marker(root, number)
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)


def parts_done(work: Path, number: int) -> bool:
    """Whether the parts of a unit are written."""
    return _parts_marker(work, number).exists()


def _parts_marker(work: Path, number: int) -> Path:
    return work / "out" / "done" / f"parts-{number}"


def _of_unit(work: Path, name: str, number: int) -> pl.DataFrame:
    frame = pl.read_ipc(work / "layout" / f"{name}.arrow")
    return frame.filter(pl.col("unit") == number)


def _with_final_ids(table: pa.Table, renamed: pl.DataFrame) -> pa.Table:
    """Put the new id where a row's content came again; rows are told apart by their input key."""
    if renamed.is_empty() or table.num_rows == 0:
        return table
    key = ["id", "source", "source_file", "source_row"]
    frame = pl.from_arrow(table.select(key))
    assert isinstance(frame, pl.DataFrame)
    joined = frame.join(renamed.select(*key, "new_id"), on=key, how="left", maintain_order="left")
    ids = joined.select(id=pl.coalesce("new_id", "id"))["id"].to_arrow().cast(pa.string())
    return table.set_column(0, table.schema.field(0), ids)


def _without_late(
    table: pa.Table, name: str, late: pl.DataFrame, job: Job, number: int
) -> pa.Table:
    """Move rows that no copy was due to from the kept to the rejected."""
    if name == "rejected":
        return pa.concat_tables([table, _late_rejections(late, job, number)])
    ids = pa.array(late["id"].to_list(), pa.string())
    return table.filter(pc.invert(pc.is_in(table["id"], value_set=ids)))


def _late_rejections(late: pl.DataFrame, job: Job, number: int) -> pa.Table:
    """Read the rows again that were rejected after they had been mapped."""
    wanted = {(row["file"], row["file_row"]): row for row in late.iter_rows(named=True)}
    label = next(
        (
            label
            for label, step in zip(job.pipeline.step_labels, job.pipeline.steps, strict=True)
            if step.sets_weight
        ),
        "write",
    )
    lines: list[dict[str, Any]] = []
    for index, part in enumerate(job.units[number].unit.slices):
        if not any(file == index for file, _ in wanted):
            continue
        for raw in read_slice(part, max_row_bytes=job.pipeline.input.max_row_bytes):
            row = wanted.get((index, raw.source_row))
            if row is None or not isinstance(raw, RawRow):
                continue
            whole = job.pipeline.output.rejected == "whole"
            lines.append(
                {
                    **{k: row[k] for k in ("id", "source", "source_file", "source_row")},
                    "row": storable_json(raw.record) if whole else None,
                    "row_checksum": checksum(canonical_json(raw.record)),
                    "step": label,
                    "reason": "weight_no_copy",
                    "where": "",
                    "outcome": "dropped",
                    "detail": storable_json({"weight": row["weight"]}),
                }
            )
    return pa.Table.from_pylist(lines, REJECTED_SCHEMA)


@lru_cache(maxsize=2)
def _shards(work: str) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = orjson.loads(
        Path(work, "layout", "shards.json").read_bytes()
    )
    return found


def forget_layout() -> None:
    """Forget cached facts of a layout that is made anew."""
    _shards.cache_clear()


@contextmanager
def _replacing(path: Path, work: Path) -> Iterator[Path]:
    """A temporary path that takes the name `path` when all went well.

    It stands apart from what is published, since a killed writer leaves it behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = work / "tmp"
    folder.mkdir(exist_ok=True)
    temporary = folder / f"{path.name}.{os.getpid()}"
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
