"""Run a command as a child process and read what it cost: CPU seconds, wall seconds, peak memory.

Only the standard library is imported, so that the measuring process stays small: on Linux the peak
memory of a process counts from its fork, before it became the command.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

POLL_SECONDS = 0.01
# Looking through /proc takes time from the command itself, and what it reads is a high-water mark.
PEAK_POLL_SECONDS = 0.25
ORPHAN_SECONDS = 30.0
_BECOME_SUBREAPER = 36
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Usage:
    """What one run of a command cost."""

    exit_code: int
    cpu_seconds: float
    """User and system time of the command and of every process it started."""
    wall_seconds: float
    peak_bytes: int
    """Largest resident set that any one process of the command ever had."""
    output: str
    """Standard output and standard error together."""


@dataclass(frozen=True)
class Command:
    """A command line, and the folder it writes, which is removed before each run."""

    arguments: Sequence[str]
    out: Path
    environment: Mapping[str, str] = field(default_factory=dict)


class CommandFailed(Exception):
    """A measured command ended with an exit code other than 0."""

    def __init__(self, command: Command, usage: Usage) -> None:
        super().__init__(command, usage)
        self.command = command
        self.usage = usage

    def __str__(self) -> str:
        tail = "\n".join(self.usage.output.splitlines()[-20:])
        return f"exit code {self.usage.exit_code}: {shlex.join(self.command.arguments)}\n{tail}"


class Running:
    """A command that was started in a process group of its own; leaving the context kills it."""

    def __init__(self, command: Command) -> None:
        adopt_orphans()
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            command.arguments,
            env={**os.environ, **command.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._output: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._peak_bytes = 0

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self.kill()

    def finished_within(self, seconds: float) -> bool:
        """Wait, and say whether the command came to its end in that time."""
        deadline = time.perf_counter() + seconds
        while not self._has_ended():
            if time.perf_counter() >= deadline:
                return False
            time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.perf_counter())))
        return True

    def kill(self) -> None:
        """End the whole process group at once, as a power cut would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()

    def wait(self) -> Usage:
        """Wait for the command and all it started; add up what they used."""
        while not self.finished_within(PEAK_POLL_SECONDS):
            self._peak_bytes = max(self._peak_bytes, peak_of_tree(self._process.pid))
        wall_seconds = time.perf_counter() - self._started
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        cpu_seconds = used.ru_utime + used.ru_stime
        maxrss = used.ru_maxrss
        for orphan in _reap_orphans(self._process.pid):
            cpu_seconds += orphan.ru_utime + orphan.ru_stime
            maxrss = max(maxrss, orphan.ru_maxrss)
        self._reader.join()
        return Usage(
            exit_code=self._process.returncode,
            cpu_seconds=cpu_seconds,
            wall_seconds=wall_seconds,
            peak_bytes=max(self._peak_bytes, maxrss * _MAXRSS_UNIT),
            output="".join(self._output),
        )

    def _read(self) -> None:
        if self._process.stdout is not None:
            self._output.extend(self._process.stdout)

    def _has_ended(self) -> bool:
        # WNOWAIT leaves the child for wait4, which alone tells what it used.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None


def run(command: Command) -> Usage:
    """Run a command once and measure it.

    Raises:
        CommandFailed: it ended with an exit code other than 0.
    """
    shutil.rmtree(command.out, ignore_errors=True)
    with Running(command) as running:
        usage = running.wait()
    if usage.exit_code != 0:
        raise CommandFailed(command, usage)
    return usage


def alternate(commands: Mapping[str, Command], repeats: int) -> dict[str, list[Usage]]:
    """Run commands in turn, over and over, so that a slow minute of the machine hits all alike."""
    usages: dict[str, list[Usage]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            usages[name].append(run(command))
    return usages


@dataclass(frozen=True)
class Spread:
    """The smallest and the median of some measurements, the largest beside them."""

    smallest: float
    median: float
    largest: float

    def __str__(self) -> str:
        return f"{self.smallest:.2f} / {self.median:.2f} / {self.largest:.2f}"


def spread(values: Sequence[float]) -> Spread:
    """Sum up measurements of one thing."""
    return Spread(min(values), statistics.median(values), max(values))


def paired_ratios(values: Sequence[float], baseline: Sequence[float]) -> Spread:
    """Compare runs with the baseline's runs made next to them, pair by pair."""
    return spread([value / base for value, base in zip(values, baseline, strict=True)])


def machine() -> str:
    """Describe the machine without naming it."""
    return (
        f"{os.cpu_count()} cores, {os.uname().sysname} {os.uname().machine}, "
        f"Python {sys.version.split()[0]}"
    )


def adopt_orphans() -> None:
    """Become the parent of processes whose own parent ends first, so that their time is counted.

    Pools of the `forkserver` kind leave their server behind without waiting for it. Linux only;
    elsewhere the time of such processes is missed.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)


def peak_of_tree(leader: int) -> int:
    """Read the largest peak resident set among a process, its session and their children.

    Returns:
        Bytes; 0 where there is no /proc.
    """
    peaks = [0]
    members = {leader}
    for pid in sorted(int(name.name) for name in Path("/proc").glob("[0-9]*")):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2]
            parent, session = int(fields.split()[1]), int(fields.split()[3])
            if session == leader or parent in members:
                members.add(pid)
                peaks.append(_peak_bytes(Path(f"/proc/{pid}/status").read_text()))
        except OSError:  # it ended while we looked
            continue
    return max(peaks)


def _peak_bytes(status: str) -> int:
    _, _, rest = status.partition("VmHWM:")
    return int(rest.split()[0]) * 1024 if rest else 0


def _reap_orphans(group: int) -> list[resource.struct_rusage]:
    used = []
    deadline = time.monotonic() + ORPHAN_SECONDS
    while sys.platform == "linux":
        try:
            pid, _, usage = os.wait4(-group, os.WNOHANG)
        except ChildProcessError:
            break
        if pid:
            used.append(usage)
        elif time.monotonic() > deadline:
            os.killpg(group, signal.SIGKILL)
            raise TimeoutError("processes of a measured command outlive it")
        else:
            time.sleep(POLL_SECONDS)
    return used
