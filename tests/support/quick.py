"""Parameters of a test of which some are enough for every change; the others run in `make slow`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick(values: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Return the values as parameters: those not chosen are marked slow."""
    values = list(values)
    assert set(chosen) <= set(values), set(chosen) - set(values)
    return [value if value in chosen else pytest.param(value, marks=pytest.mark.slow) for value in values]
