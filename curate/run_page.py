"""The pages of a run folder: README.md, how to load it, and report.html, what was done."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trajcurate.curate.funnel import funnel, listed, reasons_of_rejection


def write_pages(manifest: Mapping[str, Any], folder: Path) -> None:
    """Write README.md and report.html into a run folder."""
    (folder / "README.md").write_text(_readme(manifest), encoding="utf-8")
    (folder / "report.html").write_text(_report(manifest), encoding="utf-8")


def _readme(manifest: Mapping[str, Any]) -> str:
    totals = manifest["totals"]
    name = manifest["pipeline"]["name"]
    lines = [
        f"# {name}",
        "",
        f"{totals['read']:,} rows read, {totals['kept']:,} kept, {totals['rejected']:,} rejected. "
        f"The sampling plan holds {totals['planned']:,} rows.",
        "",
        "| step | in | kept | edited | rejected |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {line.step} | {line.rows_in:,} | {line.rows_kept:,} | {line.rows_edited:,} | "
        f"{listed(line.rejected)} |"
        for line in funnel(manifest)
    ]
    lines += [
        "",
        "## Load it",
        "",
        "```python",
        "import datasets; datasets.load_dataset('parquet', data_files='data/train-*.parquet')",
        "import polars; polars.read_parquet('data/train-*.parquet')",
        "import duckdb; duckdb.sql(\"from 'data/train-*.parquet'\")",
        "```",
        "",
        "`rejected/` holds every row that is not in `data/`, with its reason; `edits/` every "
        "change to a kept row; `findings/` what was noticed and left; `index/` a line a turn and a "
        "line a call; `plan.parquet` the sampling plan; `manifest.json` all counts and checksums.",
        "",
    ]
    return "\n".join(lines)


_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #8884; }
td { vertical-align: top; }
td.n, th.n { text-align: right; }
.scroll { overflow-x: auto; }
code { font-size: .92em; overflow-wrap: anywhere; }
"""


def _report(manifest: Mapping[str, Any]) -> str:
    totals = manifest["totals"]
    steps = "".join(
        _row(
            [
                line.step,
                f"{line.rows_in:,}",
                f"{line.rows_kept:,}",
                f"{line.rows_edited:,}",
                listed(line.rejected, 20),
                listed(line.edits, 20),
                listed(line.findings, 20),
            ],
            numbers=(1, 2, 3),
        )
        for line in funnel(manifest)
    )
    reasons = "".join(
        _row([step, reason, f"{count:,}"], numbers=(2,))
        for (step, reason), count in reasons_of_rejection(manifest).items()
    )
    inputs = "".join(
        _row([item["source_file"], item["format"] or "", f"{item['bytes']:,}", item["checksum"]])
        for item in manifest["inputs"]
    )
    name = html.escape(manifest["pipeline"]["name"])
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{name}: run report</title><style>{_STYLE}</style></head><body>"
        f"<h1>{name}</h1><p>{totals['read']:,} rows read, {totals['kept']:,} kept, "
        f"{totals['dropped']:,} dropped, {totals['quarantined']:,} quarantined; "
        f"{totals['edits']:,} edits, {totals['findings']:,} findings; "
        f"{totals['planned']:,} rows in the sampling plan.</p>"
        "<h2>Steps</h2><div class='scroll'><table><tr><th>step<th class='n'>in<th class='n'>kept"
        f"<th class='n'>edited<th>rejected<th>edits<th>findings</tr>{steps}</table></div>"
        "<h2>Reasons for rejection</h2><div class='scroll'><table><tr><th>step<th>reason"
        f"<th class='n'>rows</tr>{reasons}</table></div>"
        "<h2>Inputs</h2><div class='scroll'><table><tr><th>file<th>format<th>bytes<th>checksum</tr>"
        f"{inputs}</table></div><p><code>{html.escape(manifest['code_version'])}</code></p>"
        "</body></html>\n"
    )


def _row(cells: list[str], numbers: tuple[int, ...] = ()) -> str:
    return "<tr>" + "".join(
        f"<td class='n'>{html.escape(cell)}" if i in numbers else f"<td>{html.escape(cell)}"
        for i, cell in enumerate(cells)
    )
