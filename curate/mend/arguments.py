"""Mend what a call says in another form than its tool declares: names, nulls, strings and lists.

Each mending replaces the least it can of the call's JSON text, so that every string and number
stays as it is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from trajcurate.curate.mend.encode_json import encode_string, escape_surrogates, reencode
from trajcurate.curate.mend.json_text import Member, iterate_elements, iterate_members
from trajcurate.curate.step import TextEdit
from trajcurate.schemas.strict_json import decode_json
from trajcurate.schemas.tools import ToolSet, ToolSpec
from trajcurate.schemas.trajectory import ToolCall

Schema = Mapping[str, Any]


def mend_arguments(
    content: str, call: ToolCall, tools: ToolSet, *, drop_extra: bool = False
) -> list[TextEdit]:
    """The mendings of a call, each an edit of the message that does not overlap the others.

    Args:
        content: the text of the message.
        call: one of its calls.
        tools: the declared tools; a call of another tool has no mendings.
        drop_extra: remove arguments and keys that the tool does not declare.

    Raises:
        ValueError: the JSON is nested too deep to be read from here.
    """
    name = tools.resolve(call.name)
    if name is None:
        return []
    spec = tools.tools[name]
    keys = list(iterate_members(content, call.json_start))
    by_key = {member.key: member for member in keys}
    members = list(iterate_members(content, by_key["arguments"].value_start))
    changes = []
    if call.name != name:
        found = by_key["name"]
        changes.append(
            TextEdit(found.value_start, found.end, encode_string(name), "tool_name_alias")
        )
    if drop_extra:
        strays = {key: "argument_extra" for key in by_key if key not in ("name", "arguments")}
        changes += _without_members(keys, strays)
    aliases = _find_aliases(call.arguments, spec)
    undeclared = {
        key: "argument_null" if value is None else "argument_extra"
        for key, value in call.arguments.items()
        if is_undeclared(key, spec) and key not in aliases and (value is None or drop_extra)
    }
    changes += _without_members(members, undeclared)
    for member in members:
        declared = aliases.get(member.key, member.key)
        if member.key in aliases:
            changes.append(
                TextEdit(member.start, member.key_end, encode_string(declared), "argument_alias")
            )
        change = _mend_value(
            content, member, call.arguments[member.key], spec.properties.get(declared)
        )
        if change is not None:
            changes.append(change)
    return changes


def has_undeclared(call: ToolCall, spec: ToolSpec) -> bool:
    """Whether a call holds an argument that may need a mending: an alias, or a null of none."""
    return any(
        is_undeclared(key, spec) and (value is None or _declared_name(key, spec) is not None)
        for key, value in call.arguments.items()
    )


def is_undeclared(key: str, spec: ToolSpec) -> bool:
    """Whether the tool says what its arguments are and this is none of them."""
    return bool(spec.properties) and key not in spec.properties


def encode_call(content: str, call: ToolCall, spec: ToolSpec | None) -> str:
    """The JSON of a call written anew: name, arguments in declared order, then the rest.

    Raises:
        ValueError: the JSON is nested too deep to be read from here.
    """
    keys = {member.key: member for member in iterate_members(content, call.json_start)}
    arguments = {
        member.key: member for member in iterate_members(content, keys["arguments"].value_start)
    }
    written = {key: reencode(content[at.value_start : at.end]) for key, at in keys.items()}
    written["arguments"] = _object(
        {key: reencode(content[at.value_start : at.end]) for key, at in arguments.items()},
        spec.properties if spec is not None else (),
    )
    return _object(written, ("name", "arguments"))


def _object(members: Mapping[str, str], first: Iterable[str]) -> str:
    order = [key for key in first if key in members]
    order += [key for key in members if key not in order]
    return "{" + ", ".join(f"{encode_string(key)}: {members[key]}" for key in order) + "}"


def _find_aliases(arguments: Mapping[str, Any], spec: ToolSpec) -> dict[str, str]:
    """The arguments under another name, each with the declared name, which is not there too.

    Null is what padding leaves, so it stands for no argument.
    """
    aliases: dict[str, str] = {}
    for key, value in arguments.items():
        declared = _declared_name(key, spec)
        if (
            declared is not None
            and value is not None
            and declared not in arguments
            and declared not in aliases.values()
        ):
            aliases[key] = declared
    return aliases


def _declared_name(key: str, spec: ToolSpec) -> str | None:
    """The declared argument that an undeclared one means, by alias or by other capitals."""
    if not is_undeclared(key, spec):
        return None
    folded = key.strip().lower()
    for alias, declared in spec.argument_aliases.items():
        if folded == alias.lower():
            return declared
    return next((name for name in spec.properties if folded == name.lower()), None)


def _without_members(members: Sequence[Member], removed: Mapping[str, str]) -> list[TextEdit]:
    """Remove members, each with the comma before it; with the comma behind it as long as nothing
    that is kept stands before. `removed` has the reason for each.
    """
    changes = []
    is_after_kept = False
    for at, member in enumerate(members):
        if member.key not in removed:
            is_after_kept = True
            continue
        start, end = member.start, member.end
        if is_after_kept:
            start = members[at - 1].end
        elif at + 1 < len(members):
            end = members[at + 1].start
        changes.append(TextEdit(start, end, "", removed[member.key]))
    return changes


def _mend_value(content: str, member: Member, value: Any, schema: Schema | None) -> TextEdit | None:
    wanted = _types(schema)
    start, end = member.value_start, member.end
    if isinstance(value, str) and "array" in wanted and "string" not in wanted:
        if not _takes_strings(schema):
            return None
        token = content[start:end]
        as_list = _list_in_string(value, token)
        if as_list is not None:
            return TextEdit(start, end, as_list, "argument_list_in_string")
        return TextEdit(start, end, f"[{token}]", "argument_not_list")
    if isinstance(value, list) and "string" in wanted and "array" not in wanted:
        if not value or not all(isinstance(item, str) for item in value):
            return None
        tokens = [content[item.start : item.end] for item in iterate_elements(content, start)]
        # A list says where its strings end; a line break says it in a string.
        text = "\\n".join(token[1:-1] for token in tokens)
        return TextEdit(start, end, f'"{text}"', "argument_not_string")
    return None


def _types(schema: Schema | None) -> Collection[str]:
    """The JSON types that a schema names; none if it says its piece in another way."""
    found = schema.get("type", ()) if schema is not None else ()
    return (found,) if isinstance(found, str) else found


def _takes_strings(schema: Schema | None) -> bool:
    items = schema.get("items", {}) if schema is not None else {}
    return isinstance(items, Mapping) and "string" in (_types(items) or ("string",))


def _list_in_string(value: str, token: str) -> str | None:
    """The text of a string that is itself a strict JSON list of strings."""
    text = value.strip()
    if not text.startswith("["):
        return None
    try:
        items, end = decode_json(text)
    except ValueError:
        return None
    if end != len(text) or not all(isinstance(item, str) for item in items):
        return None
    if text.count("<") != token.count("<"):
        # What was escaped stays escaped, so that no text becomes a tag.
        text = text.replace("<", "\\u003c")
    return escape_surrogates(text)
