"""The `curate` command: a thin face over the library, and the only file that prints.

Results go to stdout, talk to stderr. Nothing heavy is imported until a command runs, so that
`curate --help` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trajcurate.curate.check_inputs import CheckResult, Kind
    from trajcurate.curate.run_pipeline import Progress, RunResult
    from trajcurate.curate.why import Journey

app = typer.Typer(
    name="curate",
    help="Turn raw deep-research trajectories into training shards: nothing lost, every change "
    "explained.\n\nExample: curate run redsearcher_sft raw/ -o out",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Inputs = Annotated[
    list[str] | None, typer.Argument(help="Files, folders, globs or URLs.", show_default=False)
]
Output = Annotated[Path, typer.Option("-o", "--output", help="The run folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]


@app.command()
def demo(output: Output = Path("demo-out")) -> None:
    """Run the main recipe on the embedded samples and show the funnel.

    Example: curate demo -o demo-out
    """
    from importlib.resources import files

    samples = files("trajcurate.samples") / "redsearcher"
    _run_and_show("redsearcher_sft", [str(samples)], output, fresh=True)


@app.command()
def run(
    pipeline: Annotated[str, typer.Argument(help="A recipe's name or the path of a YAML file.")],
    inputs: Inputs = None,
    output: Output = Path("out"),
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; one for each core by default.", show_default=False),
    ] = None,
    engine: Annotated[str, typer.Option(help="How tasks are launched: local.")] = "local",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Change an option, as in steps.set_system_prompt.mode=keep or output.seed=7.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Read at most so many rows.", show_default=False)
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Replace what the folder holds, once this is done.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read the inputs again to see that they are the same.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check pipeline and inputs, and write nothing.")
    ] = False,
    max_rejected: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Exit 1 beyond this share (below 1) or number of rejected rows.",
            show_default=False,
        ),
    ] = None,
    max_quarantined: Annotated[
        float | None,
        typer.Option(min=0, help="The same for quarantined rows.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")] = False,
) -> None:
    """Run a pipeline over raw trajectories into a run folder; run again to resume.

    Example: curate run redsearcher_sft raw/*.parquet -o out --workers 4
    """
    if dry_run:
        _show_plan(pipeline, inputs or [], settings or [])
        return
    _run_and_show(
        pipeline,
        inputs or [],
        output,
        workers=workers,
        engine=engine,
        settings=settings or [],
        limit=limit,
        fresh=fresh,
        verify=verify,
        max_rejected=max_rejected,
        max_quarantined=max_quarantined,
        as_json=as_json,
        verbose=verbose,
        quiet=quiet,
    )


@app.command()
def check(
    inputs: Inputs = None,
    as_json: AsJson = False,
    pipeline: Annotated[
        str, typer.Option(help="The recipe or YAML file whose tools are the declared ones.")
    ] = "audit",
) -> None:
    """Judge trajectories against the wire format and change nothing; exit 1 with errors.

    Example: curate check out
    """
    from trajcurate.curate.check_inputs import as_document
    from trajcurate.curate.check_inputs import check as check_rows

    result = check_rows(inputs or [], pipeline)
    if as_json:
        _print_json(as_document(result))
    else:
        _show_check(result)
    raise typer.Exit(result.exit_code)


@app.command()
def why(
    output: Annotated[Path, typer.Argument(help="A run folder.")],
    key: Annotated[str, typer.Argument(help="An id or its start, FILE:ROW, or the source's id.")],
    as_json: AsJson = False,
) -> None:
    """Tell one row's journey: what was read, changed, found, and where it ended.

    Example: curate why out train-00000-of-00004.parquet:17
    """
    from trajcurate.curate.why import why as journey_of

    journey = journey_of(output, key)
    if as_json:
        _print_json(vars(journey))
    else:
        _show_journey(journey)


@app.command()
def steps(
    name: Annotated[
        str | None, typer.Argument(help="A step; all of them without.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the steps, or explain one: what it does, its options and its reasons.

    Example: curate steps repair_tool_calls
    """
    from trajcurate.curate.step_reference import all_references, reference

    if name is None:
        found = all_references()
        if as_json:
            _print_json([vars(item) for item in found])
            return
        width = max(len(item.name) for item in found)
        for item in found:
            print(f"{item.name:<{width}}  {item.summary}")
        return
    item = reference(name)
    if as_json:
        _print_json(vars(item))
        return
    print(item.as_text())


# --- running and showing ------------------------------------------------------------------------


def _run_and_show(
    pipeline: str,
    inputs: list[str],
    output: Path,
    *,
    as_json: bool = False,
    verbose: bool = False,
    quiet: bool = False,
    **options: Any,
) -> None:
    from trajcurate.curate.run_pipeline import run as run_pipeline

    show = _silent if quiet else _progress_printer(verbose)
    result = run_pipeline(pipeline, inputs, output, on_progress=show, **options)
    if not quiet:
        _end_progress()
    for item in result.manifest["unreadable"]:
        _talk(f"unreadable: `{item['path']}`: {item['why']}")
    if not quiet:
        for item in result.manifest["ignored"]:
            _talk(f"ignored: `{item['path']}`: {item['why']}")
    if as_json:
        _print_json(_result_document(result))
    elif not quiet:
        _show_funnel(result)
    for line in result.beyond:
        _talk(f"error: {line}")
    if result.manifest["totals"]["kept"] == 0:
        _talk("error: no row was kept; the reasons stand above and in rejected/")
    if not result.manifest["complete"]:
        _talk(
            "error: not complete: mend the unreadable files and run the same command again; "
            "only they are read anew"
        )
    raise typer.Exit(result.exit_code)


def _result_document(result: RunResult) -> dict[str, Any]:
    names = ("totals", "counts", "weights", "complete", "well_formed", "unreadable", "ignored")
    return {
        "output": str(result.output),
        "was_done_before": result.was_done_before,
        "beyond": list(result.beyond),
        **{name: result.manifest[name] for name in names},
    }


def _show_plan(pipeline: str, inputs: list[str], settings: list[str]) -> None:
    from trajcurate.curate.run_pipeline import plan_run

    loaded, collected = plan_run(pipeline, inputs, settings)
    print(f"pipeline {loaded.name}: {', '.join(loaded.step_labels)}")
    for _, file, name in collected.files:
        print(f"read     {file.source_file}  {name or 'no rows'}  {file.size:,} bytes")
    for item in collected.ignored:
        print(f"ignore   {item.path}  {item.why}")
    for path, reason in collected.unreadable:
        print(f"cannot   {path}  {reason}")
    print(f"{len(collected.files)} files in {len(collected.units)} units; nothing was written")


def _show_funnel(result: RunResult) -> None:
    from rich.console import Console

    from trajcurate.curate.funnel_table import funnel_table, weight_table

    if result.was_done_before:
        _talk(f"`{result.output}` holds this run already; nothing to do")
    totals = result.manifest["totals"]
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120
    console.print(funnel_table(result.manifest))
    console.print(
        f"\n{totals['written']:,} rows written, {totals['rejected']:,} rejected "
        f"({totals['dropped']:,} dropped, {totals['quarantined']:,} quarantined), "
        f"{totals['edits']:,} edits, {totals['findings']:,} findings\n"
    )
    if result.manifest["weights"]:
        console.print(weight_table(result.manifest))
    for name in ("data", "rejected", "report.html"):
        console.print(f"{name:<12} {result.output / name}", soft_wrap=True, markup=False)


def _show_check(result: CheckResult) -> None:
    for kind in result.errors:
        _show_kind(kind, "error")
    for kind in result.notes:
        _show_kind(kind, "note")
    for path, reason in result.unreadable:
        print(f"error: `{path}` cannot be read: {reason}")
    for path, reason in result.ignored:
        _talk(f"ignored: `{path}`: {reason}")
    print(f"{result.rows:,} rows, {result.sound_rows:,} without error")


def _show_kind(kind: Kind, level: str) -> None:
    from trajcurate.curate.terminal import shortened

    print(f"{level}: {kind.reason}: {kind.count:,} in {kind.rows:,} rows")
    for example in kind.examples:
        place = f"{shortened(example.file)}:{example.row}"
        if example.message is not None:
            place += f" @ $.messages[{example.message}]"
        if example.turn is not None:
            place += f" turn {example.turn}"
        if example.column is not None:
            place += f" column {example.column}"
        print(f"  {place}")
        if example.line:
            print(f"    {shortened(example.line)}")
            if example.caret:
                print(f"    {example.caret}")


def _show_journey(journey: Journey) -> None:
    from trajcurate.curate.terminal import shortened

    key = journey.key
    print(f"{key['id']}")
    print(f"  read from {shortened(key['source_file'])}, row {key['source_row']} ({key['source']})")
    for edit in journey.edits:
        place = "" if edit["message"] is None else f" message {edit['message']}"
        place += "" if edit["turn"] is None else f" turn {edit['turn']}"
        place += "" if edit["start"] is None else f" at {edit['start']}"
        place += "" if edit["column"] is None else f" column {edit['column']}"
        mark = "" if edit["safe"] else " (a guess)"
        print(f"  {edit['step']}: {edit['reason']}{mark} @{place}")
        for sign, text in (("-", edit["before"]), ("+", edit["after"])):
            if text:
                print(f"    {sign} {shortened(text)}")
    for found in journey.findings:
        turn = "" if found["turn"] is None else f" turn {found['turn']}"
        print(f"  {found['step']}: found {found['reason']}{turn} {shortened(found['where'])}")
    if journey.rejected is not None:
        end = journey.rejected
        where = f" @ {shortened(end['where'])}" if end["where"] else ""
        print(f"  {end['outcome']} by {end['step']}: {end['reason']}{where}")
        if end["detail"] not in ("{}", None):
            print(f"    {shortened(end['detail'], 400)}")
    elif journey.kept is not None:
        row = journey.kept
        print(
            f"  kept: {row['turn_count']} turns, {row['termination']}, weight {row['weight']:g}, "
            f"{journey.copies} in the plan, {len(journey.edits)} edits"
        )


# --- progress -----------------------------------------------------------------------------------


def _silent(progress: Progress) -> None:
    return None


_PLAIN_SECONDS = 10.0


def _progress_printer(verbose: bool) -> Callable[[Progress], None]:
    """One line that is written over on a terminal, a plain line now and then elsewhere."""
    on_terminal = sys.stderr.isatty()
    shown_at, shown_phase = time.monotonic(), ""

    def show(progress: Progress) -> None:
        nonlocal shown_at, shown_phase
        now = time.monotonic()
        if on_terminal:
            sys.stderr.write("\r\x1b[K" + _progress_line(progress, now))
            sys.stderr.flush()
            return
        is_new_phase = verbose and progress.phase != shown_phase
        if is_new_phase or now - shown_at >= _PLAIN_SECONDS:
            shown_at, shown_phase = now, progress.phase
            _talk(_progress_line(progress, now))

    return show


def _progress_line(progress: Progress, now: float) -> str:
    seconds = max(now - progress.started, 1e-6)
    parts = [f"{progress.phase} {progress.done}/{progress.total}"]
    if progress.rows:
        parts.append(f"{progress.rows:,} rows, {progress.rows / seconds:,.0f} rows/s")
        parts.append(f"{progress.bytes / seconds / 1e6:,.1f} MB/s")
        parts.append(
            f"kept {progress.kept:,}, edited {progress.edited:,}, rejected {progress.rejected:,}"
        )
    if progress.phase == "map" and 0 < progress.done < progress.total:
        left = seconds * (progress.total - progress.done) / progress.done
        parts.append(f"about {left:,.0f} s left")
    return "; ".join(parts)


def _end_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


def _talk(text: str) -> None:
    from trajcurate.curate.terminal import safe

    print(safe(text), file=sys.stderr)


def _print_json(value: Any) -> None:
    import json

    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def main() -> None:
    """The entry point: errors become one message and the contract's exit code."""
    from trajcurate.curate.errors import CurateError, Interrupted

    def interrupt(*_: object) -> None:
        raise Interrupted

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        app()
    except CurateError as error:
        _end_progress()
        _talk(f"error: {error.describe()}" if error.exit_code != 130 else error.describe())
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone; what is not written yet is not wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
