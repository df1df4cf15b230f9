"""`curate why`: the journey of one row through a run, from its file to its end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from trajcurate.curate.errors import CurateError
from trajcurate.curate.manifest import read_manifest

_KEY = ["id", "source", "source_file", "source_row"]


class NoSuchRow(CurateError):
    """A key that names no row of the run, or more than one."""

    def __init__(self, key: str, folder: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(key, folder, tuple(candidates))
        self.key = key
        self.folder = folder
        self.candidates = tuple(candidates)
        self.hint = (
            "give more of the id"
            if candidates
            else "a key is an id or the start of one, FILE:ROW with rows from 0, or the source's id"
        )

    def __str__(self) -> str:
        if self.candidates:
            shown = ", ".join(self.candidates[:5])
            return f"`{self.key}` names {len(self.candidates)} rows of `{self.folder}`: {shown}"
        return f"`{self.key}` names no row of `{self.folder}`"


class NoRun(CurateError):
    """A folder that holds no finished run."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder
        self.hint = "give the folder that `curate run … -o FOLDER` has written"

    def __str__(self) -> str:
        return f"`{self.folder}` holds no finished run: it has no manifest.json"


@dataclass(frozen=True)
class Journey:
    """One row: who it is, what was changed, what was found, and where it ended."""

    key: dict[str, Any]
    kept: dict[str, Any] | None
    rejected: dict[str, Any] | None
    edits: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    copies: int


def why(folder: str | Path, key: str) -> Journey:
    """What happened to the row that `key` names.

    Args:
        folder: a run folder.
        key: an id or the start of one, `FILE:ROW`, or the source's own id.

    Raises:
        NoRun: the folder holds no finished run.
        NoSuchRow: no row has the key, or several have.
    """
    root = Path(folder)
    if read_manifest(root) is None:
        raise NoRun(str(folder))
    kept, rejected = _scan(root, "data"), _scan(root, "rejected")
    row = _find(kept, rejected, key, str(folder))
    is_row = pl.all_horizontal(pl.col(name) == row[name] for name in _KEY)
    found = kept.filter(is_row, pl.col("copy") == 0).drop("messages", "tools").collect().to_dicts()
    refused = rejected.filter(is_row).collect().to_dicts()
    plan = pl.scan_parquet(root / "plan.parquet")
    return Journey(
        key=row,
        kept=found[0] if found else None,
        rejected=refused[0] if refused else None,
        edits=_scan(root, "edits").filter(is_row).sort("seq").collect().to_dicts(),
        findings=_scan(root, "findings").filter(is_row).collect().to_dicts(),
        copies=int(plan.filter(pl.col("id") == row["id"]).select(pl.len()).collect().item()),
    )


def _scan(root: Path, name: str) -> pl.LazyFrame:
    return pl.scan_parquet(sorted((root / name).glob("*.parquet")))


def _find(kept: pl.LazyFrame, rejected: pl.LazyFrame, key: str, folder: str) -> dict[str, Any]:
    conditions = [pl.col("id") == key]
    file, sign, row = key.rpartition(":")
    if sign and row.isdecimal():
        conditions.append((pl.col("source_file") == file) & (pl.col("source_row") == int(row)))
    conditions.append(pl.col("id").str.starts_with(key) if key else pl.lit(False))
    for condition in conditions:
        frames = [kept.filter(pl.col("copy") == 0).filter(condition), rejected.filter(condition)]
        rows = pl.concat([frame.select(_KEY) for frame in frames]).unique().collect().to_dicts()
        if rows:
            return _only(rows, key, folder)
    rows = _by_source_id(kept, rejected, key)
    if not rows:
        raise NoSuchRow(key, folder)
    return _only(rows, key, folder)


def _only(rows: list[dict[str, Any]], key: str, folder: str) -> dict[str, Any]:
    if len(rows) > 1:
        raise NoSuchRow(key, folder, sorted(f"{r['id']} ({_place(r)})" for r in rows))
    return rows[0]


def _place(row: dict[str, Any]) -> str:
    return f"{row['source_file']}:{row['source_row']}"


def _by_source_id(kept: pl.LazyFrame, rejected: pl.LazyFrame, key: str) -> list[dict[str, Any]]:
    """Rows whose source calls them `key`, in a field of the record that is named like an id."""
    quoted = json.dumps(key, ensure_ascii=False)
    first = kept.filter(pl.col("copy") == 0).select(*_KEY, text="meta")
    second = rejected.select(*_KEY, text=pl.col("row").cast(pl.String))
    frame = pl.concat([first, second]).filter(pl.col("text").str.contains(quoted, literal=True))
    return [
        {name: row[name] for name in _KEY}
        for row in frame.collect().to_dicts()
        if _holds_id(row["text"], key)
    ]


def _holds_id(text: str, key: str) -> bool:
    record = json.loads(text)
    return isinstance(record, dict) and any(
        value == key and name.lower().endswith("id") for name, value in record.items()
    )
