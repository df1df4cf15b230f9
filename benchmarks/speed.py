"""How much a recipe costs beside the least that any program must do, and how it scales.

    python benchmarks/speed.py raw2000 [--large raw20000]

Each round runs the polars stand-in and the recipe with one and with two workers, one after the
other; ratios are taken within a round. Start-up, the same command with `--limit 1`, is taken off
both sides. Exits 1 if a gate is missed: 6 times the stand-in's CPU seconds, 1.8 times faster with
two workers, 700 MB for the largest process, every row kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Command, CommandFailed, Spread, Usage, alternate, paired_ratios, spread
from recipe import Recipe, add_recipe_arguments, recipe_of, row_count
from results import RESULTS, table, write_down

MOST_CPU_RATIO = 6.0
LEAST_SPEEDUP = 1.8
MOST_PEAK_BYTES = 700_000_000
STAND_IN, STAND_IN_START = "polars stand-in", "polars stand-in, 1 row"
START, ONE_WORKER, TWO_WORKERS = "recipe, 1 row", "recipe, 1 worker", "recipe, 2 workers"


@dataclass(frozen=True)
class Gate:
    """A bound, what was found, and whether it holds."""

    says: str
    found: str
    holds: bool

    def line(self) -> list[str]:
        """Make a table line."""
        return [self.says, self.found, "yes" if self.holds else "NO"]


def measure_speed(
    recipe: Recipe, source: Path, scratch: Path, repeats: int, also: Sequence[str]
) -> tuple[str, list[Gate]]:
    """Measure the recipe in turn with the stand-in; give a table and the gates."""
    commands = {
        STAND_IN: baseline("polars", source, scratch / "polars"),
        STAND_IN_START: baseline("polars", source, scratch / "polars-start", "--limit", "1"),
        START: recipe.run([source], scratch / "start", "--workers", "1", "--limit", "1"),
        ONE_WORKER: recipe.run([source], scratch / "one", "--workers", "1"),
        TWO_WORKERS: recipe.run([source], scratch / "two", "--workers", "2"),
        **{name: baseline(name, source, scratch / name) for name in also},
    }
    usages = alternate(commands, repeats)
    gates = [
        cpu_gate(usages),
        speedup_gate(usages),
        memory_gate(f"at {row_count(source):,} rows", usages[ONE_WORKER] + usages[TWO_WORKERS]),
        *(kept_gate(name, source, commands[name].out) for name in (ONE_WORKER, TWO_WORKERS)),
    ]
    return usage_table(usages), gates


def measure_large(recipe: Recipe, source: Path, scratch: Path) -> tuple[str, list[Gate]]:
    """Run the recipe once with each worker count on a larger set, for its peak memory."""
    commands = {
        ONE_WORKER: recipe.run([source], scratch / "large-one", "--workers", "1"),
        TWO_WORKERS: recipe.run([source], scratch / "large-two", "--workers", "2"),
    }
    usages = alternate(commands, 1)
    runs = usages[ONE_WORKER] + usages[TWO_WORKERS]
    kept = [kept_gate(name, source, command.out) for name, command in commands.items()]
    return usage_table(usages), [memory_gate(f"at {row_count(source):,} rows", runs), *kept]


def baseline(name: str, source: Path, out: Path, *options: str) -> Command:
    """Build the command of a baseline program."""
    script = Path(__file__).with_name("baselines.py")
    return Command([sys.executable, str(script), name, str(source), str(out), *options], out)


def cpu_gate(usages: dict[str, list[Usage]]) -> Gate:
    """Compare CPU seconds with the stand-in's, start-up taken off both."""
    ratios = paired_ratios(
        net_cpu(usages[ONE_WORKER], usages[START]),
        net_cpu(usages[STAND_IN], usages[STAND_IN_START]),
    )
    return Gate(
        f"CPU seconds over the stand-in's, net of start-up: at most {MOST_CPU_RATIO:.0f}",
        str(ratios),
        ratios.median <= MOST_CPU_RATIO,
    )


def net_cpu(runs: list[Usage], starts: list[Usage]) -> list[float]:
    """Take the start-up's CPU seconds off each run's."""
    return [run.cpu_seconds - start.cpu_seconds for run, start in zip(runs, starts, strict=True)]


def speedup_gate(usages: dict[str, list[Usage]]) -> Gate:
    """Compare wall seconds of one worker with those of two, start-up included."""
    ratios = paired_ratios(
        [usage.wall_seconds for usage in usages[ONE_WORKER]],
        [usage.wall_seconds for usage in usages[TWO_WORKERS]],
    )
    return Gate(
        f"times faster with 2 workers, start-up included: at least {LEAST_SPEEDUP}",
        str(ratios),
        ratios.median >= LEAST_SPEEDUP,
    )


def memory_gate(where: str, runs: list[Usage]) -> Gate:
    """Hold the largest process of all runs against the bound."""
    peak = max(usage.peak_bytes for usage in runs)
    return Gate(
        f"MB in the largest process {where}: under {MOST_PEAK_BYTES / 1e6:.0f}",
        f"{peak / 1e6:.0f}",
        peak < MOST_PEAK_BYTES,
    )


def kept_gate(name: str, source: Path, out: Path) -> Gate:
    """See that the run wrote every row of a clean input: one that rejects rows looks fast."""
    wanted, written = row_count(source), row_count(out / "data")
    return Gate(f"rows kept of {wanted:,} ({name}): all", f"{written:,}", wanted == written)


def usage_table(usages: dict[str, list[Usage]]) -> str:
    """Lay out CPU seconds, wall seconds and peak memory by command."""
    stand_in = [usage.cpu_seconds for usage in usages.get(STAND_IN, [])]
    return table(
        ["smallest / median / largest", "CPU s", "over polars", "wall s", "peak MB of one process"],
        [
            [
                name,
                str(spread(cpu := [usage.cpu_seconds for usage in runs])),
                str(paired_ratios(cpu, stand_in)) if stand_in else "",
                str(spread([usage.wall_seconds for usage in runs])),
                in_megabytes(spread([usage.peak_bytes for usage in runs])),
            ]
            for name, runs in usages.items()
        ],
    )


def in_megabytes(peaks: Spread) -> str:
    """Write peaks in megabytes."""
    return " / ".join(f"{peak / 1e6:.0f}" for peak in (peaks.smallest, peaks.median, peaks.largest))


def main() -> int:
    """Read the command line, measure, write down; 1 if a gate is missed."""
    parser = argparse.ArgumentParser(
        description="Measure a recipe against the polars stand-in.",
        epilog="example: python benchmarks/speed.py raw2000 --repeats 3 --large raw20000",
    )
    parser.add_argument("input", type=Path, help="a folder made by generate_raw.py")
    parser.add_argument("--large", type=Path, help="a larger folder, for the peak memory")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--also", action="append", default=[], help="another baseline to run")
    parser.add_argument("--results", type=Path, default=RESULTS)
    add_recipe_arguments(parser)
    given = parser.parse_args()
    recipe = recipe_of(given)
    with tempfile.TemporaryDirectory(dir=given.scratch) as name:
        scratch = Path(name)
        body, gates = measure_speed(recipe, given.input, scratch, given.repeats, given.also)
        if given.large:
            large_body, large_gates = measure_large(recipe, given.large, scratch)
            body, gates = (
                f"{body}\n\n{given.large.name}, once:\n\n{large_body}",
                gates + large_gates,
            )
    verdicts = table(["gate", "found", "holds"], [gate.line() for gate in gates])
    write_down(
        f"Speed, {given.repeats} rounds",
        recipe.in_words(given.input, "--workers 1, then 2"),
        f"{body}\n\n{verdicts}",
        given.results,
    )
    return int(not all(gate.holds for gate in gates))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandFailed as failure:
        sys.exit(str(failure))
