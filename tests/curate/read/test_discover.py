import itertools
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trajcurate.curate.errors import UnusableInput
from trajcurate.curate.read.discover import (
    IgnoredFile,
    InputFile,
    RunFolder,
    container_of,
    discover,
)
from trajcurate.curate.read.storage import checksum_bytes, checksum_file

Written = Callable[[str, bytes], Path]


def names_in(*inputs: Path | str) -> list[str]:
    return [file.source_file for file in discover(inputs).files]


@pytest.mark.parametrize(
    ("name", "container"),
    [
        ("a.parquet", "parquet"),
        ("a.JSONL", "jsonl"),
        ("a.ndjson.gz", "jsonl.gz"),
        ("a.jsonl.zst", "jsonl.zst"),
        ("a.json", "json"),
        ("a.json.gz", None),
        ("a.txt", None),
        ("jsonl", None),
    ],
)
def test_the_name_tells_the_container(name: str, container: str | None) -> None:
    assert container_of(name) == container


@pytest.mark.parametrize(
    ("content", "container"),
    [
        (b'{"a": 1}\n{"a": 2}\n', "jsonl"),
        (b'\xef\xbb\xbf{"a": 1}\r\n{"a": 2}', "jsonl"),
        (b'{"a": 1}\n{"a": ', "jsonl"),
        (b'{"a": 1}\n', "json"),
        (b'{"a": 1}', "json"),
        (b'{\n"a": 1}\n', "json"),
        (b'[{"a": 1},\n{"a": 2}]', "json"),
        (b"", "json"),
    ],
)
def test_a_json_file_of_lines_is_read_line_by_line(
    written: Written, content: bytes, container: str
) -> None:
    [file] = discover([written("a.json", content)]).files
    assert file.container == container


def test_a_folder_is_walked_without_hidden_files_and_the_others_are_named(
    written: Written, tmp_path: Path
) -> None:
    for name in (
        "b.jsonl",
        "a/z.parquet",
        "a/y.json",
        ".hidden.jsonl",
        ".work/x.jsonl",
        "notes.txt",
    ):
        written(f"in/{name}", b"{}\n")
    inputs = discover([tmp_path / "in"])
    assert [file.source_file for file in inputs.files] == ["a/y.json", "a/z.parquet", "b.jsonl"]
    assert all(not file.named for file in inputs.files)
    assert inputs.root == str(tmp_path / "in")
    assert inputs.ignored == (
        IgnoredFile(
            str(tmp_path / "in" / "notes.txt"),
            "its name does not end in one of .parquet, .json, .jsonl, .jsonl.gz, .jsonl.zst",
        ),
    )


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        (["in/a/x.jsonl"], ["x.jsonl"]),
        (["in/a/x.jsonl", "in/a/y.jsonl"], ["x.jsonl", "y.jsonl"]),
        (["in/a/x.jsonl", "in/b/x.jsonl"], ["a/x.jsonl", "b/x.jsonl"]),
        (["in/a", "in/b/x.jsonl"], ["a/x.jsonl", "a/y.jsonl", "b/x.jsonl"]),
        (["in/a"], ["x.jsonl", "y.jsonl"]),
        (["in/ab", "in/a"], ["a/x.jsonl", "a/y.jsonl", "ab/x.jsonl"]),
        (["in"], ["a/x.jsonl", "a/y.jsonl", "ab/x.jsonl", "b/x.jsonl"]),
        (["in/*/x.jsonl"], ["a/x.jsonl", "ab/x.jsonl", "b/x.jsonl"]),
        (["in/**/y.jsonl"], ["y.jsonl"]),
        (["in/a", "in/a/x.jsonl", "in/b/../a/./x.jsonl"], ["x.jsonl", "y.jsonl"]),
    ],
)
def test_names_are_below_the_deepest_common_folder_in_whatever_order(
    written: Written, tmp_path: Path, inputs: list[str], names: list[str]
) -> None:
    for name in ("a/x", "a/y", "b/x", "ab/x"):
        written(f"in/{name}.jsonl", b"")
    paths = [f"{tmp_path}/{name}" for name in inputs]
    found = discover(paths)
    assert [file.source_file for file in found.files] == names
    for order in itertools.permutations(paths):
        assert discover(order) == found


def test_a_file_that_is_named_is_named_even_when_its_folder_is_too(written: Written) -> None:
    path = written("in/a.jsonl", b"")
    written("in/b.jsonl", b"")
    for order in ([path, path.parent], [path.parent, path]):
        assert [file.named for file in discover(order).files] == [True, False]


def test_relative_paths_are_the_same_files(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written("in/x.jsonl", b"")
    monkeypatch.chdir(tmp_path)
    assert discover(["in/x.jsonl"]) == discover([path]) == discover([f"file://{path}"])


def test_one_file_behind_two_names_is_read_once(written: Written, tmp_path: Path) -> None:
    path = written("in/b.jsonl", b"{}\n")
    (path.parent / "a.jsonl").symlink_to(path)
    inputs = discover([path.parent])
    assert [file.source_file for file in inputs.files] == ["a.jsonl"]
    assert inputs.ignored == (IgnoredFile(str(path), f"the same file as `{tmp_path}/in/a.jsonl`"),)


def test_linked_folders_are_followed_but_not_in_circles(written: Written, tmp_path: Path) -> None:
    elsewhere = written("elsewhere/x.jsonl", b"").parent
    folder = written("in/y.jsonl", b"").parent
    (folder / "shards").symlink_to(elsewhere)
    (folder / "again").symlink_to(folder)
    (elsewhere / "back").symlink_to(folder)
    assert names_in(folder) == ["shards/x.jsonl", "y.jsonl"]


def test_what_is_no_regular_file_is_ignored(written: Written, tmp_path: Path) -> None:
    folder = written("in/y.jsonl", b"").parent
    (folder / "nowhere.jsonl").symlink_to("gone")
    os.mkfifo(folder / "pipe.jsonl")
    inputs = discover([folder])
    assert [file.source_file for file in inputs.files] == ["y.jsonl"]
    assert [(Path(i.path).name, i.why) for i in inputs.ignored] == [
        ("nowhere.jsonl", "it is not a regular file"),
        ("pipe.jsonl", "it is not a regular file"),
    ]


def test_a_name_with_odd_characters_is_found_and_is_valid_text(tmp_path: Path) -> None:
    names = [b"a\xff.jsonl", "é\n*[1]?#%20 '.jsonl".encode(), b"$(x)::y.jsonl"]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(b"{}\n")
    files = discover([tmp_path]).files
    assert [file.source_file for file in files] == [
        "$(x)::y.jsonl", "a\\xff.jsonl", "é\n*[1]?#%20 '.jsonl",
    ]  # fmt: skip
    for file in files:
        assert names_in(file.path) == [file.source_file]
        assert checksum_file(file.path) == checksum_bytes(b"{}\n")


MANIFEST = json.dumps({"trajcurate_format": 1}).encode()


def test_of_a_run_folder_only_the_data_are_read(written: Written, tmp_path: Path) -> None:
    for name in ("data/train-0.parquet", "data/x.jsonl", "rejected/p.parquet", "plan.parquet"):
        written(f"out/{name}", b"")
    written("out/manifest.json", MANIFEST)
    inputs = discover([tmp_path / "out"])
    run = str(tmp_path / "out")
    assert [(f.source_file, f.continues) for f in inputs.files] == [("data/train-0.parquet", run)]
    assert inputs.ignored == ()
    assert inputs.run_folders == (RunFolder(run, checksum_bytes(MANIFEST)),)


def test_a_run_folder_is_noticed_within_a_folder(written: Written, tmp_path: Path) -> None:
    for name in (
        "a.jsonl",
        "run/data/t.parquet",
        "run/edits/e.parquet",
        "run/data/x/data/y.parquet",
    ):
        written(f"in/{name}", b"")
    for name in ("run", "run/data/x"):
        written(f"in/{name}/manifest.json", MANIFEST)
    inputs = discover([tmp_path / "in"])
    assert [(file.source_file, bool(file.continues)) for file in inputs.files] == [
        ("a.jsonl", False),
        ("run/data/t.parquet", True),
    ]
    assert [run.path for run in inputs.run_folders] == [f"{tmp_path}/in/run"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"rows": 60}', b"\xff", b"[" * 100_000])
def test_the_manifest_of_somebody_else_makes_no_run_folder(
    written: Written, tmp_path: Path, content: bytes
) -> None:
    written("in/train.parquet", b"")
    written("in/manifest.json", content)
    inputs = discover([tmp_path / "in"])
    assert [file.source_file for file in inputs.files] == ["manifest.json", "train.parquet"]
    assert inputs.run_folders == ()


def test_the_stat_key_changes_with_size_and_time(written: Written) -> None:
    path = written("a.jsonl", b"{}\n")
    os.utime(path, ns=(1, 1))
    [file] = discover([path]).files
    assert (file.size, file.stat_key) == (3, "3-1")
    os.utime(path, ns=(1, 2))
    assert discover([path]).files[0].stat_key == "3-2"


def test_every_unusable_input_is_named_with_what_is_expected(
    written: Written, tmp_path: Path
) -> None:
    text = written("notes.txt", b"")
    empty = tmp_path / "empty"
    empty.mkdir()
    good = written("good.jsonl", b"")
    missing = tmp_path / "gone.jsonl"
    glob = tmp_path / "*.parquet"
    unknown = "nostore://bucket/a.jsonl"
    with pytest.raises(UnusableInput) as caught:
        discover([missing, good, text, empty, glob, unknown], formats=["redsearcher", "messages"])
    error = caught.value
    assert error.exit_code == 2
    assert {problem.path: problem.what for problem in error.problems} == {
        str(missing): "no such file or folder",
        str(text): "its name does not end in one of .parquet, .json, .jsonl, .jsonl.gz, .jsonl.zst",
        str(empty): "the folder holds nothing that can be read (0 files looked at)",
        str(glob): "nothing matches it",
        unknown: "Protocol not known: nostore",
    }
    assert str(error).startswith(f"5 inputs cannot be used\n  `{glob}`: nothing matches it\n")
    assert error.hint == (
        "give files, folders, globs or URLs of .parquet, .json, .jsonl, .jsonl.gz, .jsonl.zst "
        "with records in one of the formats redsearcher, messages"
    )


def test_one_unusable_input_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput) as caught:
        discover([tmp_path / "gone"])
    assert str(caught.value) == f"input `{tmp_path}/gone`: no such file or folder"


def test_no_input_at_all_is_an_error() -> None:
    with pytest.raises(UnusableInput, match="no input was named"):
        discover([])


def test_urls_are_listed_like_folders(memory: Any) -> None:
    memory.pipe("/in/.hidden.jsonl", b"{}\n")
    for name in ("b.jsonl", "a/z.jsonl", ".hid/x.jsonl", "run/data/t.parquet", "run/plan.parquet"):
        memory.pipe(f"/in/{name}", b"{}\n")
    memory.pipe("/in/run/manifest.json", MANIFEST)
    inputs = discover(["memory://in"])
    assert inputs.root == "memory://in"
    assert [(file.path, file.source_file) for file in inputs.files] == [
        ("memory://in/a/z.jsonl", "a/z.jsonl"),
        ("memory://in/b.jsonl", "b.jsonl"),
        ("memory://in/run/data/t.parquet", "run/data/t.parquet"),
    ]
    assert inputs.run_folders == (RunFolder("memory://in/run", checksum_bytes(MANIFEST)),)
    assert names_in("memory://in/") == names_in("memory://in") == names_in("memory://in/**")
    assert names_in("memory://in/*.jsonl", "memory://in/a/z.jsonl") == ["a/z.jsonl", "b.jsonl"]
    assert checksum_file(inputs.files[0].path) == checksum_bytes(b"{}\n")


def test_the_stat_key_of_a_url_changes_when_the_file_is_written_again(memory: Any) -> None:
    memory.pipe("/in/a.jsonl", b"{}\n")
    before = discover(["memory://in/a.jsonl"]).files[0].stat_key
    assert before == discover(["memory://in/a.jsonl"]).files[0].stat_key
    memory.pipe("/in/a.jsonl", b"{}\n")
    assert before != discover(["memory://in/a.jsonl"]).files[0].stat_key


def test_files_in_an_archive_are_found_through_chained_urls(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for name in ("x.jsonl", "in/y.jsonl", "in/z.txt"):
            made.writestr(name, b"{}\n")
    inputs = discover([f"zip://::{archive}"])
    assert [(file.path, file.source_file) for file in inputs.files] == [
        (f"zip://in/y.jsonl::{archive}", "in/y.jsonl"),
        (f"zip://x.jsonl::{archive}", "x.jsonl"),
    ]
    assert names_in(f"zip://in/*.jsonl::{archive}") == ["y.jsonl"]
    assert checksum_file(inputs.files[0].path) == checksum_bytes(b"{}\n")


def test_inputs_of_two_stores_have_their_whole_paths_as_names(
    written: Written, memory: Any
) -> None:
    path = written("a.jsonl", b"")
    memory.pipe("/in/a.jsonl", b"")
    assert names_in(path, "memory://in/a.jsonl") == sorted([str(path), "memory://in/a.jsonl"])
    assert discover([path, "memory://in/a.jsonl"]).root == ""


def test_a_missing_url_is_named(memory: Any) -> None:
    with pytest.raises(UnusableInput, match=r"`memory://in/gone.jsonl`: no such file or folder"):
        discover(["memory://in/gone.jsonl"])


def test_an_input_file_can_be_sent_to_a_worker(written: Written) -> None:
    import pickle

    [file] = discover([written("a.jsonl", b"")]).files
    assert isinstance(file, InputFile)
    assert pickle.loads(pickle.dumps(file)) == file
