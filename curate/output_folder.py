"""The output folder: who may write there, what it holds, and how a finished run takes its place."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from trajcurate.curate.errors import OutputInUse
from trajcurate.curate.manifest import read_manifest, write_manifest

WORK = ".work"
# What a reader or a later command adds; a new run leaves it alone.
_KEPT_BESIDE = {WORK, "verdicts", "scores", "flags.jsonl"}


@contextmanager
def locked(output: Path) -> Iterator[Path]:
    """Take the folder for one run; gives the work folder in it.

    Raises:
        OutputInUse: it cannot be written, or another run works on it.
    """
    work = output / WORK
    try:
        work.mkdir(parents=True, exist_ok=True)
        handle = os.open(work / "lock", os.O_RDWR | os.O_CREAT)
    except OSError as error:
        hint = "name a folder that you may write, with -o"
        raise OutputInUse(str(output), f"cannot be written: {error.strerror}", hint) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        hint = "wait for it, or name another folder with -o"
        raise OutputInUse(str(output), "is in use by another run", hint) from None
    try:
        yield work
    finally:
        os.close(handle)


def check_is_ours(output: Path, run_key: str, fresh: bool) -> dict[str, Any] | None:
    """The folder's manifest, if it holds this very run; None if there is nothing finished.

    Raises:
        OutputInUse: the folder holds another run, or something that is no run.
    """
    manifest = read_manifest(output)
    if fresh:
        return None
    hint = "name another folder with -o, or replace it with --fresh"
    if manifest is not None:
        if manifest.get("run_key") != run_key:
            name = manifest.get("pipeline", {}).get("name")
            what = f"holds another run, of `{name}` by {manifest.get('code_version')}"
            raise OutputInUse(str(output), what, hint)
        return manifest
    unfinished = _unfinished_key(output)
    if unfinished not in (None, run_key):
        raise OutputInUse(str(output), "holds another run that is not finished", hint)
    if unfinished is None and output.is_dir() and _strangers(output):
        raise OutputInUse(str(output), f"holds other files ({_strangers(output)[0]}, …)", hint)
    return None


def _strangers(output: Path) -> list[str]:
    return sorted(entry.name for entry in output.iterdir() if entry.name not in _KEPT_BESIDE)


def _unfinished_key(output: Path) -> str | None:
    for name in ("job.json", "out/manifest.json"):
        try:
            found = orjson.loads((output / WORK / name).read_bytes())
        except (OSError, orjson.JSONDecodeError):
            continue
        return str(found.get("run_key"))
    return None


def clear_work(work: Path) -> None:
    """Drop all unfinished work; the lock stays."""
    for entry in work.iterdir():
        if entry.name == "lock":
            continue
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def is_sealed(work: Path, run_key: str) -> bool:
    """Whether a finished run waits in the work folder to take its place."""
    manifest = read_manifest(work / "out")
    return manifest is not None and manifest.get("run_key") == run_key


def publish(output: Path, work: Path) -> dict[str, Any]:
    """Put the sealed run in its place, the manifest last. Interrupted, it goes on where it was."""
    sealed = work / "out"
    manifest = read_manifest(sealed)
    assert manifest is not None, "only a sealed run is published"
    (output / "manifest.json").unlink(missing_ok=True)
    for entry in sorted(sealed.iterdir()):
        if entry.name in ("manifest.json", "done"):
            continue
        place = output / entry.name
        if place.is_dir():
            shutil.rmtree(place)
        entry.replace(place)
    write_manifest(manifest, output / "manifest.json")
    (sealed / "manifest.json").unlink()
    return manifest


def remove_work(output: Path, *, keep_units: bool) -> None:
    """Clean up after a run; the work of readable files stays while others wait to be mended."""
    work = output / WORK
    if not keep_units:
        shutil.rmtree(work, ignore_errors=True)
        return
    for name in ("out", "layout", "logs", "processes", "failures", "tmp"):
        shutil.rmtree(work / name, ignore_errors=True)
