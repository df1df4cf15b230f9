"""Mend the text of one damaged tool call, or say why it cannot be mended.

The law: a mending keeps, in order, every character of every string and number of the call.
Structure may be replaced, removed or added; what is missing is never supplied; where two mendings
fit and give different calls, none is made. Each stage checks its own result against what it read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trajcurate.curate.mend.call_dialect import Schema, find_dialect, read_dialect, starts_dialect
from trajcurate.curate.mend.call_shape import (
    JSON_SPACE,
    MAX_ENCODINGS,
    Draft,
    find_defect,
    shape_call,
)
from trajcurate.curate.mend.json_text import splice
from trajcurate.curate.mend.loose_json import LooseValue, read_loose
from trajcurate.curate.mend.loose_string import BLANK, QUOTES, Place, Refusal, read_string
from trajcurate.schemas.tags import CODE_CLOSE, CODE_OPEN

__all__ = ["Mended", "Unmendable", "mend_call"]

Schemas = Mapping[str, Schema]


@dataclass(frozen=True, slots=True)
class Mended:
    """The call in strict JSON, and the reasons that name what was found wrong with it."""

    text: str
    mendings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unmendable:
    """Why a call was left alone, and the offset in its text where that shows."""

    reason: str
    at: int


def mend_call(body: str, schemas: Schemas | None = None) -> Mended | Unmendable:
    """Mend the text between `<tool_call>` and `</tool_call>`. Never raises; linear in the text.

    Args:
        body: the text as it stands, a `<code>` body included.
        schemas: JSON schema of the arguments by tool name, any case. Only calls written in tags
            need it, to tell a list from the string that writes it.
    """
    try:
        return _mend(body, schemas or {}, MAX_ENCODINGS)
    except Refusal as refusal:
        return Unmendable(refusal.reason, min(refusal.at, len(body)))


def _mend(body: str, schemas: Schemas, encodings: int) -> Mended:
    if not body.strip():
        raise Refusal("call_empty", 0)
    if find_defect(body) is None:
        return Mended(body, ())
    start = find_dialect(body)
    if start is not None:
        draft = _mend_tags(body, start, schemas)
    else:
        draft = _Block(body, schemas, encodings).read()
    shaped = shape_call(draft)
    if defect := find_defect(shaped.text):
        raise Refusal(defect, shaped.original(0))
    return Mended(shaped.text, shaped.mendings)


# --- the block: what stands round the call ------------------------------------------------------


_BLANKS = re.compile(BLANK)
_FENCE = re.compile(r"`{3,}+|~{3,}+")
_FENCE_OPEN = re.compile(rf"(?:{_FENCE.pattern})[\w+.-]*+[ \t]*+\r?\n?")
_FENCE_BEFORE = re.compile(rf"(?<![`~])(?:{_FENCE.pattern})[\w+.-]*+{BLANK}\Z")
_OPENER = re.compile(r"[{\[｛［]")
_CLOSERS = re.compile(r"[\]}］｝]++")
_STRAY_COMMA = re.compile(rf"[,，;]{BLANK}(?=\Z|[\]}}］｝]|```|<code>)")
_COMMA_BETWEEN = re.compile(rf"[,，]?{BLANK}(?=[{{\[｛［])")
_PROSE = re.compile(r"[^{}\[\]<>｛｝［］`]++")
_KEY_IN_PROSE = re.compile(rf"""["'“”‘’＂＇]{BLANK}[:：]""")
_UNOPENED = re.compile(rf"""["'“”＂](?:name|arguments|parameters|function)["'“”＂]{BLANK}[:：]""")
_QUOTED_CALL = re.compile(rf"[{QUOTES}]{BLANK}[{{\[{QUOTES}]")
_TAG_AT_END = re.compile(rf"</?[^\s<>]*+>?{BLANK}\Z")
_ESCAPED_CALL = re.compile(r"(?:\[\s*+)?\{\s*+\\\"")


def _mend_tags(body: str, start: int, schemas: Schemas) -> Draft:
    """A call written in tags, alone in its block but for prose before it."""
    call = read_dialect(body, start, schemas)
    edits = {(call.start, call.end): call.text}
    mendings = dict.fromkeys(call.mendings)
    if body[:start].strip():
        _require_prose(body, 0, start)
        edits[0, start] = ""
        mendings["call_text_around"] = None
    end = call.end
    while (at := _end_of(_BLANKS, body, end)) < len(body):
        if not starts_dialect(body, at):
            raise Refusal("call_text_around", at)
        again = read_dialect(body, at, schemas)
        if again.text != call.text:
            raise Refusal("call_several", at)
        mendings["call_repeated"] = None
        end = again.end
    edits[call.end, end] = ""
    return Draft(splice(body, edits, 0, len(body)), tuple(mendings), (edits,))


class _Block:
    """The text between the call tags, with a JSON call somewhere in it."""

    def __init__(self, body: str, schemas: Schemas, encodings: int) -> None:
        self.body = body
        self.schemas = schemas
        self.encodings = encodings
        self.edits: dict[tuple[int, int], str] = {}
        self.mendings: dict[str, None] = {}
        self.is_fenced = False
        self.prose_at: int | None = None

    def read(self) -> Draft:
        start = self._skip_blank(0)
        if fence := _FENCE_OPEN.match(self.body, start):
            self.is_fenced = True
            self._edit(start, fence.end(), "", "call_fenced")
            start = self._skip_blank(fence.end())
        if _ESCAPED_CALL.match(self.body, start):
            self._read_escaped(start)
        elif _QUOTED_CALL.match(self.body, start):
            self._read_quoted(start)
        else:
            self._read_object(start)
        text = splice(self.body, self.edits, 0, len(self.body))
        return Draft(text, tuple(self.mendings), (self.edits,))

    # The call itself.

    def _read_object(self, start: int) -> None:
        is_open = _UNOPENED.match(self.body, start) is not None
        if not is_open:
            start = self._skip_prose(start)
        value = read_loose(self.body, start, is_open=is_open)
        value.write(self.body)
        self.edits |= value.edits
        self.mendings |= dict.fromkeys(value.mendings)
        self._read_rest(value)
        if self.prose_at is not None and _has_no_arguments(value.events):
            raise Refusal("call_text_around", self.prose_at)

    def _read_quoted(self, start: int) -> None:
        """The whole call is a JSON string."""
        string = read_string(self.body, start, Place.WHOLE)
        if string.doubt is not None:
            raise Refusal("call_ambiguous", string.doubt)
        self.mendings |= dict.fromkeys(string.mendings)
        self._put_decoded(string.content, start, string.end)

    def _read_escaped(self, start: int) -> None:
        """The call is the inside of a JSON string, without the quotes."""
        end = len(self.body.rstrip())
        string = read_string(f'"{self.body[start:end]}"', 0, Place.WHOLE)
        if string.doubt is not None:
            raise Refusal("call_ambiguous", start + string.doubt - 1)
        self._put_decoded(string.content, start, end)

    def _put_decoded(self, content: str, start: int, end: int) -> None:
        if not self.encodings:
            raise Refusal("call_not_json", start)
        try:
            inner = _mend(content, self.schemas, self.encodings - 1)
        except Refusal as refusal:
            raise Refusal(refusal.reason, start) from None
        self._edit(start, end, inner.text, "call_encoded", *inner.mendings)

    # Before and after it.

    def _skip_prose(self, start: int) -> int:
        opener = _OPENER.search(self.body, start)
        if opener is None:
            raise Refusal("call_not_json", start)
        end = opener.start()
        if fence := _FENCE_BEFORE.search(self.body, start, end):
            self.is_fenced = True
            self._edit(fence.start(), end, "", "call_fenced")
            end = fence.start()
        if end > start:
            _require_prose(self.body, start, end)
            self.prose_at = start
            self._edit(start, end, "", "call_text_around")
        return opener.start()

    def _read_rest(self, first: LooseValue) -> None:
        at = self._skip_blank(first.end)
        while at < len(self.body):
            if self.body.startswith(CODE_OPEN, at):
                self._read_code(at)
                return
            at = self._skip_blank(self._read_beside(first, at))

    def _read_beside(self, first: LooseValue, at: int) -> int:
        """Take out one thing that stands behind the call; returns where it ends."""
        if end := self._take_closers_or_fence(at):
            return end
        if comma := _STRAY_COMMA.match(self.body, at):
            self._edit(at, at + 1, "", "call_trailing_comma")
            return comma.end()
        if again := _COMMA_BETWEEN.match(self.body, at):
            return self._read_again(first, at, again.end())
        prose = _PROSE.match(self.body, at)
        if prose is None or any(quote in prose.group() for quote in '"“”＂'):
            raise Refusal("call_text_around", at)
        _require_prose(self.body, at, prose.end())
        if prose.end() < len(self.body) and not self._is_last_fence(prose.end()):
            raise Refusal("call_text_around", at)
        self.prose_at = at
        self._edit(at, prose.end(), "", "call_text_around")
        return prose.end()

    def _take_closers_or_fence(self, at: int) -> int:
        if closers := _CLOSERS.match(self.body, at):
            self._edit(at, closers.end(), "", "call_brace_surplus")
            return closers.end()
        fence = _FENCE.match(self.body, at)
        if fence and (self.is_fenced or self._is_last_fence(at)):
            self.is_fenced = False
            self._edit(at, fence.end(), "", "call_fenced")
            return fence.end()
        return 0

    def _is_last_fence(self, at: int) -> bool:
        fence = _FENCE.match(self.body, at)
        return fence is not None and _end_of(_BLANKS, self.body, fence.end()) == len(self.body)

    def _read_again(self, first: LooseValue, start: int, at: int) -> int:
        try:
            value = read_loose(self.body, at)
        except Refusal:
            raise Refusal("call_several", at) from None
        if value.events != first.events:
            raise Refusal("call_several", at)
        self._edit(start, value.end, "", "call_repeated")
        return value.end

    def _read_code(self, at: int) -> None:
        """The program runs to the last closing tag; only brackets and a fence may follow."""
        close = self.body.rfind(CODE_CLOSE, at + len(CODE_OPEN))
        if close < 0:
            if self.is_fenced or _TAG_AT_END.search(self.body, at + len(CODE_OPEN)):
                raise Refusal("call_ambiguous", at)
            end = len(self.body.rstrip(JSON_SPACE))
            self._edit(end, end, "\n" + CODE_CLOSE, "call_code_unclosed")
            return
        at = self._skip_blank(close + len(CODE_CLOSE))
        while at < len(self.body):
            end = self._take_closers_or_fence(at)
            if not end:
                raise Refusal("call_text_around", at)
            at = self._skip_blank(end)

    def _skip_blank(self, at: int) -> int:
        end = _end_of(_BLANKS, self.body, at)
        blank = self.body[at:end]
        if blank.strip(JSON_SPACE):
            kept = "".join(character for character in blank if character in JSON_SPACE)
            self._edit(at, end, kept, "call_space_not_json")
        return end

    def _edit(self, start: int, end: int, replacement: str, *mendings: str) -> None:
        self.edits[start, end] = replacement
        self.mendings |= dict.fromkeys(mendings)


def _require_prose(body: str, start: int, end: int) -> None:
    """Refuse to take text for prose that could hold a part of the call."""
    prose = _PROSE.match(body, start, end)
    if prose is None or prose.end() < end or _KEY_IN_PROSE.search(body, start, end):
        raise Refusal("call_text_around", start)


def _has_no_arguments(events: list[str]) -> bool:
    """Whether the arguments are empty, so that the text beside the call may be what they lack."""
    return any(
        events[at - 1 : at + 2] in (['"arguments', "{", "}"], ['"parameters', "{", "}"])
        for at in range(1, len(events) - 1)
        if events[at] == "{"
    )


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
