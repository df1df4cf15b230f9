"""From the inputs as they were named to the sorted list of files that hold records."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Literal

import orjson

from trajcurate.curate.errors import InputProblem, UnusableInput
from trajcurate.curate.read import storage
from trajcurate.curate.read.storage import Entry, Place

Container = Literal["parquet", "jsonl", "jsonl.gz", "jsonl.zst", "json"]

_ENDINGS: dict[str, Container] = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonl.gz": "jsonl.gz",
    ".ndjson.gz": "jsonl.gz",
    ".jsonl.zst": "jsonl.zst",
    ".ndjson.zst": "jsonl.zst",
    ".json": "json",
}
CONTAINER_ENDINGS: tuple[str, ...] = (".parquet", ".json", ".jsonl", ".jsonl.gz", ".jsonl.zst")

MANIFEST_NAME = "manifest.json"
MANIFEST_MARK = "trajcurate_format"

# Longer first lines are rows of no known data set; a file that starts so is read as one document.
_LONGEST_FIRST_LINE = 64 << 20
_LARGEST_MANIFEST = 64 << 20


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that holds records.

    `path` is what to open, `source_file` the name that rows carry: the path below the source's
    root. `stat_key` is cheap (size and time, or the store's revision) and changes when the content
    does; `storage.checksum_file` reads the content. A file that was `named` must fit a known
    format, one that was found in a folder need not. `continues` is the run folder it belongs to.
    """

    path: str
    source_file: str
    size: int
    container: Container
    stat_key: str
    named: bool = False
    continues: str | None = None


@dataclass(frozen=True, slots=True)
class IgnoredFile:
    """A file that was found in a folder and holds no records we can read."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A finished run that is read as a continuation: its `data/` only."""

    path: str
    manifest_checksum: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the inputs of one source hold; the same whatever the order they were named in."""

    root: str
    files: tuple[InputFile, ...]
    ignored: tuple[IgnoredFile, ...]
    run_folders: tuple[RunFolder, ...]


def discover(inputs: Iterable[str | Path], *, formats: Sequence[str] = ()) -> Inputs:
    """The files that `inputs` name, each once, sorted by `source_file`.

    Args:
        inputs: files, folders, globs and fsspec URLs of one source.
        formats: names of the known record formats, for the hint of an error.

    Raises:
        UnusableInput: an input is missing, or a folder holds nothing that can be read, or a named
            file is of no known container; every such input is listed.
    """
    problems: list[InputProblem] = []
    search = _Search()
    for text in sorted({str(item) for item in inputs}):
        try:
            problem = search.add(text)
        except OSError as error:
            problem = storage.explain(error)
        if problem:
            problems.append(InputProblem(text, problem))
    if not problems and not search.found:
        problems.append(InputProblem("INPUT", "no input was named"))
    if problems:
        raise UnusableInput(problems, CONTAINER_ENDINGS, formats)
    return search.result()


def container_of(name: str) -> Container | None:
    """The container that a file's name tells, or None."""
    lowered = name.lower()
    endings = (ending for ending in _ENDINGS if lowered.endswith(ending))
    longest = max(endings, key=len, default=None)
    return _ENDINGS[longest] if longest else None


@dataclass(frozen=True, slots=True)
class _Found:
    entry: Entry
    container: Container
    named: bool
    continues: str | None = None


class _Search:
    """Collects what the inputs name, one after the other."""

    def __init__(self) -> None:
        self.found: dict[str, _Found] = {}
        self.ignored: dict[str, str] = {}
        self.run_folders: dict[str, RunFolder] = {}
        self.roots: list[Place] = []

    def add(self, text: str) -> str | None:
        """Adds what `text` names; answers what is wrong with it, if anything."""
        place = storage.locate(text)
        if storage.kind_of(place) != "absent":
            return self._add_one(place)
        if not storage.has_wildcard(text):
            return "no such file or folder"
        matches = storage.matches(place)
        if not matches:
            return "nothing matches it"
        wrong = [f"`{match}`: {why}" for match in matches if (why := self._add_one(match))]
        return "; ".join(wrong)

    def _add_one(self, place: Place) -> str | None:
        if storage.kind_of(place) == "folder":
            self.roots.append(place)
            return self._add_folder(place)
        self.roots.append(place.parent)
        return self._add_named_file(storage.entry_at(place))

    def _add_named_file(self, entry: Entry) -> str | None:
        container = _container_at(entry)
        if container is None:
            return _why_ignored(entry)
        self._keep(_Found(entry, container, named=True))
        return None

    def _add_folder(self, folder: Place) -> str | None:
        entries = list(storage.files_below(folder))
        runs = _run_folders(entries)
        kept = 0
        for entry in entries:
            run = _run_folder_above(entry.place.path, runs)
            if run is not None and not _is_data(entry.place.path, run):
                continue
            container = _container_at(entry)
            if container is None:
                self.ignored[str(entry.place)] = _why_ignored(entry)
            else:
                continues = None
                if run is not None:
                    continues = runs[run].path
                    self.run_folders[continues] = runs[run]
                self._keep(_Found(entry, container, named=False, continues=continues))
                kept += 1
        if kept:
            return None
        return f"the folder holds nothing that can be read ({len(entries)} files looked at)"

    def _keep(self, new: _Found) -> None:
        place = new.entry.place
        key = os.path.realpath(place.path) if place.is_local else str(place)
        old = self.found.get(key)
        if old is None:
            self.found[key] = new
            return
        first, second = sorted((old, new), key=lambda found: str(found.entry.place))
        if str(first.entry.place) != str(second.entry.place):
            self.ignored[str(second.entry.place)] = f"the same file as `{first.entry.place}`"
        continues = first.continues or second.continues
        self.found[key] = replace(first, named=old.named or new.named, continues=continues)

    def result(self) -> Inputs:
        root = _common_folder(self.roots)
        files = [
            InputFile(
                path=str(found.entry.place),
                source_file=_name_below(root, found.entry.place),
                size=found.entry.size,
                container=found.container,
                stat_key=found.entry.stat_key or "",
                named=found.named,
                continues=found.continues,
            )
            for found in self.found.values()
        ]
        return Inputs(
            root=str(root) if root else "",
            files=tuple(sorted(files, key=lambda file: file.source_file)),
            ignored=tuple(IgnoredFile(*item) for item in sorted(self.ignored.items())),
            run_folders=tuple(run for _, run in sorted(self.run_folders.items())),
        )


def _container_at(entry: Entry) -> Container | None:
    if entry.stat_key is None:
        return None
    container = container_of(entry.place.path)
    if container == "json" and _is_line_by_line(entry.place):
        return "jsonl"
    return container


def _is_line_by_line(place: Place) -> bool:
    """Whether a `.json` file is JSON Lines, as many published data sets name theirs."""
    try:
        with storage.open_file(str(place)) as stream:
            first = stream.readline(_LONGEST_FIRST_LINE).removeprefix(b"\xef\xbb\xbf")
            if not first.startswith(b"{") or not first.endswith(b"\n"):
                return False
            if not stream.read(1):
                return False
        orjson.loads(first)
    except (OSError, ValueError):
        return False  # the reader of documents names what is wrong
    return True


def _why_ignored(entry: Entry) -> str:
    if entry.stat_key is None:
        return "it is not a regular file"
    return f"its name does not end in one of {', '.join(CONTAINER_ENDINGS)}"


def _run_folders(entries: Iterable[Entry]) -> dict[str, RunFolder]:
    """The run folders that hold `entries`, by their path in the store."""
    runs = {}
    for entry in entries:
        if entry.place.path.rpartition("/")[2] == MANIFEST_NAME and entry.stat_key is not None:
            checksum = _manifest_checksum(entry.place)
            if checksum:
                folder = entry.place.parent
                runs[folder.path] = RunFolder(str(folder), checksum)
    return runs


def _manifest_checksum(place: Place) -> str | None:
    """The checksum of a manifest of ours, None for anybody else's file of that name."""
    with storage.open_file(str(place)) as stream:
        content = stream.read(_LARGEST_MANIFEST + 1)
    if len(content) > _LARGEST_MANIFEST:
        return None
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(manifest, dict) or MANIFEST_MARK not in manifest:
        return None
    return storage.checksum_bytes(content)


def _run_folder_above(path: str, runs: dict[str, RunFolder]) -> str | None:
    """The path of the topmost run folder that holds `path`."""
    topmost = None
    while path:
        path = path.rpartition("/")[0]
        if path in runs:
            topmost = path
    return topmost


def _is_data(path: str, run_path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder.lstrip("/") == f"{run_path}/data".lstrip("/") and name.endswith(".parquet")


def _common_folder(folders: Sequence[Place]) -> Place | None:
    """The deepest folder that holds all of `folders`, None when their stores differ."""
    if len({(folder.prefix, folder.suffix, folder.is_local) for folder in folders}) != 1:
        return None
    levels = zip(*(folder.path.split("/") for folder in folders))
    common = takewhile(lambda names: len(set(names)) == 1, levels)
    return folders[0].at("/".join(names[0] for names in common) or "/")


def _name_below(root: Place | None, place: Place) -> str:
    if root is None:
        return _as_text(str(place))
    return _as_text(place.path.removeprefix(root.path).lstrip("/"))


def _as_text(path: str) -> str:
    """A path as valid text: bytes that are not UTF-8 are spelled out."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
