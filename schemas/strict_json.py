"""Strict JSON: what the standard allows and every reader reads alike."""

from __future__ import annotations

import json
import re
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")


class RepeatedKeyError(ValueError):
    """A JSON object holds the same key twice, so that its meaning depends on the reader."""


def decode_json(text: str, start: int = 0) -> tuple[Any, int]:
    """Decode the strict JSON value at `start`; returns it and where it ends.

    Raises:
        RepeatedKeyError: an object holds a key twice.
        ValueError: not strict JSON (NaN and Infinity are not), or nested too deep to read.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise RepeatedKeyError("repeated key")
    return result


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)


def skip_space(text: str, at: int) -> int:
    """The first position from `at` on that is not JSON white space."""
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()
