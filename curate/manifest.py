"""The manifest: what a finished run read, did and wrote. It is written last."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow.parquet as pq

from trajcurate.curate.identity import checksum
from trajcurate.curate.read.storage import checksum_file

FORMAT_VERSION = 1


@lru_cache(maxsize=1)
def code_version() -> str:
    """The release and a hash of the code that decides what a run makes of its input."""
    texts = []
    for package in ("trajcurate.curate", "trajcurate.schemas"):
        root = Path(str(files(package)))
        texts += [
            (str(path.relative_to(root)), path.read_bytes())
            for path in root.rglob("*.py")
            if "__pycache__" not in path.parts
        ]
    digest = checksum(b"\0".join(name.encode() + b"\0" + text for name, text in sorted(texts)))
    return f"{importlib.metadata.version('trajcurate')}+{digest[:16]}"


def merge_counts(units: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The counts of all units added up, by source and step."""
    merged: dict[str, dict[str, Any]] = {}
    for unit in units:
        for source, steps in unit["counts"].items():
            target = merged.setdefault(source, {})
            for label, counts in steps.items():
                _add(target.setdefault(label, {}), counts)
    return {source: merged[source] for source in sorted(merged)}


def _add(target: dict[str, Any], counts: dict[str, Any]) -> None:
    for name, value in counts.items():
        if isinstance(value, dict):
            total = Counter(target.get(name, {}))
            total.update(value)
            target[name] = dict(sorted(total.items()))
        else:
            target[name] = target.get(name, 0) + value


def describe_outputs(folder: Path) -> list[dict[str, Any]]:
    """Every file of a run folder with its size, checksum and rows."""
    return [
        {
            "path": path.relative_to(folder).as_posix(),
            "bytes": path.stat().st_size,
            "checksum": checksum_file(str(path)),
            "rows": pq.read_metadata(path).num_rows,
        }
        for path in sorted(folder.rglob("*.parquet"))
    ]


def weight_summary(keys: pl.DataFrame, plan: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows, effective rows and copies of the kept rows by source and turn bucket."""
    kept = keys.filter("is_kept")
    if kept.is_empty():
        return []
    copies = plan.group_by("id").agg(copies=pl.len())
    bucket = (
        pl.when(pl.col("turn_count") <= 50)
        .then(pl.lit("1-50"))
        .when(pl.col("turn_count") <= 100)
        .then(pl.lit("51-100"))
        .otherwise(pl.lit("101-"))
    )
    table = (
        kept.join(copies, on="id", how="left")
        .with_columns(turns=bucket)
        .group_by("source", "turns", "weight")
        .agg(
            rows=pl.len(),
            effective_rows=pl.col("weight").sum(),
            planned_rows=pl.col("copies").fill_null(0).sum(),
        )
        .sort("source", "weight", "turns")
    )
    return table.to_dicts()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a run folder; None when there is none or it cannot be read."""
    try:
        found = orjson.loads((folder / "manifest.json").read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return found if isinstance(found, dict) and "trajcurate_format" in found else None


def write_manifest(manifest: dict[str, Any], path: Path) -> None:
    """Write a manifest in one rename."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
    temporary.replace(path)
