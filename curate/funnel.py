"""The funnel of a run in words: how many rows went in, what happened to them, what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FunnelLine:
    """One step over all sources."""

    step: str
    rows_in: int
    rows_kept: int
    rows_edited: int
    rejected: Mapping[str, int]
    edits: Mapping[str, int]
    findings: Mapping[str, int]


def funnel(manifest: Mapping[str, Any]) -> list[FunnelLine]:
    """The steps in order with their counts, sources added up; reading stands first."""
    lines: dict[str, dict[str, Any]] = {}
    for steps in manifest["counts"].values():
        for label, counts in steps.items():
            line = lines.setdefault(
                label,
                {
                    "in": 0,
                    "kept": 0,
                    "edited": 0,
                    "rejected": Counter(),
                    "edits": Counter(),
                    "findings": Counter(),
                },
            )
            line["in"] += counts["rows_in"]
            line["kept"] += counts["rows_kept"]
            line["edited"] += counts["rows_edited"]
            for name in ("rejected", "edits", "findings"):
                line[name].update(counts[name])
    _count_reading(lines, manifest["totals"]["read"])
    late = manifest.get("late", {})
    for label, line in lines.items():
        if late and label.startswith("weigh"):
            line["rejected"].update(late)
            line["kept"] -= sum(late.values())
    return [
        FunnelLine(
            label,
            line["in"],
            line["kept"],
            line["edited"],
            _by_count(line["rejected"]),
            _by_count(line["edits"]),
            _by_count(line["findings"]),
        )
        for label, line in lines.items()
        if label not in ("adapt", "write") or line["rejected"]
    ]


def _count_reading(lines: dict[str, dict[str, Any]], read: int) -> None:
    """What comes in before the first step: units count only what reading and adapting refuse."""
    for label in ("read", "adapt"):
        if label in lines:
            lines[label]["in"] = read
            read = lines[label]["kept"] = read - sum(lines[label]["rejected"].values())


def _by_count(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def reasons_of_rejection(manifest: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Rejected rows by (step, reason), the most frequent first."""
    found = {
        (line.step, reason): count
        for line in funnel(manifest)
        for reason, count in line.rejected.items()
    }
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def listed(counts: Mapping[str, int], most: int = 6) -> str:
    """Counts as words: `call_single_quoted 12, tag_case 3, …`."""
    parts = [f"{reason} {count:,}" for reason, count in list(counts.items())[:most]]
    return ", ".join(parts) + (", …" if len(counts) > most else "")
