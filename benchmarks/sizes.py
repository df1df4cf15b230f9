"""How large edits/ and rejected/ are beside data/, in each setting of the output.

    python benchmarks/sizes.py raw2000 [--spoil 0.1]

Clean rows are never rejected, so `--spoil` measures on a copy of the input in which that share of
the rows has lost its answer and another share has a call with a trailing comma.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import CommandFailed, run
from recipe import Recipe, add_recipe_arguments, parquet_files, recipe_of, row_count
from results import RESULTS, table, write_down

SETTINGS = (
    ("compact", "whole"),
    ("full", "whole"),
    ("compact", "reference"),
    ("full", "reference"),
)


def size_table(recipe: Recipe, source: Path, scratch: Path, workers: int) -> str:
    """Run the recipe in each setting and lay out the sizes of what it wrote."""
    lines = []
    for edits, rejected in SETTINGS:
        out = scratch / f"{edits}-{rejected}"
        options = ("--set", f"output.edits={edits}", "--set", f"output.rejected={rejected}")
        run(recipe.run([source], out, "--workers", str(workers), *options))
        data = folder_bytes(out / "data")
        lines.append(
            [
                edits,
                rejected,
                f"{data / 1e6:.2f}",
                *(beside_data(out / part, data) for part in ("edits", "rejected")),
                *(beside_data(out / part, data) for part in ("findings", "index")),
                *(f"{row_count(out / part):,}" for part in ("data", "edits", "rejected")),
            ]
        )
    head = ["edits", "rejected", "data/ MB", "edits/", "rejected/", "findings/", "index/"]
    return table([*head, "rows", "edits", "rejected"], lines)


def folder_bytes(folder: Path) -> int:
    """Add up the sizes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def beside_data(folder: Path, data_bytes: int) -> str:
    """Write a folder's size in megabytes and as a share of data/."""
    size = folder_bytes(folder)
    return f"{size / 1e6:.2f} MB, {size / data_bytes:.1%}"


def spoil(source: Path, out: Path, share: float) -> None:
    """Copy raw parquet; a share of the rows loses its answer, another gets a call to mend."""
    import pyarrow.parquet as pq

    out.mkdir(parents=True)
    period, row_number = max(2, round(1 / share)), 0
    for path in parquet_files(source):
        file = pq.ParquetFile(path)
        with pq.ParquetWriter(out / path.name, file.schema_arrow, compression="zstd") as writer:
            for batch in file.iter_batches(64):
                rows = list(spoiled(batch.to_pylist(), row_number, period))
                row_number += len(rows)
                writer.write_batch(type(batch).from_pylist(rows, schema=file.schema_arrow))


def spoiled(rows: list[dict[str, Any]], start: int, period: int) -> Iterator[dict[str, Any]]:
    """Spoil two rows of every `period`."""
    for number, row in enumerate(rows, start):
        if number % period == 0:
            row["messages"] = row["messages"][:-1]
        elif number % period == 1:
            first = row["messages"][1]
            first["content"] = first["content"].replace("}\n</tool_call>", ",}\n</tool_call>")
        yield row


def main() -> None:
    """Read the command line, run the settings, write down."""
    parser = argparse.ArgumentParser(
        description="Measure the sizes of what a run writes.",
        epilog="example: python benchmarks/sizes.py raw2000 --spoil 0.1",
    )
    parser.add_argument("input", type=Path, help="a folder made by generate_raw.py")
    parser.add_argument("--spoil", type=float, default=0.0, help="share of rows to damage")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    add_recipe_arguments(parser)
    given = parser.parse_args()
    recipe = recipe_of(given)
    with tempfile.TemporaryDirectory(dir=given.scratch) as name:
        source = given.input
        if given.spoil:
            source = Path(name) / f"{given.input.name}-spoiled"
            spoil(given.input, source, given.spoil)
        body = size_table(recipe, source, Path(name), given.workers)
    title = f"Sizes, {given.spoil:.0%} of the rows spoiled each way" if given.spoil else "Sizes"
    options = ("--set output.edits=…", "--set output.rejected=…")
    write_down(title, recipe.in_words(source, *options), body, given.results)


if __name__ == "__main__":
    try:
        main()
    except CommandFailed as failure:
        sys.exit(str(failure))
