"""Where programs run that nobody sends elsewhere."""

from __future__ import annotations

from typing import Any

import jax

from explorer.capture.backends import environment
from explorer.measure.machine import cores


def default_device() -> Any:
    """The device that JAX uses by default; no array is made to find out, which a transfer guard might forbid."""
    of_jax: Any = jax
    chosen = of_jax.config.jax_default_device
    is_named = chosen is None or isinstance(chosen, str)
    return of_jax.devices(chosen)[0] if is_named else chosen


def environment_with_cores() -> dict[str, str]:
    """Versions and device, as with a capture, and how many cores the process may use."""
    return {**environment(), "cores": str(cores())}
