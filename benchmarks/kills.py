"""Whether interruptions, workers or the order of inputs change a single byte of the output.

    python benchmarks/kills.py raw200 --kills 20

One run is left alone. Then the same run is started, killed with SIGKILL (the whole process group)
at a random moment of its measured duration, and started again, until it comes to its end; that is
repeated until so many kills have hit. Runs with one and with two workers, and with the files named
in reverse, follow. Prints a line for each comparison; exits 1 if one differs or a run fails.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import Command, CommandFailed, Running, run
from recipe import Recipe, add_recipe_arguments, parquet_files, recipe_of
from results import RESULTS, write_down

COMPARED = ("data", "rejected", "edits", "findings", "index", "plan.parquet")


def compare_all(
    recipe: Recipe, source: Path, scratch: Path, kills: int, seed: int, workers: int
) -> Iterator[tuple[str, list[str]]]:
    """Run in every way that must not matter; give a name and what differs."""
    files = parquet_files(source)
    undisturbed = recipe.run(files, scratch / "undisturbed", "--workers", str(workers))
    duration = run(undisturbed).wall_seconds
    expected = checksums(undisturbed.out)
    if not any(name.startswith("data/") for name in expected):
        raise SystemExit("the undisturbed run wrote nothing below data/")

    disturbed = recipe.run(files, scratch / "disturbed", "--workers", str(workers))
    yield from compare_killed(disturbed, expected, duration, kills, random.Random(seed))

    for count in (1, 2):
        command = recipe.run(files, scratch / f"workers-{count}", "--workers", str(count))
        yield f"{count} worker(s)", differences(expected, finish(command))
    backwards = recipe.run(files[::-1], scratch / "reversed", "--workers", str(workers))
    yield "inputs named in reverse", differences(expected, finish(backwards))


def compare_killed(
    command: Command, expected: dict[str, str], duration: float, kills: int, rng: random.Random
) -> Iterator[tuple[str, list[str]]]:
    """Kill and resume until so many kills have hit; compare after each run that came to its end."""
    hit = 0
    while hit < kills:
        shutil.rmtree(command.out, ignore_errors=True)
        moments: list[str] = []
        while hit < kills and (moment := kill_at(command, rng.uniform(0, duration))) is not None:
            hit += 1
            moments.append(f"{moment:.2f}")
            early = differences_if_sealed(command.out, expected)
            if early:
                yield f"manifest found after a kill at {moment:.2f} s", early
        resumed = finish(command, fresh=False)
        yield f"killed at {', '.join(moments) or 'no'} s", differences(expected, resumed)


def kill_at(command: Command, moment: float) -> float | None:
    """Start the command and kill it at a moment.

    Returns:
        The moment, or None if the command came to its end before.

    Raises:
        CommandFailed: it ended by itself with an exit code other than 0.
    """
    with Running(command) as running:
        if not running.finished_within(moment):
            running.kill()
            return moment
        usage = running.wait()
    if usage.exit_code != 0:
        raise CommandFailed(command, usage)
    return None


def finish(command: Command, fresh: bool = True) -> dict[str, str]:
    """Run to the end, from the start or on what is there, and take the checksums."""
    if fresh:
        run(command)
    else:
        with Running(command) as running:
            usage = running.wait()
        if usage.exit_code != 0:
            raise CommandFailed(command, usage)
    return checksums(command.out)


def checksums(out: Path) -> dict[str, str]:
    """Take the SHA-256 of every file that must be the same, by its path below the run folder."""
    files = (path for name in COMPARED for path in [out / name, *(out / name).rglob("*")])
    return {path.relative_to(out).as_posix(): sha256(path) for path in files if path.is_file()}


def sha256(path: Path) -> str:
    """Take the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """Name the files that are missing, too many or not the same."""
    missing = [f"{name} is missing" for name in expected.keys() - found.keys()]
    added = [f"{name} was not expected" for name in found.keys() - expected.keys()]
    both = expected.keys() & found.keys()
    changed = [f"{name} differs" for name in both if expected[name] != found[name]]
    return sorted(missing + added + changed)


def differences_if_sealed(out: Path, expected: dict[str, str]) -> list[str]:
    """A manifest means a finished run: where one stands, everything must be there."""
    return differences(expected, checksums(out)) if (out / "manifest.json").exists() else []


def main() -> int:
    """Read the command line, compare, write down; 1 on any difference."""
    parser = argparse.ArgumentParser(
        description="Kill and resume a run, and compare its output byte by byte.",
        epilog="example: python benchmarks/kills.py raw200 --kills 20 --seed 0",
    )
    parser.add_argument("input", type=Path, help="a folder made by generate_raw.py")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    add_recipe_arguments(parser)
    given = parser.parse_args()
    lines, same = [], True
    with tempfile.TemporaryDirectory(dir=given.scratch) as name:
        try:
            for what, differing in compare_all(
                recipe_of(given), given.input, Path(name), given.kills, given.seed, given.workers
            ):
                lines.append(f"{what}: {'; '.join(differing) or 'same'}")
                print(lines[-1], flush=True)
                same = same and not differing
        except CommandFailed as failure:
            lines.append(str(failure))
            print(lines[-1], flush=True)
            same = False
    title = f"Kills: {given.kills} on {given.input.name}, seed {given.seed}"
    command = recipe_of(given).in_words(given.input, "--workers", str(given.workers))
    write_down(title, command, "\n".join(f"- {line}" for line in lines), given.results)
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
