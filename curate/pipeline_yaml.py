"""Pipeline text: YAML read strictly, `--set` applied to it, and words for what does not fit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

import yaml

from trajcurate.curate.pipeline import Problem, labels_of


class StrictLoader(yaml.SafeLoader):
    """YAML without repeated keys, dates and words for booleans.

    `2026-03-01` and `off` stay the text they are.
    """


_TIMESTAMP, _BOOLEAN = "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool"
StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_TIMESTAMP, _BOOLEAN)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
StrictLoader.add_implicit_resolver(_BOOLEAN, re.compile("^(?:true|false)$"), ["t", "f"])


def _construct_mapping(loader: StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise yaml.MarkedYAMLError(
                problem=f"repeated key `{key}`", problem_mark=node.start_mark
            )
    return dict(yaml.SafeLoader.construct_mapping(loader, node, deep=True))


StrictLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def yaml_problem(error: yaml.YAMLError) -> Problem:
    """What the YAML reader found, with its line."""
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or "not YAML"
    where = f"line {mark.line + 1} column {mark.column + 1}" if mark else "$"
    return Problem(str(what), where)


def apply_setting(document: dict[str, Any], setting: str, problems: list[Problem]) -> None:
    """Put `steps.NAME.option=value` or `output.seed=7` into the document."""
    path, sign, text = setting.partition("=")
    where = f"--set {setting}"
    if not sign or not path:
        problems.append(Problem("not `path=value`", where, "as in --set output.seed=7"))
        return
    try:
        value = yaml.load(text, StrictLoader)
    except yaml.YAMLError:
        problems.append(Problem(f"`{text}` is no YAML value", where))
        return
    parts = path.split(".")
    if parts[0] == "steps":
        _set_step_option(document, parts[1:], value, where, problems)
        return
    target: Any = document
    for part in parts[:-1]:
        if target.get(part) is None:
            target[part] = {}
        target = target[part]
        if not isinstance(target, dict):
            problems.append(Problem(f"`{part}` holds no options", where))
            return
    target[parts[-1]] = value


def _set_step_option(
    document: dict[str, Any], parts: list[str], value: Any, where: str, problems: list[Problem]
) -> None:
    entries = document.get("steps")
    entries = entries if isinstance(entries, list) else []
    names = [entry_name(entry) for entry in entries]
    labels = labels_of([name or "" for name in names])
    if len(parts) < 2 or parts[0] not in labels:
        wanted = parts[0] if parts else ""
        hint = nearest(wanted, labels, "the pipeline's steps are")
        problems.append(Problem(f"no step `{wanted}` with an option to set", where, hint))
        return
    index = labels.index(parts[0])
    entry = entries[index]
    options = entry[names[index]] if isinstance(entry, dict) else None
    options = dict(options or {})
    target = options
    for part in parts[1:-1]:
        target = target.setdefault(part, {})
    target[parts[-1]] = value
    entries[index] = {names[index]: options}


def entry_name(entry: Any) -> str | None:
    """The step that an entry of `steps:` names; None if it is not one step."""
    if isinstance(entry, str):
        return entry
    if isinstance(entry, dict) and len(entry) == 1:
        name = next(iter(entry))
        return name if isinstance(name, str) else None
    return None


def nearest(name: str, known: Iterable[str], intro: str = "it takes") -> str:
    """A hint: the known name that was probably meant, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"{intro}: {', '.join(known)}" if known else "it takes no options"
