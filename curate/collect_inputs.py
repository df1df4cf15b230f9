"""From the named inputs to units of work: files found, formats told, work cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trajcurate.curate.adapt.columns import with_messages_in_place
from trajcurate.curate.adapt.detect import ADAPTERS, formats_of
from trajcurate.curate.errors import FormatUnclear, InputProblem, UnreadableFile
from trajcurate.curate.pipeline import Pipeline, Source
from trajcurate.curate.read.discover import IgnoredFile, InputFile, RunFolder, discover
from trajcurate.curate.read.peek import peek
from trajcurate.curate.read.units import Unit, plan_units


@dataclass(frozen=True)
class Collected:
    """What the inputs of a run hold.

    Attributes:
        units: by source number, in the order of the input key, with the format of each file.
        files: every file that is read, by source number.
        ignored: files found in folders that hold no records we know.
        unreadable: files that cannot be opened.
        run_folders: finished runs among the inputs.
    """

    units: tuple[tuple[int, Unit, dict[str, str]], ...]
    files: tuple[tuple[int, InputFile, str | None], ...]
    ignored: tuple[IgnoredFile, ...]
    unreadable: tuple[tuple[str, str], ...]
    run_folders: tuple[RunFolder, ...]


def collect_inputs(pipeline: Pipeline, inputs: Sequence[str]) -> Collected:
    """Find the files of every source, tell their formats and cut them into units.

    Raises:
        UnusableInput: an input is missing or holds nothing that can be read.
        FormatUnclear: a named file fits no known format, or more than one.
    """
    units: list[tuple[int, Unit, dict[str, str]]] = []
    files: list[tuple[int, InputFile, str | None]] = []
    ignored: list[IgnoredFile] = []
    unreadable: list[tuple[str, str]] = []
    run_folders: list[RunFolder] = []
    problems: list[InputProblem] = []
    for number, source in _in_order(pipeline.sources):
        found = discover(source.path if source.path is not None else inputs, formats=list(ADAPTERS))
        ignored += found.ignored
        run_folders += found.run_folders
        formats: dict[str, str | None] = {}
        for file in found.files:
            _tell_format(file, source, formats, ignored, unreadable, problems)
        readable = [file for file in found.files if file.path in formats]
        known = {name for name in formats.values() if name is not None}
        only = known.pop() if len(known) == 1 else None
        told = {path: name or only for path, name in formats.items()}
        files += [(number, file, told[file.path]) for file in readable]
        for unit in plan_units(readable, pipeline.input.unit_size):
            paths = {part.file.path for part in unit.slices}
            units.append((number, unit, {p: n for p in sorted(paths) if (n := told[p])}))
    if problems or not (files or unreadable):
        raise FormatUnclear(
            problems or [InputProblem(i.path, i.why) for i in ignored],
            f"known formats: {', '.join(ADAPTERS)}; name one with `input.format`, or say with "
            "`columns:` of a source where question, answer and messages stand",
        )
    return Collected(
        tuple(units), tuple(files), tuple(ignored), tuple(unreadable), tuple(run_folders)
    )


def _in_order(sources: Sequence[Source]) -> list[tuple[int, Source]]:
    return sorted(enumerate(sources), key=lambda pair: pair[1].name or "")


def _tell_format(
    file: InputFile,
    source: Source,
    formats: dict[str, str | None],
    ignored: list[IgnoredFile],
    unreadable: list[tuple[str, str]],
    problems: list[InputProblem],
) -> None:
    try:
        records = peek(file)
    except UnreadableFile as error:
        unreadable.append((error.path, error.why))
        return
    if source.format != "auto":
        formats[file.path] = source.format
        return
    records = [dict(with_messages_in_place(record, source.columns)) for record in records]
    candidates = [formats_of(record) for record in records]
    fitting = sorted({name for names in candidates for name in names})
    if not records:
        formats[file.path] = None
    elif len(fitting) == 1:
        formats[file.path] = fitting[0]
    elif not fitting and not file.named:
        ignored.append(IgnoredFile(file.path, "its records fit no known format"))
    elif not fitting:
        keys = ", ".join(sorted(records[0])[:12]) or "none"
        problems.append(InputProblem(file.path, f"fits no known format; its fields are: {keys}"))
    else:
        problems.append(
            InputProblem(file.path, f"its format is unclear: it may be {' or '.join(fitting)}")
        )
