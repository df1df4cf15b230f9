"""A pipeline file: YAML to steps with their options, every mistake at once and with its place."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from trajcurate.curate import steps as steps_package
from trajcurate.curate.adapt.columns import COLUMN_NAMES
from trajcurate.curate.adapt.detect import ADAPTERS
from trajcurate.curate.errors import CurateError
from trajcurate.curate.identity import canonical_json, checksum
from trajcurate.curate.step import Step
from trajcurate.schemas.tools import ToolSet

_Model = TypeVar("_Model", bound=BaseModel)
_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def parse_size(value: Any) -> int:
    """Bytes of a size such as `64MB` (powers of 1,024).

    Raises:
        ValueError: not a positive size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?B?)\s*", str(value).upper())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"`{value}` is no size; write it like 256MB")
    size = int(float(match[1]) * _UNITS[match[2]])
    if size < 1:
        raise ValueError("a size is at least one byte")
    return size


Size = Annotated[int, BeforeValidator(parse_size)]


class InputSpec(BaseModel):
    """`input:`: how records are read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str = Field("auto", description="The record format, or `auto` to detect it per file.")
    max_row_bytes: Size = Field(
        64 << 20, description="A larger record is quarantined by reference."
    )


class SourceSpec(BaseModel):
    """One entry of `sources:`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, description="The `source` of its rows.")
    path: str | tuple[str, ...] = Field(description="Files, folders, globs or URLs.")
    format: str = Field("auto", description="As in `input`.")
    columns: dict[str, str] = Field(
        default_factory=dict, description="JSON Pointers by field, such as {answer: /gold}."
    )
    tools: Any = Field(None, description="The source's own tool set; the pipeline's by default.")


class OutputSpec(BaseModel):
    """`output:`: what is written and in what order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    resample: Literal["weight", "repeat"] = Field(
        "weight", description="Weights as a column, or rows copied by their weight."
    )
    shuffle: bool = Field(True, description="Order rows by a hash of seed and id.")
    seed: int = Field(42, description="Seed of the order and of the copies.")
    shard_size: Size = Field(256 << 20, description="Bytes of text in a shard of data/.")
    validation: float = Field(
        0.0, ge=0, lt=1, description="Share of the questions that go to the validation split."
    )
    edits: Literal["compact", "full"] = Field(
        "compact", description="`full` keeps every text, so that each row can be rebuilt."
    )
    rejected: Literal["whole", "reference"] = Field(
        "whole", description="`reference` leaves the row itself out of rejected/."
    )
    dialect: Literal["hermes"] = Field("hermes", description="How calls are written.")


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a pipeline: what, where (`$.steps[2]`) and how to go on."""

    what: str
    where: str
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.what} @ {self.where}"
        return f"{text}\n    hint: {self.hint}" if self.hint else text


class PipelineError(CurateError):
    """A pipeline that cannot be run, with all its mistakes."""

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        super().__init__(path, self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        lines = [f"{self.path}: {count} problem{'s' if count != 1 else ''}"]
        return "\n  ".join([*lines, *(str(problem) for problem in self.problems)])


@dataclass(frozen=True)
class Source:
    """A declared source, its tools resolved; `path` None stands for the command line's inputs."""

    name: str | None
    path: tuple[str, ...] | None
    format: str
    columns: Mapping[str, str]
    tools: ToolSet


@dataclass(frozen=True)
class Pipeline:
    """A pipeline ready to run. `resolved` is plain data that says all of it, defaults included."""

    name: str
    input: InputSpec
    sources: tuple[Source, ...]
    tools: ToolSet
    steps: tuple[Step, ...]
    output: OutputSpec
    resolved: dict[str, Any]

    @property
    def hash(self) -> str:
        """A hash of all that decides what the pipeline makes of an input."""
        return checksum(canonical_json(self.resolved))

    @cached_property
    def step_labels(self) -> tuple[str, ...]:
        """The steps by name; a name that occurs again is `name#2`."""
        return _labels([step.name() for step in self.steps])


# --- finding things -----------------------------------------------------------------------------


def recipe_names() -> list[str]:
    """The shipped pipelines."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in files("trajcurate.pipelines").iterdir()
        if entry.name.endswith(".yaml")
    )


def step_names() -> list[str]:
    """The shipped steps: the files of curate/steps/."""
    return sorted(module.name for module in pkgutil.iter_modules(steps_package.__path__))


def find_step(name: str) -> type[Step]:
    """The step of that name: shipped, from an entry point, or `FILE.py:Class`.

    Raises:
        LookupError: there is none; the message says what was looked for.
    """
    if ":" in name and name.partition(":")[0].endswith(".py"):
        return _step_from_file(name)
    if name in step_names():
        module = importlib.import_module(f"{steps_package.__name__}.{name}")
        found: type[Step] = getattr(module, "".join(w.capitalize() for w in name.split("_")))
        return found
    for entry in importlib.metadata.entry_points(group="trajcurate.steps", name=name):
        loaded: type[Step] = entry.load()
        return loaded
    raise LookupError(f"unknown step `{name}`")


def _step_from_file(name: str) -> type[Step]:
    path, _, class_name = name.partition(":")
    file = Path(path).resolve()
    if not file.is_file():
        raise LookupError(f"no file `{path}` for the step `{class_name}`")
    module_name = f"trajcurate_step_{checksum(str(file))[:16]}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, Step)):
        raise LookupError(f"`{path}` has no step class `{class_name}`")
    return found


# --- loading ------------------------------------------------------------------------------------


def load_pipeline(name_or_path: str, settings: Iterable[str] = ()) -> Pipeline:
    """Read a recipe or a YAML file, apply `path=value` settings, and check everything.

    Raises:
        PipelineError: with every mistake found.
    """
    path, text = _read_pipeline_text(name_or_path)
    try:
        document = yaml.load(text, _StrictLoader)
    except yaml.YAMLError as error:
        raise PipelineError(path, [_yaml_problem(error)]) from None
    if not isinstance(document, dict):
        raise PipelineError(path, [Problem("the file is not a mapping", "$")])
    problems: list[Problem] = []
    for setting in settings:
        _apply_setting(document, setting, problems)
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


class _StrictLoader(yaml.SafeLoader):
    """YAML without repeated keys and without dates: `2026-03-01` stays the text it is."""


_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _construct_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    for key in keys:
        if keys.count(key) > 1:
            raise yaml.MarkedYAMLError(
                problem=f"repeated key `{key}`", problem_mark=node.start_mark
            )
    return dict(yaml.SafeLoader.construct_mapping(loader, node, deep=True))


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _yaml_problem(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or "not YAML"
    where = f"line {mark.line + 1} column {mark.column + 1}" if mark else "$"
    return Problem(str(what), where)


# --- settings -----------------------------------------------------------------------------------


def _apply_setting(document: dict[str, Any], setting: str, problems: list[Problem]) -> None:
    """Put `steps.NAME.option=value` or `output.seed=7` into the document."""
    path, sign, text = setting.partition("=")
    where = f"--set {setting}"
    if not sign or not path:
        problems.append(Problem("not `path=value`", where, "as in --set output.seed=7"))
        return
    try:
        value = yaml.load(text, _StrictLoader)
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
    names = [_entry_name(entry) for entry in entries]
    labels = _labels([name or "" for name in names])
    if len(parts) < 2 or parts[0] not in labels:
        wanted = parts[0] if parts else ""
        hint = _nearest(wanted, labels, "the pipeline's steps are")
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


# --- building -----------------------------------------------------------------------------------

_TOP_KEYS = ("name", "input", "sources", "tools", "prompt", "steps", "output")


def _build(path: str, document: dict[str, Any], problems: list[Problem]) -> Pipeline | None:
    problems.extend(
        Problem(f"unknown key `{key}`", "$", _nearest(str(key), _TOP_KEYS))
        for key in document
        if key not in _TOP_KEYS
    )
    base = Path(path).parent
    name = document.get("name") or Path(path).stem
    input_spec = _model(InputSpec, document.get("input"), "$.input", problems)
    output = _model(OutputSpec, document.get("output"), "$.output", problems)
    tools = _load_tools(document.get("tools", "search_visit"), "$.tools", base, problems)
    prompt = _load_prompt(document.get("prompt", "research_assistant"), "$.prompt", base, problems)
    sources = _load_sources(document.get("sources"), input_spec, tools, base, problems)
    steps, entries = _load_steps(document.get("steps"), prompt, base, problems)
    if problems or input_spec is None or output is None or tools is None:
        return None
    _check_formats(input_spec, sources, problems)
    _check_order(steps, problems)
    resolved = {
        "name": str(name),
        "input": input_spec.model_dump(mode="json"),
        "tools": _dump_tools(tools),
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
                "tools": _dump_tools(source.tools),
            }
            for source in sources
        ]
    return Pipeline(str(name), input_spec, sources, tools, steps, output, resolved)


def _dump_tools(tools: ToolSet) -> dict[str, Any]:
    return {name: spec.model_dump(mode="json", by_alias=True) for name, spec in tools.tools.items()}


def _model(model: type[_Model], value: Any, where: str, problems: list[Problem]) -> _Model | None:
    if value is not None and not isinstance(value, dict):
        problems.append(Problem("not a mapping of options", where))
        return None
    try:
        return model.model_validate(value or {})
    except ValidationError as error:
        problems.extend(_option_problems(error, model, where))
        return None


def _option_problems(error: ValidationError, model: type[BaseModel], where: str) -> list[Problem]:
    fields = [field.alias or name for name, field in model.model_fields.items()]
    problems = []
    for item in error.errors():
        place = where + "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"]
        )
        if item["type"] == "extra_forbidden" and len(item["loc"]) == 1:
            name = str(item["loc"][0])
            problems.append(Problem("unknown option", place, _nearest(name, fields)))
        else:
            message = item["msg"].removeprefix("Value error, ")
            problems.append(Problem(message[:1].lower() + message[1:], place))
    return problems


def _nearest(name: str, known: Iterable[str], intro: str = "it takes") -> str:
    known = list(known)
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"{intro}: {', '.join(known)}" if known else "it takes no options"


def _load_tools(value: Any, where: str, base: Path, problems: list[Problem]) -> ToolSet | None:
    if isinstance(value, str):
        declared = _shipped_or_file("tools", ".yaml", value, where, base, problems)
        if declared is None:
            return None
        try:
            value = yaml.load(declared, _StrictLoader)
        except yaml.YAMLError as error:
            problems.append(Problem(f"`{value}`: {_yaml_problem(error)}", where))
            return None
    if not isinstance(value, dict):
        hint = "a shipped set (search_visit), a file, or tools by name"
        problems.append(Problem("no tool set", where, hint))
        return None
    value = {name: _with_schema_file(spec, base) for name, spec in value.items()}
    try:
        tools = ToolSet.model_validate({"tools": value})
        for spec in tools.tools.values():
            _ = spec.validate_arguments
    except ValidationError as error:
        for item in error.errors():
            place = where + "".join(f".{part}" for part in item["loc"][1:])
            problems.append(Problem(item["msg"], place))
        return None
    except Exception as error:
        problems.append(Problem(f"an argument schema is no JSON Schema: {error}", where))
        return None
    return tools


def _with_schema_file(spec: Any, base: Path) -> Any:
    if isinstance(spec, dict) and isinstance(spec.get("schema"), str):
        file = base / spec["schema"]
        if file.is_file():
            return {**spec, "schema": yaml.safe_load(file.read_text(encoding="utf-8"))}
    return spec


def _load_prompt(value: Any, where: str, base: Path, problems: list[Problem]) -> str:
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    if not isinstance(value, str):
        problems.append(Problem("no prompt", where, "a shipped prompt or the path of a file"))
        return ""
    return _shipped_or_file("prompts", ".md", value, where, base, problems) or ""


def _shipped_or_file(
    folder: str, suffix: str, name: str, where: str, base: Path, problems: list[Problem]
) -> str | None:
    shipped = files("trajcurate.pipelines") / folder
    names = [e.name.removesuffix(suffix) for e in shipped.iterdir() if e.name.endswith(suffix)]
    if name in names:
        return (shipped / f"{name}{suffix}").read_text(encoding="utf-8")
    for file in (base / name, Path(name)):
        if file.is_file():
            try:
                return file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                problems.append(Problem(f"`{name}` cannot be read: {error}", where))
                return None
    hint = _nearest(name, names, "shipped:") + " or give the path of a file"
    problems.append(Problem(f"no `{name}` in {folder}", where, hint))
    return None


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
        spec = _model(SourceSpec, entry, where, problems)
        if spec is None:
            continue
        if spec.name in [source.name for source in sources]:
            problems.append(Problem(f"a second source `{spec.name}`", f"{where}.name"))
        _check_columns(spec, where, problems)
        own = tools
        if spec.tools is not None:
            own = _load_tools(spec.tools, f"{where}.tools", base, problems)
        if own is not None:
            paths = (spec.path,) if isinstance(spec.path, str) else spec.path
            sources.append(Source(spec.name, paths, spec.format, spec.columns, own))
    return tuple(sources)


def _check_columns(spec: SourceSpec, where: str, problems: list[Problem]) -> None:
    for name, pointer in spec.columns.items():
        if name not in COLUMN_NAMES:
            hint = _nearest(name, COLUMN_NAMES, "columns are")
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
            problems.append(Problem(f"unknown format `{name}`", where, _nearest(name, known)))


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
        name = _entry_name(entry)
        if name is None:
            hint = "write `- prune_tools: {allowed: [search, visit]}`"
            problems.append(Problem("not one step with its options", where, hint))
            continue
        options = entry[name] if isinstance(entry, dict) else None
        code = options.pop("code_hash", None) if isinstance(options, dict) and ":" in name else None
        try:
            step_class = find_step(_from_base(name, base))
        except LookupError as error:
            advice = None if ":" in name else _nearest(name, step_names(), "steps are")
            problems.append(Problem(str(error), where, advice))
            continue
        options = _with_prompt(step_class, options, prompt, f"{where}.{name}", base, problems)
        step = _model(step_class, options, f"{where}.{name}", problems)
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
            _shipped_or_file("prompts", ".md", mode, f"{where}.mode", base, problems) or ""
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


def _entry_name(entry: Any) -> str | None:
    if isinstance(entry, str):
        return entry
    if isinstance(entry, dict) and len(entry) == 1:
        name = next(iter(entry))
        return name if isinstance(name, str) else None
    return None


def _labels(names: list[str]) -> tuple[str, ...]:
    labels: list[str] = []
    for index, name in enumerate(names):
        earlier = names[:index].count(name)
        labels.append(f"{name}#{earlier + 1}" if earlier else name)
    return tuple(labels)
