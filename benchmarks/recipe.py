"""The command that the benchmarks put to the test: `curate run` with one recipe."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Command


@dataclass(frozen=True)
class Recipe:
    """A pipeline and the command line that runs it."""

    curate: tuple[str, ...]
    pipeline: str

    def run(self, inputs: Sequence[Path], out: Path, *options: str) -> Command:
        """Build the command for some inputs and an output folder."""
        names = [str(path) for path in inputs]
        return Command([*self.curate, "run", self.pipeline, *names, "-o", str(out), *options], out)

    def in_words(self, source: Path, *options: str) -> str:
        """Write the command for a reader: no folders, and `curate` whatever runs it."""
        return " ".join(["curate", "run", self.pipeline, source.name, "-o", "OUT", *options])


def add_recipe_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose what runs, and where it may write."""
    installed = str(Path(sys.executable).with_name("curate"))
    parser.add_argument("--pipeline", default="redsearcher_sft")
    parser.add_argument("--curate", default=installed, help="the command to test, with arguments")
    parser.add_argument(
        "--scratch", type=Path, help="folder for outputs; a temporary one when left out"
    )


def recipe_of(given: argparse.Namespace) -> Recipe:
    """Read the options of `add_recipe_arguments`."""
    return Recipe(tuple(shlex.split(given.curate)), given.pipeline)


def parquet_files(folder: Path) -> list[Path]:
    """Name the parquet files of an input folder."""
    return sorted(folder.glob("*.parquet"))


def row_count(folder: Path) -> int:
    """Count the rows of all parquet files directly in a folder."""
    # Imported late: it is large, and a child's peak memory counts from its fork.
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in parquet_files(folder))
