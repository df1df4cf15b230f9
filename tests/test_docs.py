"""Docs and code say the same."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from trajcurate.curate.find_step import find_step, step_names
from trajcurate.curate.load_pipeline import recipe_names

ROOT = Path(__file__).parent.parent


def reference_pages() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs/make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: page() for name, page in module.PAGES.items()}


def test_reference_pages_are_those_of_the_code() -> None:
    for name, text in reference_pages().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, f"{name}: make docs"


@pytest.mark.parametrize("name", step_names())
def test_every_step_explains_itself(name: str) -> None:
    step = find_step(name)
    assert step.name() == name
    text = step.__doc__ or ""
    assert "Why:" in text
    assert "Safety:" in text
    for option, field in step.model_fields.items():
        assert field.description, f"{name}.{option} has no line of help"


@pytest.mark.parametrize("name", step_names())
def test_every_reason_of_a_step_has_a_sample(name: str) -> None:
    for reason in find_step(name).reasons:
        folder = ROOT / "samples" / "malformed" / reason
        assert list(folder.glob("*.json")), f"no sample for `{reason}` of {name}"


def test_the_readme_names_every_recipe_and_every_link_leads_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in recipe_names():
        assert f"`{name}`" in text
    for path in ROOT.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
            assert target.startswith("http") or (ROOT / target).exists(), f"{path.name}: {target}"


def test_every_recipe_starts_with_what_it_is_and_a_command_to_paste() -> None:
    for name in recipe_names():
        text = (ROOT / "pipelines" / f"{name}.yaml").read_text(encoding="utf-8")
        assert text.startswith("# ")
        assert f"#   curate run {name} " in text
