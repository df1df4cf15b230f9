"""Steps by name: shipped ones by their file, others from entry points or a file of one's own."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from pathlib import Path

from trajcurate.curate import steps as steps_package
from trajcurate.curate.identity import checksum
from trajcurate.curate.step import Step


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
