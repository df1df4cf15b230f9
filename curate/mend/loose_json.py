"""Read damaged JSON with named mendings, and write it strict by changing only what is damaged.

The reader walks the text once with a stack of its own. Each deviation it understands becomes a
mending and an edit; all else stays byte for byte. Every string, number and literal it meets is
kept as an event, and `LooseValue.write` hands the strict text back only when a strict reading of
it gives the same events.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from trajcurate.curate.mend.json_text import Edits, splice, strict_events
from trajcurate.curate.mend.loose_string import (
    BARE_KEY,
    BLANK,
    QUOTED_KEY,
    QUOTES,
    LooseString,
    Place,
    Refusal,
    read_string,
)
from trajcurate.schemas.strict_json import RepeatedKeyError, decode_json, skip_space

# Deeper than any call, and safely within what a recursive JSON reader takes.
MAX_DEPTH = 200
# Bounds what one hostile text can make us hold.
MAX_EDITS = 100_000


@dataclass(frozen=True, slots=True)
class LooseValue:
    """One value as read from ``[start, end)`` of a damaged text.

    `edits` maps spans of the damaged text to what replaces them. `events` lists what was read in
    order: brackets, literals and numbers as JSON writes them, keys and strings decoded after a
    quote.
    """

    start: int
    end: int
    edits: Edits
    events: list[str]
    mendings: tuple[str, ...]

    def write(self, text: str) -> str:
        """The value in strict JSON.

        Raises:
            Refusal: a strict reading of it does not give the events.
        """
        strict = splice(text, self.edits, self.start, self.end)
        try:
            _, end = decode_json(strict)
        except RepeatedKeyError:
            raise Refusal("call_key_repeated", self.start) from None
        except ValueError:
            raise Refusal("call_not_json", self.start) from None
        if strict[end:].strip() or strict_events(strict) != self.events:
            raise Refusal("call_not_json", self.start)
        return strict


def read_loose(text: str, start: int, *, is_open: bool = False) -> LooseValue:
    """Read the value at `start`, as far as it goes.

    Args:
        text: the damaged text.
        start: offset of a bracket, a quote or a literal.
        is_open: whether the text starts inside an object that lacks its opening brace.

    Raises:
        Refusal: the value cannot be read, or can be read in two ways.
    """
    reader = _Reader(text, start, is_open, is_python=False)
    value = reader.read()
    if reader.has_python_escape and reader.is_python_text:
        reader = _Reader(text, start, is_open, is_python=True)
        value = reader.read()
    if reader.doubt is not None:
        raise Refusal("call_ambiguous", reader.doubt)
    return value


class Loosened(NamedTuple):
    """Damaged JSON made strict; `events` is what both hold."""

    text: str
    mendings: tuple[str, ...]
    events: list[str]


def loosen(text: str) -> Loosened:
    """Make a text strict that holds one damaged JSON value and nothing else.

    Raises:
        Refusal: it cannot be done in exactly one way.
    """
    start = skip_space(text, 0)
    value = read_loose(text, start)
    end, has_surplus = skip_closers(text, value.end)
    if end < len(text):
        raise Refusal("call_text_around", end)
    surplus = ("call_brace_surplus",) if has_surplus else ()
    return Loosened(value.write(text), value.mendings + surplus, value.events)


def skip_closers(text: str, at: int) -> tuple[int, bool]:
    """The end of a run of closing brackets and white space, and whether it holds a bracket."""
    match = _CLOSERS.match(text, at)
    assert match is not None
    return match.end(), bool(match.group().strip())


# --- the reader -------------------------------------------------------------------------------


class _Await(Enum):
    """What the reader expects next."""

    VALUE = auto()
    KEY = auto()
    COLON = auto()
    COMMA = auto()
    NOTHING = auto()


@dataclass(slots=True)
class _Frame:
    """An open bracket. `separator` is where the comma before the current member stands."""

    bracket: str
    start: int
    quote: str | None = None  # the quote round an object that should not be in quotes
    separator: int = -1
    is_after_comma: bool = False
    count: int = 0
    key: str = ""
    key_at: int = 0
    key_event: int = 0
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)


_SPACE = re.compile(r"[ \t\n\r]*+")
_CLOSERS = re.compile(r"[\s\]}］｝]*+")
_ODD_SPACE = re.compile(r"(?![ \t\n\r])[\s\ufeff\u200b-\u200d\u2060]++")
_COMMENT = re.compile(r"//[^\r\n]*+|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"[\w.+$-]++")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LIKE_NUMBER = re.compile(r"[-+.]*(?:[0-9]|(?:NaN|Infinity|inf|nan)\b)")
_LITERALS = {"true": "true", "false": "false", "null": "null"}
_PYTHON_LITERALS = {"True": "true", "False": "false", "None": "null"}
_FULLWIDTH = dict(zip("｛｝［］，：", "{}[],:"))
_CLOSER_OF = {"{": "}", "[": "]"}
_TAIL = re.compile(r"[\s\]}］｝]*+(?:\Z|```|<code>)")
_QUOTED_KEY = re.compile(QUOTED_KEY, re.DOTALL)
_BARE_KEY = re.compile(BARE_KEY)
_NAME = re.compile(r"[\w$-]++")
_PLAIN_KEY = re.compile(rf"""(["'])[^\W\d]\w*+\1{BLANK}[:：]""")
_QUOTED_OBJECT = re.compile(rf"""(["'])\s*+\{{\s*+\1[\w$ -]{{1,256}}+\1{BLANK}[:：]""")
_ARGUMENT_KEYS = ("arguments", "parameters")


class _Reader:
    def __init__(self, text: str, start: int, is_open: bool, is_python: bool) -> None:
        self.text = text
        self.start = self.at = start
        self.is_python = is_python
        self.edits: dict[tuple[int, int], str] = {}
        self.events: list[str] = []
        self.mendings: dict[str, None] = {}
        self.stack: list[_Frame] = []
        self.awaits = _Await.VALUE
        self.last_end = start  # where the last complete value ends
        self.is_split = False  # an array was closed in the middle of the text
        self.is_tail = False  # nothing but closing brackets is left
        self.comment_with_apostrophe: int | None = None
        self.is_python_text = self.has_python_escape = False
        self.doubt: int | None = None
        if is_open:
            self._edit(start, start, "{", "call_brace_missing")
            self._push("{", start)

    def read(self) -> LooseValue:
        readers = {
            _Await.VALUE: self._read_value,
            _Await.KEY: self._read_key,
            _Await.COLON: self._read_colon,
            _Await.COMMA: self._read_after_value,
        }
        while self.awaits is not _Await.NOTHING:
            self._skip_blank()
            if self._is_at_end():
                self._close_all()
                break
            readers[self.awaits](self._character())
        if self.comment_with_apostrophe is not None and self.is_python_text:
            raise Refusal("call_ambiguous", self.comment_with_apostrophe)
        return LooseValue(self.start, self.last_end, self.edits, self.events, tuple(self.mendings))

    # What may stand where.

    def _read_key(self, character: str) -> None:
        frame = self.stack[-1]
        if character in "}]":
            self._close(character)
        elif character == ",":
            self._remove_comma()
        elif self.text[self.at] in QUOTES:
            self._name_member(frame, self.at, self._read_string(Place.KEY))
        elif key := self._match_bare_key():
            start, self.at = self.at, self.at + len(key)
            self._edit(start, self.at, f'"{key}"', "call_keys_unquoted")
            self._name_member(frame, start, key)
        else:
            raise Refusal("call_not_json", self.at)

    def _match_bare_key(self) -> str | None:
        if _BARE_KEY.match(self.text, self.at) is None:
            return None
        return self.text[self.at : _end_of(_NAME, self.text, self.at)]

    def _name_member(self, frame: _Frame, start: int, key: str) -> None:
        frame.key, frame.key_at, frame.key_event = key, start, len(self.events)
        frame.is_after_comma = False
        self.events.append('"' + key)
        self.awaits = _Await.COLON

    def _read_colon(self, character: str) -> None:
        if character != ":":
            raise Refusal("call_colon_missing", self.at)
        self._take_structure(character)
        self.awaits = _Await.VALUE

    def _read_value(self, character: str) -> None:
        frame = self.stack[-1] if self.stack else None
        is_element = frame is not None and frame.bracket == "["
        if character in "{[":
            self._take_structure(character)
            self._push(character, self.at - 1)
        elif self.text[self.at] in QUOTES:
            self._read_quoted(frame)
        elif is_element and character in "]}":
            self._close(character)
        elif is_element and character == ",":
            self._remove_comma()
        elif character in ",}]":
            raise Refusal("call_value_missing", self.at)
        else:
            self._read_bare_value()

    def _read_quoted(self, frame: _Frame | None) -> None:
        if frame is None:
            self._add_string(Place.WHOLE)
        elif frame.bracket == "{":
            match = frame.key in _ARGUMENT_KEYS and _QUOTED_OBJECT.match(self.text, self.at)
            if match:
                self._push_quoted_object(match[1])
            else:
                self._add_string(Place.MEMBER)
        elif self._is_key_in_array(frame):
            self._close_before_key(frame)
        else:
            self._add_string(Place.ELEMENT, is_first=frame.count == 0)

    def _read_bare_value(self) -> None:
        match = _WORD.match(self.text, self.at)
        word = match.group() if match else ""
        if word in _LITERALS or _NUMBER.fullmatch(word):
            value = word
        elif word in _PYTHON_LITERALS:
            value = _PYTHON_LITERALS[word]
            self.is_python_text = True
            self._edit(self.at, self.at + len(word), value, "call_python_literal")
        elif _LIKE_NUMBER.match(word):
            raise Refusal("call_number_not_json", self.at)
        else:
            raise Refusal("call_value_unquoted" if word else "call_not_json", self.at)
        self.at += len(word)
        if self.at == len(self.text) and self.stack:
            raise Refusal("call_cut_off", self.at)
        self._add_value(value)

    def _read_after_value(self, character: str) -> None:
        frame = self.stack[-1]
        if character == ",":
            frame.separator, frame.is_after_comma = self.at, True
            self._take_structure(character)
        elif character in "}]":
            self._close(character)
            return
        elif self._is_comma_missing(frame, character):
            frame.separator = self.last_end
            self._edit(self.last_end, self.last_end, ",", "call_comma_missing")
        else:
            raise Refusal(self._name_stray(frame, character), self.at)
        self.awaits = _Await.KEY if frame.bracket == "{" else _Await.VALUE

    def _is_comma_missing(self, frame: _Frame, character: str) -> bool:
        if frame.bracket == "{":
            return _QUOTED_KEY.match(self.text, self.at) is not None
        # Beside a string or a number the quotes, or the number, could be at fault instead.
        return self.events[-1] in ("}", "]") and (character in "{[" or self.text[self.at] in QUOTES)

    def _name_stray(self, frame: _Frame, character: str) -> str:
        starts_value = character in "{[" or self.text[self.at] in QUOTES
        return "call_comma_missing" if frame.bracket == "[" and starts_value else "call_not_json"

    # Brackets.

    def _push(self, bracket: str, start: int) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise Refusal("call_too_deep", start)
        self.stack.append(_Frame(bracket, start))
        self.events.append(bracket)
        self.awaits = _Await.KEY if bracket == "{" else _Await.VALUE

    def _push_quoted_object(self, quote: str) -> None:
        self._edit(self.at, self.at + 1, "", "call_arguments_encoded")
        start = self.text.index("{", self.at)
        self.at = start + 1
        self._push("{", start)
        self.stack[-1].quote = quote

    def _close(self, closer: str) -> None:
        if _CLOSER_OF[self.stack[-1].bracket] != closer and not self._fit_tail(closer):
            return
        end = self._take_structure(closer)
        self._pop(end)

    def _fit_tail(self, closer: str) -> bool:
        """Make room for a closing bracket that does not fit; False when it is removed instead.

        Where nothing but closing brackets is left, every way to make them fit gives the same
        call. Anywhere else it does not.
        """
        self.is_tail = self.is_tail or _TAIL.match(self.text, self.at) is not None
        if self.is_split or not self.is_tail:
            raise Refusal("call_brackets_mismatched", self.at)
        if all(_CLOSER_OF[frame.bracket] != closer for frame in self.stack):
            self._edit(self.at, self.at + 1, "", "call_brace_surplus")
            self.at += 1
            return False
        while (missing := _CLOSER_OF[self.stack[-1].bracket]) != closer:
            self._insert_closer(missing, self.last_end)
        return True

    def _close_all(self) -> None:
        """Close what is open at the end, where a value is complete."""
        frame = self.stack[-1] if self.stack else None
        # A code body or a fence behind it shows that the text was not cut off at its comma.
        is_surplus_comma = frame and frame.is_after_comma and self.at < len(self.text)
        if frame is None or not (self.awaits is _Await.COMMA or is_surplus_comma):
            raise Refusal("call_cut_off", self.at)
        end = self.last_end
        while self.stack:
            self._insert_closer(_CLOSER_OF[self.stack[-1].bracket], end)

    def _insert_closer(self, closer: str, at: int) -> None:
        frame = self.stack[-1]
        if frame.quote:
            raise Refusal("call_ambiguous", self.at)
        if not frame.count:
            raise Refusal("call_value_missing", self.at)
        if frame.bracket == "[" and frame.count == 1 and self.events[-1] == "]":
            # A list in a list that lacks its end: as likely, its opening bracket is doubled.
            raise Refusal("call_brackets_mismatched", frame.start)
        self._edit(at, at, self.edits.get((at, at), "") + closer, "call_brace_missing")
        self._pop(at)

    def _pop(self, end: int) -> None:
        frame = self.stack.pop()
        if frame.is_after_comma:
            self._edit(frame.separator, frame.separator + 1, "", "call_trailing_comma")
        if frame.quote:
            end = self._take_closing_quote(frame, end)
        self._add_value(_CLOSER_OF[frame.bracket], end)

    def _take_closing_quote(self, frame: _Frame, end: int) -> int:
        at = skip_space(self.text, end)
        # With a backslash inside, nobody can say how often the object was encoded.
        if self.text[at : at + 1] != frame.quote or "\\" in self.text[frame.start : end]:
            raise Refusal("call_ambiguous", frame.start)
        self._edit(at, at + 1, "", "call_arguments_encoded")
        self.at = at + 1
        return self.at

    def _is_key_in_array(self, frame: _Frame) -> bool:
        parent = self.stack[-2].bracket if len(self.stack) > 1 else None
        return (
            parent == "{"
            and frame.count > 0
            and frame.is_after_comma
            and _PLAIN_KEY.match(self.text, self.at) is not None
        )

    def _close_before_key(self, frame: _Frame) -> None:
        """A key stands in an array: the array ends before the comma, which is the object's."""
        separator = frame.separator
        frame.is_after_comma = False
        self.is_split = True
        self._insert_closer("]", self.last_end)
        parent = self.stack[-1]
        parent.separator, parent.is_after_comma = separator, True
        self.awaits = _Await.KEY

    # Values.

    def _add_string(self, place: Place, is_first: bool = False) -> None:
        self._add_value('"' + self._read_string(place, is_first))

    def _read_string(self, place: Place, is_first: bool = False) -> str:
        start = self.at
        string = read_string(self.text, start, place, is_first=is_first, is_python=self.is_python)
        self._note_string(start, string)
        self.at = string.end
        return string.content

    def _note_string(self, start: int, string: LooseString) -> None:
        if string.token is not None:
            self._edit(start, string.end, string.token, *string.mendings)
        if self.text[start] == "'":
            self.is_python_text = True
        self.has_python_escape = self.has_python_escape or string.has_python_escape
        if self.doubt is None:
            self.doubt = string.doubt

    def _add_value(self, event: str, end: int | None = None) -> None:
        self.events.append(event)
        self.last_end = self.at if end is None else end
        if not self.stack:
            self.awaits = _Await.NOTHING
            return
        frame = self.stack[-1]
        frame.count += 1
        frame.is_after_comma = False
        self.awaits = _Await.COMMA
        if frame.bracket == "{":
            self._check_repeated(frame)

    def _check_repeated(self, frame: _Frame) -> None:
        """Remove a member whose key and value stood before; refuse another value."""
        start, end = frame.key_event + 1, len(self.events)
        first_start, first_end = frame.seen.setdefault(frame.key, (start, end))
        if first_start == start:
            return
        if (
            end - start != first_end - first_start
            or self.events[start:end] != self.events[first_start:first_end]
        ):
            raise Refusal("call_key_repeated", frame.key_at)
        del self.events[frame.key_event :]
        while self.edits and next(reversed(self.edits))[0] >= frame.separator:
            self.edits.popitem()
        self._edit(frame.separator, self.last_end, "", "call_key_repeated")

    # Steps through the text.

    def _character(self) -> str:
        """The character here, with full-width punctuation read as what it stands for."""
        return _FULLWIDTH.get(self.text[self.at], self.text[self.at])

    def _take_structure(self, character: str) -> int:
        if self.text[self.at] != character:
            self._edit(self.at, self.at + 1, character, "call_fullwidth_punctuation")
        self.at += 1
        return self.at

    def _remove_comma(self) -> None:
        self._edit(self.at, self.at + 1, "", "call_comma_surplus")
        self.at += 1

    def _skip_blank(self) -> None:
        while True:
            self.at = _end_of(_SPACE, self.text, self.at)
            if end := _end_of(_ODD_SPACE, self.text, self.at, default=0):
                self._edit(self.at, end, " ", "call_space_not_json")
            elif self.text.startswith(("//", "/*"), self.at):
                end = self._read_comment()
            else:
                return
            self.at = end

    def _read_comment(self) -> int:
        match = _COMMENT.match(self.text, self.at)
        if match is None:
            raise Refusal("call_cut_off", self.at)
        # A quote in it: the comment could be the rest of a string, or a member taken out.
        if match.end() == len(self.text) or any(q in match.group() for q in '"“”＂'):
            raise Refusal("call_ambiguous", self.at)
        if self.comment_with_apostrophe is None and "'" in match.group():
            self.comment_with_apostrophe = self.at
        self._edit(self.at, match.end(), "", "call_comment")
        return match.end()

    def _is_at_end(self) -> bool:
        return self.at >= len(self.text) or self.text.startswith(("```", "<code>"), self.at)

    def _edit(self, start: int, end: int, replacement: str, *mendings: str) -> None:
        self.edits[start, end] = replacement
        for mending in mendings:
            self.mendings[mending] = None
        if len(self.edits) > MAX_EDITS:
            raise Refusal("call_too_damaged", start)


def _end_of(pattern: re.Pattern[str], text: str, at: int, default: int = -1) -> int:
    match = pattern.match(text, at)
    return match.end() if match else default
