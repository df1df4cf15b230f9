"""Write the reference pages that follow from the code: docs/steps.md and docs/cli.md."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trajcurate.curate.step_reference import all_references

DOCS = Path(__file__).parent
COMMANDS = ("demo", "run", "check", "why", "steps")


def steps_page() -> str:
    """docs/steps.md: every step, its options and its reasons."""
    head = (
        "# Steps\n\nMade from the code by `make docs`; `curate steps NAME` shows the same.\n"
        "A reason names what was found. Reasons of edits and of rejections share one table; "
        "findings are noted and change nothing.\n"
    )
    return head + "\n" + "\n".join(item.as_markdown() for item in all_references())


def cli_page() -> str:
    """docs/cli.md: every `--help`."""
    head = "# Commands\n\nMade from the code by `make docs`.\n"
    pages = [f"## curate {name}\n\n```text\n{_help(name)}\n```\n" for name in COMMANDS]
    return "\n".join([head, *pages])


def _help(command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "trajcurate.curate.cli", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "90", "TERM": "dumb", "NO_COLOR": "1"},
    )
    lines = done.stdout.strip("\n").replace("python -m trajcurate.curate.cli", "curate").split("\n")
    return "\n".join(line.rstrip() for line in lines)


PAGES = {"steps.md": steps_page, "cli.md": cli_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
