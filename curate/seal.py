"""Seal a run: add up what its units did, check that no row is lost, describe what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from trajcurate.curate.collect_inputs import Collected
from trajcurate.curate.errors import TaskFailed
from trajcurate.curate.job import Job
from trajcurate.curate.layout import Layout
from trajcurate.curate.manifest import (
    FORMAT_VERSION,
    code_version,
    describe_outputs,
    merge_counts,
    weight_summary,
)


def make_manifest(
    job: Job,
    collected: Collected,
    hashes: dict[str, str],
    documents: list[dict[str, Any]],
    unreadable: dict[str, str],
    layout: Layout,
    folder: Path,
) -> dict[str, Any]:
    """Everything that is said of the run; checks first that no row is lost.

    Raises:
        TaskFailed: the rows read are not those kept and rejected.
    """
    counts = merge_counts(documents)
    outputs = describe_outputs(folder)
    late = layout.late.height
    read = sum(document["rows_read"] for document in documents)
    copies_folded = sum(document["copies_folded"] for document in documents)
    written = {
        name: sum(o["rows"] for o in outputs if o["path"].startswith(name)) for name in _TABLES
    }
    kept = layout.keys.filter("is_kept").height - late
    first_copies = layout.rows.filter(pl.col("copy") == 0).height
    rejected = written["rejected/"]
    if not (read == kept + rejected and kept == first_copies):
        what = f"{read} rows read, but {kept} kept, {first_copies} written, {rejected} rejected"
        raise TaskFailed("seal", what, "this is a fault of trajcurate: please report it")
    steps_without_effect = [
        label
        for label in job.pipeline.step_labels
        if not any(
            steps[label]["edits"] or steps[label]["rejected"] or steps[label]["findings"]
            for steps in counts.values()
        )
    ]
    quarantined = _quarantined(folder)
    return {
        "trajcurate_format": FORMAT_VERSION,
        "run_key": job.run_key,
        "code_version": code_version(),
        "pipeline": job.pipeline.resolved,
        "pipeline_hash": job.pipeline.hash,
        "seed": job.pipeline.output.seed,
        "limit": job.limit,
        "complete": not unreadable,
        "well_formed": any(
            step.name() == "require_well_formed" and getattr(step, "action", "") == "reject"
            for step in job.pipeline.steps
        ),
        "inputs": [
            {
                "path": file.path,
                "source": job.pipeline.sources[number].name or format_name,
                "source_file": file.source_file,
                "format": format_name,
                "bytes": file.size,
                "stat_key": file.stat_key,
                "checksum": hashes[file.path],
            }
            for number, file, format_name in collected.files
        ],
        "unreadable": [{"path": path, "why": why} for path, why in sorted(unreadable.items())],
        "ignored": [{"path": item.path, "why": item.why} for item in collected.ignored],
        "parents": [
            {"path": run.path, "manifest_checksum": run.manifest_checksum}
            for run in collected.run_folders
        ],
        "totals": {
            "read": read,
            "kept": kept,
            "rejected": rejected,
            "quarantined": quarantined,
            "dropped": rejected - quarantined,
            "written": written["data/"],
            "planned": layout.plan.height,
            "edits": written["edits/"],
            "findings": written["findings/"],
            "copies_folded": copies_folded,
            "turns_read": sum(sum(d["turns_read"].values()) for d in documents),
        },
        "read": _sum_by_source(documents, "read"),
        "counts": counts,
        "late": {"weight_no_copy": late} if late else {},
        "steps_without_effect": steps_without_effect,
        "weights": weight_summary(layout.keys, layout.plan),
        "outputs": outputs,
    }


_TABLES = ("data/", "rejected/", "edits/", "findings/")


def _sum_by_source(documents: list[dict[str, Any]], name: str) -> dict[str, int]:
    totals: dict[str, int] = {}
    for document in documents:
        for source, count in document[name].items():
            totals[source] = totals.get(source, 0) + count
    return dict(sorted(totals.items()))


def _quarantined(folder: Path) -> int:
    parts = sorted((folder / "rejected").glob("*.parquet"))
    frame = pl.scan_parquet(parts).select((pl.col("outcome") == "quarantined").sum())
    return int(frame.collect().item() or 0)
