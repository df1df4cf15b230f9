"""The samples are what the kept script makes, and the recipe does with each row what it should."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from trajcurate import curate
from trajcurate.samples.make_samples import main as make_samples

SAMPLES = Path(__file__).parent.parent.parent / "samples"
FOLDERS = ("redsearcher", "rollouts")


def test_the_script_makes_the_samples_that_are_here(tmp_path: Path) -> None:
    make_samples(tmp_path)
    made = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    kept = [Path("truth.json")] + [
        path.relative_to(SAMPLES) for folder in FOLDERS for path in (SAMPLES / folder).rglob("*")
    ]
    assert sorted(made) == sorted(kept)
    for name in made:
        if name.suffix == ".parquet":  # its bytes name the version that wrote them
            assert pl.read_parquet(tmp_path / name).equals(pl.read_parquet(SAMPLES / name))
        else:
            assert (tmp_path / name).read_bytes() == (SAMPLES / name).read_bytes(), name


def test_each_row_ends_where_the_truth_says(tmp_path: Path) -> None:
    curate.run("redsearcher_sft", [SAMPLES / "redsearcher"], tmp_path)
    outcomes = {}
    for name, outcome in (("data", pl.lit("kept")), ("rejected", pl.col("outcome"))):
        table = pl.read_parquet(sorted((tmp_path / name).glob("*.parquet")))
        for file, row, end in table.select("source_file", "source_row", outcome).iter_rows():
            outcomes[file, row] = end
    words = {"keep": "kept", "drop": "dropped", "quarantine": "quarantined"}
    truth = json.loads((SAMPLES / "truth.json").read_text(encoding="utf-8"))
    assert outcomes == {(row["file"], row["row"]): words[row["expected"]] for row in truth}
    sound = {(row["file"], row["row"]) for row in truth if not row["kinds"]}
    edits = pl.read_parquet(sorted((tmp_path / "edits").glob("*.parquet")))
    reencodings = {"structure_search_results", "set_system_prompt"}
    for file, row, step in edits.select("source_file", "source_row", "step").iter_rows():
        assert (file, row) not in sound or step in reencodings


def test_the_sample_rollouts_are_all_kept(tmp_path: Path) -> None:
    result = curate.run("rollouts", [SAMPLES / "rollouts"], tmp_path)
    assert (result.manifest["totals"]["kept"], result.manifest["totals"]["rejected"]) == (12, 0)
    data = pl.read_parquet(sorted((tmp_path / "data").glob("*.parquet")))
    assert data["question_id"].n_unique() == 3
    assert dict(data["termination"].value_counts().iter_rows()) == {
        "answered": 9,
        "ordered": 1,
        "unfinished": 2,
    }
    assert curate.check([tmp_path]).errors == []
