import io
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from trajcurate.curate.errors import InputProblem, UnreadableFile, UnusableInput
from trajcurate.curate.read.storage import Place, checksum_file, locate, open_file, reading


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/a/b.jsonl", Place("/a/b.jsonl")),
        ("/a/../b//c", Place("/b/c")),
        ("file:///a/b", Place("/a/b")),
        ("memory://a/b.jsonl", Place("/a/b.jsonl", "memory:/")),
        ("memory://a/b/", Place("/a/b", "memory:/")),
        ("memory://", Place("", "memory://")),
        ("zip://in/*.json::/a.zip", Place("in/*.json", "zip://", "::/a.zip")),
        ("simplecache::memory://a/b", Place("/a/b", "simplecache::memory:/")),
    ],
)
def test_a_place_is_a_path_and_what_surrounds_it(
    text: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "zip" in text:
        monkeypatch.setattr(
            "trajcurate.curate.read.storage._filesystem", lambda url: (None, "in/*.json")
        )
    assert locate(text) == place
    assert locate(str(place)) == place


def test_the_parent_of_a_place_is_a_place_of_the_same_store() -> None:
    assert Place("/a/b").parent == Place("/a")
    assert Place("/a").parent == Place("/")
    assert Place("in/a", "zip://", "::/b.zip").parent == Place("in", "zip://", "::/b.zip")
    assert Place("a", "zip://", "::/b.zip").parent == Place("", "zip://", "::/b.zip")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (FileNotFoundError(2, "No such file or directory", "/a"), "it is not there"),
        (PermissionError(13, "Permission denied", "/a"), "permission denied"),
        (OSError("first line\nsecond"), "first line"),
        (OSError(), "OSError"),
        (pa.ArrowInvalid("Parquet magic bytes not found"), "Parquet magic bytes not found"),
    ],
)
def test_the_reason_is_one_line_without_the_path(error: Exception, why: str) -> None:
    with pytest.raises(UnreadableFile) as caught, reading("/a"):
        raise error
    assert (caught.value.path, caught.value.why) == ("/a", why)


@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("full"), TypeError("bug")])
def test_broken_machinery_is_no_unreadable_file(error: Exception) -> None:
    with pytest.raises(type(error)), reading("/a"):
        raise error


def test_whatever_a_store_raises_while_it_is_read_is_an_unreadable_file(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFile

    class Refused(Exception):
        pass

    def fail(self: Any, size: int = -1) -> bytes:
        raise Refused("token expired")

    memory.pipe("/in/a.jsonl", b"{}\n")
    monkeypatch.setattr(MemoryFile, "read", fail)
    with pytest.raises(UnreadableFile, match="Refused: token expired"):
        checksum_file("memory://in/a.jsonl")


def test_a_url_is_opened_like_a_file(memory: Any) -> None:
    memory.pipe("/in/a.jsonl", b"0123456789\n")
    with open_file("memory://in/a.jsonl") as stream:
        assert stream.seek(-4, io.SEEK_END) == 7
        assert (stream.read(2), stream.tell()) == (b"78", 9)
        assert stream.readline() == b"9\n"


def test_a_missing_file_has_no_checksum(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="it is not there"):
        checksum_file(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    "error",
    [UnreadableFile("/a", "why"), UnusableInput([InputProblem("/a", "gone")], [".json"], ["x"])],
)
def test_errors_come_back_whole_from_a_worker(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))
