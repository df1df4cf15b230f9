"""What can stop a run, or a file: one root and its few children.

A bad record is an outcome and never an exception; a missing input or a broken file is one. Each
exception keeps its parts as attributes and builds its sentence late, in `__str__`; `hint` says how
to go on and is printed on a line of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class CurateError(Exception):
    """The root of everything that `curate` raises on purpose."""

    exit_code: ClassVar[int] = 2
    hint: str | None = None

    def describe(self) -> str:
        """The sentence, and below it the hint."""
        return f"{self}\n  hint: {self.hint}" if self.hint else str(self)


@dataclass(frozen=True, slots=True)
class InputProblem:
    """One input as it was named, and what is wrong with it."""

    path: str
    what: str


class UnusableInput(CurateError):
    """Inputs that name nothing that can be read; all of them at once.

    Args:
        problems: one for each input that cannot be used.
        containers: how the names of readable files end.
        formats: the record formats that are known, where the caller knows them.
    """

    def __init__(
        self,
        problems: Sequence[InputProblem],
        containers: Sequence[str],
        formats: Sequence[str] = (),
    ) -> None:
        super().__init__(tuple(problems), tuple(containers), tuple(formats))
        self.problems = tuple(problems)
        self.containers = tuple(containers)
        self.formats = tuple(formats)
        expected = f"give files, folders, globs or URLs of {', '.join(containers)}"
        if formats:
            expected += f" with records in one of the formats {', '.join(formats)}"
        self.hint = expected

    def __str__(self) -> str:
        lines = [f"`{problem.path}`: {problem.what}" for problem in self.problems]
        if len(lines) == 1:
            return f"input {lines[0]}"
        return "\n  ".join([f"{len(lines)} inputs cannot be used", *lines])


class UnreadableFile(CurateError):
    """A file that cannot be opened or read on; the other files of a run are not touched by it."""

    exit_code: ClassVar[int] = 1
    hint: str | None = "restore or replace the file and run again; only what it held is made then"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why

    def __str__(self) -> str:
        return f"`{self.path}` cannot be read: {self.why}"


class WorkerDied(CurateError):
    """A process that was killed while it worked; a rerun does only what is missing."""

    exit_code: ClassVar[int] = 1
    hint: str | None = (
        "often the system was out of memory: run again with fewer --workers; finished work is kept"
    )

    def __init__(self, phase: str, number: int, process: int) -> None:
        super().__init__(phase, number, process)
        self.phase = phase
        self.number = number
        self.process = process

    def __str__(self) -> str:
        return f"worker process {self.process} died in task {self.number} of phase `{self.phase}`"


class TaskFailed(CurateError):
    """A task that broke, and not because of its input."""

    exit_code: ClassVar[int] = 1

    def __init__(self, phase: str, what: str, hint: str | None, log: str | None = None) -> None:
        super().__init__(phase, what, hint, log)
        self.phase = phase
        self.what = what
        self.hint = hint
        self.log = log

    def __str__(self) -> str:
        where = f" (details in `{self.log}`)" if self.log else ""
        return f"phase `{self.phase}` stopped: {self.what}{where}"


class OutputInUse(CurateError):
    """An output folder that cannot be taken: it holds something else, or another run works on it.

    Args:
        path: the folder.
        what: what it holds or who uses it.
        hint: how to go on.
    """

    def __init__(self, path: str, what: str, hint: str) -> None:
        super().__init__(path, what, hint)
        self.path = path
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"output `{self.path}` {self.what}"


class FormatUnclear(CurateError):
    """Files whose record format cannot be told.

    Args:
        problems: one for each such file.
        hint: what would settle it.
    """

    def __init__(self, problems: Sequence[InputProblem], hint: str) -> None:
        super().__init__(tuple(problems), hint)
        self.problems = tuple(problems)
        self.hint = hint

    def __str__(self) -> str:
        return "\n  ".join(f"`{problem.path}`: {problem.what}" for problem in self.problems)


class Interrupted(CurateError):
    """The user, or the system, asked the run to stop."""

    exit_code: ClassVar[int] = 130
    hint: str | None = "run the same command again to go on"

    def __str__(self) -> str:
        return "interrupted"
