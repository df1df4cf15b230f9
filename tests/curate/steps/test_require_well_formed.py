from __future__ import annotations

import pytest
from zoo import Sample, reasons_with_sample, zoo

from trajcurate.curate.steps.require_well_formed import RequireWellFormed


@pytest.mark.parametrize("sample", zoo("require_well_formed"))
def test_a_sample_is_rejected_for_its_reason(sample: Sample) -> None:
    sample.check()


def test_every_reason_has_a_sample() -> None:
    assert reasons_with_sample("require_well_formed") == set(RequireWellFormed.reasons)
