"""Curation of deep-research trajectories: `run`, `check`, and what follows from a run folder.

Imported late, so that `from trajcurate import curate` costs nothing until something is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trajcurate.curate.check_inputs import check
    from trajcurate.curate.run_pipeline import run

__all__ = ["check", "run"]

_PLACES = {
    "run": "trajcurate.curate.run_pipeline",
    "check": "trajcurate.curate.check_inputs",
}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module `trajcurate.curate` has no attribute `{name}`")
        import importlib

        return getattr(importlib.import_module(_PLACES[name]), name)
