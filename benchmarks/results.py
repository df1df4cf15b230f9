"""Writing down what a benchmark found: a markdown table, the command and the machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from measure import machine

RESULTS = Path(__file__).with_name("results.md")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a markdown table that also reads well in a terminal."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
        for line in [head, ["-" * width for width in widths], *rows]
    ]
    return "\n".join(lines)


def write_down(title: str, command: str, body: str, path: Path) -> None:
    """Print a result and append it to the file of results."""
    section = f"## {title}\n\n`{command}` on {machine()}\n\n{body}\n"
    print(section)
    with path.open("a", encoding="utf-8") as results:
        results.write(f"\n{section}")
