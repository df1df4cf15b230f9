"""Read a call written in tags: `<function=NAME><parameter=KEY>…`, `<invoke name="NAME">…`.

Tags are literal text: entities stay as they are, and a value ends at the next tag of the dialect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from trajcurate.curate.mend.loose_json import loosen
from trajcurate.curate.mend.loose_string import Refusal, write_string
from trajcurate.schemas.strict_json import decode_json

Schema = Mapping[str, Any]


class DialectCall(NamedTuple):
    """A call read from ``[start, end)``, in strict JSON."""

    text: str
    start: int
    end: int
    mendings: tuple[str, ...]


class _Tags(NamedTuple):
    parameter: re.Pattern[str]
    closing: re.Pattern[str]
    any: re.Pattern[str]


_NAME_AFTER = {
    "=": r"""=[ \t]*+(?:"([^"<>]*+)"\s*+|'([^'<>]*+)'\s*+|([^"'<>][^<>]*+))>""",
    "name": r"""\s++name\s*+=\s*+(?:"([^"<>]*+)"|'([^'<>]*+)')\s*+>""",
}
_OPENINGS = {
    (tag, style): re.compile(rf"(?:<function_calls>\s*+)?<{tag}{name}")
    for tag in ("function", "invoke")
    for style, name in _NAME_AFTER.items()
}
_OPENING = re.compile(r"(?:<function_calls>\s*+)?<(?:function|invoke)(?==|\s)")
_WRAPPER_CLOSE = re.compile(r"\s*+</function_calls>")
_SPACE = re.compile(r"\s*+")


def _tags(tag: str, style: str) -> _Tags:
    parameter, closing = rf"<parameter{_NAME_AFTER[style]}", rf"</{tag}>"
    return _Tags(
        re.compile(parameter),
        re.compile(closing),
        re.compile(rf"{parameter}|</parameter>|{closing}"),
    )


_TAGS = {key: _tags(*key) for key in _OPENINGS}


def find_dialect(text: str) -> int | None:
    """Where a call in tags begins; None if none does before the first brace."""
    brace = text.find("{")
    match = _OPENING.search(text, 0, len(text) if brace < 0 else brace)
    return match.start() if match else None


def starts_dialect(text: str, at: int) -> bool:
    """Whether a call in tags begins at `at`."""
    return _OPENING.match(text, at) is not None


def read_dialect(text: str, start: int, schemas: Mapping[str, Schema]) -> DialectCall:
    """Read the call whose opening tag stands at `start`.

    Args:
        text: the text between the call tags.
        start: the offset that `find_dialect` gave.
        schemas: JSON schema of the arguments by tool name. Where it declares an array, object,
            number or boolean, a value that is JSON of that type is decoded; all else is a string.

    Raises:
        Refusal: text stands where a tag must, or what a tag means is open.
    """
    opening, tags = _read_opening(text, start)
    name = _name_of(opening)
    if not name:
        raise Refusal("call_name_missing", start)
    at = _skip(text, opening.end())
    if text.startswith("{", at):
        arguments, end, mendings = _read_json_body(text, at, tags)
    else:
        reader = _ParameterReader(text, tags, _find_schema(name, schemas))
        arguments, end, mendings = reader.read(at)
    if wrapper := _WRAPPER_CLOSE.match(text, end):
        end = wrapper.end()
    call = f'{{"name": {write_string(name)}, "arguments": {arguments}}}'
    return DialectCall(call, start, end, ("call_dialect", *mendings))


def _read_opening(text: str, start: int) -> tuple[re.Match[str], _Tags]:
    for key, pattern in _OPENINGS.items():
        if opening := pattern.match(text, start):
            return opening, _TAGS[key]
    raise Refusal("call_not_json", start)


def _name_of(match: re.Match[str]) -> str:
    return next((group for group in match.groups() if group is not None), "").strip()


def _find_schema(name: str, schemas: Mapping[str, Schema]) -> Schema | None:
    if name in schemas:
        return schemas[name]
    folded = name.casefold()
    return next((s for tool, s in schemas.items() if tool.casefold() == folded), None)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _read_json_body(text: str, at: int, tags: _Tags) -> tuple[str, int, tuple[str, ...]]:
    """`<function=NAME>{…}</function>`: the arguments are one JSON object."""
    closings = [match.span() for match in tags.closing.finditer(text, at)]
    start, end = closings[-1] if closings else (len(text), len(text))
    try:
        body = loosen(text[at:start])
    except Refusal as refusal:
        raise Refusal(refusal.reason, at + refusal.at) from None
    return body.text.strip(), end, body.mendings


class _ParameterReader:
    def __init__(self, text: str, tags: _Tags, schema: Schema | None) -> None:
        self.text = text
        self.tags = tags
        self.properties = (schema or {}).get("properties")
        self.values: dict[str, str] = {}
        self.mendings: dict[str, None] = {}

    def read(self, at: int) -> tuple[str, int, tuple[str, ...]]:
        while tag := self.tags.parameter.match(self.text, at):
            at = self._read_parameter(tag)
        closing = self.tags.closing.match(self.text, at)
        if closing is None and at < len(self.text):
            raise Refusal("call_text_around", at)
        if closing is None and not self.values:
            raise Refusal("call_cut_off", at)
        members = ", ".join(f"{write_string(key)}: {text}" for key, text in self.values.items())
        end = closing.end() if closing else at
        return f"{{{members}}}", end, tuple(self.mendings)

    def _read_parameter(self, tag: re.Match[str]) -> int:
        """Read one parameter; returns where the next tag or stray text stands."""
        key = _name_of(tag)
        if not key:
            raise Refusal("call_not_json", tag.start())
        ending = self.tags.any.search(self.text, tag.end())
        start, end = ending.span() if ending else (len(self.text), len(self.text))
        if ending is None or ending.group() != "</parameter>":
            end = start
        source = self.text[tag.end() : start]
        if ending and self.tags.parameter.fullmatch(ending.group()):
            self._require_tag(ending, source)
        value, mendings = _decode(source, self._declared(key))
        if key in self.values:
            if self.values[key] != value:
                raise Refusal("call_key_repeated", tag.start())
            mendings += ("call_key_repeated",)
        self.values[key] = value
        self.mendings |= dict.fromkeys(mendings)
        return _skip(self.text, end)

    def _require_tag(self, opening: re.Match[str], source: str) -> None:
        """Refuse a parameter tag inside a line of an unclosed value: it may be the value's text."""
        before = source.rstrip(" \t")
        if before and not before.endswith("\n") and self._declared(_name_of(opening)) is None:
            raise Refusal("call_ambiguous", opening.start())

    def _declared(self, key: str) -> Schema | None:
        declared = self.properties.get(key) if isinstance(self.properties, Mapping) else None
        return declared if isinstance(declared, Mapping) else None


# --- values -----------------------------------------------------------------------------------


def _decode(text: str, declared: Schema | None) -> tuple[str, tuple[str, ...]]:
    """A value in JSON: decoded where its declared type asks for it, else a string."""
    text = _without_border_breaks(text)
    types = _types(declared)
    stripped = text.strip()
    structure = {"[": "array", "{": "object"}.get(stripped[:1])
    if structure in types:
        try:
            loose = loosen(stripped)
        except Refusal:
            return write_string(text), ()
        return loose.text, loose.mendings
    if "string" not in types and _is_scalar_of(stripped, types):
        return stripped, ()
    return write_string(text), ()


def _without_border_breaks(text: str) -> str:
    for line_break in ("\r\n", "\n"):
        if text.startswith(line_break):
            text = text[len(line_break) :]
            break
    for line_break in ("\r\n", "\n"):
        if text.endswith(line_break):
            return text[: -len(line_break)]
    return text


def _types(declared: Schema | None) -> set[str]:
    if declared is None:
        return set()
    kind = declared.get("type", [])
    types = {kind} if isinstance(kind, str) else set(kind)
    for union in ("anyOf", "oneOf"):
        for option in declared.get(union, ()):
            if isinstance(option, Mapping):
                types |= _types(option)
    return types


def _is_scalar_of(text: str, types: set[str]) -> bool:
    try:
        value, end = decode_json(text)
    except ValueError:
        return False
    if end != len(text) or isinstance(value, str | list | dict):
        return False
    if isinstance(value, bool):
        return "boolean" in types
    if value is None:
        return "null" in types
    is_whole = isinstance(value, int) or value.is_integer()
    return "number" in types or ("integer" in types and is_whole)
