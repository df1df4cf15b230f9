"""A pipeline file: every mistake at once, with its place and the way on."""

from __future__ import annotations

from pathlib import Path

import pytest

from trajcurate.curate.find_step import step_names
from trajcurate.curate.load_pipeline import load_pipeline, pipeline_from_resolved, recipe_names
from trajcurate.curate.pipeline import PipelineError, parse_size


def write(folder: Path, text: str) -> str:
    path = folder / "pipeline.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def problems(path: str, settings: list[str] | None = None) -> list[tuple[str, str, str | None]]:
    with pytest.raises(PipelineError) as caught:
        load_pipeline(path, settings or [])
    return [(p.what, p.where, p.hint) for p in caught.value.problems]


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_loads_and_survives_its_resolved_form(name: str) -> None:
    pipeline = load_pipeline(name)
    again = pipeline_from_resolved(pipeline.resolved)
    assert again.hash == pipeline.hash
    assert again.steps == pipeline.steps


def test_all_mistakes_are_reported_together_each_with_its_place(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
name: broken
inputs: {}
steps:
  - prune_tool: {allowed: [search]}
  - weigh_by_turns: {buckets: [{weight: 1}], bucket: 3}
  - normalize_messages: {orders: maybe}
  - [not, a, step]
output: {seed: seven, shard_size: huge}
""",
    )
    found = {where: (what, hint) for what, where, hint in problems(path)}
    assert found["$"] == ("unknown key `inputs`", "did you mean `input`?")
    assert found["$.steps[0]"] == ("unknown step `prune_tool`", "did you mean `prune_tools`?")
    assert found["$.steps[1].weigh_by_turns.bucket"] == (
        "unknown option",
        "did you mean `buckets`?",
    )
    assert "wrap" in found["$.steps[2].normalize_messages.orders"][0]
    assert found["$.steps[3]"][0] == "not one step with its options"
    assert "$.output.seed" in found
    assert "no size" in found["$.output.shard_size"][0]


def test_the_message_reads_well(tmp_path: Path) -> None:
    path = write(tmp_path, "steps:\n  - prune_tool: {allowed: [search]}\n")
    with pytest.raises(PipelineError) as caught:
        load_pipeline(path)
    assert str(caught.value) == (
        f"{path}: 1 problem\n"
        "  unknown step `prune_tool` @ $.steps[0]\n"
        "    hint: did you mean `prune_tools`?"
    )


def test_an_unknown_recipe_names_the_nearest() -> None:
    assert problems("redsearcher_sfd")[0][2].startswith("did you mean `redsearcher_sft`?")  # type: ignore[union-attr]


def test_a_step_that_changes_turns_after_a_weight_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "steps:\n  - weigh_by_turns: {}\n  - prune_tools: {allowed: [search]}\n",
    )
    what, where, hint = problems(path)[0]
    assert what == "`prune_tools` can change turns after `weigh_by_turns` has weighed them"
    assert (where, hint) == ("$.steps[1]", "put it before `weigh_by_turns`")


def test_dates_stay_the_text_they_are(tmp_path: Path) -> None:
    path = write(tmp_path, "steps:\n  - set_system_prompt: {current_date: 2026-03-01}\n")
    step = load_pipeline(path).steps[0]
    assert "Current date: 2026-03-01" in step.prompt.replace(  # type: ignore[attr-defined]
        "{current_date}",
        step.current_date,  # type: ignore[attr-defined]
    )


def test_a_repeated_key_is_a_mistake(tmp_path: Path) -> None:
    path = write(tmp_path, "name: a\nname: b\nsteps: []\n")
    assert problems(path)[0][0] == "repeated key `name`"


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("output.seed=7", "output", ("seed", 7)),
        ("steps.repair_tool_calls.level=off", "steps", ("level", "off")),
        ("input.max_row_bytes=1MB", "input", ("max_row_bytes", 1 << 20)),
    ],
)
def test_a_setting_changes_one_option(setting: str, path: str, value: tuple[str, object]) -> None:
    pipeline = load_pipeline("redsearcher_sft", [setting])
    if path == "steps":
        step = pipeline.steps[list(pipeline.step_labels).index("repair_tool_calls")]
        assert getattr(step, value[0]) == value[1]
    else:
        assert getattr(getattr(pipeline, path), value[0]) == value[1]


def test_a_setting_reaches_the_second_step_of_a_name(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "steps:\n  - prune_tools: {allowed: [search]}\n  - prune_tools: {allowed: [visit]}\n",
    )
    pipeline = load_pipeline(path, ["steps.prune_tools#2.allowed=[search, visit]"])
    assert [sorted(step.allowed) for step in pipeline.steps] == [  # type: ignore[attr-defined]
        ["search"],
        ["search", "visit"],
    ]


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ("steps.dedup.level=1", "no step `dedup` with an option to set"),
        ("output.seed", "not `path=value`"),
        ("output.sed=1", "unknown option"),
    ],
)
def test_a_setting_that_fits_nothing_is_a_mistake(setting: str, what: str) -> None:
    assert problems("redsearcher_sft", [setting])[0][0] == what


def test_a_step_of_ones_own_is_found_by_file_and_its_content_is_part_of_the_hash(
    tmp_path: Path,
) -> None:
    source = '''
from typing import ClassVar
from trajcurate.curate.step import Drop, Keep, RejectingStep

class OnlyLong(RejectingStep):
    """Keep rows of enough turns."""
    reasons: ClassVar = {"too_short": "fewer turns than asked"}
    min_turns: int = 3

    def apply(self, trajectory, tools):
        if trajectory.turn_count < self.min_turns:
            return Drop("too_short")
        return Keep(trajectory)
'''
    (tmp_path / "my_step.py").write_text(source, encoding="utf-8")
    path = write(tmp_path, "steps:\n  - ./my_step.py:OnlyLong: {min_turns: 5}\n")
    first = load_pipeline(path)
    assert first.steps[0].name() == "only_long"
    (tmp_path / "my_step.py").write_text(source + "# changed\n", encoding="utf-8")
    assert load_pipeline(path).hash != first.hash


def test_a_source_with_a_wrong_pointer_or_column_is_a_mistake(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "sources:\n  - {name: a, path: x, columns: {question: task, anser: /gold}}\nsteps: []\n",
    )
    found = {where: what for what, where, _ in problems(path)}
    assert found == {
        "$.sources[0].columns.question": "not a JSON Pointer",
        "$.sources[0].columns.anser": "unknown column",
    }


@pytest.mark.parametrize(
    ("text", "size"), [("256MB", 256 << 20), ("1 KB", 1024), (17, 17), ("1.5GB", 3 << 29)]
)
def test_sizes_are_read(text: object, size: int) -> None:
    assert parse_size(text) == size


def test_steps_are_the_files_of_the_folder() -> None:
    assert "repair_tool_calls" in step_names()
    assert all("_" in name for name in step_names())
