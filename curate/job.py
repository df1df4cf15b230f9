"""A job: everything the tasks of one run need to know, kept in the work folder as JSON.

Workers are started with the path of the work folder and a task number and read the rest here, so
that a task is the same in this process, in a pool or on another machine.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from trajcurate.curate.identity import canonical_json, checksum
from trajcurate.curate.load_pipeline import pipeline_from_resolved
from trajcurate.curate.pipeline import Pipeline, Source
from trajcurate.curate.read.discover import InputFile
from trajcurate.curate.read.units import Slice, Unit


@dataclass(frozen=True)
class SourceUnit:
    """A unit with the source it belongs to and the format of each of its files."""

    source: int
    unit: Unit
    formats: dict[str, str]
    key: str


@dataclass(frozen=True)
class Job:
    """One run.

    `units` are in the order of the input key; `limit` bounds the input rows that are read.
    """

    run_key: str
    pipeline: Pipeline
    units: tuple[SourceUnit, ...]
    limit: int | None

    def source_of(self, unit: SourceUnit) -> Source:
        """The declared source that the unit's rows come from."""
        return self.pipeline.sources[unit.source]


def unit_key(run_key: str, source: str | None, unit: Unit, formats: dict[str, str]) -> str:
    """A hash of what a unit reads and what is done with it: the key of its finished work."""
    parts = [
        [
            part.file.source_file,
            part.file.size,
            part.file.stat_key,
            part.kind,
            part.start,
            part.stop,
        ]
        for part in unit.slices
    ]
    return checksum(canonical_json([run_key, source, parts, formats]))


def save_job(job: Job, work: Path) -> None:
    """Write the job into the work folder."""
    document = {
        "run_key": job.run_key,
        "pipeline": job.pipeline.resolved,
        "limit": job.limit,
        "units": [asdict(unit) for unit in job.units],
    }
    temporary = work / "job.json.tmp"
    temporary.write_bytes(orjson.dumps(document))
    temporary.replace(work / "job.json")
    load_job.cache_clear()


@lru_cache(maxsize=2)
def load_job(work: str) -> Job:
    """The job of a work folder."""
    document = orjson.loads((Path(work) / "job.json").read_bytes())
    return Job(
        run_key=document["run_key"],
        pipeline=pipeline_from_resolved(document["pipeline"]),
        units=tuple(_source_unit(unit) for unit in document["units"]),
        limit=document["limit"],
    )


def _source_unit(value: dict[str, Any]) -> SourceUnit:
    unit = value["unit"]
    slices = tuple(Slice(**{**part, "file": InputFile(**part["file"])}) for part in unit["slices"])
    return SourceUnit(value["source"], Unit(slices, unit["size"]), value["formats"], value["key"])
