"""The text of one record to its values: JSON taken as it is, and nothing lost on the way."""

import json
import math
from typing import Any

import orjson

MAX_DEPTH = 200  # what every writer downstream can still write

# From here on a float may be an integer that orjson could not hold.
_FIRST_UNSAFE_FLOAT = 2.0**63
_UNSURE = -(1 << 62)

_JSON_NAMES = {
    list: "list",
    str: "text",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


class NotARecord(ValueError):
    """The text is not a record; the message starts with the code of `UnreadableRow.why`."""


def parse_record(text: bytes) -> dict[str, Any]:
    """The JSON object that `text` spells, its values as they are.

    Numbers stay numbers and texts stay texts; integers keep all digits; surrogate halves that
    belong together are joined and lone ones are kept.

    Raises:
        NotARecord: it is no strict JSON object: other text, other bytes than UTF-8, `NaN`, a
            repeated key, or nesting beyond `MAX_DEPTH`.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        # It refuses lone surrogates too, and its messages do not tell what is wrong.
        value = _parse_strictly(text)
    else:
        if _quotes_in(value) != text.count(b'"'):
            value = _parse_strictly(text)
    if isinstance(value, dict):
        return value
    raise NotARecord(f"not_an_object: {_JSON_NAMES[type(value)]}")


def _quotes_in(value: Any, depth: int = 1) -> int:
    r"""How many quotes the JSON text of `value` has: two a string, and those within strings.

    A text with more quotes held more than `value` does: orjson keeps the last of repeated keys
    without a word. It also makes floats of long integers; where that may be so the answer is
    negative. (Quotes written as `\u0022` look like a loss and cost a second parse only.)
    """
    if depth > MAX_DEPTH:
        raise NotARecord(f"json: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return 2 + value.count('"')
    if isinstance(value, dict):
        count = 0
        for key, item in value.items():
            count += 2 + key.count('"')
            count += 2 + item.count('"') if type(item) is str else _quotes_in(item, depth + 1)
        return count
    if isinstance(value, list):
        return sum(_quotes_in(item, depth + 1) for item in value)
    if isinstance(value, float) and abs(value) >= _FIRST_UNSAFE_FLOAT:
        return _UNSURE
    return 0


def _parse_strictly(text: bytes) -> Any:
    try:
        decoded = text.decode("utf-8")
        value = json.loads(
            decoded,
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise NotARecord(
            f"not_utf8: byte 0x{text[error.start]:02x} at byte {error.start + 1}"
        ) from error
    except json.JSONDecodeError as error:
        at = f"line {error.lineno} column" if error.lineno > 1 else "column"
        what = _lowered(error.msg).removesuffix(" at")
        raise NotARecord(f"json: {what} at {at} {error.colno}") from error
    except RecursionError as error:
        raise NotARecord(f"json: nested deeper than {MAX_DEPTH} levels") from error
    except NotARecord:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise NotARecord(f"json: {_lowered(str(error))}") from error
    _quotes_in(value)  # for its limit on the depth
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise NotARecord(f"repeated_key: {json.dumps(repeated)}")
    return made


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotARecord(f"json: number {digits[:40]} is out of range")
    return number


def _refuse_constant(name: str) -> Any:
    raise NotARecord(f"json: {name} is not JSON")


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
