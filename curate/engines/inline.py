"""Tasks one after another in this process."""

from __future__ import annotations

from collections.abc import Callable

from trajcurate.curate.engines.task import Tasks


def run_inline(tasks: Tasks, on_progress: Callable[[], None]) -> None:
    """Do every task in order; the first failure stops the run."""
    for number in tasks.numbers:
        tasks.run(number)
        on_progress()
