"""Which format a record has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trajcurate.curate.adapt import messages, redsearcher, rollouts
from trajcurate.curate.adapt.adapted import Adapted, Unfit

Adapter = Callable[[Mapping[str, Any]], Adapted | Unfit]

ADAPTERS: dict[str, Adapter] = {
    "redsearcher": redsearcher.adapt,
    "messages": messages.adapt,
    "rollouts": rollouts.adapt,
}

_FITS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "redsearcher": redsearcher.fits,
    "messages": messages.fits,
    "rollouts": rollouts.fits,
}


def formats_of(record: Mapping[str, Any]) -> list[str]:
    """The formats that the record fits, by name."""
    return [name for name, fits in _FITS.items() if fits(record)]
