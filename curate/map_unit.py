"""The map phase over one unit of input: read, adapt, apply the steps, spill.

The unit's work appears under its key in one rename, with `unit.json` in it, or not at all. Kept
rows are spilled one Arrow message a row, uncompressed, so that the write phase can fetch them in
any order with bounded memory and compress the text once.
"""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from trajcurate.curate.adapt.adapted import Adapted, Unfit
from trajcurate.curate.adapt.columns import apply_columns, with_messages_in_place
from trajcurate.curate.adapt.detect import ADAPTERS
from trajcurate.curate.adapt.trajectory import is_copy, to_trajectory
from trajcurate.curate.apply_steps import (
    Kept,
    Rejected,
    StepCount,
    apply_steps,
    count_document,
)
from trajcurate.curate.errors import UnreadableFile
from trajcurate.curate.identity import canonical_json, checksum, storable_json
from trajcurate.curate.job import Job, SourceUnit, load_job
from trajcurate.curate.pipeline import Source
from trajcurate.curate.read.raw_row import RawRow, UnreadableRow
from trajcurate.curate.read.rows import read_slice
from trajcurate.curate.read.units import Slice
from trajcurate.curate.tables import RunTables, TableBuilder
from trajcurate.schemas.audit import Rejection
from trajcurate.schemas.trajectory import Origin, Trajectory

KEYS_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("source", pa.string()),
        pa.field("source_file", pa.string()),
        pa.field("source_row", pa.int64()),
        pa.field("question_id", pa.string()),
        pa.field("is_kept", pa.bool_()),
        pa.field("turn_count", pa.int32()),
        pa.field("token_count", pa.int64()),
        pa.field("weight", pa.float64()),
        pa.field("text_bytes", pa.int64()),
        pa.field("file", pa.int32()),
        pa.field("file_row", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
    ]
)

# Rows are gathered to about this many characters before they become Arrow.
_BATCH_CHARACTERS = 4 << 20
_TABLE_ROWS = 20_000
_TABLES = ("rejected", "edits", "findings", "turns", "calls")


def unit_folder(work: str | Path, unit: SourceUnit) -> Path:
    """Where the finished work of a unit stands."""
    return Path(work, "units", unit.key)


def is_unit_done(work: str | Path, unit: SourceUnit) -> bool:
    """Whether the unit's work is there, whole."""
    return (unit_folder(work, unit) / "unit.json").exists()


def map_unit(work: str, number: int) -> None:
    """Do the unit of that number of the job in the work folder."""
    job = load_job(work)
    unit = job.units[number]
    if not is_unit_done(work, unit):
        make_unit(job, unit, Path(work), limit=None)


def make_unit(job: Job, unit: SourceUnit, work: Path, limit: int | None) -> int:
    """Read and process a unit, at most `limit` input rows of it; answers how many were read.

    A file that cannot be read on counts for nothing: the unit is made again without it, and the
    file is named in `unit.json`.
    """
    _keep_freed_memory()
    unreadable: dict[str, str] = {}
    while True:
        temporary = work / "units" / f"{unit.key}.{os.getpid()}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        try:
            with _collector_off():
                row_count = _fill(job, unit, temporary, unreadable, limit)
        except UnreadableFile as error:
            unreadable[error.path] = error.why
            continue
        final = unit_folder(work, unit)
        shutil.rmtree(final, ignore_errors=True)
        temporary.rename(final)
        return row_count


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """Tell glibc not to give freed memory back between batches: to fault it in again costs 10 %."""
    if not sys.platform.startswith("linux"):
        return
    try:
        tune = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return
    trim_threshold, mmap_threshold = -1, -3
    tune(trim_threshold, 256 << 20)
    tune(mmap_threshold, 256 << 20)


@contextmanager
def _collector_off() -> Iterator[None]:
    """The many short-lived objects of a batch hold no cycles: walking them costs a third."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _fill(
    job: Job, unit: SourceUnit, folder: Path, unreadable: dict[str, str], limit: int | None
) -> int:
    source = job.source_of(unit)
    with _UnitWriter(job, folder) as writer:
        for index, part in enumerate(unit.unit.slices):
            if part.file.path in unreadable:
                continue
            mapper = _Mapper(job, source, part, index, unit.formats.get(part.file.path), writer)
            for raw in read_slice(part, max_row_bytes=job.pipeline.input.max_row_bytes):
                if limit is not None and writer.rows_read >= limit:
                    break
                mapper.add(raw)
        writer.finish(
            {
                "key": unit.key,
                "files": sorted({part.file.path for part in unit.unit.slices}),
                "unreadable": [
                    {"path": path, "why": why} for path, why in sorted(unreadable.items())
                ],
            }
        )
        return writer.rows_read


@dataclass
class _Mapper:
    """Takes the raw rows of one slice through adapter and steps into the writer."""

    job: Job
    source: Source
    part: Slice
    file: int
    format: str | None
    writer: _UnitWriter

    def add(self, raw: RawRow | UnreadableRow) -> None:
        origin = Origin(
            self.source.name or self.format or "unknown", self.part.file.source_file, raw.source_row
        )
        if isinstance(raw, UnreadableRow):
            code, _, detail = raw.why.partition(": ")
            rejection = Rejection(
                "read",
                "row_unreadable",
                "quarantined",
                f"row {raw.source_row}",
                {"found": code, "what": detail},
            )
            record = None if raw.raw is None else _unreadable_text(raw.raw)
            self._reject_unread(origin, raw.checksum, rejection, record)
            return
        adapted = self._adapt(raw.record)
        if isinstance(adapted, Unfit):
            rejection = Rejection(
                "adapt", adapted.reason, "quarantined", adapted.where, adapted.detail
            )
            digest = checksum(canonical_json(raw.record))
            self._reject_unread(origin, digest, rejection, storable_json(raw.record))
            return
        if is_copy(adapted):
            self.writer.copies_folded += 1
            return
        trajectory = to_trajectory(adapted, origin)
        counts = self.writer.step_counts(trajectory.origin.source)
        self.writer.note_read(trajectory)
        outcome = apply_steps(self.job.pipeline, self.source.tools, trajectory, counts)
        half = None
        if isinstance(outcome, Kept) and not self.writer.texts_are_mended:
            half = _lone_half(outcome.trajectory)
        if isinstance(outcome, Kept) and half is not None:
            rejection = Rejection("write", "text_not_utf8", "quarantined", half, {})
            counts["write"].rejected["text_not_utf8"] += 1
            outcome = Rejected(rejection, outcome.findings)
        if isinstance(outcome, Kept):
            self.writer.keep(outcome, self.source, self.file, raw)
        else:
            self.writer.reject(trajectory, outcome, raw.record, self.file, raw)

    def _adapt(self, record: dict[str, Any]) -> Adapted | Unfit:
        if self.format is None:
            return Unfit("messages_missing", "$", {"found": "no known format"})
        columns = self.source.columns
        if not columns:
            return ADAPTERS[self.format](record)
        adapted = ADAPTERS[self.format](with_messages_in_place(record, columns))
        return adapted if isinstance(adapted, Unfit) else apply_columns(adapted, record, columns)

    def _reject_unread(
        self, origin: Origin, digest: str, rejection: Rejection, record: str | None
    ) -> None:
        counts = self.writer.step_counts(origin.source)[rejection.step]
        counts.rows_in += 1
        counts.rejected[rejection.reason] += 1
        self.writer.reject_unread(origin, digest, rejection, record, self.file)


def _lone_half(trajectory: Trajectory) -> str | None:
    """Where a lone surrogate half stands that no table can hold; `normalize_text` mends them."""
    for index, message in enumerate(trajectory.messages):
        if not message.content.isascii() and not _is_utf8(message.content):
            return f"$.messages[{index}].content"
    for name in ("question", "answer"):
        value = getattr(trajectory, name)
        if value is not None and not value.isascii() and not _is_utf8(value):
            return f"$.{name}"
    if not all(_is_utf8(alias) for alias in trajectory.answer_aliases):
        return "$.answer_aliases"
    return None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unreadable_text(raw: bytes) -> str:
    """The bytes of a row that is no record, as JSON text that holds every one of them."""
    try:
        return storable_json(raw.decode())
    except UnicodeDecodeError:
        return storable_json({"bytes": raw.decode("utf-8", "backslashreplace")})


class _UnitWriter:
    """Writes what a unit holds: spilled rows, keys, tables, counts."""

    def __init__(self, job: Job, folder: Path) -> None:
        output = job.pipeline.output
        self.folder = folder
        self.labels = job.pipeline.step_labels
        self.texts_are_mended = "normalize_text" in self.labels
        self.tables = RunTables(output.edits, output.rejected)
        self.keys = TableBuilder(KEYS_SCHEMA)
        self.counts: dict[str, dict[str, StepCount]] = {}
        self.read_counts: dict[str, int] = defaultdict(int)
        self.turns_read: dict[str, int] = defaultdict(int)
        self.rows_read = 0
        self.rows_edited = 0
        self.copies_folded = 0
        self.text_bytes = 0
        self.spill = (folder / "rows.bin").open("wb")
        self.spill_size = 0
        self.pending: list[tuple[Trajectory, int, int, int]] = []
        self.pending_characters = 0
        self.streams: dict[str, pq.ParquetWriter] = {}

    def __enter__(self) -> _UnitWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.spill.close()
        for stream in self.streams.values():
            stream.close()

    def step_counts(self, source: str) -> dict[str, StepCount]:
        """The counts of a source, made when it is first met."""
        if source not in self.counts:
            names = ("read", "adapt", *self.labels, "write")
            self.counts[source] = {name: StepCount() for name in names}
        return self.counts[source]

    def note_read(self, trajectory: Trajectory) -> None:
        """Count a row that was read and adapted."""
        self.rows_read += 1
        self.read_counts[trajectory.origin.source] += 1
        self.turns_read[trajectory.origin.source] += trajectory.turn_count

    def keep(self, row: Kept, source: Source, file: int, raw: RawRow) -> None:
        """Gather a kept row; rows are spilled together when there are enough of them."""
        trajectory = row.trajectory
        self.tables.add_kept(row, source.tools)
        self.rows_edited += bool(row.edits)
        characters = sum(len(message.content) for message in trajectory.messages)
        self.pending.append((trajectory, characters, file, raw.source_row))
        self.pending_characters += characters
        self.text_bytes += characters
        if self.pending_characters >= _BATCH_CHARACTERS:
            self._spill()

    def reject(
        self,
        trajectory: Trajectory,
        row: Rejected,
        record: dict[str, Any],
        file: int,
        raw: RawRow,
    ) -> None:
        """Gather a row that a step rejected."""
        key = (trajectory.id, *trajectory.origin)
        digest = checksum(canonical_json(record))
        text = storable_json(record) if self.tables.keep_rejected_rows else None
        self.tables.add_rejected(row, key, text, digest)
        self._add_key(trajectory, False, 0, file, raw.source_row, 0, 0)
        self.pending_characters += raw.size
        if self.pending_characters >= _BATCH_CHARACTERS:
            self._spill()

    def reject_unread(
        self, origin: Origin, digest: str, rejection: Rejection, record: str | None, file: int
    ) -> None:
        """Gather an input row that never became a trajectory."""
        self.rows_read += 1
        self.read_counts[origin.source] += 1
        self.tables.add_rejected(Rejected(rejection, []), (digest, *origin), record, digest)
        self.keys.add(digest, *origin, "", False, 0, None, 0.0, 0, file, origin.source_row, 0, 0)
        self.pending_characters += len(record or "")

    def finish(self, document: dict[str, Any]) -> None:
        """Write what is gathered and, last, the unit's document."""
        self._spill()
        self.spill.close()
        for name in _TABLES:
            builder: TableBuilder = getattr(self.tables, name)
            stream = self._stream(name, builder.schema)
            if len(builder):
                stream.write_batch(builder.take())
        for stream in self.streams.values():
            stream.close()
        pq.write_table(pa.Table.from_batches([self.keys.take()]), self.folder / "keys.parquet")
        document |= {
            "rows_read": self.rows_read,
            "rows_edited": self.rows_edited,
            "read": dict(self.read_counts),
            "turns_read": dict(self.turns_read),
            "copies_folded": self.copies_folded,
            "characters_kept": self.text_bytes,
            "counts": {s: count_document(counts) for s, counts in self.counts.items()},
        }
        (self.folder / "unit.json").write_bytes(orjson.dumps(document))

    def _spill(self) -> None:
        if self.pending:
            batch = self.tables.data.take()
            for index, (trajectory, characters, file, file_row) in enumerate(self.pending):
                message = batch.slice(index, 1).serialize()
                self.spill.write(message)
                length = message.size
                self._add_key(trajectory, True, characters, file, file_row, self.spill_size, length)
                self.spill_size += length
        self.pending, self.pending_characters = [], 0
        for name in _TABLES:
            builder: TableBuilder = getattr(self.tables, name)
            if len(builder) >= _TABLE_ROWS or builder.characters >= _BATCH_CHARACTERS:
                self._stream(name, builder.schema).write_batch(builder.take())

    def _add_key(
        self,
        trajectory: Trajectory,
        is_kept: bool,
        text_bytes: int,
        file: int,
        file_row: int,
        offset: int,
        length: int,
    ) -> None:
        self.keys.add(
            trajectory.id,
            *trajectory.origin,
            trajectory.question_id,
            is_kept,
            trajectory.turn_count,
            trajectory.token_count,
            trajectory.weight,
            text_bytes,
            file,
            file_row,
            offset,
            length,
        )

    def _stream(self, name: str, schema: pa.Schema) -> pq.ParquetWriter:
        if name not in self.streams:
            path = self.folder / f"{name}.parquet"
            self.streams[name] = pq.ParquetWriter(path, schema, compression="zstd")
        return self.streams[name]
