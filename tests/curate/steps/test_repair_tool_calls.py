from __future__ import annotations

import pytest
from zoo import Sample, check_kept, reasons_with_sample, zoo

from trajcurate.curate.step import Keep
from trajcurate.curate.steps.repair_tool_calls import RepairToolCalls


@pytest.mark.parametrize("sample", zoo("repair_tool_calls"))
def test_a_sample_comes_out_as_written(sample: Sample) -> None:
    sample.check()
    if isinstance(sample.apply(), Keep):
        check_kept(sample.make_step(), sample.trajectory())


def test_every_reason_has_a_sample() -> None:
    assert reasons_with_sample("repair_tool_calls") == set(RepairToolCalls.reasons)
