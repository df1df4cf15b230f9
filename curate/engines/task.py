"""One piece of work, as every engine launches it."""

from __future__ import annotations

import importlib
import os
import traceback
from dataclasses import dataclass
from pathlib import Path

import orjson


@dataclass(frozen=True, slots=True)
class Tasks:
    """Numbered tasks of one phase: `module:function` is called with the work folder and a number.

    A task is done when its marker is there; functions write under another name and rename.
    """

    phase: str
    function: str
    work: str
    numbers: tuple[int, ...]

    def run(self, number: int) -> None:
        """Do one task. What goes wrong is left beside the work, for the process that waits."""
        module, _, name = self.function.partition(":")
        try:
            getattr(importlib.import_module(module), name)(self.work, number)
        except Exception as error:
            _note_failure(self.work, self.phase, number, error)
            raise

    def run_unclaimed(self) -> None:
        """Do every task that no other process has taken: the share of one of several workers."""
        for number in self.numbers:
            if _claim(self.work, self.phase, number):
                self.run(number)


def _claim(work: str, phase: str, number: int) -> bool:
    """Take a task for this process; False when another one has it."""
    folder = Path(work, "processes")
    folder.mkdir(exist_ok=True)
    try:
        with (folder / f"{phase}-{number}").open("x") as claim:
            claim.write(str(os.getpid()))
    except FileExistsError:
        return False
    return True


def _note_failure(work: str, phase: str, number: int, error: Exception) -> None:
    note = {
        "phase": phase,
        "number": number,
        "error": f"{type(error).__name__}: {error}",
        "errno": getattr(error, "errno", None),
        "traceback": traceback.format_exc(),
    }
    try:
        folder = Path(work, "failures")
        folder.mkdir(exist_ok=True)
        (folder / f"{phase}-{number}.json").write_bytes(orjson.dumps(note))
    except OSError:
        return  # the disk may be what failed; the exception itself still reaches the engine


def lost_task(work: str, phase: str, numbers: list[int]) -> tuple[int, int] | None:
    """A task among `numbers` whose process is gone: (number, process id). Local engines only."""
    for number in numbers:
        try:
            process = int(Path(work, "processes", f"{phase}-{number}").read_text())
        except (OSError, ValueError):
            continue
        if not _is_alive(process):
            return number, process
    return None


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(process)


def _is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False
