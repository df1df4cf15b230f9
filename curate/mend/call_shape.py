"""The shape of a call whose text is strict JSON by now: its wrapper, its keys, its arguments.

Every rewriting names the scalars it takes out and puts in, and is refused where they differ.
"""

from __future__ import annotations

from typing import NamedTuple

from trajcurate.curate.mend.json_text import (
    Edits,
    Element,
    Member,
    iterate_elements,
    iterate_members,
    scalars,
    splice,
    strict_events,
)
from trajcurate.curate.mend.loose_json import Loosened, loosen
from trajcurate.curate.mend.loose_string import QUOTES, Refusal
from trajcurate.schemas.strict_json import decode_json, skip_space
from trajcurate.schemas.tags import CODE_CLOSE, CODE_OPEN

JSON_SPACE = " \t\n\r"
MAX_ENCODINGS = 3
_MAX_WRAPPERS = 4
_WRAPPER_KEYS = ("function", "function_call", "tool_call", "tool_calls", "call")


class Draft(NamedTuple):
    """A text on its way; `history` leads from its offsets back to those of the damaged text."""

    text: str
    mendings: tuple[str, ...]
    history: tuple[Edits, ...]

    def original(self, at: int) -> int:
        """The offset in the damaged text of what stands at `at`."""
        for edits in reversed(self.history):
            at = _offset_before(edits, at)
        return at


def _offset_before(edits: Edits, at: int) -> int:
    """The offset, before the edits, of what stands at `at` after them."""
    shift = 0
    for (start, end), replacement in sorted(edits.items()):
        if at < start + shift:
            break
        if at < start + shift + len(replacement):
            return start
        shift += len(replacement) - (end - start)
    return at - shift


def find_defect(text: str) -> str | None:
    """Why a text is no strict call; None when it is one."""
    try:
        value, end = decode_json(text, skip_space(text, 0))
    except ValueError:
        return "call_not_json"
    code = text[end:].strip(JSON_SPACE)
    if code and not (
        code.startswith(CODE_OPEN)
        and code.endswith(CODE_CLOSE)
        and len(code) >= len(CODE_OPEN) + len(CODE_CLOSE)
    ):
        return "call_text_around"
    if not isinstance(value, dict):
        return "call_not_object"
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        return "call_name_missing"
    if "arguments" not in value:
        return "call_arguments_missing"
    return None if isinstance(value["arguments"], dict) else "call_arguments_not_object"


def shape_call(draft: Draft) -> Draft:
    """The draft without wrappers, with its arguments under their name and decoded.

    Raises:
        Refusal: it holds several calls or none, or arguments that are no object.
    """
    for _ in range(_MAX_WRAPPERS):
        unwrapped = _unwrap(draft)
        if unwrapped is None:
            break
        draft = unwrapped
    draft = _decode_arguments(_rename_parameters(draft))
    if "call_brace_surplus" in draft.mendings:
        _require_late_surplus(draft)
    return draft


def _rewrite(
    draft: Draft, edits: Edits, mendings: tuple[str, ...], lost: list[str], gained: list[str]
) -> Draft:
    """Make edits that exchange exactly the scalars `lost` for `gained`."""
    taken = [
        event for start, end in sorted(edits) for event in strict_events(draft.text[start:end])
    ]
    put = [event for span in sorted(edits) for event in strict_events(edits[span])]
    if scalars(taken) != lost or scalars(put) != gained:
        raise Refusal("call_not_json", draft.original(min(edits)[0]))
    text = splice(draft.text, edits, 0, len(draft.text))
    named = tuple(dict.fromkeys(draft.mendings + mendings))
    return Draft(text, named, (*draft.history, edits))


def _unwrap(draft: Draft) -> Draft | None:
    """The draft without its outermost wrapper; None where it has none."""
    text = draft.text
    start = skip_space(text, 0)
    if text.startswith("[", start):
        first, end = _only_element(draft, start)
        edits = {(start, first.start): "", (first.end, end): ""}
        return _rewrite(draft, edits, ("call_wrapped",), [], [])
    if not text.startswith("{", start):
        raise Refusal("call_not_object", draft.original(start))
    members = list(iterate_members(text, start))
    if any(member.key in ("name", "arguments", "parameters") for member in members):
        return None
    wrappers = [member for member in members if member.key in _WRAPPER_KEYS]
    if len(wrappers) != 1:
        return None
    return _splice_wrapped(draft, wrappers[0])


def _splice_wrapped(draft: Draft, wrapper: Member) -> Draft | None:
    """Put the members of a wrapped object where its wrapper stood, beside its siblings."""
    start, end = wrapper.value_start, wrapper.end
    if draft.text.startswith("[", start):
        element, _ = _only_element(draft, start)
        start, end = element.start, element.end
    if (
        not draft.text.startswith("{", start)
        or draft.text[skip_space(draft.text, start + 1)] == "}"
    ):
        return None
    edits = {(wrapper.start, start + 1): "", (end - 1, wrapper.end): ""}
    return _rewrite(draft, edits, ("call_wrapped",), ['"' + wrapper.key], [])


def _only_element(draft: Draft, start: int) -> tuple[Element, int]:
    """The one element of the array at `start`, and where the array ends."""
    elements = list(iterate_elements(draft.text, start))
    if len(elements) != 1:
        reason = "call_several" if elements else "call_empty"
        raise Refusal(reason, draft.original(elements[1].start if elements else start))
    return elements[0], skip_space(draft.text, elements[0].end) + 1


def _rename_parameters(draft: Draft) -> Draft:
    members = _members(draft)
    member = members.get("parameters")
    if member is None or "arguments" in members:
        return draft
    edits = {(member.start, member.key_end): '"arguments"'}
    return _rewrite(draft, edits, ("call_parameters_key",), ['"parameters'], ['"arguments'])


def _decode_arguments(draft: Draft) -> Draft:
    """Put the object in the place of the string that encodes it, however often it does."""
    member = _members(draft).get("arguments")
    if member is None or not draft.text.startswith('"', member.value_start):
        return draft
    content, _ = decode_json(draft.text, member.value_start)
    try:
        loose = _loosen_encoded(content)
    except Refusal as refusal:
        raise Refusal(refusal.reason, draft.original(member.value_start)) from None
    edits = {(member.value_start, member.end): loose.text}
    mendings = ("call_arguments_encoded", *loose.mendings)
    return _rewrite(draft, edits, mendings, ['"' + content], scalars(loose.events))


def _loosen_encoded(content: str) -> Loosened:
    mendings: tuple[str, ...] = ()
    for _ in range(MAX_ENCODINGS):
        text = content.strip()
        if not text or text[0] not in "{｛" + QUOTES:
            break
        loose = loosen(text)
        mendings += loose.mendings
        value, _ = decode_json(loose.text)
        if isinstance(value, dict):
            return Loosened(loose.text.strip(), mendings, loose.events)
        content = value
    raise Refusal("call_arguments_not_object", 0)


def _require_late_surplus(draft: Draft) -> None:
    """Refuse a surplus brace that could be the early one which put an argument beside them all."""
    keys = list(_members(draft).values())
    places = [index for index, member in enumerate(keys) if member.key == "arguments"]
    for member in keys[places[0] + 1 :] if places else []:
        if member.key != "name":
            raise Refusal("call_ambiguous", draft.original(member.start))


def _members(draft: Draft) -> dict[str, Member]:
    start = skip_space(draft.text, 0)
    return {member.key: member for member in iterate_members(draft.text, start)}
