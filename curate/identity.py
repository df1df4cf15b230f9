"""Who a row is: canonical JSON, ids, and the hash that orders rows without remembering them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

import orjson
import xxhash


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys, no white space and no escapes that JSON does not ask for.

    A lone surrogate half, which UTF-8 cannot hold, is written as its three bytes all the same, so
    that rows that differ in it differ in their hash.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")


def storable_json(value: Any) -> str:
    """Canonical JSON as text for a file: as `canonical_json`, lone surrogates as escapes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return "".join(_escape_half(c) if "\ud800" <= c <= "\udfff" else c for c in text)


def _escape_half(half: str) -> str:
    return f"\\u{ord(half):04x}"


def checksum(data: bytes | str) -> str:
    """128-bit hash as 32 hex digits."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    return xxhash.xxh3_128_hexdigest(data)


def row_id(
    question: str | None,
    answers: Sequence[str] | str | None,
    messages: Sequence[dict[str, str]],
    system_prompt: str | None,
) -> str:
    """The id of a row: a hash of its content as the adapter gives it."""
    content = {
        "answer": answers,
        "messages": messages,
        "question": question,
        "system_prompt": system_prompt,
    }
    return xxhash.xxh3_128_hexdigest(canonical_json(content))


def question_id(question: str) -> str:
    """A hash of the question without regard to case, width and white space."""
    folded = " ".join(unicodedata.normalize("NFKC", question).casefold().split())
    return checksum(folded)


def unit_interval(seed: int, key: str) -> float:
    """A number in [0, 1) that depends on `seed` and `key` alone."""
    return (xxhash.xxh3_64_intdigest(f"{seed}:{key}") >> 11) / float(1 << 53)
