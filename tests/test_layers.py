"""The house: who may import what, and what a start costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("schemas", "curate", "pipelines", "train", "samples")


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def rooms_imported(path: Path) -> set[str]:
    return {
        name.split(".")[1]
        for name in imports_of(path)
        if name.startswith("trajcurate.") and len(name.split(".")) > 1
    }


@pytest.mark.parametrize(
    ("room", "allowed"),
    [
        ("schemas", {"schemas"}),
        ("curate", {"schemas", "curate", "samples", "pipelines"}),
        ("train", {"schemas", "train"}),
        ("pipelines", set()),
    ],
)
def test_a_room_imports_only_what_it_may(room: str, allowed: set[str]) -> None:
    for path in modules(room):
        assert rooms_imported(path) <= allowed, path


@pytest.mark.parametrize(
    ("package", "rooms"),
    [
        ("torch", ("train",)),
        ("transformers", ("train",)),
        ("datatrove", ("curate/engines",)),
        ("multiprocess", ("curate/engines",)),
        ("typer", ("curate", "train")),
        ("lxml", ("curate", "train")),
        ("polars", ("curate", "train")),
        ("duckdb", ("curate",)),
    ],
)
def test_a_package_stays_in_its_rooms(package: str, rooms: tuple[str, ...]) -> None:
    for room in ROOMS:
        for path in modules(room):
            names = {name.split(".")[0] for name in imports_of(path)}
            if package in names:
                place = path.relative_to(ROOT).as_posix()
                assert place.startswith(tuple(f"{allowed}/" for allowed in rooms)), place


def test_steps_do_not_know_engines_or_files() -> None:
    for path in modules("curate/steps"):
        for name in imports_of(path):
            assert not name.startswith(
                ("trajcurate.curate.engines", "trajcurate.curate.read", "os", "pathlib")
            ), path


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (
            ["-c", "import trajcurate.curate.cli"],
            ["torch", "transformers", "datasets", "pandas", "duckdb", "polars", "pyarrow"],
        ),
        (["-c", "from trajcurate import curate; curate.run"], ["torch", "datasets", "pandas"]),
    ],
)
def test_a_start_loads_nothing_heavy(arguments: list[str], absent: list[str]) -> None:
    code = f"{arguments[1]}\nimport sys; print([m for m in {absent} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_package_is_listed_for_the_wheel() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"])
    found = {
        "trajcurate." + path.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for room in ROOMS
        for path in (ROOT / room).rglob("__init__.py")
    }
    assert listed == found


def test_file_names_say_something() -> None:
    for room in (*ROOMS, "tests", "benchmarks"):
        for path in modules(room):
            assert path.stem not in {"utils", "util", "helpers", "common", "misc", "manager"}, path
