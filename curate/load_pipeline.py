"""A pipeline file: YAML to steps with their options, every mistake at once and with its place."""

from __future__ import annotations

import difflib
import hashlib
import inspect
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from trajcurate.curate.adapt.columns import COLUMN_NAMES
from trajcurate.curate.adapt.detect import ADAPTERS
from trajcurate.curate.find_step import find_step, step_names
from trajcurate.curate.pipeline import (
    InputSpec,
    OutputSpec,
    Pipeline,
    PipelineError,
    Problem,
    Source,
    SourceSpec,
)
from trajcurate.curate.pipeline_parts import (
    dump_tools,
    load_prompt,
    load_tools,
    read_options,
    shipped_or_file,
)
from trajcurate.curate.pipeline_yaml import (
    StrictLoader,
    apply_setting,
    entry_name,
    nearest,
    yaml_problem,
)
from trajcurate.curate.step import Step
from trajcurate.schemas.tools import ToolSet


def recipe_names() -> list[str]:
    """The shipped pipelines."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in files("trajcurate.pipelines").iterdir()
        if entry.name.endswith(".yaml")
    )


def load_pipeline(name_or_path: str, settings: Iterable[str] = ()) -> Pipeline:
    """Read a recipe or a YAML file, apply `path=value` settings, and check everything.

    Raises:
        PipelineError: with every mistake found.
    """
    path, text = _read_pipeline_text(name_or_path)
    try:
        document = yaml.load(text, StrictLoader)
    except yaml.YAMLError as error:
        raise PipelineError(path, [yaml_problem(error)]) from None
    if not isinstance(document, dict):
        raise PipelineError(path, [Problem("the file is not a mapping", "$")])
    problems: list[Problem] = []
    for setting in settings:
        apply_setting(document, setting, problems)
    pipeline = _build(path, document, problems)
    if problems or pipeline is None:
        raise PipelineError(path, problems)
    return pipeline


def pipeline_from_resolved(resolved: Mapping[str, Any]) -> Pipeline:
    """The pipeline again from its `resolved` data, in a worker or from a manifest.

    Raises:
        PipelineError: the data is not that of this version.
    """
    problems: list[Problem] = []
    pipeline = _build("resolved pipeline", dict(resolved), problems)
    if problems or pipeline is None:
        raise PipelineError("resolved pipeline", problems)
    return pipeline


def _read_pipeline_text(name_or_path: str) -> tuple[str, str]:
    if name_or_path in recipe_names():
        resource = files("trajcurate.pipelines") / f"{name_or_path}.yaml"
        return f"pipelines/{name_or_path}.yaml", resource.read_text(encoding="utf-8")
    path = Path(name_or_path)
    if not path.is_file():
        close = difflib.get_close_matches(name_or_path, recipe_names(), 1)
        hint = f"did you mean `{close[0]}`? " if close else ""
        hint += f"recipes: {', '.join(recipe_names())}; or give the path of a YAML file"
        raise PipelineError(name_or_path, [Problem("no such recipe or file", "PIPELINE", hint)])
    try:
        return str(path), path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(name_or_path, [Problem(f"cannot be read: {error}", "$")]) from None


_TOP_KEYS = ("name", "input", "sources", "tools", "prompt", "steps", "output")


def _build(path: str, document: dict[str, Any], problems: list[Problem]) -> Pipeline | None:
    problems.extend(
        Problem(f"unknown key `{key}`", "$", nearest(str(key), _TOP_KEYS))
        for key in document
        if key not in _TOP_KEYS
    )
    base = Path(path).parent
    name = document.get("name") or Path(path).stem
    input_spec = read_options(InputSpec, document.get("input"), "$.input", problems)
    output = read_options(OutputSpec, document.get("output"), "$.output", problems)
    tools = load_tools(document.get("tools", "search_visit"), "$.tools", base, problems)
    prompt = load_prompt(document.get("prompt", "research_assistant"), "$.prompt", base, problems)
    sources = _load_sources(document.get("sources"), input_spec, tools, base, problems)
    steps, entries = _load_steps(document.get("steps"), prompt, base, problems)
    if problems or input_spec is None or output is None or tools is None:
        return None
    _check_formats(input_spec, sources, problems)
    _check_order(steps, problems)
    resolved = {
        "name": str(name),
        "input": input_spec.model_dump(mode="json"),
        "tools": dump_tools(tools),
        "prompt": {"text": prompt},
        "steps": entries,
        "output": output.model_dump(mode="json"),
    }
    if document.get("sources") is not None:
        resolved["sources"] = [
            {
                "name": source.name,
                "path": list(source.path or ()),
                "format": source.format,
                "columns": dict(source.columns),
                "tools": dump_tools(source.tools),
            }
            for source in sources
        ]
    return Pipeline(str(name), input_spec, sources, tools, steps, output, resolved)


def _load_sources(
    value: Any,
    input_spec: InputSpec | None,
    tools: ToolSet | None,
    base: Path,
    problems: list[Problem],
) -> tuple[Source, ...]:
    if value is None:
        if input_spec is None or tools is None:
            return ()
        return (Source(None, None, input_spec.format, {}, tools),)
    if not isinstance(value, list) or not value:
        problems.append(Problem("not a list of sources", "$.sources"))
        return ()
    sources: list[Source] = []
    for index, entry in enumerate(value):
        where = f"$.sources[{index}]"
        spec = read_options(SourceSpec, entry, where, problems)
        if spec is None:
            continue
        if spec.name in [source.name for source in sources]:
            problems.append(Problem(f"a second source `{spec.name}`", f"{where}.name"))
        _check_columns(spec, where, problems)
        own = tools
        if spec.tools is not None:
            own = load_tools(spec.tools, f"{where}.tools", base, problems)
        if own is not None:
            paths = (spec.path,) if isinstance(spec.path, str) else spec.path
            sources.append(Source(spec.name, paths, spec.format, spec.columns, own))
    return tuple(sources)


def _check_columns(spec: SourceSpec, where: str, problems: list[Problem]) -> None:
    for name, pointer in spec.columns.items():
        if name not in COLUMN_NAMES:
            hint = nearest(name, COLUMN_NAMES, "columns are")
            problems.append(Problem("unknown column", f"{where}.columns.{name}", hint))
        elif not pointer.startswith("/"):
            hint = "it starts with `/`, as in /task/id"
            problems.append(Problem("not a JSON Pointer", f"{where}.columns.{name}", hint))


def _check_formats(
    input_spec: InputSpec, sources: Iterable[Source], problems: list[Problem]
) -> None:
    known = ["auto", *ADAPTERS]
    places = [("$.input.format", input_spec.format)]
    places += [
        (f"$.sources[{i}].format", source.format)
        for i, source in enumerate(sources)
        if source.name is not None
    ]
    for where, name in places:
        if name not in known:
            problems.append(Problem(f"unknown format `{name}`", where, nearest(name, known)))


def _load_steps(
    value: Any, prompt: str, base: Path, problems: list[Problem]
) -> tuple[tuple[Step, ...], list[dict[str, Any]]]:
    if not isinstance(value, list):
        problems.append(Problem("no list of steps", "$.steps"))
        return (), []
    steps: list[Step] = []
    entries: list[dict[str, Any]] = []
    for index, entry in enumerate(value):
        where = f"$.steps[{index}]"
        name = entry_name(entry)
        if name is None:
            hint = "write `- prune_tools: {allowed: [search, visit]}`"
            problems.append(Problem("not one step with its options", where, hint))
            continue
        options = entry[name] if isinstance(entry, dict) else None
        code = options.pop("code_hash", None) if isinstance(options, dict) and ":" in name else None
        try:
            step_class = find_step(_from_base(name, base))
        except LookupError as error:
            advice = None if ":" in name else nearest(name, step_names(), "steps are")
            problems.append(Problem(str(error), where, advice))
            continue
        options = _with_prompt(step_class, options, prompt, f"{where}.{name}", base, problems)
        step = read_options(step_class, options, f"{where}.{name}", problems)
        if step is None:
            continue
        dumped = step.model_dump(mode="json")
        if ":" in name:
            dumped["code_hash"] = code or _hash_of_file(step_class)
        steps.append(step)
        entries.append({_from_base(name, base): dumped})
    return tuple(steps), entries


def _from_base(name: str, base: Path) -> str:
    path, sign, class_name = name.partition(":")
    if not sign or not path.endswith(".py"):
        return name
    file = base / path if (base / path).is_file() else Path(path)
    return f"{file.resolve()}:{class_name}"


def _hash_of_file(step_class: type[Step]) -> str:
    return hashlib.blake2b(
        Path(inspect.getfile(step_class)).read_bytes(), digest_size=16
    ).hexdigest()


def _with_prompt(
    step_class: type[Step],
    options: Any,
    prompt: str,
    where: str,
    base: Path,
    problems: list[Problem],
) -> Any:
    """Give a step that writes the system prompt the text of it."""
    if "prompt" not in step_class.model_fields:
        return options
    if options is not None and not isinstance(options, dict):
        return options
    options = dict(options or {})
    if options.get("prompt"):
        return options
    mode = options.get("mode", step_class.model_fields["mode"].default)
    if mode == "template":
        options["prompt"] = prompt
    elif isinstance(mode, str) and mode not in ("keep", "none"):
        options["prompt"] = (
            shipped_or_file("prompts", ".md", mode, f"{where}.mode", base, problems) or ""
        )
    return options


def _check_order(steps: Iterable[Step], problems: list[Problem]) -> None:
    weighed_by: str | None = None
    for index, step in enumerate(steps):
        if weighed_by is not None and step.may_change_turns:
            what = f"`{step.name()}` can change turns after `{weighed_by}` has weighed them"
            problems.append(Problem(what, f"$.steps[{index}]", f"put it before `{weighed_by}`"))
        if step.sets_weight and weighed_by is None:
            weighed_by = step.name()
