"""Data that is handed out beside the repository; tests that need it skip where it is absent."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).parent.parent.parent / "shared"


def shared(*parts: str) -> Path:
    """A path below `../shared`; skips the test when it is not there."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs ../shared/{'/'.join(parts)}, which is not here")
    return path
