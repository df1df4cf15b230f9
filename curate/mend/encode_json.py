"""Write strict JSON anew in the one form that Python's `json.dumps(…, ensure_ascii=False)` gives.

Only the form changes. Numbers keep their text, which a decoder would lose (`1.10`, `1e5`, thirty
digits), and the work is flat, so that no nesting is too deep for it.
"""

from __future__ import annotations

import json
import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
_SPACED = {",": ", ", ":": ": "}
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def reencode(text: str) -> str:
    """The same value, keys in the same order, with default separators and without ASCII escapes.

    Args:
        text: one strict JSON value.
    """
    return "".join([_written(token) for token in _TOKEN.findall(text)])


def encode_string(value: str) -> str:
    """A string as a JSON token without ASCII escapes; half a surrogate pair stays escaped."""
    return escape_surrogates(json.dumps(value, ensure_ascii=False))


def escape_surrogates(text: str) -> str:
    """Escape each half of a surrogate pair, which UTF-8 cannot hold; only strings may hold any."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _written(token: str) -> str:
    if token[0] == '"':
        return encode_string(json.loads(token)) if "\\" in token else escape_surrogates(token)
    return _SPACED.get(token, token)
