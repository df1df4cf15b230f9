"""One string of a damaged call: where it ends, what it holds, how strict JSON writes it.

A quote ends a string only where something stands behind it that can follow the string; any other
quote is text, and then the string must leave no second reading: apostrophes stand inside words,
other quotes pair up. One lost quote leaves them unpaired, so a string never swallows its
neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class Refusal(Exception):
    """A damaged call cannot be mended: what was found, and at which character."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason, at)
        self.reason = reason
        self.at = at


class Place(Enum):
    """What a string is; it says what can follow the string."""

    KEY = "key"
    MEMBER = "value in an object"
    ELEMENT = "value in an array"
    WHOLE = "the whole text"


class LooseString(NamedTuple):
    """A string as read.

    `token` writes it in strict JSON, None where it may stay as it is. `doubt` is the offset of a
    backslash that leaves two readings; `has_python_escape` says that Python escapes would be read
    differently.
    """

    content: str
    end: int
    token: str | None
    mendings: tuple[str, ...]
    doubt: int | None
    has_python_escape: bool


class _Family(NamedTuple):
    """Quotes that belong together: which may end a string, and what they are called."""

    mark: re.Pattern[str]
    closers: str
    mending: str | None
    is_apostrophe: bool


def _family(members: str, closers: str, mending: str | None, apostrophe: bool) -> _Family:
    return _Family(re.compile(rf"\\.|[{members}]", re.DOTALL), closers, mending, apostrophe)


_FAMILIES = {
    '"': _family('"', '"', None, False),
    "'": _family("'", "'", "call_single_quoted", True),
    "“”„‟": _family("“”„‟", "”“", "call_smart_quoted", False),
    "‘’‚‛": _family("‘’‚‛", "’‘", "call_smart_quoted", True),
    "＂": _family("＂", "＂", "call_fullwidth_punctuation", False),
    "＇": _family("＇", "＇", "call_fullwidth_punctuation", True),
}
_FAMILY_OF = {opener: family for members, family in _FAMILIES.items() for opener in members}
QUOTES = "".join(_FAMILIES)

# White space of any kind, also what JSON does not take for it.
BLANK = r"[\s\ufeff\u200b-\u200d\u2060]*+"
_COLON, _COMMA = "[:：]", "[,，]"
# The bounds keep a lookahead from running to the end of the text again and again.
QUOTED_KEY = (
    r"""(?:"(?:[^"\\]|\\.){0,256}+(?:"|\Z)|'(?:[^'\\]|\\.){0,256}+(?:'|\Z)"""
    r"|[“”„‟][^“”]{0,256}+(?:[“”]|\Z)|[‘’‚‛][^‘’]{0,256}+(?:[‘’]|\Z)"
    r"|＂[^＂]{0,256}+(?:＂|\Z)|＇[^＇]{0,256}+(?:＇|\Z))"
    rf"{BLANK}(?:{_COLON}|\Z)"
)
BARE_KEY = rf"[^\W\d][\w$-]{{0,256}}+{BLANK}(?:{_COLON}|\Z)"
_LITERAL = r"(?:true|false|null|True|False|None|undefined|[-+]?(?:NaN|Infinity))\b"
_VALUE = rf"(?:[{QUOTES}{{\[｛［]|[-+]?\.?\d|{_LITERAL})"
_AFTER_ALL = r"\Z|```|<code>|//|/\*"
_MEMBER_FOLLOWS = rf"(?:[}}｝]|{_COMMA}{BLANK}(?:[}}｝,，]|{QUOTED_KEY}|{BARE_KEY}|{_AFTER_ALL})"
_ELEMENT_FOLLOWS = rf"(?:[\]］}}｝]|{_COMMA}{BLANK}(?:[\]］}}｝,，]|{_VALUE}|{_AFTER_ALL})"
_FOLLOWS = {
    Place.MEMBER: re.compile(rf"{BLANK}{_MEMBER_FOLLOWS}|{QUOTED_KEY}|{_AFTER_ALL})", re.DOTALL),
    Place.ELEMENT: re.compile(rf"{BLANK}{_ELEMENT_FOLLOWS}|{_AFTER_ALL})", re.DOTALL),
    Place.WHOLE: re.compile(rf"{BLANK}\Z"),
}
_ARRAY_ENDS = re.compile(rf"{BLANK}[\]］]")
_COLON_FOLLOWS = re.compile(rf"{BLANK}{_COLON}")


def read_string(
    text: str, at: int, place: Place, *, is_first: bool = False, is_python: bool = False
) -> LooseString:
    """Read the string whose opening quote stands at `at`.

    Args:
        text: the damaged call.
        at: offset of the opening quote, one of `QUOTES`.
        place: what the string is.
        is_first: whether it is the first element of its array.
        is_python: whether strings in double quotes too may hold Python's escapes.

    Raises:
        Refusal: the string has no end (`call_cut_off`), or more than one (`call_ambiguous`).
    """
    family = _FAMILY_OF[text[at]]
    end, inner = _find_end(text, at, family, place)
    if inner:
        is_alone = place is not Place.ELEMENT or (
            is_first and _ARRAY_ENDS.match(text, end + 1) is not None
        )
        _require_one_reading(text, inner, family, is_alone)
    source = text[at + 1 : end]
    is_plain = family.mending is None
    escapes = _read_escapes(source, is_plain, is_python or family.closers == "'")
    content = source if escapes.is_literal else _decode(source)
    mendings = _name_mendings(source, family, bool(inner), escapes)
    token = None if not mendings else f'"{_encode(source, escapes.is_literal)}"'
    doubt = None if escapes.doubt is None else at + 1 + escapes.doubt
    return LooseString(content, end + 1, token, mendings, doubt, escapes.has_python)


def _find_end(text: str, at: int, family: _Family, place: Place) -> tuple[int, list[int]]:
    """Where the closing quote stands, and the unescaped quotes before it."""
    follows = _FOLLOWS.get(place)
    inner: list[int] = []
    for match in family.mark.finditer(text, at + 1):
        mark = match.group()
        if mark[0] == "\\":
            continue
        if mark in family.closers and (follows is None or follows.match(text, match.end())):
            return match.start(), inner
        inner.append(match.start())
    if inner:
        raise Refusal("call_ambiguous", inner[0])
    raise Refusal("call_cut_off", at)


def _require_one_reading(text: str, inner: Sequence[int], family: _Family, is_alone: bool) -> None:
    """Refuse a string whose inner quotes could also be the borders of strings."""
    doubtful = inner
    if family.is_apostrophe:
        doubtful = [at for at in inner if not (_is_word(text[at - 1]) and _is_word(text[at + 1]))]
        # The states' capitals: among other elements it could be the end of a quoted word.
        if is_alone and all(_is_possessive(text, at) for at in doubtful):
            return
    for index, at in enumerate(doubtful):
        if not (_shuts(text, at) if index % 2 else _opens(text, at)):
            raise Refusal(*_name_unpaired(text, at, doubtful[index + 1 :]))
    if len(doubtful) % 2:
        raise Refusal("call_ambiguous", doubtful[-1])


def _name_unpaired(text: str, at: int, later: Sequence[int]) -> tuple[str, int]:
    """What an unpaired quote shows, and where."""
    if later and later[0] > at + 1 and not text[at + 1 : later[0]].strip():
        return "call_comma_missing", later[0]
    return "call_ambiguous", at


def _opens(text: str, at: int) -> bool:
    following = text[at + 1]
    return not (
        _is_word(text[at - 1]) or following.isspace() or following in ",，:：]］}｝" + QUOTES
    )


def _shuts(text: str, at: int) -> bool:
    if text[at - 1].isspace() or _is_word(text[at + 1]):
        return False
    return _COLON_FOLLOWS.match(text, at + 1) is None


def _is_possessive(text: str, at: int) -> bool:
    return text[at - 1] in "sxzSXZ" and text[at + 1] == " " and text[at + 2].isalpha()


def _is_word(character: str) -> bool:
    # Scripts without spaces put quotes right between letters.
    return character.isalnum() and character < "\u2e80"


# --- backslashes ------------------------------------------------------------------------------


class _Escapes(NamedTuple):
    is_literal: bool  # one backslash cannot be an escape, so none of them is
    doubt: int | None
    has_python: bool


_BACKSLASHED = re.compile(r"\\.", re.DOTALL)
_JSON_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_PYTHON_ESCAPE = re.compile(
    r"""\\(?:["'\\/bfnrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U(?:000[0-9a-fA-F]|0010)[0-9a-fA-F]{4})"""
)


def _read_escapes(source: str, is_plain: bool, is_python: bool) -> _Escapes:
    if "\\" not in source:
        return _Escapes(False, None, False)
    escape = _PYTHON_ESCAPE if is_python else _JSON_ESCAPE
    is_literal = has_python = False
    escaped: int | None = None  # an escape that hardly stands for a bare backslash
    unlikely: int | None = None  # read one way by JSON and another by Python or by people
    for match in _BACKSLASHED.finditer(source):
        at, character = match.start(), match.group()[1]
        is_escape = escape.match(source, at) is not None
        if not is_escape:
            is_literal = True
            has_python = has_python or _PYTHON_ESCAPE.match(source, at) is not None
        if escaped is None and (character in "\"'\\/\n\r" or (character in "uU" and is_escape)):
            escaped = at
        if unlikely is None and not is_plain and character in "bf/":
            unlikely = at
    return _Escapes(is_literal, escaped if is_literal else unlikely, has_python)


_ESCAPE_PARTS = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(.))",
    re.DOTALL,
)
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _decode(source: str) -> str:
    return _ESCAPE_PARTS.sub(_decode_escape, source) if "\\" in source else source


def _decode_escape(match: re.Match[str]) -> str:
    high, low, *codes, short = match.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))
    if short is not None:
        return _SHORT_ESCAPES.get(short, short)
    return chr(int(next(code for code in codes if code is not None), 16))


# --- writing ----------------------------------------------------------------------------------


_CONTROL = re.compile(r"[\x00-\x1f]")
_TO_WRITE = re.compile(r"\\(?:U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|.)|[\"\x00-\x1f]", re.DOTALL)
_TO_WRITE_LITERALLY = re.compile(r"[\\\"\x00-\x1f]")
_SHORT_NAMES = {character: f"\\{name}" for name, character in _SHORT_ESCAPES.items()}


def write_string(content: str) -> str:
    """A string as a JSON token."""
    return f'"{_encode(content, is_literal=True)}"'


def _name_mendings(
    source: str, family: _Family, has_inner: bool, escapes: _Escapes
) -> tuple[str, ...]:
    found = {
        family.mending: True,
        "call_quote_unescaped": has_inner,
        "call_backslash_unescaped": escapes.is_literal,
        "call_line_break_in_string": _CONTROL.search(source) is not None,
        "call_python_literal": family.mending is None
        and not escapes.is_literal
        and any(
            _JSON_ESCAPE.match(source, m.start()) is None for m in _BACKSLASHED.finditer(source)
        ),
    }
    return tuple(mending for mending, is_found in found.items() if mending and is_found)


def _encode(source: str, is_literal: bool) -> str:
    """The inside of a JSON string token; escapes that JSON knows stay as they are."""
    if is_literal:
        return _TO_WRITE_LITERALLY.sub(lambda match: _escape(match.group()), source)
    return _TO_WRITE.sub(_write, source)


def _write(match: re.Match[str]) -> str:
    written = match.group()
    if match[1] is not None:
        return chr(int(match[1], 16))
    if match[2] is not None:
        return f"\\u00{match[2]}"
    if written == "\\'":
        return "'"
    return written if written[0] == "\\" else _escape(written)


def _escape(character: str) -> str:
    if character in '\\"':
        return "\\" + character
    return _SHORT_NAMES.get(character) or f"\\u{ord(character):04x}"
