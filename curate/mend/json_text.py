"""Strict JSON as text: what it holds, where its members stand, and edits to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from trajcurate.schemas.strict_json import decode_json, skip_space

# Spans of a text, and what replaces them.
Edits = Mapping[tuple[int, int], str]


def splice(text: str, edits: Edits, start: int, end: int) -> str:
    """``text[start:end]`` with the edits made."""
    pieces: list[str] = []
    at = start
    for (edit_start, edit_end), replacement in sorted(edits.items()):
        if edit_start < at:  # inside text that a wider edit has already taken out
            continue
        pieces += text[at:edit_start], replacement
        at = edit_end
    pieces.append(text[at:end])
    return "".join(pieces)


def strict_events(text: str) -> list[str]:
    """What strict JSON text holds, in the form of `LooseValue.events`."""
    return [_strict_event(match.group()) for match in _STRICT_TOKEN.finditer(text)]


def scalars(events: Iterable[str]) -> list[str]:
    """The events without the brackets."""
    return [event for event in events if event not in _BRACKETS]


class Element(NamedTuple):
    """An element of an array in strict JSON, ``[start, end)``."""

    start: int
    end: int


class Member(NamedTuple):
    """A member of an object in strict JSON: its key is ``[start, key_end)``, its value ends it."""

    key: str
    start: int
    key_end: int
    value_start: int
    end: int


def iterate_elements(text: str, start: int) -> Iterator[Element]:
    """The elements of the strict JSON array at `start`."""
    at = skip_space(text, start + 1)
    while text[at] != "]":
        _, end = decode_json(text, at)
        yield Element(at, end)
        at = _skip_comma(text, end)


def iterate_members(text: str, start: int) -> Iterator[Member]:
    """The members of the strict JSON object at `start`."""
    at = skip_space(text, start + 1)
    while text[at] != "}":
        key, key_end = decode_json(text, at)
        value_start = skip_space(text, skip_space(text, key_end) + 1)
        _, end = decode_json(text, value_start)
        yield Member(key, at, key_end, value_start, end)
        at = _skip_comma(text, end)


def _skip_comma(text: str, at: int) -> int:
    at = skip_space(text, at)
    return skip_space(text, at + 1) if text[at] == "," else at


_BRACKETS = frozenset("{}[]")
_STRICT_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]|[^\s{}\[\],:"]++', re.DOTALL)


def _strict_event(token: str) -> str:
    if token[0] != '"':
        return token
    return '"' + json.loads(token) if "\\" in token else token[:-1]
