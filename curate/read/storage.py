"""Where bytes lie: local paths and fsspec URLs, listed and opened the same way."""

import glob
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

import pyarrow as pa
import xxhash

from trajcurate.curate.errors import UnreadableFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK_BYTES = 1 << 20

# What a store may say of a file that changes when its content does, the best first.
_REVISIONS = (
    "ETag",
    "etag",
    "blob_id",
    "md5",
    "content_md5",
    "Content-MD5",
    "LastModified",
    "last_modified",
    "Last-Modified",
    "updated",
    "mtime",
    "created",
)


class UnknownStore(OSError):
    """A URL whose protocol fsspec does not know, or whose package is not installed."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path in a store. `prefix` and `suffix` turn the path back into what was typed.

    A local path has neither; `zip://in/a.jsonl::/tmp/b.zip` is `zip://`, `in/a.jsonl` and
    `::/tmp/b.zip`. Places with equal prefix and suffix share one tree of folders.
    """

    path: str
    prefix: str = ""
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.prefix}{self.path}{self.suffix}"

    @property
    def is_local(self) -> bool:
        """Whether this is a path of this machine."""
        return is_local(str(self))

    @property
    def parent(self) -> "Place":
        """The folder that holds it."""
        head, slash, _ = self.path.rpartition("/")
        return self.at(head or (slash if self.is_local else ""))

    def at(self, path: str) -> "Place":
        """Another path of the same store."""
        return Place(path, self.prefix, self.suffix)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as its store lists it. `stat_key` is cheap and changes when the content does.

    `stat_key` is None for what has no content to read, such as a pipe or a link to nowhere.
    """

    place: Place
    size: int
    stat_key: str | None


def is_local(located: str) -> bool:
    """Whether a place, written as text, is a path of this machine. URLs never start like one."""
    return located.startswith(os.sep)


def locate(text: str) -> Place:
    """The place that `text` names, its path made absolute; nothing is opened.

    Raises:
        UnknownStore: fsspec has no file system for the URL.
    """
    text = text.removeprefix("file://")
    if "://" not in text or os.path.exists(text):
        return Place(os.path.abspath(os.path.expanduser(text)))
    _, path = _filesystem(text)
    links = text.split("::")
    named = next(i for i, link in enumerate(links) if "://" in link)
    protocol, _, target = links[named].partition("://")
    # Hosts and the like stay in the prefix: a store's own paths may not repeat them.
    head = f"{protocol}://{target.rstrip('/')}".removesuffix(path)
    before = "".join(f"{link}::" for link in links[:named])
    after = "".join(f"::{link}" for link in links[named + 1 :])
    return Place(path, before + head, after)


def kind_of(place: Place) -> Literal["file", "folder", "absent"]:
    """What stands at `place`."""
    if place.is_local:
        if os.path.isdir(place.path):
            return "folder"
        return "file" if os.path.lexists(place.path) else "absent"
    with _as_os_error():
        system, path = _filesystem(str(place))
        if system.isdir(path):
            return "folder"
        return "file" if system.exists(path) else "absent"


def has_wildcard(text: str) -> bool:
    """Whether `text` may be a glob."""
    return any(mark in text for mark in "*?[")


def matches(pattern: Place) -> list[Place]:
    """The files and folders that a glob names, sorted; `**` crosses folders.

    What lies in a folder that matches is left out, and so are hidden files that the glob does not
    name as such.
    """
    if pattern.is_local:
        found = {os.path.abspath(path) for path in glob.glob(pattern.path, recursive=True)}
    else:
        with _as_os_error():
            system, path = _filesystem(str(pattern))
            found = {match for match in system.glob(path) if "/." in path or "/." not in match}
    topmost = (path for path in found if found.isdisjoint(_folders_above(path)))
    return [pattern.at(path) for path in sorted(topmost)]


def _folders_above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def entry_at(place: Place) -> Entry:
    """The file at `place` with its size and `stat_key`."""
    if place.is_local:
        return _local_entry(place)
    with _as_os_error():
        system, path = _filesystem(str(place))
        return _remote_entry(place, system.info(path))


def files_below(folder: Place) -> Iterator[Entry]:
    """Every file below `folder`, without hidden files and folders.

    Linked folders are followed, except back to a folder that is being walked.

    Raises:
        OSError: a folder cannot be listed. What cannot be seen must not be missed silently.
    """
    if folder.is_local:
        yield from _local_files(folder, (os.path.realpath(folder.path),))
        return
    with _as_os_error():
        system, path = _filesystem(str(folder))
        listing = system.find(path, detail=True)
    for found, info in listing.items():
        below = found.removeprefix(path).split("/")
        if not any(part.startswith(".") for part in below):
            yield _remote_entry(folder.at(found), info)


def open_file(path: str) -> BinaryIO:
    """A local path or URL, open for reading bytes, seekable where its store is.

    Raises:
        OSError: it cannot be opened. Reading raises nothing else either, whatever the store.
    """
    if is_local(path):
        return open(path, "rb", buffering=BLOCK_BYTES)
    with _as_os_error():
        system, inner = _filesystem(path)
        raw = system.open(inner, "rb")
    return cast(BinaryIO, io.BufferedReader(_RemoteBytes(raw, system), BLOCK_BYTES))


def checksum_bytes(content: bytes) -> str:
    """The checksum that files, rows and manifests carry here: xxh3, 128 bits, as hex."""
    return str(xxhash.xxh3_128_hexdigest(content))


def checksum_file(path: str) -> str:
    """The checksum of a file's bytes, read in blocks.

    Raises:
        UnreadableFile: it cannot be opened or read on.
    """
    state = xxhash.xxh3_128()
    with reading(path), open_file(path) as stream:
        while block := stream.read(BLOCK_BYTES):
            state.update(block)
    return str(state.hexdigest())


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turns what goes wrong while a file is read into one error that names the file.

    Raises:
        UnreadableFile: for every failure of the store or of a decoder, but not for lack of memory.
    """
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, MemoryError):
            raise
        raise UnreadableFile(path, explain(error)) from error


def explain(error: Exception) -> str:
    """What went wrong, in one line without the path."""
    if isinstance(error, FileNotFoundError):
        return "it is not there"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    first_line = str(error).partition("\n")[0]
    return first_line or type(error).__name__


def _local_files(folder: Place, walked: tuple[str, ...]) -> Iterator[Entry]:
    with os.scandir(folder.path) as listing:
        found = sorted((item for item in listing if item.name[0] != "."), key=lambda i: i.name)
    for item in found:
        if not item.is_dir():
            yield _local_entry(folder.at(item.path))
            continue
        real = os.path.realpath(item.path) if item.is_symlink() else f"{walked[-1]}/{item.name}"
        if real not in walked:
            yield from _local_files(folder.at(item.path), (*walked, real))


def _local_entry(place: Place) -> Entry:
    if not os.path.isfile(place.path):
        return Entry(place, 0, None)
    stat = os.stat(place.path)
    return Entry(place, stat.st_size, f"{stat.st_size}-{stat.st_mtime_ns}")


def _remote_entry(place: Place, info: dict[str, Any]) -> Entry:
    size = int(info.get("size") or 0)
    revision = next((info[key] for key in _REVISIONS if info.get(key)), "")
    return Entry(place, size, f"{size}-{revision}")


def _filesystem(url: str) -> tuple[Any, str]:
    # Imported here because most runs read local files only.
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise UnknownStore(str(error)) from error
    return system, str(path)


@contextmanager
def _as_os_error() -> Iterator[None]:
    # Each store has exceptions of its own: for a reader they all say that the bytes did not come.
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


class _RemoteBytes(io.RawIOBase):
    """A file of an fsspec store whose failures are all OSError."""

    def __init__(self, stream: Any, system: Any) -> None:
        self._stream = stream
        self._system = system  # an archive closes its files when nobody holds it any more

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def readinto(self, buffer: "WriteableBuffer") -> int:
        target = memoryview(buffer).cast("B")
        with _as_os_error():
            block = self._stream.read(len(target))
        target[: len(block)] = block
        return len(block)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _as_os_error():
            return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
