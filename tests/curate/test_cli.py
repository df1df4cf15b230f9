"""What a user meets: messages, exit codes, and nothing overwritten."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from rows import many_rows, raw_row, write_jsonl


def curate(
    *arguments: str | Path, cwd: Path | None = None, file_limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    return subprocess.run(
        [sys.executable, "-m", "trajcurate.curate.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        preexec_fn=limit,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
    )


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_jsonl(tmp_path_factory.mktemp("raw") / "rows.jsonl", many_rows(12))


@pytest.fixture(scope="module")
def finished(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("finished") / "out"
    assert curate("run", "redsearcher_sft", raw, "-o", output, "-q").returncode == 0
    return output


def assert_refused(
    done: subprocess.CompletedProcess[str], code: int, *words: str, output: Path | None = None
) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    for word in words:
        assert word in done.stderr, done.stderr
    if output is not None:
        assert not (output / "manifest.json").exists()


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    done = curate("run", "redsearcher_sft", tmp_path / "nowhere", "-o", tmp_path / "out")
    assert_refused(
        done, 2, f"`{tmp_path / 'nowhere'}`", "hint: give files", output=tmp_path / "out"
    )


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = curate("run", "redsearcher_sft", tmp_path / "empty", "-o", tmp_path / "out")
    assert_refused(done, 2, "empty", "hint:", output=tmp_path / "out")


def test_a_parquet_of_unknown_columns_is_named_with_its_fields(tmp_path: Path) -> None:
    pl.DataFrame({"prompt": ["a"], "reply": ["b"]}).write_parquet(tmp_path / "x.parquet")
    done = curate("run", "redsearcher_sft", tmp_path / "x.parquet", "-o", tmp_path / "out")
    assert_refused(done, 2, "x.parquet", "prompt, reply", "known formats: redsearcher")


def test_a_bad_line_and_bytes_that_are_not_utf8_cost_only_themselves(tmp_path: Path) -> None:
    rows = [raw_row("a"), b'{"meta": ', raw_row("b"), b'{"messages": ["\xff"]}', raw_row("c")]
    file = write_jsonl(tmp_path / "rows.jsonl", rows)
    done = curate("run", "redsearcher_sft", file, "-o", tmp_path / "out")
    assert done.returncode == 0
    assert "row_unreadable 2" in done.stdout
    rejected = pl.read_parquet(sorted((tmp_path / "out" / "rejected").glob("*.parquet")))
    assert sorted(rejected["source_row"]) == [1, 3]


def test_a_truncated_parquet_among_good_files_is_named_and_the_rest_is_done(
    tmp_path: Path,
) -> None:
    write_jsonl(tmp_path / "raw" / "good.jsonl", [raw_row("a")])
    pl.DataFrame([raw_row("b")]).write_parquet(tmp_path / "raw" / "bad.parquet")
    data = (tmp_path / "raw" / "bad.parquet").read_bytes()
    (tmp_path / "raw" / "bad.parquet").write_bytes(data[: len(data) // 2])
    done = curate("run", "redsearcher_sft", tmp_path / "raw", "-o", tmp_path / "out")
    assert_refused(done, 1, "unreadable: ", "bad.parquet", "run the same command again")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["complete"] is False
    assert manifest["totals"]["kept"] == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps:\n  - prune_tool: {}\n", ["unknown step `prune_tool`", "did you mean"]),
        (
            "steps:\n  - prune_tools: {alowed: [search]}\n",
            ["$.steps[0].prune_tools.alowed", "did you mean `allowed`?"],
        ),
        ("steps: 7\n", ["no list of steps"]),
        ("a: [", ["line 1"]),
    ],
)
def test_a_pipeline_with_a_mistake_is_explained(
    raw: Path, tmp_path: Path, text: str, words: list[str]
) -> None:
    (tmp_path / "p.yaml").write_text(text)
    done = curate("run", tmp_path / "p.yaml", raw, "-o", tmp_path / "out")
    assert_refused(done, 2, "p.yaml", *words, output=tmp_path / "out")


def test_a_folder_of_another_run_is_left_alone(raw: Path, finished: Path) -> None:
    before = (finished / "manifest.json").read_bytes()
    done = curate("run", "rollouts", raw, "-o", finished)
    assert_refused(done, 2, "holds another run", "--fresh")
    assert (finished / "manifest.json").read_bytes() == before


def test_a_folder_of_other_files_is_left_alone(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    done = curate("run", "redsearcher_sft", raw, "-o", tmp_path)
    assert_refused(done, 2, "holds other files (thesis.tex")
    assert [path.name for path in tmp_path.iterdir() if path.name != ".work"] == ["thesis.tex"]


def test_an_output_that_cannot_be_written_is_named(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = curate("run", "redsearcher_sft", raw, "-o", tmp_path / "file" / "out")
    assert_refused(done, 2, "cannot be written", "hint:")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_output_is_named(raw: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = curate("run", "redsearcher_sft", raw, "-o", tmp_path / "out")
    assert_refused(done, 2, "cannot be written")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_space_left_keeps_finished_work_and_says_so(
    raw: Path, tmp_path: Path, workers: str
) -> None:
    arguments = ["run", "redsearcher_sft", raw, "-o", tmp_path / "out", "--workers", workers]
    arguments += ["--set", "input.unit_size=20KB"]
    done = curate(*arguments, file_limit=15_000)
    assert_refused(done, 1, "cannot write", "make room", output=tmp_path / "out")
    assert curate(*arguments).returncode == 0


def test_an_unknown_engine_is_refused_in_one_line(raw: Path, tmp_path: Path) -> None:
    done = curate("run", "redsearcher_sft", raw, "-o", tmp_path / "out", "--engine", "ray")
    assert_refused(done, 2, "engine `ray` is not in this release")


def test_a_wrong_option_is_refused() -> None:
    assert_refused(curate("run", "--no-such-option"), 2, "No such option")


def test_a_dry_run_writes_nothing(raw: Path, tmp_path: Path) -> None:
    done = curate("run", "redsearcher_sft", raw, "-o", tmp_path / "out", "--dry-run")
    assert done.returncode == 0
    assert "rows.jsonl  redsearcher" in done.stdout
    assert not (tmp_path / "out").exists()


def test_results_go_to_stdout_as_json_and_talk_to_stderr(raw: Path, tmp_path: Path) -> None:
    done = curate("run", "redsearcher_sft", raw, "-o", tmp_path / "out", "--json", "-v")
    assert json.loads(done.stdout)["totals"]["read"] == 12


def test_check_shows_the_place_with_a_caret_and_exits_1(tmp_path: Path) -> None:
    row = raw_row("a")
    content = row["messages"][1]["content"]
    row["messages"][1]["content"] = content.replace('["a opening 0"]', "['a opening 0']")
    file = write_jsonl(tmp_path / "rows.jsonl", [raw_row("b"), row])
    done = curate("check", file)
    assert done.returncode == 1
    lines = done.stdout.split("\n")
    at = lines.index("error: call_not_json: 1 in 1 rows")
    # The system prompt of the row is message 0, so the first assistant message is message 2.
    assert lines[at + 1] == "  rows.jsonl:1 @ $.messages[2] turn 0 column 44"
    assert lines[at + 2] == """    {"name": "search", "arguments": {"query": ['a opening 0']}}"""
    assert lines[at + 3] == " " * (4 + 43) + "^"
    assert "2 rows, 1 without error" in done.stdout
    assert json.loads(curate("check", file, "--json").stdout)["errors"][0]["count"] == 1


def test_check_of_sound_raw_rows_finds_no_error(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "rows.jsonl", [raw_row("a"), raw_row("b", turns=9)])
    done = curate("check", file)
    assert (done.returncode, done.stdout) == (0, "2 rows, 2 without error\n")


@pytest.mark.parametrize("by", ["id", "prefix", "place"])
def test_why_tells_the_journey_of_a_kept_row(finished: Path, by: str) -> None:
    data = pl.read_parquet(sorted((finished / "data").glob("*.parquet")))
    row = data.filter(pl.col("source_row") == 1).row(0, named=True)
    key = {"id": row["id"], "prefix": row["id"][:10], "place": "rows.jsonl:1"}[by]
    done = curate("why", finished, key)
    assert done.returncode == 0
    assert done.stdout.startswith(row["id"])
    assert "read from rows.jsonl, row 1" in done.stdout
    assert "repair_tool_calls: tag_case" in done.stdout
    assert f"kept: {row['turn_count']} turns" in done.stdout


def test_why_tells_where_a_rejected_row_ended(finished: Path) -> None:
    done = curate("why", finished, "rows.jsonl:4")
    assert "quarantined by adapt: messages_missing" in done.stdout


def test_why_names_what_a_key_may_be(finished: Path) -> None:
    assert_refused(curate("why", finished, "nothing"), 2, "names no row", "hint: a key is an id")
    assert_refused(curate("why", finished.parent, "x"), 2, "holds no finished run")


def test_steps_lists_and_explains(tmp_path: Path) -> None:
    listed = curate("steps").stdout
    assert "repair_tool_calls" in listed
    text = curate("steps", "prune_tools").stdout
    for word in ("Why:", "Safety:", "Options:", "allowed", "no_turns_left"):
        assert word in text
    assert_refused(curate("steps", "prune_tool"), 2, "did you mean `prune_tools`?")


@pytest.mark.parametrize("command", ["demo", "run", "check", "why", "steps"])
def test_every_help_shows_an_example_to_paste(command: str) -> None:
    done = curate(command, "--help")
    assert done.returncode == 0
    assert f"Example: curate {command}" in done.stdout


def test_an_interrupt_ends_with_130(tmp_path: Path) -> None:
    import signal
    import time

    file = write_jsonl(tmp_path / "rows.jsonl", many_rows(400))
    process = subprocess.Popen(
        [
            *[sys.executable, "-m", "trajcurate.curate.cli", "run", "redsearcher_sft", str(file)],
            *["-o", str(tmp_path / "out"), "--set", "input.unit_size=20KB"],
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / ".work" / "units").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in talk
    assert "Traceback" not in talk
