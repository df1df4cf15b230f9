"""The funnel and the weights of a run as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from trajcurate.curate.funnel import funnel, listed


def funnel_table(manifest: Mapping[str, Any]) -> Table:
    """A line a step: rows in, kept, edited, rejected, and what was found."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step", no_wrap=True)
    for name in ("in", "kept", "edited", "rejected"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what was found")
    for line in funnel(manifest):
        found = Text(listed(line.edits))
        if line.rejected:
            found.append(("; " if found else "") + f"rejected {listed(line.rejected)}", "red")
        if line.findings:
            found.append(("; " if found else "") + f"noted {listed(line.findings)}", "yellow")
        lost = sum(line.rejected.values())
        table.add_row(
            line.step,
            _number(line.rows_in),
            _number(line.rows_kept),
            _number(line.rows_edited),
            Text(_number(lost), "red"),
            found,
        )
    return table


def weight_table(manifest: Mapping[str, Any]) -> Table:
    """Rows by turn bucket, their weight, and how many the sampling plan holds."""
    buckets: dict[tuple[str, float], list[int]] = {}
    for line in manifest["weights"]:
        bucket = buckets.setdefault((line["turns"], line["weight"]), [0, 0])
        bucket[0] += line["rows"]
        bucket[1] += line["planned_rows"]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("turns", no_wrap=True)
    for name in ("rows", "weight", "in the plan"):
        table.add_column(name, justify="right", no_wrap=True)
    for (turns, weight), (rows, planned) in sorted(
        buckets.items(), key=lambda item: int(item[0][0].split("-")[0])
    ):
        table.add_row(turns.removesuffix("-"), f"{rows:,}", f"{weight:g}", f"{planned:,}")
    totals = manifest["totals"]
    table.add_row("all", f"{totals['kept']:,}", "", f"{totals['planned']:,}\n")
    return table


def _number(count: int) -> str:
    return f"{count:,}" if count else "–"
