"""Declared sources: names, JSON Pointers for fields, tools of their own."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from rows import call, raw_row, search_text, tool_turn, trajectory_messages, write_jsonl

from trajcurate import curate
from trajcurate.curate.errors import FormatUnclear


def data_of(output: Path) -> pl.DataFrame:
    return pl.read_parquet(sorted((output / "data").glob("*.parquet")))


def test_named_sources_keep_their_names_and_find_their_fields(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "red" / "rows.jsonl", [raw_row("a"), raw_row("b")])
    own = {
        "task": {"prompt": "Which year did c open?", "id": "t-7"},
        "gold": 1931,
        "attempt": 2,
        "ok": True,
        "run": {"steps": trajectory_messages("c")},
    }
    write_jsonl(tmp_path / "own" / "rows.jsonl", [own])
    (tmp_path / "p.yaml").write_text(
        f"""
name: mixed
sources:
  - {{name: red, path: {tmp_path / "red"}}}
  - name: ours
    path: {tmp_path / "own"}
    format: messages
    columns:
      {{question: /task/prompt, answer: /gold, messages: /run/steps, group: /task/id,
        sample: /attempt, verdict: /ok}}
steps:
  - require_well_formed: {{answer: required}}
"""
    )
    result = curate.run(str(tmp_path / "p.yaml"), output=tmp_path / "out")
    assert result.manifest["read"] == {"ours": 1, "red": 2}
    row = data_of(tmp_path / "out").filter(pl.col("source") == "ours").row(0, named=True)
    assert row["question"] == "Which year did c open?"
    assert (row["answer"], row["question_id"], row["sample_index"]) == ("1931", "t-7", 2)
    assert (row["verdict"], row["verdict_score"], row["verdict_by"]) == ("correct", 1.0, "source")
    assert data_of(tmp_path / "out").filter(pl.col("source") == "red").height == 2


def test_a_source_may_have_tools_of_its_own(tmp_path: Path) -> None:
    row = raw_row("a", turns=2)
    row["messages"][1] = tool_turn("Look.", call("lookup", q="a"))
    row["messages"][2]["content"] = f"<tool_response>\n{search_text('a')}\n</tool_response>"
    write_jsonl(tmp_path / "rows.jsonl", [row])
    (tmp_path / "tools.yaml").write_text(
        "lookup: {kind: search, schema: {type: object, properties: {q: {type: string}}, "
        "required: [q]}}\n"
    )
    (tmp_path / "p.yaml").write_text(
        f"sources:\n  - {{name: s, path: {tmp_path / 'rows.jsonl'}, tools: tools.yaml}}\n"
        "steps:\n  - structure_search_results: {}\n  - require_well_formed: {answer: required}\n"
    )
    curate.run(str(tmp_path / "p.yaml"), output=tmp_path / "out")
    kept = data_of(tmp_path / "out").row(0, named=True)
    assert kept["search_count"] == 1
    assert json.loads(kept["tools"])[0]["function"]["name"] == "lookup"
    assert kept["messages"][3]["content"].startswith('<tool_response>\n[{"query": "a"')


def test_a_format_that_cannot_be_told_lists_what_would_settle_it(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "rows.jsonl", [{"a": 1}])
    with pytest.raises(FormatUnclear) as caught:
        curate.run("redsearcher_sft", [file], tmp_path / "out")
    assert "fits no known format; its fields are: a" in str(caught.value)
    assert "columns:" in caught.value.hint


def test_a_file_of_two_formats_is_named_with_both(tmp_path: Path) -> None:
    cleaned = {"question": "q", "messages": trajectory_messages("a"), "gt": "1"}
    file = write_jsonl(tmp_path / "rows.jsonl", [raw_row("a"), cleaned])
    with pytest.raises(FormatUnclear, match="it may be messages or redsearcher"):
        curate.run("redsearcher_sft", [file], tmp_path / "out")
