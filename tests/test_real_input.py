"""Real trajectories, and what the public cleaning script makes of sound input."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from shared_data import shared

from trajcurate import curate


def table(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(sorted((folder / name).glob("*.parquet")))


def as_script_writes(row: dict[str, Any]) -> tuple[str, ...]:
    """A row as comparable text: question, gold, turn count, and each message."""
    messages = (f"{m['role']}\0{m['content']}" for m in row["messages"])
    return (row["question"], row["answer"], str(row["turn_count"]), *messages)


@pytest.mark.parametrize("name", ["clean", "repairable", "edges"])
def test_drvenus_compatible_equals_the_public_script(name: str, tmp_path: Path) -> None:
    folder = shared("data", "peer_conformance", name)
    files = sorted((folder / "input").glob("train-*.parquet"))
    curate.run(
        "drvenus_compatible", files, tmp_path, settings=["steps.set_system_prompt.mode=keep"]
    )
    ours = Counter(map(as_script_writes, table(tmp_path, "data").iter_rows(named=True)))
    with lzma.open(folder / "expected" / "cleaned_resampled.jsonl.xz", "rt", encoding="utf-8") as f:
        expected = Counter(
            as_script_writes({**row, "answer": row["gt"], "turn_count": row["_turns"]})
            for row in map(json.loads, f)
        )
    assert sum(ours.values()) == sum(expected.values())
    assert ours == expected


def test_drvenus_compatible_equals_the_published_sft_rows_but_for_two_nested_answers(
    tmp_path: Path,
) -> None:
    files = [
        shared("data", "peer_conformance", "identity", "input", "train-00000-of-00001.parquet")
    ]
    settings = [
        "steps.set_system_prompt.mode=template",
        "steps.set_system_prompt.current_date=2026-03-01",
    ]
    curate.run("drvenus_compatible", files, tmp_path, settings=settings)
    rows = {row["source_row"]: row for row in table(tmp_path, "data").iter_rows(named=True)}
    assert len(rows) == 10
    for number in range(10):
        path = shared("data", "drvenus_examples", "sft", f"{number:04d}.json")
        published = json.loads(path.read_text(encoding="utf-8"))
        row = rows[number]
        assert (row["question"], row["answer"]) == (published["question"], published["gt"])
        assert row["turn_count"] == sum(m["role"] == "assistant" for m in published["messages"])
        # The script leaves an answer nested in an answer in rows 1 and 8.
        last = len(published["messages"]) - (number in (1, 8))
        assert row["messages"][:last] == published["messages"][:last]


def test_the_real_sft_rows_are_not_edited_outside_the_system_message(tmp_path: Path) -> None:
    curate.run("redsearcher_sft", [shared("data", "drvenus_examples", "sft")], tmp_path)
    assert table(tmp_path, "data").height == 10
    edits = table(tmp_path, "edits").filter(pl.col("step") != "set_system_prompt")
    assert set(edits["source_file"]) == {"0001.json", "0008.json"}
    data = table(tmp_path, "data")
    for name in ("0001.json", "0008.json"):
        row = data.filter(pl.col("source_file") == name).row(0, named=True)
        assert set(edits.filter(pl.col("source_file") == name)["message"]) == {
            len(row["messages"]) - 1
        }
        content = row["messages"][-1]["content"]
        assert content.count("<answer>") == content.count("</answer>") == 1
    answers = dict(data.select("source_file", "final_answer").rows())
    assert answers["0001.json"] == "**Daniel Mortimer**"
    assert answers["0008.json"] == (
        "**The earlier, penultimate episode is “The Bells and Whistles.”**"
    )


def test_the_real_rollouts_are_all_kept(tmp_path: Path) -> None:
    folder = shared("data", "drvenus_examples", "rl_rollouts")
    result = curate.run("rollouts", [folder], tmp_path)
    assert result.manifest["totals"] | {"kept": 10, "rejected": 0} == result.manifest["totals"]
    data = table(tmp_path, "data")
    assert data["question_id"].n_unique() == 2
    assert set(data["termination"]) == {"answered"}
    assert sorted(data["sample_index"]) == list(range(10))
    for row in data.iter_rows(named=True):
        source = json.loads((folder / row["source_file"]).read_text(encoding="utf-8"))
        kept = [m["content"] for m in row["messages"] if m["role"] == "assistant"]
        read = [m["content"] for m in source["messages"] if m["role"] == "assistant"]
        assert set(kept) <= set(read)
