"""Where every kept row goes: ids made unique, split, copies, order, shards.

Works on the keys of the rows alone, so that it costs a few hundred bytes a row whatever the texts
weigh. Everything follows from keys, seed and weights; nothing from the order in which units were
made.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from trajcurate.curate.identity import unit_interval
from trajcurate.curate.pipeline import OutputSpec


@dataclass(frozen=True)
class Layout:
    """The plan of the write phase.

    Attributes:
        rows: a line a row written: unit, offset, length, id, copy, split, shard.
        renamed: unit, source, source_file, source_row, id, new_id of rows whose content came
            again.
        late: kept rows that no copy was due to: unit, file, file_row and key, with the reason.
        plan: id, copy, copies in the order of the sampling plan.
        keys: all input rows, with their final ids.
        shards: (split, number within the split, how many of the split) by shard number.
    """

    rows: pl.DataFrame
    renamed: pl.DataFrame
    late: pl.DataFrame
    plan: pl.DataFrame
    keys: pl.DataFrame
    shards: tuple[tuple[str, int, int], ...]


_KEY = ("source", "source_file", "source_row")


def read_keys(folders: list[Path]) -> pl.DataFrame:
    """The keys of all units, with the unit's number."""
    frames = [
        pl.read_parquet(folder / "keys.parquet").with_columns(unit=pl.lit(number, pl.Int32))
        for number, folder in enumerate(folders)
    ]
    return pl.concat(frames)


def lay_out(keys: pl.DataFrame, output: OutputSpec) -> Layout:
    """Decide ids, split, copies, order and shards of all rows."""
    keys = _with_unique_ids(keys)
    renamed = keys.filter(pl.col("id") != pl.col("new_id")).select(
        "unit", *_KEY, "id", "new_id", "is_kept"
    )
    kept = keys.filter("is_kept").with_columns(id=pl.col("new_id"))
    kept = kept.with_columns(
        u=_hashes(kept["id"], output.seed), split=_splits(kept["question_id"], output)
    )
    kept = kept.with_columns(copies=_copies(kept, output))
    late = kept.filter(pl.col("copies") == 0) if output.resample == "repeat" else kept.clear()
    kept = kept.filter(pl.col("copies") > 0) if output.resample == "repeat" else kept
    rows = _ordered_rows(kept, output)
    rows, shards = _cut_shards(rows, output.shard_size)
    return Layout(
        rows=rows.select("unit", "offset", "length", "id", "copy", "split", "shard"),
        renamed=renamed,
        late=late.select("unit", "id", *_KEY, "file", "file_row", "weight"),
        plan=_plan(kept),
        keys=keys.with_columns(id=pl.col("new_id")).drop("new_id"),
        shards=shards,
    )


def _with_unique_ids(keys: pl.DataFrame) -> pl.DataFrame:
    """Adds `new_id`: the second row of an id, by input key, gets `-2` and so on."""
    keys = keys.with_columns(new_id=pl.col("id"))
    again = keys.filter(pl.col("id").is_duplicated())
    if again.is_empty():
        return keys
    taken = set(keys["id"])
    names: list[str] = []
    previous, number = "", 1
    again = again.sort("id", *_KEY, "unit", "offset")
    for row_id in again["id"]:
        if row_id != previous:
            previous, number = row_id, 1
            names.append(row_id)
            continue
        number += 1
        while f"{row_id}-{number}" in taken:
            number += 1
        names.append(f"{row_id}-{number}")
    again = again.with_columns(new_id=pl.Series(names, dtype=pl.String))
    return pl.concat([keys.filter(~pl.col("id").is_duplicated()), again]).sort(
        "unit", "file", "file_row"
    )


def _hashes(ids: pl.Series, seed: int) -> pl.Series:
    return pl.Series([unit_interval(seed, row_id) for row_id in ids], dtype=pl.Float64)


def _splits(question_ids: pl.Series, output: OutputSpec) -> pl.Series:
    if output.validation == 0:
        return pl.Series(["train"] * len(question_ids), dtype=pl.String)
    return pl.Series(
        [
            "validation"
            if unit_interval(output.seed, f"split:{q}") < output.validation
            else "train"
            for q in question_ids
        ],
        dtype=pl.String,
    )


def _copies(kept: pl.DataFrame, output: OutputSpec) -> pl.Series:
    """How many copies the sampling plan holds of each row; 1 for validation rows.

    Among the n rows of equal weight w each gets floor(w), and those with the smallest hash one
    more, until there are round(n * w).
    """
    frame = kept.select("id", "u", "weight", "split").with_row_index("row")
    train = frame.filter(pl.col("split") == "train").sort("u", "id")
    count = pl.len().over("weight")
    base = pl.col("weight").floor()
    extra = (count * pl.col("weight")).round() - count * base
    rank = pl.int_range(pl.len()).over("weight")
    train = train.with_columns(copies=(base + (rank < extra).cast(pl.Float64)).cast(pl.Int32))
    others = frame.filter(pl.col("split") != "train").with_columns(copies=pl.lit(1, dtype=pl.Int32))
    return pl.concat([train, others]).sort("row")["copies"]


def _ordered_rows(kept: pl.DataFrame, output: OutputSpec) -> pl.DataFrame:
    """The rows to write, copies included, in the order in which they are written."""
    if output.resample == "repeat":
        rows = _with_copies(kept)
        if output.shuffle:
            return rows.sort("split", "place", "id", "copy")
    else:
        rows = kept.with_columns(copy=pl.lit(0, dtype=pl.Int32))
        if output.shuffle:
            return rows.sort("split", "u", "id")
    return rows.sort("split", *_KEY, "id", "copy")


def _with_copies(kept: pl.DataFrame) -> pl.DataFrame:
    """A line a copy, with its place (copy + u) / weight, which spreads copies over the set."""
    rows = kept.with_columns(copy=pl.int_ranges(pl.col("copies"), dtype=pl.Int32)).explode("copy")
    return rows.with_columns(place=(pl.col("copy") + pl.col("u")) / pl.col("weight"))


def _plan(kept: pl.DataFrame) -> pl.DataFrame:
    train = kept.filter((pl.col("split") == "train") & (pl.col("copies") > 0))
    return _with_copies(train).sort("place", "id", "copy").select("id", "copy", "copies")


def _cut_shards(
    rows: pl.DataFrame, shard_size: int
) -> tuple[pl.DataFrame, tuple[tuple[str, int, int], ...]]:
    """Ranges of rows of about equal size, at most `shard_size` bytes unless one row is larger.

    There is always a shard of `train`.
    """
    sizes = dict(rows.group_by("split").agg(pl.col("length").sum()).iter_rows())
    aims = {split: size / -(-size // shard_size) for split, size in sizes.items()}
    numbers: list[int] = []
    shards: list[tuple[str, int]] = []
    filled = 0
    for split, length in zip(rows["split"], rows["length"], strict=True):
        is_full = filled and (filled + length > shard_size or filled + length / 2 > aims[split])
        if not shards or shards[-1][0] != split or is_full:
            number = shards[-1][1] + 1 if shards and shards[-1][0] == split else 0
            shards.append((split, number))
            filled = 0
        filled += length
        numbers.append(len(shards) - 1)
    if not any(split == "train" for split, _ in shards):
        shards.append(("train", 0))
    totals = {split: sum(s == split for s, _ in shards) for split, _ in shards}
    named = tuple((split, number, totals[split]) for split, number in shards)
    return rows.with_columns(shard=pl.Series(numbers, dtype=pl.Int32)), named
