"""The default device, and the environment of a measurement."""

from __future__ import annotations

from typing import Any

import jax

from explorer.capture.backends import environment
from explorer.measure.machine import cores


def default_device() -> Any:
    # No array is made to find out: a transfer guard might forbid it.
    # No array is made to find out: a transfer guard might forbid it.
    of_jax: Any = jax
    chosen = of_jax.config.jax_default_device
    is_named = chosen is None or isinstance(chosen, str)
    return of_jax.devices(chosen)[0] if is_named else chosen


def environment_with_cores() -> dict[str, str]:
    """Return the versions and device of a capture's environment, and the number of usable cores."""
    return {**environment(), "cores": str(cores())}
