"""What a run promises: nothing lost, same in same out, interruptible anywhere."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rows import many_rows, raw_row, write_jsonl

from trajcurate import curate
from trajcurate.curate.errors import CurateError, OutputInUse

TABLES = ("data", "rejected", "edits", "findings", "index")
SMALL = ["input.unit_size=40KB", "output.shard_size=150KB"]


def fingerprint(folder: Path) -> dict[str, str]:
    """A hash of every file that must come out the same."""
    files = [path for name in TABLES for path in (folder / name).iterdir()]
    files.append(folder / "plan.parquet")
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }


def table(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(sorted((folder / name).glob("*.parquet")))


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw")
    rows = many_rows(60)
    write_jsonl(folder / "b.jsonl", [*rows[:25], b"{not json", b'{"messages": "\xff\xfe"}'])
    write_jsonl(folder / "a" / "c.jsonl", rows[25:50])
    write_jsonl(folder / "d.jsonl", [*rows[50:], rows[0]])
    return folder


@pytest.fixture(scope="module")
def reference(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("reference")
    curate.run("redsearcher_sft", [raw], output, workers=1, settings=SMALL)
    return output


def test_every_input_row_ends_in_exactly_one_of_data_and_rejected(
    raw: Path, reference: Path
) -> None:
    key = ["source_file", "source_row"]
    data, rejected = table(reference, "data"), table(reference, "rejected")
    written = {
        (path.relative_to(raw).as_posix(), number)
        for path in raw.rglob("*.jsonl")
        for number in range(path.read_bytes().count(b"\n"))
    }
    assert len(data) + len(rejected) == len(written)
    assert set(data.select(key).rows()) | set(rejected.select(key).rows()) == written


def test_each_step_keeps_or_rejects_what_comes_in(reference: Path) -> None:
    manifest = json.loads((reference / "manifest.json").read_text())
    for steps in manifest["counts"].values():
        for label, count in steps.items():
            if label in ("read", "adapt", "write"):
                continue
            assert count["rows_in"] == count["rows_kept"] + sum(count["rejected"].values()), label


def test_a_rejected_row_is_there_whole_with_its_reason(raw: Path, reference: Path) -> None:
    rejected = table(reference, "rejected")
    row = rejected.filter(pl.col("reason") == "messages_missing").row(0, named=True)
    line = (raw / row["source_file"]).read_bytes().split(b"\n")[row["source_row"]]
    assert json.loads(row["row"]) == json.loads(line)
    assert row["outcome"] == "quarantined"
    unreadable = rejected.filter(pl.col("reason") == "row_unreadable")
    assert sorted(unreadable["row"]) == [
        '"{not json"',
        json.dumps({"bytes": '{"messages": "\\xff\\xfe"}'}, separators=(",", ":")),
    ]


def test_a_second_row_of_the_same_content_gets_a_numbered_id(reference: Path) -> None:
    data = table(reference, "data")
    again = data.filter(pl.col("id").str.ends_with("-2"))
    assert again["source_file"].to_list() == ["d.jsonl"]
    first = again["id"][0].removesuffix("-2")
    assert data.filter(pl.col("id") == first)["source_file"].to_list() == ["b.jsonl"]
    for name in ("edits", "index"):
        ids = set(pl.read_parquet(sorted((reference / name).glob("*.parquet"))[0])["id"])
        assert ids <= set(data["id"]), name


def test_the_run_folder_checks_clean(reference: Path) -> None:
    result = curate.check([reference])
    assert [kind.reason for kind in result.errors] == []
    assert result.exit_code == 0


@pytest.mark.parametrize("resample", ["weight", "repeat"])
def test_workers_and_the_order_of_inputs_change_no_byte(
    raw: Path, tmp_path: Path, resample: str
) -> None:
    settings = [*SMALL, f"output.resample={resample}"]
    files = [raw / "b.jsonl", raw / "a", raw / "d.jsonl"]
    curate.run("redsearcher_sft", files, tmp_path / "one", workers=1, settings=settings)
    curate.run("redsearcher_sft", files[::-1], tmp_path / "two", workers=2, settings=settings)
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two")


@pytest.mark.parametrize("resample", ["weight", "repeat"])
@pytest.mark.parametrize("shuffle", ["true", "false"])
def test_own_output_as_input_gives_the_same_data_and_nothing_else(
    raw: Path, tmp_path: Path, resample: str, shuffle: str
) -> None:
    settings = [*SMALL, f"output.resample={resample}", f"output.shuffle={shuffle}"]
    curate.run("redsearcher_sft", [raw], tmp_path / "one", workers=1, settings=settings)
    curate.run(
        "redsearcher_sft", [tmp_path / "one"], tmp_path / "two", workers=1, settings=settings
    )
    first = {k: v for k, v in fingerprint(tmp_path / "one").items() if k.startswith("data/")}
    second = {k: v for k, v in fingerprint(tmp_path / "two").items() if k.startswith("data/")}
    assert first == second
    assert table(tmp_path / "two", "rejected").is_empty()
    assert table(tmp_path / "two", "edits").is_empty()
    manifest = json.loads((tmp_path / "two" / "manifest.json").read_text())
    assert len(manifest["parents"]) == 1


def test_with_full_edits_each_kept_row_is_rebuilt_as_it_was_read(raw: Path, tmp_path: Path) -> None:
    curate.run("redsearcher_sft", [raw], tmp_path, workers=1, settings=["output.edits=full"])
    edits = table(tmp_path, "edits").sort("id", "seq")
    by_id = {key[0]: frame.to_dicts() for key, frame in edits.group_by("id")}
    for row in table(tmp_path, "data").iter_rows(named=True):
        line = (raw / row["source_file"]).read_bytes().split(b"\n")[row["source_row"]]
        record = json.loads(line)
        system = [{"role": "system", "content": record["system_prompt"]}]
        assert rebuild(row["messages"], by_id[row["id"]]) == system + record["messages"]


def rebuild(messages: list[dict[str, str]], edits: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Undo the edits of a row, last to first, from what the tables hold alone."""
    messages = [dict(message) for message in messages]
    for edit in reversed(edits):
        index = edit["message"]
        if edit["start"] is not None:
            text = messages[index]["content"]
            start, after = edit["start"], edit["after"]
            assert text[start : start + len(after)] == after
            messages[index]["content"] = text[:start] + edit["before"] + text[start + len(after) :]
        elif edit["after"] is None:
            whole = json.loads(edit["before"])
            messages.insert(index, {"role": whole["role"], "content": whole["content"]})
        elif edit["before"] is None:
            messages.pop(index)
        else:
            messages[index].update(json.loads(edit["before"]))
    return messages


def test_a_killed_run_resumes_to_the_same_bytes(raw: Path, reference: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trajcurate.curate.cli", "run", "redsearcher_sft", str(raw)]
    command += ["-o", str(tmp_path / "out"), "--workers", "2"]
    command += [part for setting in SMALL for part in ("--set", setting)]
    moments = random.Random(5)
    for _ in range(4):
        process = subprocess.Popen(
            command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(0.3, 3.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if not (tmp_path / "out" / "manifest.json").exists():
            assert not list((tmp_path / "out").glob("data/*")) or is_publishing(tmp_path / "out")
    result = curate.run("redsearcher_sft", [raw], tmp_path / "out", settings=SMALL)
    assert result.manifest["complete"]
    assert fingerprint(tmp_path / "out") == fingerprint(reference)
    assert not (tmp_path / "out" / ".work").exists()


def test_what_a_killed_writer_leaves_is_never_published(
    raw: Path, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("trajcurate.curate.write_output._gather", die)
        # As SIGKILL would have it: another process, and nothing is cleaned up.
        patch.setattr(os, "getpid", lambda: 1)
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            curate.run("redsearcher_sft", [raw], tmp_path, workers=1, settings=SMALL)
    assert list((tmp_path / ".work").rglob("train-*"))
    curate.run("redsearcher_sft", [raw], tmp_path, workers=1, settings=SMALL)
    assert fingerprint(tmp_path) == fingerprint(reference)


def is_publishing(output: Path) -> bool:
    return (output / ".work" / "out" / "manifest.json").exists()


def test_a_finished_run_is_not_done_again(raw: Path, reference: Path) -> None:
    before = (reference / "manifest.json").stat().st_mtime_ns
    result = curate.run("redsearcher_sft", [raw], reference, settings=SMALL)
    assert result.was_done_before
    assert (reference / "manifest.json").stat().st_mtime_ns == before


def test_a_folder_with_another_run_is_not_touched(raw: Path, reference: Path) -> None:
    before = fingerprint(reference)
    with pytest.raises(OutputInUse, match="holds another run, of `redsearcher_sft`"):
        curate.run("rollouts", [raw], reference)
    assert fingerprint(reference) == before
    with pytest.raises(CurateError, match=r"has changed since|another run"):
        curate.run("redsearcher_sft", [raw / "b.jsonl"], reference, settings=SMALL)


def test_fresh_replaces_a_run_only_when_the_new_one_is_sealed(tmp_path: Path) -> None:
    first = write_jsonl(tmp_path / "first.jsonl", [raw_row("first")])
    second = write_jsonl(tmp_path / "second.jsonl", [raw_row("second", turns=3)])
    curate.run("redsearcher_sft", [first], tmp_path / "out")
    with pytest.raises(CurateError):
        curate.run("redsearcher_sft", [tmp_path / "none.jsonl"], tmp_path / "out", fresh=True)
    assert table(tmp_path / "out", "data")["turn_count"].to_list() == [4]
    curate.run("redsearcher_sft", [second], tmp_path / "out", fresh=True)
    assert table(tmp_path / "out", "data")["turn_count"].to_list() == [3]


def test_a_truncated_parquet_among_good_files_is_listed_and_tried_again(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    write_jsonl(raw / "good.jsonl", [raw_row("good"), raw_row("better")])
    whole = tmp_path / "whole.parquet"
    pl.DataFrame([raw_row("late")]).write_parquet(whole)
    (raw / "bad.parquet").write_bytes(whole.read_bytes()[:-40])
    result = curate.run("redsearcher_sft", [raw], tmp_path / "out")
    assert result.exit_code == 1
    assert [Path(item["path"]).name for item in result.manifest["unreadable"]] == ["bad.parquet"]
    assert result.manifest["totals"]["kept"] == 2
    (raw / "bad.parquet").write_bytes(whole.read_bytes())
    result = curate.run("redsearcher_sft", [raw], tmp_path / "out")
    assert result.exit_code == 0
    assert result.manifest["totals"]["kept"] == 3
    curate.run("redsearcher_sft", [raw], tmp_path / "clean")
    assert fingerprint(tmp_path / "out") == fingerprint(tmp_path / "clean")


def test_rows_of_no_weight_and_of_no_copy_are_rejected_whole(tmp_path: Path) -> None:
    rows = [raw_row(f"tower {n}", turns=3) for n in range(8)] + [raw_row("long", turns=70)]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    buckets = "[{max_turns: 50, weight: 0.25}, {weight: 0}]"
    result = curate.run(
        "redsearcher_sft",
        [file],
        tmp_path / "out",
        settings=[f"steps.weigh_by_turns.buckets={buckets}", "output.resample=repeat"],
    )
    assert result.manifest["totals"]["written"] == 2
    rejected = table(tmp_path / "out", "rejected")
    assert sorted(rejected["reason"]) == ["weight_no_copy"] * 6 + ["weight_zero"]
    for row in rejected.iter_rows(named=True):
        assert json.loads(row["row"]) == rows[row["source_row"]]
    kept = set(table(tmp_path / "out", "data")["id"])
    for name in ("edits", "index"):
        for path in (tmp_path / "out" / name).glob("*.parquet"):
            assert set(pl.read_parquet(path)["id"]) <= kept


def test_repeat_spreads_copies_and_the_plan_says_the_same(tmp_path: Path) -> None:
    rows = [raw_row(f"pier {n}", turns=2 + 60 * (n % 2)) for n in range(10)]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    curate.run("redsearcher_sft", [file], tmp_path / "w")
    curate.run("redsearcher_sft", [file], tmp_path / "r", settings=["output.resample=repeat"])
    data, plan = table(tmp_path / "r", "data"), pl.read_parquet(tmp_path / "w" / "plan.parquet")
    assert data.select("id", "copy").rows() == plan.select("id", "copy").rows()
    assert len(data) == 5 * 1 + 5 * 2
    assert table(tmp_path / "w", "data").height == 10


def test_a_question_never_changes_sides(tmp_path: Path) -> None:
    rows = [raw_row(f"question {n % 20}", turns=2 + n % 5) for n in range(60)]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    curate.run("redsearcher_sft", [file], tmp_path / "out", settings=["output.validation=0.3"])
    sides: dict[str, set[str]] = {}
    for path in (tmp_path / "out" / "data").glob("*.parquet"):
        for question in pl.read_parquet(path)["question_id"]:
            sides.setdefault(question, set()).add(path.name.split("-")[0])
    assert all(len(side) == 1 for side in sides.values())
    assert {side for found in sides.values() for side in found} == {"train", "validation"}


def test_a_limit_reads_so_many_rows_and_no_more(raw: Path, tmp_path: Path) -> None:
    result = curate.run("redsearcher_sft", [raw], tmp_path, limit=3, settings=SMALL)
    assert result.manifest["totals"]["read"] == 3


def test_a_run_with_no_row_kept_fails(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "rows.jsonl", [raw_row("x", messages=[])])
    result = curate.run("redsearcher_sft", [file], tmp_path / "out")
    assert result.exit_code == 1
    assert table(tmp_path / "out", "data").is_empty()


@pytest.mark.parametrize(("bound", "code"), [(0.9, 0), (0.01, 1), (1, 1), (50, 0)])
def test_bounds_on_rejected_rows_fail_the_run(
    raw: Path, tmp_path: Path, bound: float, code: int
) -> None:
    result = curate.run("redsearcher_sft", [raw], tmp_path, max_rejected=bound)
    assert result.exit_code == code


def test_two_runs_never_share_a_folder(tmp_path: Path) -> None:
    from trajcurate.curate.output_folder import locked

    file = write_jsonl(tmp_path / "rows.jsonl", [raw_row("x")])
    with locked(tmp_path / "out"), pytest.raises(OutputInUse, match="in use by another run"):
        curate.run("redsearcher_sft", [file], tmp_path / "out")


def test_the_run_folder_loads_in_datasets_polars_duckdb_and_pandas(reference: Path) -> None:
    import datasets
    import duckdb
    import pandas as pd

    files = sorted(str(path) for path in (reference / "data").glob("*.parquet"))
    rows = table(reference, "data").height
    loaded = datasets.load_dataset(
        "parquet", data_files=files, cache_dir=str(reference / "scores" / "cache")
    )
    assert loaded["train"].num_rows == rows
    assert duckdb.sql(f"select count(*) from read_parquet({files})").fetchall() == [(rows,)]
    assert sum(len(pd.read_parquet(file)) for file in files) == rows
