"""A run: inputs through the steps into a run folder, resumable at any moment.

Phases: collect the inputs, map every unit, lay out the kept rows, write shards and tables, seal.
Each is a set of tasks whose finished work stands in files; a rerun does only what is missing.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from trajcurate.curate.collect_inputs import Collected, collect_inputs
from trajcurate.curate.engines.inline import run_inline
from trajcurate.curate.engines.task import Tasks
from trajcurate.curate.errors import CurateError, OutputInUse, TaskFailed
from trajcurate.curate.identity import canonical_json, checksum
from trajcurate.curate.job import Job, SourceUnit, save_job, unit_key
from trajcurate.curate.layout import Layout, lay_out, read_keys
from trajcurate.curate.load_pipeline import load_pipeline
from trajcurate.curate.manifest import (
    FORMAT_VERSION,
    code_version,
    write_manifest,
)
from trajcurate.curate.map_unit import is_unit_done, make_unit, unit_folder
from trajcurate.curate.output_folder import (
    check_is_ours,
    clear_work,
    is_sealed,
    locked,
    publish,
    remove_work,
)
from trajcurate.curate.pipeline import Pipeline, PipelineError, Problem
from trajcurate.curate.read.storage import checksum_file
from trajcurate.curate.run_page import write_pages
from trajcurate.curate.seal import make_manifest
from trajcurate.curate.write_output import (
    forget_layout,
    parts_done,
    save_layout,
    shard_path,
)

ENGINES = ("local",)


@dataclass
class Progress:
    """How far a run is; given to `on_progress` again and again."""

    phase: str = ""
    done: int = 0
    total: int = 0
    rows: int = 0
    kept: int = 0
    edited: int = 0
    rejected: int = 0
    bytes: int = 0
    started: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class RunResult:
    """A finished run: its manifest, its folder, and whether there was anything to do."""

    manifest: dict[str, Any]
    output: Path
    was_done_before: bool
    beyond: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0, or 1 with unreadable files, no row kept, or beyond a `--max-…`."""
        total = self.manifest["totals"]
        failed = not self.manifest["complete"] or total["kept"] == 0 or self.beyond
        return 1 if failed else 0


class UnknownEngine(CurateError):
    """An engine that this release lacks."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name
        self.hint = f"engines: {', '.join(ENGINES)}"

    def __str__(self) -> str:
        return f"engine `{self.name}` is not in this release"


def run(
    pipeline: str,
    inputs: Sequence[str | Path] = (),
    output: str | Path = "out",
    *,
    workers: int | None = None,
    engine: str = "local",
    settings: Iterable[str] = (),
    limit: int | None = None,
    fresh: bool = False,
    verify: bool = False,
    max_rejected: float | None = None,
    max_quarantined: float | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> RunResult:
    """Run a pipeline over inputs into a run folder.

    Args:
        pipeline: a recipe's name or the path of a YAML file.
        inputs: files, folders, globs or URLs; empty when the pipeline names its sources.
        output: the run folder.
        workers: processes; one for each core by default.
        engine: how tasks are launched.
        settings: `path=value` changes of the pipeline.
        limit: read at most so many input rows.
        fresh: replace what the folder holds, once the new run is sealed.
        verify: read the inputs again to see that a finished run is still theirs.
        max_rejected: a share below 1, or a count, of rejected rows beyond which the run fails.
        max_quarantined: the same of quarantined rows.
        on_progress: called often with the state of the run.

    Raises:
        CurateError: nothing could start, or something other than a record broke.
    """
    if engine not in ENGINES:
        raise UnknownEngine(engine)
    loaded = load_pipeline(pipeline, settings)
    named = _named_inputs(loaded, pipeline, inputs)
    collected = collect_inputs(loaded, named)
    folder = Path(output)
    with locked(folder) as work:
        run_key = _run_key(loaded, collected, limit)
        finished = check_is_ours(folder, run_key, fresh)
        hashes = _input_hashes(collected, folder, verify)
        if finished is not None and finished["complete"]:
            _check_same_inputs(finished, hashes, folder)
            remove_work(folder, keep_units=False)
            return RunResult(finished, folder, was_done_before=True)
        if fresh:
            clear_work(work)
        started = time.time()
        if is_sealed(work, run_key) and finished is None:
            manifest = publish(folder, work)
        else:
            job = _make_job(loaded, collected, run_key, limit)
            runner = _Runner(job, work, workers or os.cpu_count() or 1, on_progress)
            manifest = _do(runner, collected, hashes, folder, started)
        remove_work(folder, keep_units=not manifest["complete"])
    return RunResult(
        manifest, folder, False, _beyond(manifest["totals"], max_rejected, max_quarantined)
    )


def plan_run(
    pipeline: str, inputs: Sequence[str | Path] = (), settings: Iterable[str] = ()
) -> tuple[Pipeline, Collected]:
    """What a run would do (`--dry-run`): the checked pipeline and the inputs it would read."""
    loaded = load_pipeline(pipeline, settings)
    return loaded, collect_inputs(loaded, _named_inputs(loaded, pipeline, inputs))


def _named_inputs(pipeline: Pipeline, name: str, inputs: Sequence[str | Path]) -> list[str]:
    declares = any(source.path is not None for source in pipeline.sources)
    if declares and inputs:
        hint = "leave INPUT out, or leave `sources:` out of the pipeline"
        problem = Problem("the pipeline names its sources, and so does the command", "INPUT", hint)
        raise PipelineError(name, [problem])
    if not declares and not inputs:
        hint = "name files or folders, or declare `sources:` in the pipeline"
        raise PipelineError(name, [Problem("no input", "INPUT", hint)])
    return [str(item) for item in inputs]


def _run_key(pipeline: Pipeline, collected: Collected, limit: int | None) -> str:
    files = sorted(
        [pipeline.sources[number].name or "", file.path] for number, file, _ in collected.files
    )
    files += [["", path] for path, _ in collected.unreadable]
    paths = sorted({path for _, path in files})
    return checksum(canonical_json([FORMAT_VERSION, code_version(), pipeline.hash, paths, limit]))


def _input_hashes(collected: Collected, folder: Path, verify: bool) -> dict[str, str]:
    """A checksum of every input file, kept by size and time so that a rerun need not read them."""
    store = folder / ".work" / "input-checksums.json"
    known: dict[str, list[str]] = {}
    if not verify:
        try:
            known = orjson.loads(store.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            known = {}
    hashes: dict[str, str] = {}
    for _, file, _ in collected.files:
        stat_key, digest = known.get(file.path, ["", ""])
        if stat_key != file.stat_key:
            digest = checksum_file(file.path)
        hashes[file.path] = digest
    store.write_bytes(
        orjson.dumps({f.path: [f.stat_key, hashes[f.path]] for _, f, _ in collected.files})
    )
    return hashes


def _check_same_inputs(manifest: dict[str, Any], hashes: dict[str, str], folder: Path) -> None:
    recorded = {item["path"]: item["checksum"] for item in manifest["inputs"]}
    changed = sorted(path for path, digest in hashes.items() if recorded.get(path) != digest)
    if changed:
        what = f"holds a run of other content: `{changed[0]}` has changed since"
        raise OutputInUse(str(folder), what, "make it anew with --fresh, or name another with -o")


def _make_job(pipeline: Pipeline, collected: Collected, run_key: str, limit: int | None) -> Job:
    units = tuple(
        SourceUnit(
            number, unit, formats, unit_key(run_key, pipeline.sources[number].name, unit, formats)
        )
        for number, unit, formats in collected.units
    )
    return Job(run_key, pipeline, units, limit)


class _Runner:
    """Launches the phases of one job and reports how far they are."""

    def __init__(
        self, job: Job, work: Path, workers: int, on_progress: Callable[[Progress], None]
    ) -> None:
        self.job = job
        self.work = work
        self.workers = workers
        self.on_progress = on_progress
        self.progress = Progress()
        self.seen: set[int] = set()

    def map_units(self) -> list[SourceUnit]:
        """Map every unit; with a limit one after another, until enough rows are read."""
        save_job(self.job, self.work)
        (self.work / "units").mkdir(exist_ok=True)
        self._forget_unreadable()
        if self.job.limit is not None:
            return self._map_limited(self.job.limit)
        self._launch(
            "map",
            "trajcurate.curate.map_unit:map_unit",
            len(self.job.units),
            lambda number: is_unit_done(self.work, self.job.units[number]),
        )
        return list(self.job.units)

    def _forget_unreadable(self) -> None:
        """Units that met a file they could not read are tried again."""
        for unit in self.job.units:
            if is_unit_done(self.work, unit) and _unit_document(self.work, unit)["unreadable"]:
                shutil.rmtree(unit_folder(self.work, unit))

    def _map_limited(self, limit: int) -> list[SourceUnit]:
        used: list[SourceUnit] = []
        for unit in self.job.units:
            if limit <= 0:
                break
            limit -= make_unit(self.job, unit, self.work, limit)
            used.append(unit)
        return used

    def write(self, layout: Layout, unit_count: int) -> None:
        """Write all shards, then the tables of all units."""
        self._launch(
            "write",
            "trajcurate.curate.write_output:write_shard",
            len(layout.shards),
            lambda number: shard_path(self.work, number).exists(),
        )
        self._launch(
            "tables",
            "trajcurate.curate.write_output:write_parts",
            unit_count,
            lambda number: parts_done(self.work, number),
            is_light=layout.renamed.is_empty() and layout.late.is_empty(),
        )

    def _launch(
        self,
        phase: str,
        function: str,
        count: int,
        is_done: Callable[[int], bool],
        *,
        is_light: bool = False,
    ) -> None:
        """Do the tasks of a phase that are not done; light ones are not worth a process."""
        missing = tuple(number for number in range(count) if not is_done(number))
        self.progress.phase, self.progress.total = phase, count
        self._report(is_done, count)
        if not missing:
            return
        for name in ("processes", "failures"):
            shutil.rmtree(self.work / name, ignore_errors=True)
        tasks = Tasks(phase, function, str(self.work), missing)

        def report() -> None:
            self._report(is_done, count)

        try:
            if is_light or min(self.workers, len(missing)) == 1:
                run_inline(tasks, report)
            else:
                from trajcurate.curate.engines.local import run_local

                run_local(tasks, self.workers, is_done, report)
        except CurateError:
            raise
        except Exception as error:
            raise _explain(phase, error, self.work) from error
        report()

    def _report(self, is_done: Callable[[int], bool], count: int) -> None:
        self.progress.done = sum(is_done(number) for number in range(count))
        if self.progress.phase == "map":
            for number, unit in enumerate(self.job.units):
                if number not in self.seen and is_done(number):
                    self.seen.add(number)
                    self._count(_unit_document(self.work, unit), unit)
        self.on_progress(self.progress)

    def _count(self, document: dict[str, Any], unit: SourceUnit) -> None:
        self.progress.bytes += unit.unit.size
        self.progress.rows += document["rows_read"]
        for counts in document["counts"].values():
            self.progress.rejected += sum(
                sum(count["rejected"].values()) for count in counts.values()
            )
        self.progress.edited += document["rows_edited"]
        self.progress.kept = self.progress.rows - self.progress.rejected


def _explain(phase: str, error: Exception, work: Path) -> TaskFailed:
    """What broke, as a person can act on it; the details stay in the work folder."""
    number = getattr(error, "errno", None)
    text = str(error)
    if number in _DISK_ERRORS or any(f"errno {code}" in text.lower() for code in _DISK_ERRORS):
        code = (
            number
            if number in _DISK_ERRORS
            else next(code for code in _DISK_ERRORS if f"errno {code}" in text.lower())
        )
        hint = "make room and run the same command again: finished work is kept"
        return TaskFailed(phase, f"cannot write: {os.strerror(code)}", hint)
    if isinstance(error, OSError):
        hint = "mend that and run the same command again: finished work is kept"
        return TaskFailed(phase, str(error), hint)
    hint = "this is a fault of trajcurate, not of a record: please report it with the details"
    return TaskFailed(phase, f"{type(error).__name__}: {error}", hint, str(work / "failures"))


_DISK_ERRORS = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def _do(
    runner: _Runner,
    collected: Collected,
    hashes: dict[str, str],
    output: Path,
    started: float,
) -> dict[str, Any]:
    """Map, lay out, write, seal, publish."""
    work, job = runner.work, runner.job
    try:
        units = runner.map_units()
        mapped = time.time()
        documents = [_unit_document(work, unit) for unit in units]
        unreadable = dict(collected.unreadable)
        for document in documents:
            unreadable |= {item["path"]: item["why"] for item in document["unreadable"]}
        used = [
            (unit, document)
            for unit, document in zip(units, documents, strict=True)
            if not any(path in unreadable for path in document["files"]) or not _is_partial(unit)
        ]
        units = [unit for unit, _ in used]
        documents = [document for _, document in used]
        runner.job = job = Job(job.run_key, job.pipeline, tuple(units), job.limit)
        save_job(job, work)
        layout = _lay_out_afresh(job, work)
        runner.write(layout, len(units))
        (work / "layout" / "plan.parquet").replace(work / "out" / "plan.parquet")
        manifest = make_manifest(
            job, collected, hashes, documents, unreadable, layout, work / "out"
        )
        manifest["timings"] = {
            "map_seconds": round(mapped - started, 3),
            "total_seconds": round(time.time() - started, 3),
        }
        write_pages(manifest, work / "out")
        write_manifest(manifest, work / "out" / "manifest.json")
        return publish(output, work)
    except OSError as error:
        raise _explain("seal", error, work) from error


def _is_partial(unit: SourceUnit) -> bool:
    """Whether the unit holds a part of a file, so that the file's fate is not its alone."""
    return any(part.kind != "whole" for part in unit.unit.slices)


def _lay_out_afresh(job: Job, work: Path) -> Layout:
    """The layout; finished shards are kept only where it is the one they were written by."""
    keys = read_keys([unit_folder(work, unit) for unit in job.units])
    layout = lay_out(keys, job.pipeline.output)
    table = layout.rows.write_ipc(None).getvalue()
    digest = checksum(canonical_json([unit.key for unit in job.units]) + table)
    marker = work / "layout" / "digest"
    if not marker.exists() or marker.read_text() != digest:
        shutil.rmtree(work / "out", ignore_errors=True)
        shutil.rmtree(work / "layout", ignore_errors=True)
    save_layout(layout, work / "layout")
    marker.write_text(digest)
    forget_layout()
    return layout


def _unit_document(work: Path, unit: SourceUnit) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((unit_folder(work, unit) / "unit.json").read_bytes())
    return found


def _beyond(
    totals: dict[str, int], max_rejected: float | None, max_quarantined: float | None
) -> tuple[str, ...]:
    """Which bounds are passed, in words."""
    passed = []
    for name, bound in (("rejected", max_rejected), ("quarantined", max_quarantined)):
        if bound is None:
            continue
        allowed = bound * totals["read"] if bound < 1 else bound
        if totals[name] > allowed:
            passed.append(
                f"{totals[name]} of {totals['read']} rows are {name}, more than the {bound:g} "
                f"that --max-{name} allows"
            )
    return tuple(passed)
